"""The manifest of requirements holds: nothing promised is untested, nothing tested is unpromised."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"
FOUNDING = re.compile(r"00[0-4](?: |$)")


def _marks(node: ast.AST) -> Iterator[str]:
    """The ids in every ``pytest.mark.requirement(...)`` at or below ``node``."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "requirement":
            yield from (
                word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)
            )


def _tests() -> Iterator[tuple[str, set[str]]]:
    """Every test function with the requirements that it, its class or its module names."""
    for file in sorted(TESTS.rglob("test_*.py")):
        module = ast.parse(file.read_text(encoding="utf-8"))
        shared = {
            name
            for statement in module.body
            if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "pytestmark"
            for name in _marks(statement)
        }
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                own = {name for decorator in node.decorator_list for name in _marks(decorator)}
                yield f"{file.relative_to(TESTS)}::{node.name}", shared | own


@pytest.mark.requirement("house:requirements")
def test_every_test_names_a_known_requirement() -> None:
    unmarked = [name for name, ids in _tests() if not ids]
    unknown = [f"{name}: {id_}" for name, ids in _tests() for id_ in sorted(ids - set(REQUIREMENTS))]
    assert (unmarked, unknown) == ([], [])


@pytest.mark.requirement("house:requirements")
def test_every_requirement_that_waits_for_nothing_has_a_test() -> None:
    proved = {id_ for _, ids in _tests() for id_ in ids}
    assert [r.id for r in REQUIREMENTS.values() if r.waits_for is None and r.id not in proved] == []


@pytest.mark.requirement("house:requirements")
def test_a_requirement_with_a_test_no_longer_waits() -> None:
    proved = {id_ for _, ids in _tests() for id_ in ids}
    assert [r.id for r in REQUIREMENTS.values() if r.waits_for is not None and r.id in proved] == []


@pytest.mark.requirement("house:requirements")
def test_every_requirement_is_one_sentence() -> None:
    assert [r.id for r in REQUIREMENTS.values() if not r.behaviour.endswith(".")] == []


@pytest.mark.requirement("house:requirements")
def test_every_source_is_a_founding_document_or_a_section_that_the_documentation_has() -> None:
    wrong = [
        f"{requirement.id}: {source}"
        for requirement in REQUIREMENTS.values()
        for source in requirement.source.split(", ")
        if not FOUNDING.match(source) and not _has_section(source)
    ]
    assert wrong == []


def _has_section(source: str) -> bool:
    page, _, anchor = source.partition("#")
    return (DOCS / page).is_file() and anchor in _list_anchors(page)


@cache
def _list_anchors(page: str) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    text = re.sub(r"(?ms)^(`{3,}).*?^\1$", "", (DOCS / page).read_text("utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"(?m)^#+ (.+)$", text)}
