"""The engine, and the images that it built, once for all tests of the folder."""

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.containers.podman import Podman, find_obstacle

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    """Podman with the image of this checkout."""
    if not SOAK:
        pytest.skip("makes a base image and builds on it: only in soak")
    if obstacle := find_obstacle():
        pytest.skip(obstacle)
    engine = Podman(tmp_path_factory.mktemp("podman"))
    engine.configure()
    probe = engine.try_run("info")
    if probe.returncode:
        pytest.skip(f"podman does not work here: {probe.stderr.strip()[-300:]}")
    try:
        engine.build_all()
        yield engine
    finally:
        engine.remove_all()
        shutil.rmtree(engine.scratch, ignore_errors=True)
