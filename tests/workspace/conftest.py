"""Fixtures for the confined project root."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolyard.workspace.workspace import Workspace


@pytest.fixture
def workspace(project: Path) -> Iterator[Workspace]:
    opened = Workspace(project)
    yield opened
    opened.close()
