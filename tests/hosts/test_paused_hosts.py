"""Hosts and databases that stand still: nothing starts after its end, and nobody healthy is taken for dead."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from tests import postgres
from tests.hosts.yards import effects_folder, host, sees, shell_plugin, workers
from tests.waiting import wait_until
from toolyard.hosts import lease
from toolyard.protocol.envelope import Status

WAIT = "echo start >> $file; while [ ! -e $file.go ]; do sleep 0.05; done\n"


@pytest.fixture
async def database() -> AsyncIterator[str]:
    async with postgres.database(new=True) as url:
        yield url


@pytest.mark.requirement("hosts:fencing")
@pytest.mark.usefixtures("hasty")
async def test_a_worker_that_wakes_from_a_pause_starts_nothing_that_has_ended(database: str, tmp_path: Path) -> None:
    shell_plugin(tmp_path / "w", "Wait", WAIT)
    files = [effects_folder(tmp_path) / f"effect{number}" for number in range(16)]
    async with host(tmp_path / "a", database) as a, workers(database, tmp_path / "w") as (worker,):
        await sees(a.yard, "Wait")
        calls = [asyncio.create_task(a.yard.call("Wait", {"file": str(file)})) for file in files]
        await wait_until(lambda: any(file.exists() for file in files))
        worker.pause()
        envelopes = await asyncio.gather(*calls)
        began = [file.exists() for file in files]
        worker.resume()
        await sees(a.yard, "Wait")
        last = effects_folder(tmp_path) / "last"
        last.with_suffix(".go").write_text("")
        assert (await a.yard.call("Wait", {"file": str(last)})).status is Status.SUCCESS
        assert [file.exists() for file in files] == began
        ended = [envelope.context.get("reason") for envelope in envelopes if envelope.error]
        assert "INTERRUPTED" in ended


@pytest.mark.requirement("hosts:lease")
@pytest.mark.usefixtures("hasty")
async def test_a_lock_in_the_database_makes_no_healthy_host_count_as_dead(database: str, tmp_path: Path) -> None:
    effect = effects_folder(tmp_path) / "effect"
    shell_plugin(tmp_path / "w", "Wait", WAIT)
    async with host(tmp_path / "a", database) as a, workers(database, tmp_path / "w"):
        await sees(a.yard, "Wait")
        running = asyncio.create_task(a.yard.call("Wait", {"file": str(effect)}))
        await wait_until(effect.exists)
        outsider = await asyncpg.connect(database)
        try:
            async with outsider.transaction():
                await outsider.execute("SELECT * FROM toolyard.last_event FOR UPDATE")
                waiting = asyncio.create_task(a.yard.call("Wait", {"file": str(effect)}))
                await asyncio.sleep(2 * lease.LEASE_S)
        finally:
            await outsider.close()
        effect.with_suffix(".go").write_text("")
        assert [(await one).text for one in (running, waiting)] == ["done", "done"]
        told = [event.type for event in await a.yard.state.store.events(0, limit=1000)]
        assert "host.lost" not in told
