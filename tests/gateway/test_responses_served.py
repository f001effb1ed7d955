"""Responses of a whole server: questions to a person, WebSockets, and a kill in the middle of a background response."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from tests.gateway.response_events import ask, check_events, check_response, get, parse_stream, stream
from tests.gateway.serving import request
from tests.gateway.test_idempotency_killed import HANG, effects, wait_for_effect
from tests.gateway.test_served import server, settings_for
from tests.gateway.test_turns_killed import prepare
from tests.gateway.upstream import provider, replies
from tests.waiting import wait_for_value
from tests.web.server_process import start_server
from toolyard.web.security.scope import Scope

WRITE = f"I write.\n{request('Write', path='new.txt', content='x')}\n"
OURS: Any = [{"type": "mcp", "server_label": "toolyard"}]


def answer_to(item: dict[str, Any], *, allowed: bool) -> list[dict[str, Any]]:
    return [{"type": "mcp_approval_response", "approval_request_id": item["id"], "approve": allowed}]


@pytest.mark.requirement("responses:approvals")
@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("allowed", [True, False])
async def test_a_client_that_lists_our_server_is_asked_and_decides(
    tmp_path: Path, allowed: bool, is_streamed: bool
) -> None:
    async with server(tmp_path, replies(WRITE, "That is all.")) as running:

        async def send(body: dict[str, Any]) -> dict[str, Any]:
            if is_streamed:
                return check_events(await stream(running.url, body, key=running.key))
            return await ask(running.url, body, key=running.key)

        first = await send({"input": "Hi", "tools": OURS})
        question = first["output"][-1]
        assert (first["status"], question["type"], question["name"]) == ("completed", "mcp_approval_request", "Write")
        assert json.loads(question["arguments"])["path"] == "new.txt"
        body = {"input": answer_to(question, allowed=allowed), "previous_response_id": first["id"], "tools": OURS}
        second = await send(body)
        assert second["previous_response_id"] == first["id"]
        assert (second["output"][0]["type"], second["output"][0]["approval_request_id"]) == ("mcp_call", question["id"])
        assert second["output"][0]["status"] == ("completed" if allowed else "failed")
        assert second["output"][1]["content"][0]["text"] == "That is all."
        assert (running.config.project / "new.txt").exists() == allowed
        third = await send({"input": "And?", "previous_response_id": second["id"], "tools": OURS})
        assert third["output"][0]["content"][0]["text"] == "That is all."


@pytest.mark.requirement("responses:approvals")
async def test_a_client_that_keeps_the_items_itself_is_asked_too(tmp_path: Path) -> None:
    async with server(tmp_path, replies(WRITE, "That is all.", "Yes.")) as running:
        user = {"role": "user", "content": "Hi"}
        first = await ask(running.url, {"input": [user], "tools": OURS, "store": False}, key=running.key)
        history = [user, *first["output"], *answer_to(first["output"][-1], allowed=True)]
        second = await ask(running.url, {"input": history, "tools": OURS, "store": False}, key=running.key)
        more = [*history, *second["output"], {"role": "user", "content": "And?"}]
        third = await ask(running.url, {"input": more, "tools": OURS, "store": False}, key=running.key)
    assert [item["type"] for item in second["output"]] == ["mcp_call", "message"]
    assert [item["type"] for item in third["output"]] == ["message"]


async def allow_when_asked(url: str, key: str) -> None:
    async with aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {key}"}) as session:
        pending: list[dict[str, Any]] = []
        while not pending:
            async with session.get("/v1/approvals?state=pending") as got:
                pending = (await got.json())["data"]
        async with session.post(f"/v1/approvals/{pending[0]['id']}/allow", json={}) as answered:
            assert answered.status == 200


@pytest.mark.requirement("responses:approvals")
async def test_a_client_that_names_stored_items_in_place_of_them_is_asked_too(tmp_path: Path) -> None:
    async with server(tmp_path, replies(WRITE, "That is all.", "Yes.")) as running:
        user = {"role": "user", "content": "Hi"}
        first = await ask(running.url, {"input": [user], "tools": OURS}, key=running.key)
        history = [user, *name_items(first), *answer_to(first["output"][-1], allowed=True)]
        second = await ask(running.url, {"input": history, "tools": OURS}, key=running.key)
        more = [*history, *name_items(second), {"role": "user", "content": "And?"}]
        third = await ask(running.url, {"input": more, "tools": OURS}, key=running.key)
    assert [item["type"] for item in second["output"]] == ["mcp_call", "message"]
    assert third["output"][0]["content"][0]["text"] == "Yes."


def name_items(response: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "item_reference", "id": item["id"]} for item in response["output"]]


@pytest.mark.requirement("responses:approvals")
async def test_a_question_that_the_console_has_answered_first_is_answered(tmp_path: Path) -> None:
    async with server(tmp_path, replies(WRITE, "That is all.")) as running:
        question = (await ask(running.url, {"input": "Hi", "tools": OURS}, key=running.key))["output"][-1]
        await allow_when_asked(running.url, running.key)
        last = await ask(running.url, {"input": answer_to(question, allowed=False)}, key=running.key)
        assert (running.config.project / "new.txt").exists()
    assert [item.get("status") for item in last["output"]] == ["completed", "completed"]


@pytest.mark.requirement("responses:approvals")
async def test_for_a_client_that_does_not_list_our_server_the_turn_waits(tmp_path: Path) -> None:
    async with server(tmp_path, replies(WRITE, "That is all.")) as running:
        body = {"model": "m", "input": "Hi", "stream": True}
        headers = {"Authorization": f"Bearer {running.key}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(f"{running.url}/v1/responses", json=body) as response,
            asyncio.timeout(60),
        ):
            heard = b""
            while b"waits for approval" not in heard:
                heard += await response.content.readany()
            await allow_when_asked(running.url, running.key)
            last = check_events(parse_stream(heard + await response.read()))
        assert (running.config.project / "new.txt").exists()
    assert [item["type"] for item in last["output"]] == ["message", "mcp_call", "message", "message"]
    assert [item["status"] for item in last["output"]] == ["completed"] * 4


@pytest.mark.requirement("responses:approvals")
async def test_a_key_for_chats_alone_may_deny_but_not_allow(tmp_path: Path) -> None:
    async with server(tmp_path, replies(WRITE, "That is all.")) as running:
        _, key = running.access.keys.add("chat", [Scope.CHAT], now=0)
        first = await ask(running.url, {"input": "Hi", "tools": OURS}, key=key)
        question = first["output"][-1]
        async with openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key=key, max_retries=0) as client:
            create: Any = client.responses.create
            with pytest.raises(openai.PermissionDeniedError, match="approve"):
                await create(model="m", input=answer_to(question, allowed=True), previous_response_id=first["id"])
        denied = await ask(running.url, {"input": answer_to(question, allowed=False)}, key=key)
    assert denied["output"][0]["status"] == "failed"


@pytest.mark.requirement("responses:socket")
async def test_a_socket_answers_one_request_after_the_other_and_keeps_the_newest(tmp_path: Path) -> None:
    async with server(tmp_path, replies("One.", "Two.", "Three.")) as running:
        headers = {"Authorization": f"Bearer {running.key}"}
        async with aiohttp.ClientSession(headers=headers) as session, asyncio.timeout(60):
            address = f"{running.url}/v1/responses".replace("http", "ws")
            async with session.ws_connect(address) as socket:

                async def send(**body: Any) -> list[dict[str, Any]]:
                    await socket.send_json({"type": "response.create", "model": "m", "store": False, **body})
                    events = [await socket.receive_json()]
                    while events[-1]["type"] not in ("response.completed", "error"):
                        events.append(await socket.receive_json())
                    return events

                first = check_events(await send(input="Remember. " * 20_000))
                second = check_events(await send(input="And?", previous_response_id=first["id"]))
                gone = await send(input="And?", previous_response_id="resp_gone")
                output = [{"type": "function_call_output", "call_id": "none", "output": "x"}]
                bad = await send(input=output, previous_response_id=second["id"])
                stale = await send(input="And?", previous_response_id=second["id"])
                await socket.send_str("{")
                broken = await socket.receive_json()
    codes = [event["error"]["code"] for event in (gone[0], stale[0])]
    assert second["output"][0]["content"][0]["text"] == "Two."
    assert codes == ["previous_response_not_found", "previous_response_not_found"]
    assert (bad[0]["status"], bad[0]["error"]["param"]) == (400, "input[0].call_id")
    assert (broken["type"], broken["status"]) == ("error", 400)


@pytest.mark.requirement("responses:socket")
async def test_a_request_that_generates_nothing_asks_no_model_and_the_next_one_goes_on_from_it(tmp_path: Path) -> None:
    async with provider(replies("One.")) as upstream:
        (tmp_path / "home").mkdir()
        (tmp_path / "home/config.toml").write_text(settings_for(upstream))
        async with (
            start_server(tmp_path) as running,
            openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.key) as client,
            asyncio.timeout(60),
        ):
            connecting: Any = client.responses.connect()
            async with connecting as connection:
                last = await send(connection, input="Be short.", store=False, generate=False)
                done = await send(connection, input="Hi", store=False, previous_response_id=last["id"])
    assert (last["status"], last["output"]) == ("completed", [])
    assert done["output"][0]["content"][0]["text"] == "One."
    assert [[one["content"] for one in body["messages"]] for body in upstream.bodies] == [["Be short.", "Hi"]]


@pytest.mark.requirement("responses:socket", "responses:approvals")
async def test_a_socket_keeps_the_response_after_a_question_too(tmp_path: Path) -> None:
    async with (
        server(tmp_path, replies(WRITE, "That is all.", "Yes.")) as running,
        openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.key) as client,
        asyncio.timeout(60),
    ):
        connecting: Any = client.responses.connect()
        async with connecting as connection:
            same = {"store": False, "tools": OURS}
            first = await send(connection, input="Hi", **same)
            answer = answer_to(first["output"][-1], allowed=True)
            second = await send(connection, input=answer, previous_response_id=first["id"], **same)
            third = await send(connection, input="And?", previous_response_id=second["id"], **same)
    assert [item["type"] for item in second["output"]] == ["mcp_call", "message"]
    assert third["output"][0]["content"][0]["text"] == "Yes."


async def send(connection: Any, **body: Any) -> dict[str, Any]:
    """Return the response to a request on a socket."""
    await connection.send({"type": "response.create", "model": "m", **body})
    events = []
    async for event in connection:
        events.append(event.to_dict(mode="json"))
        if event.type == "response.completed":
            break
    return check_events(events)


@pytest.mark.requirement("responses:socket")
async def test_the_official_client_connects(tmp_path: Path) -> None:
    async with (
        server(tmp_path, replies("One.")) as running,
        openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.key) as client,
        asyncio.timeout(60),
    ):
        connecting: Any = client.responses.connect()
        async with connecting as connection:
            await connection.response.create(model="m", input="Hi")
            async for event in connection:
                if event.type == "response.completed":
                    break
    assert event.response.output[0].content[0].text == "One."


@pytest.mark.requirement("responses:background", "p:P2")
async def test_a_background_response_goes_on_after_a_kill_and_its_tool_runs_once(tmp_path: Path) -> None:
    async with provider(replies(request("Count", **HANG), "It was cut off.")) as upstream, asyncio.timeout(180):
        words = prepare(tmp_path, upstream.url)
        async with start_server(tmp_path, *words) as first:
            made = await ask(first.url, {"input": "Hi", "background": True}, key=first.key)
            await wait_for_effect(tmp_path)
            first.process.kill()
            await first.process.wait()
        async with start_server(tmp_path, *words) as second:

            async def look() -> Any:
                return json.loads((await get(second.url, f"/{made['id']}", key=second.key))[1])

            now = await wait_for_value(look, lambda one: one["status"] not in ("queued", "in_progress"))
        check_response(now)
    assert (now["id"], now["status"], effects(tmp_path)) == (made["id"], "completed", 1)
    assert [item["type"] for item in now["output"]] == ["mcp_call", "message"]


@pytest.mark.requirement("responses:approvals", "p:P2")
@pytest.mark.parametrize("is_kept_by_client", [False, True])
async def test_a_question_is_answered_after_a_kill_and_what_had_run_runs_no_more(
    tmp_path: Path, is_kept_by_client: bool
) -> None:
    model = replies(request("Count"), request("Count"), "Counted twice.")
    async with provider(model) as upstream, asyncio.timeout(180):
        words = prepare(tmp_path, upstream.url, mode="ask")
        user = {"role": "user", "content": "Hi"}
        async with start_server(tmp_path, *words) as first:
            one = await ask(first.url, {"input": [user], "tools": OURS}, key=first.key)
            history = [user, *one["output"], *answer_to(one["output"][-1], allowed=True)]
            two = await ask(first.url, {"input": history, "tools": OURS}, key=first.key)
            assert effects(tmp_path) == 1
            assert (await get(first.url, f"/{two['id']}", key=first.key))[0] == 200  # it is stored by now
            first.process.kill()
            await first.process.wait()
        async with start_server(tmp_path, *words) as second:
            answer = answer_to(two["output"][-1], allowed=True)
            body = (
                {"input": [*history, *two["output"], *answer]}
                if is_kept_by_client
                else {"input": answer, "previous_response_id": two["id"]}
            )
            three = await ask(second.url, {**body, "tools": OURS}, key=second.key)
    check_response(three)
    assert [item["type"] for item in three["output"]] == ["mcp_call", "mcp_call", "message"]
    assert effects(tmp_path) == 2
