"""Offering through the real server: keys, settings that change, the list of models, and the terminal."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from tests.gateway.test_served import HI, server
from tests.gateway.test_terminal import terminal
from tests.gateway.upstream import replies
from tests.waiting import wait_for_value
from toolyard.doctor import CheckStatus, _check_tools
from toolyard.gateway.offer import Search
from toolyard.protocol.tool import ToolSpec
from toolyard.tools.tool_search import SPEC as TOOL_SEARCH


@pytest.mark.requirement("offer:default", "offer:aliases")
async def test_a_key_and_the_settings_decide_what_a_client_is_offered(tmp_path: Path) -> None:
    bodies: list[dict[str, Any]] = []
    answer = replies("Hi.")

    def keep(body: dict[str, Any]) -> Any:
        bodies.append(body)
        return answer(body)

    async with server(tmp_path, keep) as running:
        headers = {"Authorization": f"Bearer {running.key}"}
        async with aiohttp.ClientSession(running.url, headers=headers) as session, asyncio.timeout(60):
            new = {"name": "plain", "scopes": ["chat"], "offer": "none"}
            async with session.post("/v1/keys", json=new) as response:
                made = await response.json()
            async with session.post("/v1/keys", json={**new, "offer": "some"}) as response:
                assert response.status == 422
            async with session.get("/v1/keys") as response:
                assert [key["offer"] for key in (await response.json())["data"]] == [None, "none"]

            async def is_offered(key: str) -> bool:
                async with openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key=key, max_retries=0) as client:
                    await client.chat.completions.create(model="m", messages=HI)
                return "tools" in bodies[-1]

            assert await is_offered(running.key)
            assert not await is_offered(made["key"])
            config = tmp_path / "home/config.toml"
            config.write_text(f'{config.read_text()}\noffer = "none"\nmodel_aliases = true\n')
            await wait_for_value(lambda: is_offered(running.key), lambda offered: not offered)
            async with session.get("/v1/models") as response:
                listed = [model["id"] for model in (await response.json())["data"]]
            assert listed == ["scripted", "tour", "scripted+tools", "scripted+plain"]


@pytest.mark.requirement("offer:default", "cli:chat")
async def test_the_terminal_offers_the_tools_unless_it_is_told_not_to(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Any:
        names = [tool["function"]["name"] for tool in body.get("tools", [])]
        return replies(f"I have {len(names)} tools.")(body)

    async with server(tmp_path, answer):
        async with terminal(tmp_path) as console:
            console.type("hello\n")
            await console.until("I have 14 tools.")
        async with terminal(tmp_path, "--offer", "none") as console:
            console.type("hello\n")
            await console.until("I have 0 tools.")


@pytest.mark.requirement("offer:limits", "cli:doctor")
def test_the_doctor_names_the_tools_that_no_chat_has_room_for() -> None:
    specs = [ToolSpec(name=f"T{number:03}", description="Does it.", parameters={}) for number in range(130)]
    never = Search(beyond=0, always=())
    check = _check_tools(specs, never)
    assert (check.name, check.health) == ("tools", CheckStatus.WARN)
    assert check.detail == "too many to offer all of them to a chat; these are left out: T128, T129"
    assert check.fix
    assert _check_tools(specs[:2], never).detail == "T000, T001 are ready"
    found = _check_tools([*specs, TOOL_SEARCH], Search(beyond=40, always=("T000",)))
    assert found.health is CheckStatus.OK, "a search finds what is not offered"
