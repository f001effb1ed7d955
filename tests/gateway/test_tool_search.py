"""Chats with many tools: the few that are offered, and those that are found and called."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeTool
from tests.gateway.serving import ME, Gateway, gateway, request
from tests.gateway.upstream import Script, completion, replies, says
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.offer import estimate_tokens
from toolyard.protocol.tool import Checkpoint, Result, Risk, ToolCall

WORDS = ("invoice", "ticket", "customer", "parcel", "meeting", "rocket")
pytestmark = pytest.mark.requirement("search:offer")


def add_tools(one: Gateway, count: int, *, risk: Risk = Risk.READ) -> list[ToolCall]:
    ran: list[ToolCall] = []

    async def work(call: ToolCall, _: Checkpoint) -> Result:
        ran.append(call)
        return Result(data={}, text=f"{call.tool} is done.")

    for number in range(count):
        name = f"{WORDS[number % len(WORDS)]}_{number}.find"
        one.yard.tools.add(FakeTool(work, name=name, risk=risk))
    return ran


def calls(tool: str, **arguments: Any) -> Script:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    return Script([completion(message, "tool_calls")], kind="application/json")


def names(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools", [])]


async def test_with_many_tools_a_few_a_search_and_a_way_to_call_are_offered(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one:
        add_tools(one, 300)
        await one.complete()
        offered = names(one.upstream.bodies[0])
    assert offered[-2:] == ["ToolSearch", "CallTool"]
    assert set(offered[:-2]) == {
        "LS",
        "Glob",
        "Grep",
        "Read",
        "Write",
        "Edit",
        "MultiEdit",
        "NotebookEdit",
        "ApplyPatch",
    }
    assert estimate_tokens(json.dumps(one.upstream.bodies[0]["tools"])) < 6_000


async def test_few_tools_are_offered_as_they_are(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one:
        add_tools(one, 5)
        await one.complete()
        offered = names(one.upstream.bodies[0])
    assert "ToolSearch" not in offered
    assert len(offered) > 10


async def test_the_tools_of_a_conversation_stay_when_more_come(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one:
        await one.complete("First.")
        add_tools(one, 300)
        await one.complete("First.")
        await one.complete("Other.")
        first, again, other = map(names, one.upstream.bodies)
    assert "CallTool" not in first
    assert "CallTool" not in again
    assert other[-1] == "CallTool"


@pytest.mark.requirement("search:call")
async def test_a_tool_is_found_and_called_with_its_own_schema(tmp_path: Path) -> None:
    scripts = [
        calls("ToolSearch", query="find a rocket"),
        calls("CallTool", name="rocket_5.find", arguments={"text": "x"}),
        calls("CallTool", name="rocket_11.find", arguments={"wrong": 1}),
        says("Done.", stream=False),
    ]
    async with gateway(tmp_path, scripts) as one:
        ran = add_tools(one, 60)
        await one.complete()
        _, found, done, refused = (body["messages"][-1] for body in one.upstream.bodies)
    assert found["content"].startswith("## rocket_") or "## rocket_" in found["content"]
    assert "rocket_5.find is done." in done["content"]
    assert "wrong" in refused["content"]
    assert [(call.tool, dict(call.arguments)) for call in ran] == [("rocket_5.find", {"text": "x"})]


@pytest.mark.requirement("search:call")
@pytest.mark.parametrize("written", ["ticket_1.find", "plain"])
async def test_a_tool_that_was_not_offered_runs_by_its_own_name(tmp_path: Path, written: str) -> None:
    from toolyard.dialects.plain_name import plain_name

    name = plain_name("ticket_1.find") if written == "plain" else written
    async with gateway(tmp_path, [calls(name, text="x"), says("Done.", stream=False)]) as one:
        ran = add_tools(one, 60)
        await one.complete()
    assert [call.tool for call in ran] == ["ticket_1.find"]


@pytest.mark.requirement("search:call")
async def test_a_found_tool_that_writes_asks_as_usual(tmp_path: Path) -> None:
    scripts = [calls("CallTool", name="ticket_1.find", arguments={"text": "x"}), says("Done.", stream=False)]
    async with gateway(tmp_path, scripts, settings={"approval_mode": "deny"}) as one:
        ran = add_tools(one, 60, risk=Risk.WRITE)
        await one.complete()
        told = one.upstream.bodies[-1]["messages"][-1]["content"]
    assert ran == []
    assert "DENIED" in told or "not allowed" in told


@pytest.mark.requirement("search:call")
async def test_a_chat_that_may_use_some_tools_finds_none_but_these(tmp_path: Path) -> None:
    allowed = [f"{WORDS[number % len(WORDS)]}_{number}.find" for number in range(50)]
    scripts = [
        calls("ToolSearch", query="rocket", limit=10),
        calls("CallTool", name="rocket_59.find", arguments={"text": "x"}),
        says("Done.", stream=False),
    ]
    async with gateway(tmp_path, scripts) as one:
        ran = add_tools(one, 60)
        await one.complete(toolyard={"tools": allowed})
        _, found, refused = (body["messages"][-1]["content"] for body in one.upstream.bodies)
    assert "rocket_5.find" in found
    assert "rocket_53.find" not in found
    assert "rocket_59.find" not in found
    assert "may not use" in refused
    assert ran == []


async def test_a_model_in_text_mode_finds_tools_and_calls_them_by_their_names(tmp_path: Path) -> None:
    texts = [request("ToolSearch", query="parcel"), request("parcel_3.find", text="x"), "Done."]
    async with gateway(tmp_path, replies(*texts)) as one:
        ran = add_tools(one, 60)
        await one.complete(toolyard={"offer": "text"})
        listing = one.upstream.bodies[0]["messages"][0]["content"]
        found = one.upstream.bodies[1]["messages"][-1]["content"]
    assert "ToolSearch" in listing
    assert "parcel_3.find" not in listing
    assert "parcel_3.find" in found
    assert [call.tool for call in ran] == ["parcel_3.find"]


async def test_a_client_with_a_tool_of_that_name_is_offered_all(tmp_path: Path) -> None:
    theirs = [{"type": "function", "function": {"name": "CallTool", "parameters": {"type": "object"}}}]
    async with gateway(tmp_path, replies("Hi.")) as one:
        add_tools(one, 60)
        body: Any = {"model": "scripted+tools", "messages": [{"role": "user", "content": "Hi."}], "tools": theirs}
        await one.chat.complete(ClientRequest(body, caller=ME))
        offered = names(one.upstream.bodies[0])
    assert "ToolSearch" not in offered
    assert len(offered) > 60


async def test_a_definition_that_is_very_long_is_cut_as_any_result_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway(tmp_path, [calls("ToolSearch", query="giant"), says("Done.", stream=False)]) as one:
        add_tools(one, 60)
        schema: Any = {"type": "object", "properties": {"text": {"type": "string", "description": "word " * 100_000}}}
        one.yard.tools.add(FakeTool(says_nothing, name="giant", parameters=schema))
        await one.complete()
        found = one.upstream.bodies[-1]["messages"][-1]["content"]
    assert "truncated" in found[:100]
    assert "## giant" in found
    assert len(found) < 100_000
    assert "left out" not in caplog.text, "a search finds it"


async def says_nothing(_: ToolCall, __: Checkpoint) -> Result:
    return Result(data={}, text="")
