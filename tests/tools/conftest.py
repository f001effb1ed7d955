"""Fixtures for the tools."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.operating import Operator, operating


@pytest.fixture
def op(project: Path, tmp_path: Path) -> Iterator[Operator]:
    """FileOperator on ``project`` with a home of its own."""
    with operating(project, tmp_path / "home") as operator:
        yield operator
