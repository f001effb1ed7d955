"""Schedules that are looked at beforehand, paused and changed; tasks that are counted and given up."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import RunningServer, run_server
from tests.web.test_callbacks import start_pending
from toolyard.protocol.records.schedule_record import SCHEDULE
from toolyard.web.security.scope import Scope

pytestmark = pytest.mark.requirement("http:records")

LATER = {"tool": "LS", "arguments": {"path": "."}, "at": "2099-03-05-14:00"}


async def test_a_schedule_is_paused_resumed_and_cancelled(running_server: RunningServer) -> None:
    id_ = (await running_server.post("/v1/schedules", LATER)).json["id"]

    async def read_state() -> tuple[str, bool]:
        body = (await running_server.get(f"/v1/schedules/{id_}")).json
        return body["state"], body["due"] is not None

    assert (await running_server.post(f"/v1/schedules/{id_}/resume")).status == 409
    assert (await running_server.post(f"/v1/schedules/{id_}/pause")).status == 200
    assert await read_state() == ("paused", False)
    assert (await running_server.post(f"/v1/schedules/{id_}/pause")).status == 409
    assert (await running_server.post(f"/v1/schedules/{id_}/resume")).status == 200
    assert await read_state() == ("scheduled", True)
    await running_server.post(f"/v1/schedules/{id_}/pause")
    assert (await running_server.post(f"/v1/schedules/{id_}/cancel")).status == 200
    assert (await running_server.post(f"/v1/schedules/{id_}/resume")).status == 409
    assert (await running_server.post("/v1/schedules/none/pause")).status == 404


async def test_a_schedule_gets_another_call_and_time(running_server: RunningServer) -> None:
    key = running_server.make_key(Scope.TOOLS)
    made = (await running_server.post("/v1/schedules", LATER, key=key)).json
    path = f"/v1/schedules/{made['id']}"
    new = {"tool": "Glob", "arguments": {"pattern": "*"}, "cron": "30 8 * * 1-5", "maid": "Nova"}
    changed = (await running_server.request("PUT", path, json=new)).json
    assert (changed["id"], changed["created"], changed["caller"]) == (made["id"], made["created"], made["caller"])
    assert (changed["tool"], changed["cron"], changed["at"], changed["maid"]) == ("Glob", "30 8 * * 1-5", None, "Nova")
    assert (await running_server.get(path)).json == changed
    assert (await running_server.request("PUT", path, json={**new, "cron": "never"})).status == 400
    await running_server.post(f"{path}/pause")
    paused = (await running_server.request("PUT", path, json=LATER)).json
    assert (paused["state"], paused["due"]) == ("paused", None)
    await running_server.post(f"{path}/resume")
    assert (await running_server.get(path)).json["scheduled_for"].startswith("2099-03-05T14:00")
    await running_server.post(f"{path}/cancel")
    assert (await running_server.request("PUT", path, json=LATER)).status == 409


async def test_times_are_previewed_with_their_offset(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings='time_zone = "Europe/Berlin"\n') as running:

        async def previewed(**when: str) -> dict[str, Any]:
            response = await running.post("/v1/schedules/preview", when)
            assert response.status == 200
            return dict(response.json)

        once = await previewed(at="2099-03-05-14:00")
        assert (once["times"], once["zone"], once["note"], once["problem"]) == (
            ["2099-03-05T14:00:00+01:00"], "Europe/Berlin", "", None,
        )  # fmt: skip
        assert once["in_seconds"] > 0
        assert "skip" in (await previewed(at="2099-03-29-02:30"))["note"]
        assert "twice" in (await previewed(at="2099-10-25-02:30"))["note"]
        assert len((await previewed(cron="0 8 * * *"))["times"]) == 5
        week = (await running.post("/v1/schedules/preview", {"cron": "0 * * * *", "days": 7})).json["times"]
        assert len(week) == 168
        for wrong in ({"at": "2001-01-01-10:00"}, {"cron": "x"}, {}, {"at": "2099-03-05-14:00", "cron": "* * * * *"}):
            result = await previewed(**wrong)
            assert (result["times"], result["in_seconds"], bool(result["problem"])) == ([], None, True)


async def test_tasks_are_counted_and_given_up(running_server: RunningServer) -> None:
    first = await start_pending(running_server, "one")
    await start_pending(running_server, "two")
    given_up = await running_server.post(f"/v1/tasks/{first.task.id}/fail", {"reason": "the printer burnt"})
    assert given_up.status == 200
    assert (await running_server.post(f"/v1/tasks/{first.task.id}/fail")).status == 409
    body = (await running_server.get(f"/v1/tasks/{first.task.id}")).json
    assert (body["state"], body["message"], body["callbacks"]) == ("failed", "the printer burnt", [])
    counted = (await running_server.get("/v1/tasks/count")).json["by_state"]
    assert (counted["failed"], counted["waiting_callback"], counted["succeeded"]) == (1, 1, 0)
    other = running_server.make_key(Scope.TOOLS)
    assert sum((await running_server.get("/v1/tasks/count", key=other)).json["by_state"].values()) == 0
    assert (await running_server.post(f"/v1/tasks/{first.task.id}/fail", key=other)).status == 404


@pytest.mark.requirement("console:schedule")
async def test_a_run_that_waits_for_a_person_is_blocked_by_its_approval(running_server: RunningServer) -> None:
    later = {"tool": "Write", "arguments": {"path": "a.txt", "content": "x"}, "at": "2099-03-05-14:00"}
    made = (await running_server.post("/v1/schedules", later)).json
    assert (made["condition"], made["approval"], made["chat"], made["chat_kept"]) == ("scheduled", None, None, False)
    store = running_server.yard.state.store
    record = await store.get(SCHEDULE, made["id"])
    assert record is not None
    assert await store.commit([replace(record, body={**record.body, "approved": ""})])  # as it was never approved
    assert (await running_server.post(f"/v1/schedules/{made['id']}/run")).status == 200

    async def wait_for_condition(condition: str) -> dict[str, Any]:
        """Wait until the schedule is in that condition; return its row."""
        async with asyncio.timeout(60):
            while True:
                _, seq = await store.event_span()
                (listed,) = (await running_server.get("/v1/schedules")).json["data"]
                if listed["condition"] == condition:
                    return dict(listed)
                await store.next_event(seq)

    blocked = await wait_for_condition("blocked")
    (request,) = (await running_server.get("/v1/approvals?state=pending")).json["data"]
    assert (blocked["state"], blocked["approval"]) == ("running", request["id"])
    await running_server.post(f"/v1/approvals/{request['id']}/allow")
    assert (await wait_for_condition("done"))["runs"][-1]["call_id"] == request["call_id"]


async def test_a_time_is_understood_as_people_type_it(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings='time_zone = "Asia/Shanghai"\n') as running:
        body = (await running.post("/v1/schedules/preview", {"at": "in 1 hour"})).json
        assert body["at"] == body["times"][0]
        assert (body["zone"], body["offset"]) == ("Asia/Shanghai", "+08:00")
        assert 3590 < body["in_seconds"] <= 3600
        made = await running.post("/v1/schedules", {**LATER, "at": body["at"]})
        assert made.json["scheduled_for"] == body["at"]
        assert (await running.post("/v1/schedules", {**LATER, "at": "in 1 hour"})).status == 400


@pytest.mark.requirement("console:schedule", "schedule:run")
async def test_a_schedule_made_in_a_chat_leads_back_to_it(running_server: RunningServer) -> None:
    request = {"model": "tour", "messages": [{"role": "user", "content": "schedule"}]}
    async with asyncio.timeout(60):
        await running_server.post("/v1/chat/completions", request, headers={"X-Toolyard-Chat": "tea"})
    (made,) = (await running_server.get("/v1/schedules")).json["data"]
    assert (made["chat"], made["origin"]) == ("tea", "chat")
    path = f"/v1/schedules/{made['id']}"
    assert (await running_server.get(path)).json["chat_kept"] is False
    await running_server.request("PUT", "/v1/conversations/tea", json={"title": "Tea"})
    assert (await running_server.get(path)).json["chat_kept"] is True


@pytest.mark.requirement("import:vcp-timed")
async def test_a_proposed_schedule_is_shown_whole_and_allowed_by_a_key_that_may_approve(
    running_server: RunningServer,
) -> None:
    key = running_server.make_key(Scope.TOOLS)
    secret = running_server.key
    new = {"tool": "Write", "arguments": {"path": "a.txt", "content": f"{secret}!"}, "at": LATER["at"]}
    id_ = (await running_server.post("/v1/schedules", new, key=key)).json["id"]
    assert (await running_server.get(f"/v1/schedules/{id_}")).json["proposed"] is False
    await _withdraw_approval(running_server, id_)
    seen = (await running_server.get(f"/v1/schedules/{id_}")).json
    assert (seen["proposed"], seen["condition"]) == (True, "proposed")
    assert seen["hidden"] == [{"at": "/content", "characters": len(secret)}]
    revealed = await running_server.get(f"/v1/schedules/{id_}/arguments")
    assert revealed.json["arguments"] == new["arguments"]
    assert (await running_server.get(f"/v1/schedules/{id_}/arguments", key=key)).status == 403
    assert (await running_server.post(f"/v1/schedules/{id_}/allow", key=key)).status == 403
    assert (await running_server.post(f"/v1/schedules/{id_}/allow")).status == 200
    seen = (await running_server.get(f"/v1/schedules/{id_}")).json
    assert (seen["proposed"], seen["condition"]) == (False, "scheduled")
    await running_server.post(f"/v1/schedules/{id_}/cancel")
    assert (await running_server.post(f"/v1/schedules/{id_}/allow")).status == 409


async def _withdraw_approval(running_server: RunningServer, id_: str) -> None:
    """Make a schedule a proposal, as an import does."""
    store = running_server.yard.state.store
    record = await store.get(SCHEDULE, id_)
    assert record is not None
    assert await store.commit([replace(record, body={**record.body, "approved": ""})])
