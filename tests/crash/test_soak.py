"""A soak leaves out no crash point and no moment; ``make test`` takes a sample of them."""

import os
import re
import subprocess
import sys

import pytest

from tests.crash.scene import ENVIRONMENT, ROOT
from tests.crash.test_crash_points import AT_THE_START, ELSEWHERE, points
from tests.crash.test_kill_sweep import FEW, RUNS


def collected(profile: str) -> list[str]:
    environment = {**ENVIRONMENT, "HYPOTHESIS_PROFILE": profile}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/crash"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.requirement("crash:invariants")
def test_a_soak_walks_every_crash_point_and_the_whole_sweep() -> None:
    (rule,) = re.findall(r"^soak:.*\n\t@(.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert rule.startswith("HYPOTHESIS_PROFILE=soak "), "it is how the tests know"
    names = collected("soak")
    walked = {match[1] for name in names if (match := re.search(r"invariants_hold\[([a-z.-]+):\d+\]", name))}
    assert walked == set(points()) - set(ELSEWHERE) - set(AT_THE_START)
    assert sum("test_kill_sweep" in name for name in names) == RUNS


@pytest.mark.skipif(os.environ.get("HYPOTHESIS_PROFILE") == "soak", reason="it is the sample that is counted")
@pytest.mark.requirement("crash:invariants")
def test_a_sample_has_some_of_every_sweep() -> None:
    names = collected("test")
    assert 10 < sum("crash_point_the_invariants_hold[" in name for name in names) < 60
    assert sum("test_kill_sweep" in name for name in names) == len(FEW)
