"""Pushes of task results: their target, their delivery, and pushing again."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import wait_until
from tests.web.conftest import RunningServer, run_server
from tests.web.test_callbacks import DONE, start_pending
from tests.web.test_websocket import PUSH, follow, receive
from toolyard.web.feed import Feed
from toolyard.web.security.scope import Scope

pytestmark = pytest.mark.requirement("ws:push", "console:tasks")
OPEN = "vcp_channels = true"


async def wait_for_pushes(running: RunningServer, id_: str, count: int) -> list[dict[str, Any]]:
    """Wait until the task has so many pushes; return them."""
    async with asyncio.timeout(60):
        while True:
            _, seq = await running.yard.state.store.event_span()
            body: list[dict[str, Any]] = (await running.get(f"/v1/tasks/{id_}")).json["pushes"]
            if len(body) >= count:
                return body
            await running.yard.state.store.next_event(seq)


async def test_a_push_is_kept_with_who_took_it_and_can_be_sent_again(
    tmp_path: Path, add_plugin: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolyard.web.routes.calls.events.DELIVERY_S", 60.0)
    add_plugin("Video", "", pluginType="asynchronous", webSocketPush=PUSH)
    async with run_server(tmp_path, settings=OPEN) as running:
        one = await start_pending(running)
        path = f"/v1/tasks/{one.task.id}"
        assert (await running.post(f"{path}/push")).status == 409  # there is nothing to push yet
        message = {"type": "video_ready", "data": DONE}
        async with (
            follow(running, f"/VCPlog/VCP_Key={running.key}", key=None) as log,
            follow(running, f"/vcpinfo/VCP_Key={running.key}", key=None) as info,
        ):
            await receive(log, 1)
            await receive(info, 1)
            await one.post()
            assert await receive(log, 1) == [message]
            (first,) = await wait_for_pushes(running, one.task.id, 1)
            assert running.server.feed.client_count == 2  # who notes the pushes is no client
            assert (first["target"], first["type"], first["again"]) == ("VCPLog", "video_ready", False)
            assert (first["clients"], first["reached"]) == (1, 1)
            assert (await running.post(f"{path}/push")).status == 200
            assert await receive(log, 1) == [message]
            assert [(one["again"], one["reached"]) for one in await wait_for_pushes(running, one.task.id, 2)] == [
                (False, 1),
                (True, 1),
            ]
        await wait_until(lambda: not running.server.feed.client_count)
        await running.post(f"{path}/push")
        nobody = (await wait_for_pushes(running, one.task.id, 3))[-1]
        assert (nobody["clients"], nobody["reached"], nobody["again"]) == (0, 0, True)
        body = (await running.get(path)).json
        assert body["push"] == {"target": "VCPLog", "type": "video_ready", "open": True}
        assert body["state"] == "succeeded"
        assert (await running.post(f"{path}/push", key=running.make_key(Scope.TOOLS))).status == 404


async def test_what_is_pushed_as_soon_as_the_server_is_there_is_noted(
    tmp_path: Path, add_plugin: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_plugin("Video", "", pluginType="asynchronous", webSocketPush=PUSH)
    asks, goes_on, starts = Feed.read_newest_seq, asyncio.Event(), iter([True])

    async def late(feed: Feed) -> int:
        if not next(starts, False):
            await goes_on.wait()
        return await asks(feed)

    monkeypatch.setattr(Feed, "read_newest_seq", late)
    async with run_server(tmp_path, settings=OPEN) as running:
        one = await start_pending(running)
        await one.post()
        goes_on.set()
        assert len(await wait_for_pushes(running, one.task.id, 1)) == 1


async def test_what_is_pushed_while_nobody_notes_it_is_noted_later(
    tmp_path: Path, add_plugin: Callable[..., Path]
) -> None:
    add_plugin("Video", "", pluginType="asynchronous", webSocketPush=PUSH)
    async with run_server(tmp_path, settings=OPEN) as running:
        first = await start_pending(running)
        await first.post()
        assert len(await wait_for_pushes(running, first.task.id, 1)) == 1
        (noting,) = running.server.feed._followers
        noting.dropped.set()  # as when it has fallen behind
        assert (await running.post(f"/v1/tasks/{first.task.id}/push")).status == 200
        assert [one["again"] for one in await wait_for_pushes(running, first.task.id, 2)] == [False, True]


@pytest.mark.parametrize(("settings", "push", "problem"), [("", PUSH, "vcp_channels"), (OPEN, None, "manifest")])
async def test_what_nobody_can_be_told_is_refused_with_the_reason(
    tmp_path: Path, add_plugin: Callable[..., Path], settings: str, push: dict[str, Any] | None, problem: str
) -> None:
    add_plugin("Video", "", pluginType="asynchronous", **({"webSocketPush": push} if push else {}))
    async with run_server(tmp_path, settings=settings) as running:
        one = await start_pending(running)
        await one.post()
        body = (await running.get(f"/v1/tasks/{one.task.id}")).json
        assert (body["pushes"], body["push"] is None) == ([], push is None)
        refused = await running.post(f"/v1/tasks/{one.task.id}/push")
        assert refused.status == 409
        assert problem in refused.json["error"]["message"]


@pytest.mark.requirement("r:R50", "r:R51", "r:R52")
async def test_every_callback_is_listed_with_what_it_was_answered(running_server: RunningServer) -> None:
    task = await start_pending(running_server, "one")
    assert (await task.post(token="forged")).status == 401
    assert [(await task.post()).status, (await task.post()).status] == [200, 200]
    assert (await task.post({"status": "Failed"})).status == 409
    body = (await running_server.get(f"/v1/tasks/{task.task.id}")).json
    assert [(one["result"], one["status"]) for one in body["callbacks"]] == [
        ("refused", 401),
        ("accepted", 200),
        ("duplicate", 200),
        ("refused", 409),
    ]
    assert "token" in body["callbacks"][0]["why"]
    assert (body["chat"], body["chat_kept"]) == (None, False)
