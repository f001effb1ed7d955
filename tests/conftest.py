"""Fixtures every test may use."""

import ast
import gc
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

import toolyard
from toolyard.blocking import BlockingYard

PATIENT: dict[str, Any] = {  # a busy machine is no failure
    "deadline": None,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],
}
# Every run of the suite tries the same examples, so that it fails for a change alone; a soak looks for new ones.
hypothesis.settings.register_profile("test", **PATIENT, max_examples=50, derandomize=True, database=None)
hypothesis.settings.register_profile("soak", **PATIENT, max_examples=5000)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "test")
hypothesis.settings.load_profile(PROFILE)
if PROFILE == "test":  # constants of the modules that happen to be loaded would make other examples in each process
    providers._get_local_constants = lambda: providers._local_constants


def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores: with one more, two cores had nothing to do for a quarter of the time."""
    return (os.cpu_count() or 1) + 2


def pytest_collection_finish() -> None:
    """What was collected lives until the end, so collections need not search it. A server that runs inside a test would
    freeze its own objects too, thousands of servers until memory is full: from here on nobody else does."""
    gc.collect()
    gc.freeze()
    gc.freeze = lambda: None


@pytest.fixture(scope="session", autouse=True)
def home_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test writes to the home of whoever runs them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TOOLYARD_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(autouse=True)
def reset_log_levels() -> None:
    """A command that ran inside an earlier test has set the levels of the log: each test begins with Python's own."""
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("toolyard").setLevel(logging.NOTSET)


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    """The syntax trees of the product, by the paths below its package."""
    source = Path(__file__).parents[1] / "src/toolyard"
    return {file.relative_to(source).as_posix(): ast.parse(file.read_text("utf-8")) for file in source.rglob("*.py")}


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
