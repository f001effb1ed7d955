"""``toolyard reply`` as a script uses it."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toolyard
from toolyard.protocol.replies.reply_prompt import Language, write_prompt
from toolyard.protocol.replies.reply_values import AttachmentType, Reply
from toolyard.protocol.reply import parse_reply


def run(*words: str, cwd: Path, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-m", "toolyard", "reply", *words]
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, timeout=180, check=False)


@pytest.mark.requirement("reply:parse")
def test_a_reply_is_read_from_a_file_or_stdin(tmp_path: Path) -> None:
    text = '好的：{"content": "你好",}'.encode()
    (tmp_path / "reply.txt").write_bytes(text)
    expected: dict[str, Any] = {
        "ok": True,
        "think": None,
        "content": "你好",
        "attachments": {},
        "problems": [],
        "repairs": ["text_around", "trailing_comma"],
    }
    for words, stdin in ((["reply.txt"], b""), (["-"], text), ([], text)):
        done = run("parse", *words, cwd=tmp_path, stdin=stdin)
        assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, expected, b"")


@pytest.mark.requirement("reply:failure")
def test_a_text_that_is_no_reply_exits_with_1_and_a_file_that_is_not_there_with_2(tmp_path: Path) -> None:
    done = run("parse", cwd=tmp_path, stdin=b"hello")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["line"] == 1
    done = run("parse", "nope", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"cannot read 'nope'" in done.stderr


@pytest.mark.requirement("reply:failure")
def test_bytes_that_are_no_text_do_not_stop_it(tmp_path: Path) -> None:
    done = run("parse", cwd=tmp_path, stdin=b'{"content": "a\xffb"}')
    assert (done.returncode, json.loads(done.stdout)["content"]) == (0, "a\ufffdb")


@pytest.mark.requirement("reply:prompt")
@pytest.mark.parametrize("language", list(Language))
def test_the_prompt_names_every_type_and_its_own_example_is_a_right_reply(language: Language, tmp_path: Path) -> None:
    done = run("prompt", "--lang", language.value, cwd=tmp_path)
    text = done.stdout.decode()
    assert (done.returncode, text) == (0, write_prompt(language))
    assert [type_ for type_ in AttachmentType if type_ not in text] == []
    reply = parse_reply(text[text.index("{") :])
    assert isinstance(reply, Reply)
    assert reply.problems == ()
    fields = ("{{type:id}}", "think", "content", "attachments", "language", "title")
    assert [word for word in fields if word not in text] == []


@pytest.mark.requirement("reply:prompt")
def test_the_prompt_is_english_unless_said_otherwise(tmp_path: Path) -> None:
    assert run("prompt", cwd=tmp_path).stdout.decode() == write_prompt(Language.ENGLISH)


HELLO = json.dumps(
    {
        "think": "Short.",
        "content": "Run {{code:a}} now.",
        "attachments": {"a": {"type": "code", "language": "sh", "content": "ls"}},
    }
)


@pytest.mark.requirement("reply:render")
@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("html", '<details class="think">'),
        ("markdown", "> **Thinking**\n>\n> Short.\n\nRun **a** now.\n\n```sh\nls\n```\n"),
        ("terminal", "│ Thinking\n│ Short.\n\nRun a now.\n\n  ls\n"),
        ("json", json.dumps(parse_reply(HELLO).to_dict(), ensure_ascii=False, indent=2) + "\n"),
    ],
)
def test_a_reply_is_rendered_from_a_file_stdin_or_python(target: str, shown: str, tmp_path: Path) -> None:
    (tmp_path / "hello.json").write_text(HELLO)
    for words, stdin in ((["hello.json"], b""), ([], HELLO.encode())):
        done = run("render", *words, "--to", target, cwd=tmp_path, stdin=stdin)
        text = done.stdout.decode()
        assert (done.returncode, done.stderr, shown in text, text[-1]) == (0, b"", True, "\n")
        assert toolyard.render_reply(HELLO, to=target).strip("\n") == text.strip("\n")


@pytest.mark.requirement("reply:render")
def test_a_pipe_gets_markdown_and_a_terminal_gets_colours_within_its_width(tmp_path: Path) -> None:
    (tmp_path / "hello.json").write_text(json.dumps({"content": "# Title\n\n" + "word " * 20}))
    assert run("render", "hello.json", cwd=tmp_path).stdout.startswith(b"# Title\n\nword word")
    assert run("render", "hello.json", "--json", cwd=tmp_path).stdout.startswith(b'{\n  "ok": true')
    coloured = run_on_terminal("hello.json", cwd=tmp_path, TERM="xterm-256color")
    plain = run_on_terminal("hello.json", cwd=tmp_path, TERM="xterm-256color", NO_COLOR="1")
    assert "\x1b[" in coloured
    assert plain == re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert max(map(len, plain.splitlines())) <= 30


def run_on_terminal(file: str, *, cwd: Path, **environment: str) -> str:
    """Return the output on a terminal of 30 columns."""
    mine, theirs = pty.openpty()
    try:
        command = [sys.executable, "-m", "toolyard", "reply", "render", file]
        stored = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
        env = {**stored, "COLUMNS": "30", **environment}
        subprocess.run(command, cwd=cwd, stdout=theirs, stdin=subprocess.DEVNULL, env=env, timeout=180, check=True)
        return os.read(mine, 10_000).decode().replace("\r\n", "\n")
    finally:
        os.close(mine)
        os.close(theirs)


@pytest.mark.requirement("reply:failure-shown", "reply:render")
@pytest.mark.parametrize("target", ["html", "markdown", "terminal", "json"])
def test_a_text_that_is_no_reply_is_shown_with_its_error_and_exits_with_1(target: str, tmp_path: Path) -> None:
    done = run("render", "--to", target, "--lang", "zh", cwd=tmp_path, stdin="不是 JSON".encode())
    text = done.stdout.decode()
    assert (done.returncode, done.stderr, "不是 JSON" in text) == (1, b"", True)
    if target != "json":
        assert "⚠️ JSON 解析失败" in text
        assert "(第 1 行第 1 列)" in text
        assert text.index("错误: ") < text.index("原始内容:") < text.index("不是 JSON")


@pytest.mark.requirement("reply:render")
def test_an_unknown_target_or_language_is_refused_with_the_choices(tmp_path: Path) -> None:
    assert run("render", "--to", "pdf", cwd=tmp_path).returncode == 2
    with pytest.raises(ValueError, match="unknown target 'pdf': choose one of html, markdown, terminal, json"):
        toolyard.render_reply("{}", to="pdf")
    with pytest.raises(ValueError, match="unknown language 'fr': choose one of zh, en"):
        toolyard.render_reply("{}", lang="fr")


@pytest.mark.requirement("reply:render")
def test_the_page_shows_what_is_really_printed(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/replies.md").read_text("utf-8")
    example = re.search(
        r"^printf '%s' '([^\n]*)' > hello\.json\n.*?^````text\n(.*?)^````$", page, re.MULTILINE | re.DOTALL
    )
    assert example is not None
    assert toolyard.render_reply(example[1], to="markdown") == example[2]
    failure = re.search(r"^````text\n(⚠️.*?)^````$", page, re.MULTILINE | re.DOTALL)
    assert failure is not None
    assert toolyard.render_reply("I cannot answer that.", to="markdown", lang="zh") == failure[1]


@pytest.mark.requirement("reply:render")
def test_reading_a_reply_loads_nothing_that_renders(tmp_path: Path) -> None:
    code = "import sys, toolyard.cli.commands.reply; print(sorted({'rich', 'markdown_it', 'nh3'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=180, check=True)
    assert done.stdout == b"[]\n"
