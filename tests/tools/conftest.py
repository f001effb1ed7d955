"""Fixtures for the tools."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.operating import Operator, operating


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checker that is a program of its own may start slowly on a busy machine."""
    monkeypatch.setattr("toolyard.tools.validation.program.MAX_SECONDS", 30.0)


@pytest.fixture
def op(project: Path, tmp_path: Path) -> Iterator[Operator]:
    """FileOperator on ``project`` with a home of its own."""
    with operating(project, tmp_path / "home") as operator:
        yield operator
