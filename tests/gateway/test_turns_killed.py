"""``kill -9`` of a real server in the middle of a turn: the same request continues it, and no effect happens again."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.gateway.serving import request
from tests.gateway.test_idempotency_killed import COUNT, HANG, effects, wait_for_effect
from tests.gateway.upstream import provider, replies
from tests.plugins.folders import make_plugin
from tests.waiting import wait_for_value, wait_until
from tests.web.server_process import ServerProcess, start_server

pytestmark = pytest.mark.requirement("repeat:crash", "p:P2")
MESSAGES: Any = [{"role": "user", "content": "Hi."}]


def prepare(place: Path, provider_url: str, *, mode: str = "auto", code: str = COUNT) -> tuple[str, ...]:
    """A home with a plugin that counts its runs; return the words that serve it on a port of its own."""
    folder = make_plugin(place / "given", "Count")
    (folder / "main.py").write_text(code)
    (place / "home").mkdir()
    settings = f'approval_mode = "{mode}"\nupstream_url = "{provider_url}"\nupstream_key = "sk-x"\n'
    (place / "home/config.toml").write_text(settings)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return "--port", str(port), "--plugins", str(place / "given"), "--trust"


def sdk(process: ServerProcess, retries: int) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{process.url}/v1", api_key=process.key, timeout=120, max_retries=retries)


async def ask(client: openai.AsyncOpenAI, *, stream: bool) -> str:
    answer: Any = await client.chat.completions.create(model="m", messages=MESSAGES, stream=stream)
    if not stream:
        return str(answer.choices[0].message.content)
    return "".join([event.choices[0].delta.content or "" async for event in answer if event.choices])


async def test_an_sdk_that_retries_by_itself_across_a_kill_doubles_no_effect(tmp_path: Path) -> None:
    async with provider(replies(request("Count", **HANG), "It was cut off.")) as upstream, asyncio.timeout(180):
        words = prepare(tmp_path, upstream.url)
        async with start_server(tmp_path, *words) as first:
            client = sdk(first, retries=20)
            asking = asyncio.create_task(ask(client, stream=False))
            await wait_for_effect(tmp_path)
            first.process.kill()
            await first.process.wait()
        async with start_server(tmp_path, *words), client:
            text = await asking
        assert text.endswith("It was cut off.")
        assert "✗ Count: Count was cut off when the server went down" in text
        assert (effects(tmp_path), len(upstream.bodies)) == (1, 2)


@pytest.mark.parametrize("stream", [False, True])
async def test_any_client_that_sends_the_same_again_after_a_kill_continues_the_turn(
    tmp_path: Path, stream: bool
) -> None:
    block = f"I count.\n{request('Count')}\n"
    async with provider(replies(block, request("Count", **HANG), "Twice.", "Afresh.")) as upstream:
        words = prepare(tmp_path, upstream.url)
        async with asyncio.timeout(180), start_server(tmp_path, *words) as first, sdk(first, 0) as client:
            asking = asyncio.create_task(ask(client, stream=stream))
            await wait_until(lambda: effects(tmp_path) == 2, within_s=120)
            first.process.kill()
            with pytest.raises(openai.APIError):
                await asking
        async with asyncio.timeout(180), start_server(tmp_path, *words) as second, sdk(second, 0) as client:
            text = await ask(client, stream=stream)
            assert (text.startswith("I count."), text.endswith("Twice.")) == (True, True)
            assert "✓ Count: counted" in text
            assert "cut off when the server went down" in text
            assert (effects(tmp_path), len(upstream.bodies)) == (2, 3)
            assert await ask(client, stream=stream) == "Afresh."  # the same wish again is another turn


async def test_a_request_that_was_killed_before_its_tool_began_simply_runs(tmp_path: Path) -> None:
    async with provider(replies(request("Count"), "Done.")) as upstream:
        words = prepare(tmp_path, upstream.url)
        killed = ("tests.crash.killed_server", "turn.stored:1")
        async with (
            asyncio.timeout(180),
            start_server(tmp_path, *words, program=killed) as first,
            sdk(first, 0) as client,
        ):
            with pytest.raises(openai.APIError):
                await ask(client, stream=False)
        assert effects(tmp_path) == 0
        async with asyncio.timeout(180), start_server(tmp_path, *words) as second, sdk(second, 0) as client:
            assert (await ask(client, stream=False)).endswith("Done.")
        assert effects(tmp_path) == 1


@pytest.mark.requirement("approval:survives")
@pytest.mark.parametrize("allowed", [True, False])
async def test_a_question_of_a_chat_survives_a_kill_and_its_call_runs_once_when_it_is_allowed(
    tmp_path: Path, allowed: bool
) -> None:
    async with provider(replies(f"I count.\n{request('Count')}\n", "Done.")) as upstream:
        words = prepare(tmp_path, upstream.url, mode="ask")
        async with asyncio.timeout(180), start_server(tmp_path, *words) as first, sdk(first, 0) as client:
            asking = asyncio.create_task(ask(client, stream=True))
            (asked,) = await wait_for_pending(first)
            first.process.kill()
            with pytest.raises(openai.APIError):
                await asking
        async with asyncio.timeout(180), start_server(tmp_path, *words) as second, sdk(second, 0) as client:
            (pending,) = await wait_for_pending(second)
            assert (pending["id"], pending["call_id"], pending["chat"]) == (
                asked["id"],
                asked["call_id"],
                asked["chat"],
            )
            waits = (await second.request("GET", f"/v1/calls/{asked['call_id']}"))[1]
            assert (waits["state"], waits["ran"]) == ("running", None)
            answer, body = ("allow", {}) if allowed else ("deny", {"reason": "not now"})
            assert (await second.request("POST", f"/v1/approvals/{asked['id']}/{answer}", body))[0] == 200
            ended = await wait_for_call(second, asked["call_id"])
            assert (ended["state"], effects(tmp_path)) == (("success", 1) if allowed else ("cancelled", 0))
            text = await ask(client, stream=True)  # the same request is told what the call has come to
            assert ("✓ Count: counted" in text) is allowed
            assert ("not now" in text) is not allowed
            assert effects(tmp_path) == int(allowed)


@pytest.mark.requirement("approval:survives")
async def test_a_question_that_cannot_be_taken_over_says_that_its_call_never_ran(tmp_path: Path) -> None:
    block = request("Count", password="hunter22-hunter22")  # masked, so nobody knows what was asked for
    async with provider(replies(block, "Done.")) as upstream:
        words = prepare(tmp_path, upstream.url, mode="ask")
        async with asyncio.timeout(180), start_server(tmp_path, *words) as first, sdk(first, 0) as client:
            asking = asyncio.create_task(ask(client, stream=True))
            (asked,) = await wait_for_pending(first)
            first.process.kill()
            with pytest.raises(openai.APIError):
                await asking
        async with asyncio.timeout(180), start_server(tmp_path, *words) as second:
            ended = await wait_for_call(second, asked["call_id"])
            assert (ended["state"], ended["ran"]) == ("cancelled", None)
            assert ended["text"] == "Count did not run: it waited for approval when the server went down."
        assert effects(tmp_path) == 0


async def wait_for_pending(process: ServerProcess) -> list[dict[str, Any]]:
    async def read() -> list[dict[str, Any]]:
        return list((await process.request("GET", "/v1/approvals?state=pending"))[1]["data"])

    return await wait_for_value(read)


async def wait_for_call(process: ServerProcess, call_id: str) -> dict[str, Any]:
    async def read() -> dict[str, Any]:
        return dict((await process.request("GET", f"/v1/calls/{call_id}"))[1])

    return await wait_for_value(read, lambda call: call["state"] != "running")
