"""Kill, pause and stall everything while clients work: nothing is lost, doubled, started too late or told twice."""

import os
from pathlib import Path

import pytest

from tests.campaign import faults
from tests.campaign.campaign import run_campaign

pytestmark = pytest.mark.requirement("hosts:campaign", "hosts:fencing", "hosts:lease", "hosts:one-story")

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
FEW_ON_FILE = (faults.kill_server, faults.pause_server)
FEW_ON_POSTGRES = (faults.cut_wire, faults.pause_worker)


@pytest.mark.requirement("p:P2", "p:P3", "p:P9")
async def test_a_server_with_a_file_tells_one_story_whatever_happens_to_it(tmp_path: Path) -> None:
    kinds, number = (faults.ON_FILE, 78) if SOAK else (FEW_ON_FILE, 2)
    report = await run_campaign(tmp_path, kinds, number=number, workers=0, clients=6, seed=1)
    assert report.problems() == [], report
    assert report.faults.total() == number
    assert report.told["success"]


@pytest.mark.requirement("p:P2", "p:P3", "p:P9", "hosts:event-numbers")
async def test_a_server_and_workers_tell_one_story_whatever_happens_to_them(tmp_path: Path) -> None:
    kinds, number = (faults.ON_POSTGRES, 130) if SOAK else (FEW_ON_POSTGRES, 2)
    report = await run_campaign(tmp_path, kinds, number=number, workers=2, clients=6, seed=2)
    assert report.problems() == [], report
    assert report.faults.total() == number
    assert report.told["success"]
