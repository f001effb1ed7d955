"""kill -9 around the transactions of the shared store: what was acknowledged is there, and nothing is there in half."""

import asyncio
import subprocess
import sys

import pytest

from tests import postgres
from tests.crash.scene import ENVIRONMENT, ROOT, SOAK, Ended, ended
from toolyard.protocol.store import Query
from toolyard.storage.postgres import PostgresStore

POINTS = [f"postgres.{name}:{hit}" for name in ("before-begin", "before-commit", "after-commit") for hit in (1, 2, 5)]


def run(url: str, point: str) -> Ended:
    command = [sys.executable, "-m", "tests.crash.shared", url, point]
    return ended(
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=ENVIRONMENT)
    )


@pytest.mark.requirement("crash:invariants", "r:R01", "p:P1")
@pytest.mark.parametrize("point", POINTS if SOAK else POINTS[1::3])
async def test_a_writer_that_is_killed_leaves_whole_commits_and_all_that_it_acknowledged(point: str) -> None:
    async with postgres.database() as url:
        writer = await asyncio.to_thread(run, url, point)
        assert writer.killed, writer.errors
        store = await PostgresStore.open(url)
        found = {record.id for record in await store.find("thing", Query(), limit=1000)}
        events = await store.events(0, limit=1000)
        await store.close()
    names = {event.type for event in events}
    assert found == {f"{name}-{half}" for name in names for half in "ab"}
    assert {ack["name"] for ack in writer.of("stored")} <= names
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
