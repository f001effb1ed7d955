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
        assert is_chinese or "chmod" in chinese, call
