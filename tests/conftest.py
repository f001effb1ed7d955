"""Fixtures every test may use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import toolyard
from toolyard.blocking import BlockingYard


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project root."""
    root = tmp_path / "project"
    root.mkdir()
    return root


@pytest.fixture
def yard(project: Path, tmp_path: Path) -> Iterator[BlockingYard]:
    """A Yard on ``project`` with a home of its own."""
    with toolyard.open(project=project, home=tmp_path / "home") as opened:
        yield opened
