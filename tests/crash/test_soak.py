"""A soak leaves out no crash point and no moment; ``make test`` takes a sample of them."""

import re

import pytest

from tests.crash import test_crash_points
from tests.crash.scene import ROOT
from tests.crash.test_crash_points import AT_THE_START, ELSEWHERE, points, sampled, walked
from tests.crash.test_kill_sweep import FEW, RUNS


@pytest.mark.requirement("crash:invariants")
def test_a_soak_walks_every_crash_point_and_the_whole_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    (rule,) = re.findall(r"^soak:.*\n\t@(.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert rule.startswith("HYPOTHESIS_PROFILE=soak "), "it is how the tests know"
    monkeypatch.setattr(test_crash_points, "SOAK", True)
    names = {case.partition(":")[0] for case in sampled(walked())}
    assert names == set(points()) - set(ELSEWHERE) - set(AT_THE_START)


@pytest.mark.requirement("crash:invariants")
def test_a_sample_has_some_of_every_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_crash_points, "SOAK", False)
    assert 10 < len(sampled(walked())) < 60
    assert 2 < len(FEW) < RUNS
