"""A call of a chat that waits for a person: the client is told, and answers by HTTP."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.gateway.serving import StreamedAnswer, request
from tests.gateway.test_served import server
from tests.gateway.upstream import Script, replies, says
from tests.waiting import wait_for_value

pytestmark = pytest.mark.requirement("chat:loop")
WRITE = f"I write.\n{request('Write', path='new.txt', content='x')}\n"


@pytest.mark.parametrize("show", ["summary", "events", "raw"])
@pytest.mark.parametrize("answer", ["allow", "deny"])
async def test_the_client_sees_it_and_the_answer_counts(tmp_path: Path, show: str, answer: str) -> None:
    async with server(tmp_path, replies(WRITE, "That is all.")) as running:
        headers = {"Authorization": f"Bearer {running.key}"}
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
        async with aiohttp.ClientSession(running.url, headers=headers) as session, asyncio.timeout(60):
            posting = session.post("/v1/chat/completions", json=body, headers={"X-Toolyard-Show": show})
            async with posting as response:
                heard = b""
                while not (match := re.search(rb"approval_[0-9a-f]{32}", heard)):
                    heard += await response.content.readany()
                url = f"/v1/approvals/{match[0].decode()}/{answer}"
                async with session.post(url, json={}) as answered:
                    assert answered.status == 200
                rest = await response.read()
        lines = [line for line in (heard + rest).split(b"\n\n") if line.startswith(b"data: {")]
        chunks = [json.loads(line.removeprefix(b"data: ")) for line in lines]
        types = [chunk["toolyard"]["type"] for chunk in chunks if "toolyard" in chunk]
        text = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
        shown = ["round.ended", "call.started", "approval.requested", "call.finished", "round.ended"]
        assert types == (shown if show == "events" else [])
        assert ("waits for approval" in text) == (show != "events")
        link = f"{running.url}/approvals/{match[0].decode()}"
        command = f"toolyard approval allow {match[0].decode()} --home {running.config.home}"
        assert (f"[allow it here]({link}) or run `{command}`" in text) == (show != "events")
        assert [chunk["toolyard"].get("url") for chunk in chunks if "id" in chunk.get("toolyard", {})][1:2] == (
            [link] if show == "events" else []
        )
        assert text.endswith("That is all.")
        assert (running.config.project / "new.txt").exists() == (answer == "allow")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("show", ["summary", "raw", "hidden"])
async def test_what_a_person_says_who_refuses_reaches_the_model_and_whoever_sees_tool_work(
    tmp_path: Path, show: str, stream: bool
) -> None:
    note = "Not there. Write it into docs/ instead"
    heard: list[str] = []

    def model(body: dict[str, Any]) -> Script:
        heard.append(json.dumps(body["messages"][1:]))
        return says(WRITE if len(heard) == 1 else "That is all.", stream=stream)

    async with server(tmp_path, model) as running:
        headers = {"Authorization": f"Bearer {running.key}", "X-Toolyard-Show": show}
        body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": "Hi"}]}
        async with aiohttp.ClientSession(running.url, headers=headers) as session, asyncio.timeout(60):

            async def chat() -> str:
                async with session.post("/v1/chat/completions", json=body) as response:
                    raw = await response.read()
                return (
                    StreamedAnswer.from_bytes(raw).text
                    if stream
                    else str(json.loads(raw)["choices"][0]["message"]["content"])
                )

            async def pending() -> list[dict[str, Any]]:
                async with session.get("/v1/approvals?state=pending") as response:
                    approvals: list[dict[str, Any]] = (await response.json())["data"]
                return approvals

            answering = asyncio.create_task(chat())
            waiting = await wait_for_value(pending)
            async with session.post(f"/v1/approvals/{waiting[0]['id']}/deny", json={"reason": note}) as answered:
                assert answered.status == 200
            text = await answering
    assert note in heard[1]
    assert (note in text) == (show != "hidden")
    assert text.endswith("That is all.")
