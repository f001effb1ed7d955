"""Very many chats at the same time."""

import asyncio
import os
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.gateway.serving import StreamedAnswer, chat_body, gateway, request
from tests.gateway.upstream import Script, says
from toolyard.gateway.providers.answer import Limits

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
CHATS, WITH_TOOLS = (1000, 200) if SOAK else (100, 20)


@pytest.mark.requirement("chat:completions", "chat:loop")
async def test_all_streams_end_well_and_those_with_tools_run_theirs(tmp_path: Path) -> None:
    def model(body: dict[str, Any]) -> Script:
        text = str(body["messages"][-1]["content"])
        if text.startswith("tool"):
            return says(f"Look.\n{request(text=text)}\n", size=20)
        return says("All is well, and here is the end of it.", size=20)

    async with gateway(tmp_path, model, served=True, limits=Limits()) as one:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, headers={"Authorization": "Bearer me"}) as session:

            async def chat(number: int) -> StreamedAnswer:
                text = f"tool {number}" if number < WITH_TOOLS else f"plain {number}"
                url = f"{one.url}/v1/chat/completions"
                async with session.post(url, json=chat_body(text, stream=True)) as response:
                    return StreamedAnswer.from_bytes(await response.read())

            async with asyncio.timeout(600):
                heard = await asyncio.gather(*map(chat, range(CHATS)))
        assert {(tuple(one.finishes), one.done, len(one.errors)) for one in heard} == {(("stop",), 1, 0)}
        assert all(one.text.endswith("here is the end of it.") for one in heard)
        assert sorted(str(call.arguments["text"]) for call in one.ran) == sorted(f"tool {n}" for n in range(WITH_TOOLS))
