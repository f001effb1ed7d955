"""A server whose state is damaged."""

import asyncio
from pathlib import Path
from random import randbytes

import pytest

from tests.storage.damage import damage, fill
from tests.web.conftest import run_server
from toolyard.errors import StorageIndexDamaged
from toolyard.storage.state_file import measure_used_bytes
from toolyard.web.server import health, lifecycle
from toolyard.yard import state as yard_state


@pytest.mark.requirement("doctor:integrity", "r:R06")
async def test_a_server_whose_state_is_damaged_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    await fill(tmp_path / "home/state.db")
    damage(tmp_path / "home/state.db", "records_by_tool")
    with pytest.raises(StorageIndexDamaged, match="records_by_tool"):
        async with run_server(tmp_path):
            pass


@pytest.mark.requirement("doctor:integrity")
async def test_damage_that_the_quick_look_does_not_see_is_told_by_the_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "toolyard")
    monkeypatch.setattr(health, "MAX_QUICK_BYTES", 0)
    (tmp_path / "home").mkdir()
    await fill(tmp_path / "home/state.db")
    damage(tmp_path / "home/state.db", "records_by_tool")
    async with run_server(tmp_path) as running, asyncio.timeout(60):
        while (status := (await running.get("/v1/status")).json["database"])["ok"]:
            pass
        assert "records_by_tool: records are found by their tools with it" in status["problem"]
        checks = {one["name"]: one for one in (await running.get("/v1/doctor")).json["data"]}
        assert (checks["state"]["level"], checks["state"]["message"]) == ("fail", status["problem"])
    assert any("records_by_tool" in record.getMessage() for record in caplog.records)


@pytest.mark.requirement("state:size")
async def test_a_server_whose_state_outgrows_its_limit_does_not_wait_for_the_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "_RECOVER_S", 0.05)
    monkeypatch.setattr(lifecycle, "_SWEEP_S", 1e9)
    monkeypatch.setattr(
        yard_state, "measure_used_bytes", lambda file: 64 * measure_used_bytes(file)
    )  # 64 MiB is the least that can be set
    async with run_server(tmp_path, settings="history_mib = 64\n") as running, asyncio.timeout(120):
        state, limit = running.home / "state.db", 2**20
        sizes: list[int] = []
        while len(sizes) < 20 or max(sizes) <= limit or sizes[-1] > limit:
            await running.post("/v1/tools/Write", {"file_path": "a.txt", "content": randbytes(30_000).hex()})
            sizes.append(await asyncio.to_thread(measure_used_bytes, state))
