"""A call of a chat that waits for a person: the client is told, and answers by HTTP."""

import asyncio
import json
import re
from pathlib import Path

import aiohttp
import pytest

from tests.gateway.serving import request
from tests.gateway.test_served import server
from tests.gateway.upstream import replies

pytestmark = pytest.mark.requirement("chat:loop")
WRITE = f"I write.\n{request('Write', path='new.txt', content='x')}\n"


@pytest.mark.parametrize("show", ["summary", "events"])
@pytest.mark.parametrize("answer", ["allow", "deny"])
async def test_the_client_sees_it_and_the_answer_counts(tmp_path: Path, show: str, answer: str) -> None:
    async with server(tmp_path, replies(WRITE, "That is all.")) as running:
        headers = {"Authorization": f"Bearer {running.key}"}
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
        async with aiohttp.ClientSession(running.url, headers=headers) as session, asyncio.timeout(30):
            asked = session.post("/v1/chat/completions", json=body, headers={"X-Toolyard-Show": show})
            async with asked as response:
                heard = b""
                while not (found := re.search(rb"approval_[0-9a-f]{32}", heard)):
                    heard += await response.content.readany()
                url = f"/v1/approvals/{found[0].decode()}/{answer}"
                async with session.post(url, json={}) as answered:
                    assert answered.status == 200
                rest = await response.read()
        lines = [line for line in (heard + rest).split(b"\n\n") if line.startswith(b"data: {")]
        chunks = [json.loads(line.removeprefix(b"data: ")) for line in lines]
        told = [chunk["toolyard"]["type"] for chunk in chunks if "toolyard" in chunk]
        text = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
        assert told == (["call.started", "approval.requested", "call.finished"] if show == "events" else [])
        assert ("waits for approval" in text) == (show == "summary")
        assert text.endswith("That is all.")
        assert (running.config.project / "new.txt").exists() == (answer == "allow")
