"""A server whose state is damaged."""

import asyncio
from pathlib import Path

import pytest

from tests.storage.damage import damage, fill
from tests.web.conftest import serving
from toolyard.errors import StorageIndexDamaged
from toolyard.web import state_check


@pytest.mark.requirement("doctor:integrity", "r:R06")
async def test_a_server_whose_state_is_damaged_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    await fill(tmp_path / "home/state.db")
    damage(tmp_path / "home/state.db", "records_by_tool")
    with pytest.raises(StorageIndexDamaged, match="records_by_tool"):
        async with serving(tmp_path):
            pass


@pytest.mark.requirement("doctor:integrity")
async def test_damage_that_the_quick_look_does_not_see_is_told_by_the_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "toolyard")
    monkeypatch.setattr(state_check, "MAX_QUICK_BYTES", 0)
    (tmp_path / "home").mkdir()
    await fill(tmp_path / "home/state.db")
    damage(tmp_path / "home/state.db", "records_by_tool")
    async with serving(tmp_path) as running, asyncio.timeout(60):
        while (status := (await running.get("/v1/status")).json["database"])["ok"]:
            pass
        assert "records_by_tool: records are found by their tools with it" in status["problem"]
        checks = {one["name"]: one for one in (await running.get("/v1/doctor")).json["data"]}
        assert (checks["state"]["level"], checks["state"]["message"]) == ("fail", status["problem"])
    assert any("records_by_tool" in record.getMessage() for record in caplog.records)
