"""The sentences of the code and their catalogue agree; what has no Chinese is listed by ``make check``."""

import ast
import json
import re
import string
from collections.abc import Iterator

import pytest

from scripts.messages import CATALOGUE, ROOT, Call, find_calls, format_catalogue

ROWS: dict[str, dict[str, str]] = json.loads(CATALOGUE.read_text())
CODE = re.compile(r"[a-z]+\.[a-z0-9_]+")


@pytest.fixture(scope="module")
def calls() -> list[Call]:
    return list(find_calls())


WORDLESS = ("message.paragraphs", "message.sentences", "search.entries", "search.entry")  # they only join others
# What takes sentences for people: as any argument, or as the one of this name.
TAKES = {
    "Failure": "", "Refusal": "", "bad_request": "", "not_found": "", "ToolyardError": "", "ConfigError": "",
    "UsageError": "", "StorageError": "", "ArchiveError": "", "PluginProblem": "", "Fault": "", "ChatFault": "message",
    "Result": "text", "Task": "message", "add_hint": "", "join_sentences": "", "join_messages": "",
}  # fmt: skip
NO_SENTENCES = ('"permissions": {"network": []}', "VCP_ASYNC_RESULT::{}::ID}}")  # to be written so


def _find_plain_sentences() -> Iterator[str]:
    """Yield texts of several words, without a code, that are given to a message or to what takes sentences."""
    for file in sorted((ROOT / "src/toolyard").rglob("*.py")):
        if file.relative_to(ROOT / "src/toolyard").parts[0] == "cli":
            continue  # which speaks to the person who typed the command
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            only = TAKES.get(name, None if name != "Message" else "")
            if only is None:
                continue
            given = [keyword.value for keyword in node.keywords if not only or keyword.arg == only]
            given += [] if only or name == "Message" else node.args
            for text in (text for value in given for text in _plain_texts(value)):
                yield f"{file.relative_to(ROOT)}:{node.lineno}: {name}: {text}"


def _plain_texts(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str() as text) if re.search(r"[A-Za-z]{2}.* .*[A-Za-z]{2}", text):
            yield text
        case ast.JoinedStr():
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            if re.search(r"[A-Za-z]{2}", text.replace("{}", "")):
                yield text
        case ast.BinOp():
            yield from (*_plain_texts(node.left), *_plain_texts(node.right))
        case ast.IfExp():
            yield from (*_plain_texts(node.body), *_plain_texts(node.orelse))
        case ast.BoolOp():
            yield from (text for value in node.values for text in _plain_texts(value))


def _names(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


@pytest.mark.requirement("messages:codes")
def test_the_parameters_of_a_message_are_those_of_its_sentence(calls: list[Call]) -> None:
    assert len(calls) > 500
    for call in calls:
        assert _names(call.template) == call.params, call


@pytest.mark.requirement("messages:codes")
def test_a_code_names_one_sentence_of_the_code(calls: list[Call]) -> None:
    assert sorted(set(ROWS) - {call.template for call in calls}) == []
    codes = [row["code"] for row in ROWS.values() if "code" in row]
    assert len(codes) == len(set(codes))
    assert [code for code in codes if not CODE.fullmatch(code)] == []


@pytest.mark.requirement("messages:codes")
def test_the_catalogue_has_a_line_for_each_sentence() -> None:
    assert CATALOGUE.read_text() == format_catalogue(ROWS), "make format sorts it"


@pytest.mark.requirement("messages:codes", "console:languages")
def test_the_chinese_of_a_sentence_is_chinese_and_has_its_parameters() -> None:
    for template, row in ROWS.items():
        chinese = row.get("zh", "")
        unknown = set(re.findall(r"\{(\w+)\}", chinese)) - _names(template)
        assert not unknown or "{{" in template, template
        is_chinese = re.search(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]", chinese)
        assert "zh" not in row or is_chinese or "chmod" in chinese or row.get("code") in WORDLESS, template


@pytest.mark.requirement("messages:codes", "console:languages:sentences")
def test_no_plain_sentence_goes_to_people() -> None:
    assert [place for place in _find_plain_sentences() if not place.endswith(NO_SENTENCES)] == []
