"""Fixtures every test may use."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import toolyard
from toolyard.blocking import BlockingYard

PATIENT: dict[str, Any] = {  # a busy machine is no failure
    "deadline": None,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],
}
hypothesis.settings.register_profile("test", **PATIENT, max_examples=50)
hypothesis.settings.register_profile("soak", **PATIENT, max_examples=5000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "test"))


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: a third of the time a test waits for a process, a disk or a browser."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session", autouse=True)
def home_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test writes to the home of whoever runs them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TOOLYARD_HOME", str(tmp_path_factory.mktemp("home")))
        yield


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
