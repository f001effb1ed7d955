"""The pages of the documentation as a whole: the index, the translations, the words, and the messages they quote."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import toolyard
from scripts.messages import find_calls
from toolyard.cli import toolyard as command_line
from toolyard.dialects import DIALECTS
from toolyard.web.security.scope import Scope

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CHINESE = ".zh-CN.md"
PAGES = sorted(file.relative_to(DOCS).as_posix() for file in DOCS.rglob("*.md"))
TRANSLATED = [name for name in PAGES if name.endswith(CHINESE)]
INDEXES = [name for name in PAGES if Path(name).name in {"README.md", f"README{CHINESE}"}]
FOR_DEVELOPERS = {"architecture", "releasing"}  # in English, as are the decisions

pytestmark = pytest.mark.requirement("docs:pages")


def _read(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def _fences(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def _list_rows(index: str) -> list[str]:
    """The pages that the tables of an index begin with, as paths below ``docs/``, in English."""
    folder = Path(index).parent
    rows = re.findall(r"^\| \[[^\]]+\]\(([^)]+\.md)\)", _read(index), re.MULTILINE)
    return [(folder / row).as_posix().replace(CHINESE, ".md") for row in rows]


def test_every_page_is_in_an_index() -> None:
    english = {name for name in PAGES if not name.endswith(CHINESE)} - {"README.md"}
    listed = [row for index in INDEXES if not index.endswith(CHINESE) for row in _list_rows(index)]
    assert sorted(english ^ set(listed)) == []
    assert len(listed) == len(set(listed))


def test_a_chinese_index_lists_the_same_pages_in_the_same_order_and_the_chinese_ones_where_there_are_any() -> None:
    listed: set[str] = set()
    for index in (name for name in INDEXES if name.endswith(CHINESE)):
        assert _list_rows(index) == _list_rows(index.replace(CHINESE, ".md"))
        listed |= {(Path(index).parent / link).as_posix() for link in re.findall(r"\]\(([^)]+)\)", _read(index))}
    assert [name for name in TRANSLATED if name != f"README{CHINESE}" and name not in listed] == []


def test_every_page_for_users_is_there_in_chinese() -> None:
    english = {
        name.removesuffix(".md") for name in PAGES if name not in TRANSLATED and not name.startswith("decisions/")
    }
    assert english - FOR_DEVELOPERS == {name.removesuffix(CHINESE) for name in TRANSLATED}


@pytest.mark.parametrize("name", TRANSLATED)
def test_a_translation_has_the_parts_the_commands_and_the_messages_of_its_page(name: str) -> None:
    chinese, english = _read(name), _read(name.replace(CHINESE, ".md"))
    for language in ("sh", "text", "json", "toml"):
        if name != f"writing-a-plugin{CHINESE}" or language == "sh":  # its examples are Chinese
            assert _fences(chinese, language) == _fences(english, language)
    for heading in ("\n## ", "\n### "):
        assert chinese.count(heading) == english.count(heading)
    file = Path(name).name
    assert f"]({file.replace(CHINESE, '.md')})" in chinese
    assert f"]({file})" in english


def test_the_glossary_is_the_same_in_both_languages() -> None:
    english = re.findall(r"^\| (.+?) \| (.+?) \| .+ \|$", _read("glossary.md"), re.MULTILINE)[1:]
    chinese = re.findall(r"^\| (.+?) \| (.+?) \| .+ \|$", _read(f"glossary{CHINESE}"), re.MULTILINE)[1:]
    assert english == [(word, translation) for translation, word in chinese]
    assert [word for word, _ in english] == sorted((word for word, _ in english), key=str.lower)
    for name in ("glossary.md", f"glossary{CHINESE}"):
        assert [word for word in (*Scope, *DIALECTS) if f"`{word}`" not in _read(name)] == []


def test_chinese_pages_address_the_reader_as_the_console_does_and_use_the_words_of_the_glossary() -> None:
    pages = {name: _read(name) for name in TRANSLATED} | {"front": (ROOT / f"README{CHINESE}").read_text("utf-8")}
    words = ("您", "隔离级别", "模型提供方", "模型提供商", "模型供应商")
    assert [(name, word) for name, text in pages.items() for word in words if word in text] == []


def _match_template(template: str, message: str) -> bool:
    parts = re.split(r"\{\w+[^{}]*\}", template.replace("{{", "{").replace("}}", "}"))
    return sum(map(len, parts)) >= 10 and bool(re.fullmatch(".+?".join(map(re.escape, parts)), message, re.DOTALL))


def test_every_message_of_the_troubleshooting_page_is_one_that_toolyard_says() -> None:
    messages = [line for block in _fences(_read("troubleshooting.md"), "text") for line in block.splitlines()]
    setup = (ROOT / "scripts/setup").read_text("utf-8")
    templates = [call.template for call in find_calls()]
    for file in (ROOT / "src/toolyard/cli").rglob("*.py"):
        templates += _read_templates(ast.parse(file.read_text("utf-8")))
    assert len(messages) > 20
    known = [message for message in messages if any(_match_template(template, message) for template in templates)]
    unknown = [message for message in messages if message not in known]
    assert [message for message in unknown if message.removeprefix("setup: ") not in setup] == []


def _read_templates(tree: ast.AST) -> Iterator[str]:
    """The strings of a source, with ``{x}`` in place of each expression of an f-string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{x}" for part in node.values)


def test_the_messages_about_a_plugin_and_a_provider_are_quoted_as_users_see_them(tmp_path: Path) -> None:
    """A template alone does not tell which of two messages is shown, or what stands in it."""
    page, home = _read("troubleshooting.md"), tmp_path / "home"
    _run("plugin", "new", "Greeter", "--folder", str(home / "plugins"))
    for reason in ("nobody has allowed it yet", "it has changed since it was allowed"):
        with toolyard.open(tmp_path, home) as yard:
            error = yard.call("Greeter", {"name": "Ada"}).error
        assert error is not None
        assert reason in error.message
        assert f"\n{error.message.replace(f' --home {home} --project {tmp_path}', '')}\n" in page
        _run("plugin", "allow", "Greeter", "--yes", "--home", str(home))
        (home / "plugins/Greeter/main.py").write_text("print('{}')\n")
    (name,) = re.findall(r'HttpUpstream\("(\w+)"', (ROOT / "src/toolyard/yard/chat.py").read_text("utf-8"))
    assert set(re.findall(r"The model provider '(\w+)'", page)) == {name}


def _run(*words: str) -> None:
    done = CliRunner().invoke(command_line, words)
    assert done.exit_code == 0, done.output


def test_the_variables_of_the_compose_files_are_those_of_the_page_about_containers() -> None:
    one, cluster = _read("containers.md").split("## A cluster")
    for file, part in (("compose.yaml", one.partition("## The image")[0]), ("compose.cluster.yaml", cluster)):
        used = set(re.findall(r"\$\{(\w+)", (ROOT / file).read_text("utf-8")))
        rows = "\n".join(re.findall(r"^\| (`[^|]+) \|", part, re.MULTILINE))
        assert (file, used) == (file, set(re.findall(r"`(\w+)`", rows)))
