"""Servers whose tools are not always the same, not all good, or not the only ones of their name."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.mcp.test_client import TINY, McpProject, allow, call, state
from tests.waiting import wait_until
from toolyard.dialects.tool_specs import Format, export, to_function
from toolyard.plugins.mcp import definition, pins
from toolyard.plugins.mcp.declarations import ConfiguredServer
from toolyard.plugins.mcp.servers import ServerState
from toolyard.protocol.envelope import Failure
from toolyard.yard.yard import Yard

ADDED = "mcp__tiny__added"


@pytest.fixture
def place(tmp_path: Path) -> McpProject:
    return McpProject(tmp_path)


def names(yard: Yard) -> set[str]:
    return {tool.spec.name for tool in yard.tools}


def entry_of(yard: Yard) -> ConfiguredServer:
    entry = yard.mcp.servers.declarations.get("tiny")
    assert entry is not None
    return entry


@pytest.mark.requirement("mcp:tools-change", "mcp:pinned")
async def test_a_tool_that_is_added_while_the_server_runs_waits_and_the_others_go_on(place: McpProject) -> None:
    async with place.yard() as yard:
        await allow(yard)
        assert not (await call(yard, "echo", text="add a tool")).envelope.error
        await wait_until(lambda: state(yard) is ServerState.CHANGED)  # nobody has to call it for that
        assert yard.mcp.servers.pending_changes(entry_of(yard)) == ("added added",)
        assert (await call(yard, "echo", text="x")).envelope.text == "x"
        assert ADDED not in names(yard)
        assert (await call(yard, "added", text="x")).envelope.error
        pid = place.pid
        await allow(yard)
        assert state(yard) is ServerState.RUNNING
        assert (await call(yard, "added", text="x")).envelope.text == "x"
        assert place.pid == pid  # the review asked the one that runs


@pytest.mark.requirement("mcp:tools-change")
async def test_what_was_reviewed_stays_so_while_it_is_not_there(place: McpProject) -> None:
    async with place.yard() as yard:
        await allow(yard)
        await call(yard, "echo", text="add a tool")
        await allow(yard)
        assert not (await call(yard, "added", text="x")).envelope.error
    async with place.yard() as yard:  # it begins without that tool
        gone = await call(yard, "added", text="x")
        assert "is not there any more" in gone.envelope.text
        assert state(yard) is ServerState.RUNNING
        assert ADDED not in names(yard)
        await call(yard, "echo", text="add a tool")
        await wait_until(lambda: ADDED in names(yard))
        assert not (await call(yard, "added", text="x")).envelope.error


@pytest.mark.requirement("mcp:tools-change", "mcp:pinned")
async def test_of_a_changed_server_only_what_changed_waits(place: McpProject) -> None:
    async with place.yard() as yard:
        await allow(yard)
    (place.folder / "output_schemas.json").write_text(json.dumps({"fail": {"type": "object"}}))
    async with place.yard() as yard:
        assert not (await call(yard, "echo", text="x")).envelope.error
        assert (await call(yard, "fail")).envelope.context["reason"] == "DENIED"
        assert yard.mcp.servers.pending_changes(entry_of(yard)) == ("changed fail",)
        assert "mcp__tiny__fail" not in names(yard)


@pytest.mark.requirement("mcp:catalogue")
async def test_definitions_are_read_once_and_not_for_each_call(
    place: McpProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Any] = []

    def from_json(value: Any) -> Any:
        read.append(value)
        return definition.from_json(value)

    async with place.yard() as yard:
        await allow(yard)
        monkeypatch.setattr(pins, "from_json", from_json)
        tool = yard.tools.get("mcp__tiny__echo")
        number = len(read)
        for _ in range(3):
            assert not (await call(yard, "echo", text="x")).envelope.error
        assert yard.tools.get("mcp__tiny__echo") is tool
    assert len(read) == number > 0


@pytest.mark.requirement("mcp:one-bad-tool")
async def test_a_tool_that_is_none_is_left_out_and_the_rest_is_offered(place: McpProject) -> None:
    bad: list[Any] = [
        {"name": "no schema"},
        {"name": "list", "inputSchema": {"type": "array"}},
        {"name": "echo", "inputSchema": {"type": "object"}},
        {"name": "huge", "description": "x" * 300_000, "inputSchema": {"type": "object"}},
        {"name": 5, "inputSchema": {"type": "object"}},
        {"name": "output", "inputSchema": {"type": "object"}, "outputSchema": {"$ref": "#"}},
        "no tool",
    ]
    (place.folder / "more_tools.json").write_text(json.dumps(bad))
    async with place.yard() as yard:
        await allow(yard)
        assert (await call(yard, "echo", text="x")).envelope.text == "x"
        left_out = yard.mcp.servers.left_out(entry_of(yard))
    assert set(left_out) == {"no schema", "list", "echo", "huge", "output", "a tool without a name"}
    assert left_out["no schema"] == "its definition cannot be read (inputSchema: Field required)"
    assert left_out["echo"] == "there is another tool of this name"


@pytest.mark.requirement("mcp:one-bad-tool")
async def test_names_that_two_servers_give_are_told(place: McpProject) -> None:
    (place.folder / "more_tools.json").write_text(json.dumps([{"name": "b__c", "inputSchema": {"type": "object"}}]))
    other = place.folder.with_name("other")
    other.mkdir()
    (other / "more_tools.json").write_text(json.dumps([{"name": "c", "inputSchema": {"type": "object"}}]))
    first, second = ({"command": sys.executable, "args": [str(TINY), str(one)]} for one in (place.folder, other))
    place.write({"a": first, "a__b": second})
    async with place.yard() as yard:
        await allow(yard, "a")
        await allow(yard, "a__b")
        assert yard.tools.get("mcp__a__b__c").spec.description.startswith("b__c")
        (collision,) = yard.mcp.name_collisions
    assert "mcp__a__b__c is already the name of b__c of a: rename one of the servers" in collision


@pytest.mark.requirement("mcp:closed-schemas")
async def test_a_closed_schema_is_offered_as_it_was_declared(place: McpProject) -> None:
    inner = {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": False}
    schema = {"type": "object", "properties": {"inner": inner}, "additionalProperties": False}
    (place.folder / "more_tools.json").write_text(json.dumps([{"name": "closed", "inputSchema": schema}]))
    async with place.yard() as yard:
        await allow(yard)
        spec = yard.tools.get("mcp__tiny__closed").spec
    assert to_function(spec)["parameters"] == schema
    assert export(spec, Format.MCP)["inputSchema"] == schema


@pytest.mark.requirement("mcp:results-once")
@pytest.mark.parametrize(
    ("texts", "structured", "data"),
    [
        (['{"a": 1, "b": ["x"]}'], {"a": 1, "b": ["x"]}, {"a": 1, "b": ["x"]}),
        (["5"], {"result": 5}, {"result": 5}),
        (["true"], {"result": True}, {"result": True}),
        (["hello"], {"result": "hello"}, {"result": "hello"}),
        (["one", "2"], {"result": ["one", 2]}, {"result": ["one", 2]}),
    ],
)
async def test_a_structured_result_that_its_text_repeats_is_read_once(
    place: McpProject, texts: list[str], structured: dict[str, Any], data: dict[str, Any]
) -> None:
    content = [{"type": "text", "text": text} for text in texts]
    (place.folder / "answer.json").write_text(json.dumps({"content": content, "structuredContent": structured}))
    async with place.yard() as yard:
        await allow(yard)
        outcome = await call(yard, "echo")
        request = yard.calls.request("mcp__tiny__echo", {})
        parts = yard.results.express(request, outcome, "mcp", shown=True)["content"]
    assert outcome.envelope.data == data
    assert len(parts) == 1
    said = {'{"a": 1, "b": ["x"]}': '{"a":1,"b":["x"]}', "one": '["one",2]'}.get(texts[0], texts[0])
    assert parts == [{"type": "text", "text": said}]


@pytest.mark.requirement("mcp:results-once")
async def test_a_text_that_says_something_else_is_read_beside_the_structured_result(place: McpProject) -> None:
    answer = {"content": [{"type": "text", "text": "The sum is 5."}], "structuredContent": {"sum": 5}}
    (place.folder / "answer.json").write_text(json.dumps(answer))
    async with place.yard() as yard:
        await allow(yard)
        outcome = await call(yard, "echo")
    assert outcome.envelope.text == "The sum is 5."
    assert outcome.envelope.data["sum"] == 5


@pytest.mark.requirement("mcp:start-failure")
async def test_a_program_that_ends_at_once_is_named_with_its_code_and_its_last_words(place: McpProject) -> None:
    place.write({"tiny": {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no key: set WIKI_KEY')"]}})
    async with place.yard() as yard:
        with pytest.raises(Failure, match=r"its program ended with exit code 1\. It said: no key: set WIKI_KEY"):
            await allow(yard)


@pytest.mark.requirement("mcp:start-failure")
@pytest.mark.parametrize("status", [401, 404, 500])
async def test_an_address_that_refuses_is_named_with_its_status(place: McpProject, status: int) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=status, text="no")

    app = web.Application()
    app.router.add_route("*", "/mcp", refuse)
    async with TestServer(app) as running, place.yard() as yard:
        place.write({"tiny": {"url": str(running.make_url("/mcp"))}})
        async with asyncio.timeout(60):
            with pytest.raises(Failure, match=f"did not start: it answered HTTP {status} "):
                await allow(yard)
