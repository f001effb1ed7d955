"""``toolyard reply`` as a script uses it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolyard.protocol.replies.prompt import Language, prompt
from toolyard.protocol.reply import AttachmentType, Reply, parse_reply


def run(*words: str, cwd: Path, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-m", "toolyard", "reply", *words]
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, timeout=30, check=False)


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
    assert (done.returncode, text) == (0, prompt(language))
    assert [type_ for type_ in AttachmentType if type_ not in text] == []
    reply = parse_reply(text[text.index("{") :])
    assert isinstance(reply, Reply)
    assert reply.problems == ()
    fields = ("{{type:id}}", "think", "content", "attachments", "language", "title")
    assert [word for word in fields if word not in text] == []


@pytest.mark.requirement("reply:prompt")
def test_the_prompt_is_english_unless_said_otherwise(tmp_path: Path) -> None:
    assert run("prompt", cwd=tmp_path).stdout.decode() == prompt(Language.ENGLISH)
