"""Fixtures for the tools."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.operating import Operator, open_operator


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checker that is a program of its own may start slowly on a busy machine."""
    monkeypatch.setattr("toolyard.tools.validation.program.MAX_SECONDS", 30.0)


@pytest.fixture
def op(project: Path, tmp_path: Path) -> Iterator[Operator]:
    """FileOperator on ``project`` with a home of its own."""
    with open_operator(project, tmp_path / "home") as operator:
        yield operator
