"""kill -9 from outside, at moments that nobody chose: every 5 ms of a host's work, a few of them outside of a soak."""

import subprocess
from pathlib import Path

import pytest

from tests.crash.invariants import hold
from tests.crash.scene import SOAK, Scene, ended

STEP_MS = 5
RUNS = 400
FEW = (3, 11, 26, 47, 71, 98, 126, 160)


@pytest.mark.requirement("r:R01", "r:R02", "crash:invariants", "p:P1", "p:P2", "p:P7")
@pytest.mark.parametrize("step", range(RUNS) if SOAK else FEW)
async def test_after_kill_9_at_any_moment_the_invariants_hold(tmp_path: Path, step: int) -> None:
    scene = Scene(tmp_path / "scene").lay_out()
    host = scene.start()
    assert host.stdout is not None
    first = host.stdout.readline()
    try:
        host.wait(timeout=step * STEP_MS / 1000)
    except subprocess.TimeoutExpired:
        host.kill()
    await hold(scene, ended(host, first))
