"""The page of limits has the numbers of the code."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.limits import list_rows
from toolyard.config import load_config
from toolyard.web.routes.admin.health import list_limits

DOCS = Path(__file__).parents[2] / "docs"

pytestmark = pytest.mark.requirement("docs:limits")


class _Read(dict[str, Any]):
    """The limits of a server, which remember the names that were asked for."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return super().__getitem__(name)


def _read_tables(page: str) -> dict[str, list[tuple[str, str]]]:
    sections = (DOCS / page).read_text("utf-8").split("\n## ")[1:]
    rows = {text.partition("\n")[0]: re.findall(r"^\| (.+?) \| (.+?) \|", text, re.MULTILINE) for text in sections}
    return {title: [row for row in found[1:] if not row[0].startswith("---")] for title, found in rows.items()}


def test_every_number_on_the_page_is_the_one_of_the_code(tmp_path: Path) -> None:
    rows = list_rows(list_limits(load_config(tmp_path, tmp_path)))
    expected = {title: [(row.label, row.value) for row in some] for title, some in rows.items()}
    assert _read_tables("limits.md") == expected


def test_the_page_has_every_limit_that_a_server_shows(tmp_path: Path) -> None:
    limits = _Read(list_limits(load_config(tmp_path, tmp_path)))
    list_rows(limits)
    assert limits.names == set(limits)


def test_the_chinese_page_has_the_same_numbers() -> None:
    def numbers(page: str) -> list[list[str]]:
        return [[value.split()[0] for _, value in rows] for rows in _read_tables(page).values()]

    assert numbers("limits.zh-CN.md") == numbers("limits.md")
