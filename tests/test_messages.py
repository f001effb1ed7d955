"""Every message of the code has one code, one English template, and one Chinese template in the console."""

import ast
import json
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
CHINESE: dict[str, str] = json.loads((ROOT / "console/src/lib/messages.zh.json").read_text())
CODE = re.compile(r"[a-z]+\.[a-z0-9_]+")


WORDLESS = ("message.paragraphs", "message.sentences", "search.entries", "search.entry")  # they only join others
# What takes sentences for people: as any argument, or as the one of this name.
TAKES = {
    "Failure": "", "Refusal": "", "bad_request": "", "not_found": "", "ToolyardError": "", "ConfigError": "",
    "UsageError": "", "StorageError": "", "ArchiveError": "", "PluginProblem": "", "Fault": "", "ChatFault": "message",
    "Result": "text", "Task": "message", "add_hint": "", "join_sentences": "", "join_messages": "",
}  # fmt: skip
NO_SENTENCES = ('"permissions": {"network": []}', "VCP_ASYNC_RESULT::{}::ID}}")  # to be written so


class Call(NamedTuple):
    place: str
    code: str
    template: str
    params: frozenset[str]


def _find_calls() -> Iterator[Call]:
    for file in sorted((ROOT / "src/toolyard").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Message":
                place = f"{file.relative_to(ROOT)}:{node.lineno}"
                code, template = (ast.literal_eval(argument) for argument in node.args)
                yield Call(place, code, template, frozenset(str(keyword.arg) for keyword in node.keywords))


CALLS = list(_find_calls())


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
def test_a_code_names_one_sentence_and_its_parameters_are_those_of_the_sentence() -> None:
    templates: dict[str, str] = {}
    assert len(CALLS) > 500
    for call in CALLS:
        assert CODE.fullmatch(call.code), call
        assert templates.setdefault(call.code, call.template) == call.template, call
        assert _names(call.template) == call.params, call


@pytest.mark.requirement("messages:codes", "console:languages")
def test_the_console_has_every_message_in_chinese_and_no_other() -> None:
    assert sorted({call.code for call in CALLS} ^ set(CHINESE)) == []
    for call in CALLS:
        chinese = CHINESE[call.code]
        unknown = set(re.findall(r"\{(\w+)\}", chinese)) - call.params
        assert not unknown or "{{" in call.template, call
        is_chinese = re.search(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]", chinese)
        assert is_chinese or "chmod" in chinese or call.code in WORDLESS, call


@pytest.mark.requirement("messages:codes", "console:languages:sentences")
def test_no_plain_sentence_goes_to_people() -> None:
    assert [place for place in _find_plain_sentences() if not place.endswith(NO_SENTENCES)] == []
