"""What comes first: a call is recorded before it runs."""

import threading
from pathlib import Path

import pytest

from tests.plugins.yards import PluginYard
from toolyard.crashpoint import arm

PATIENCE_S = 0.3  # long enough for a call that does not wait for its record


@pytest.mark.requirement("p:P2", "p:P10")
async def test_no_child_is_started_before_its_call_is_stored(tmp_path: Path) -> None:
    spawned = threading.Event()
    early: list[bool] = []

    def watch(point: str) -> None:
        if point == "plugin.before-spawn":
            spawned.set()
        elif point == "store.before-commit" and not early:
            early.append(spawned.wait(PATIENCE_S))

    async with PluginYard(tmp_path) as host:
        host.add("Echo")
        arm(watch)
        try:
            outcome = await host.call("Echo")
        finally:
            arm(None)
    assert (outcome.envelope.error, spawned.is_set(), early) == (None, True, [False])
