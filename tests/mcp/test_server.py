"""Toolyard as an MCP server, judged by the official client."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import InputRequiredResult, TextContent, TextResourceContents

from tests.mcp.clients import CALLER, ERAS, User, envelope_of, open_client, serve_http, stdio, wait_for_calls
from tests.plugins.folders import make_plugin
from tests.plugins.yards import confirm_read
from tests.waiting import wait_for_value, wait_until
from toolyard.config import load_config
from toolyard.dialects.plain_name import plain_name
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.store import Query
from toolyard.yard.yard import Yard

pytestmark = pytest.mark.requirement("mcp:server", "mcp:runner")

ECHO = 'import json, sys\nprint(json.dumps({"status": "success", "result": json.load(sys.stdin)["text"]}))\n'
SLOW = "import sys, time\nsys.stdin.read()\ntime.sleep(60)\n"


def plugin(folder: Path, name: str, code: str, **more: Any) -> Path:
    made = make_plugin(folder, name, **more)
    (made / "main.py").write_text(code, encoding="utf-8")
    return made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("mode", ERAS)
async def test_every_tool_is_listed_with_its_schema_and_its_risk(
    project: Path, home: Path, plugins: Path, mode: str
) -> None:
    plugin(plugins, "Echo", ECHO)
    async with open_client(project, home, mode=mode, plugins=(plugins,)) as (client, yard):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {plain_name(tool.spec.name) for tool in yard.tools}
    read, write, echo = (tools[name].annotations for name in ("Read", "Write", "Echo"))
    assert read is not None
    assert write is not None
    assert echo is not None
    assert (read.read_only_hint, read.open_world_hint) == (True, False)
    assert (write.read_only_hint, write.open_world_hint) == (None, False), "what is not said is assumed: it may destroy"
    assert (echo.read_only_hint, echo.open_world_hint) == (None, None)
    assert {tool.output_schema for tool in tools.values()} == {None}, "or models would be given envelopes"
    assert "path" in tools["Read"].input_schema["properties"]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_result_is_content_and_the_envelope(project: Path, home: Path, mode: str) -> None:
    (project / "a.txt").write_text("one\n")
    async with open_client(project, home, mode=mode) as (client, yard):
        result = await client.call_tool("Read", {"path": "a.txt"})
        told = await yard.state.journal.page(Query(), limit=10)
    envelope = Envelope.from_dict(envelope_of(result))
    assert "one" in str(envelope.data["content"])
    assert result.structured_content is None
    assert [getattr(part, "text", "") for part in result.content] == ["Read lines 1-1 of 1 of 'a.txt'.\n1\tone"]
    assert not result.is_error
    assert [(call.tool, call.caller, call.origin) for call in told] == [("Read", CALLER, "mcp")]


async def test_a_failure_is_a_result_that_says_so(project: Path, home: Path) -> None:
    async with open_client(project, home) as (client, _):
        result = await client.call_tool("Read", {"path": "missing.txt"})
    assert result.is_error
    assert envelope_of(result)["error"]["code"] == "NOT_FOUND"


async def test_an_unknown_tool_is_an_error_of_the_protocol(project: Path, home: Path) -> None:
    async with open_client(project, home) as (client, _):
        with pytest.raises(MCPError, match="no tool called"):
            await client.call_tool("Nothing", {})


@pytest.mark.parametrize("mode", ERAS)
async def test_a_write_asks_the_clients_user_first(project: Path, home: Path, mode: str) -> None:
    user = User()
    async with open_client(project, home, mode=mode, elicitation_callback=user) as (client, yard):
        result = await client.call_tool("Write", {"path": "a.txt", "content": "x"})
        approvals = await yard.state.approvals.page(limit=10)
    assert not result.is_error
    assert (project / "a.txt").read_text() == "x"
    assert [(a.state, str(a.answered_by).partition(":")[0]) for a in approvals] == [("allowed", "mcp")]
    (asked,) = user.asked
    assert '"path": "a.txt"' in asked.message
    assert asked.requested_schema["properties"]["answer"]["default"] == "deny"


@pytest.mark.requirement("mcp:asks-at-once")
@pytest.mark.parametrize("mode", ERAS)
async def test_a_question_that_is_asked_before_anybody_waits_for_it_reaches_the_client(
    project: Path, home: Path, mode: str
) -> None:
    user = User()
    async with (
        asyncio.timeout(180),
        open_client(project, home, mode=mode, beat_s=3600, elicitation_callback=user) as (client, _),
    ):
        result = await client.call_tool("Write", {"path": "a.txt", "content": "x"})
    assert not result.is_error
    assert len(user.asked) == 1


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(("action", "answer"), [("accept", "deny"), ("accept", ""), ("decline", ""), ("cancel", "")])
async def test_anything_but_an_explicit_yes_is_a_no(
    project: Path, home: Path, mode: str, action: str, answer: str
) -> None:
    async with open_client(project, home, mode=mode, elicitation_callback=User(action, answer)) as (client, _):
        result = await client.call_tool("Write", {"path": "a.txt", "content": "x"})
    assert envelope_of(result)["context"]["reason"] == "DENIED"
    assert not (project / "a.txt").exists()


async def test_always_is_kept_as_a_rule(project: Path, home: Path) -> None:
    user = User(answer="always")
    async with open_client(project, home, elicitation_callback=user) as (client, _):
        for name in ("a.txt", "b.txt"):
            assert not (await client.call_tool("Write", {"path": name, "content": "x"})).is_error
    assert len(user.asked) == 1


@pytest.mark.parametrize("mode", ERAS)
async def test_without_elicitation_the_approval_waits_for_somebody_else(project: Path, home: Path, mode: str) -> None:
    said: list[str] = []

    async def say(progress: float, total: float | None, message: str | None) -> None:
        said.append(message or "")

    async with open_client(project, home, mode=mode) as (client, yard):
        calling = asyncio.create_task(
            client.call_tool("Write", {"path": "a.txt", "content": "x"}, progress_callback=say)
        )
        await wait_until(lambda: any("waits for an approval" in text for text in said))
        (pending,) = await yard.state.approvals.page(("pending",), limit=10)
        await yard.state.approvals.answer(pending.id, allowed=True, by="cli")
        assert not (await calling).is_error
    assert any(pending.id in text for text in said)


@pytest.mark.requirement("plugin:progress", "shipped:shell-approval")
@pytest.mark.parametrize("mode", ERAS)
async def test_the_output_of_a_running_command_is_progress(project: Path, home: Path, mode: str) -> None:
    said: list[str] = []

    async def say(progress: float, total: float | None, message: str | None) -> None:
        said.append(message or "")

    user = User()
    async with open_client(project, home, mode=mode, elicitation_callback=user) as (client, yard):
        plugin = yard.plugins.plugins.get("Shell")
        assert plugin is not None
        yard.plugins.plugins.enable(plugin)
        yard.plugins.plugins.refresh()
        command = "echo begun; while [ ! -e go ]; do sleep 0.05; done"
        calling = asyncio.create_task(client.call_tool("Shell", {"command": command}, progress_callback=say))
        await wait_until(lambda: "begun" in said)
        (project / "go").touch()
        result = await calling
    assert envelope_of(result)["data"]["exitCode"] == 0
    assert command in user.asked[0].message


async def test_an_approval_cannot_be_used_for_other_arguments_or_twice(project: Path, home: Path) -> None:
    async with open_client(project, home, elicitation_callback=User()) as (client, _):
        wanted = {"path": "a.txt", "content": "x"}
        first = await client.session.call_tool("Write", wanted, allow_input_required=True)
        replies = {"approval": User().reply}
        assert isinstance(first, InputRequiredResult)
        again: dict[str, Any] = {
            "input_responses": replies,
            "request_state": first.request_state,
            "allow_input_required": True,
        }
        with pytest.raises(MCPError, match="no longer open"):
            await client.session.call_tool("Write", {"path": "b.txt", "content": "x"}, **again)
        done = await client.session.call_tool("Write", wanted, **again)
        assert envelope_of(done)["status"] == "success"
        with pytest.raises(MCPError, match="no longer open"):
            await client.session.call_tool("Write", wanted, **again)
    assert not (project / "b.txt").exists()


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_goes_away_cancels_its_call(project: Path, home: Path, plugins: Path, mode: str) -> None:
    plugin(plugins, "Slow", SLOW, risk="read")
    async with open_client(project, home, mode=mode, plugins=(plugins,)) as (client, yard):
        confirm_read(yard, "Slow")
        calling = asyncio.create_task(client.call_tool("Slow", {}))
        await wait_for_calls(yard, "running", some=True)
        calling.cancel()
        await asyncio.wait({calling})
        await wait_for_calls(yard, "running", some=False)
        (call,) = await yard.state.journal.page(Query(), limit=1)
    assert call.reason == "CANCELLED"


async def test_a_client_that_goes_away_while_it_answers_cancels_its_call(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering = asyncio.Event()

    async def answer(*_: object, **__: object) -> None:
        answering.set()
        await asyncio.Event().wait()

    async with open_client(project, home, elicitation_callback=User()) as (client, yard):
        monkeypatch.setattr(yard.state.approvals, "answer", answer)
        calling = asyncio.create_task(client.call_tool("Write", {"path": "a.txt", "content": "x"}))
        await asyncio.wait_for(answering.wait(), 60)
        calling.cancel()
        await asyncio.wait({calling})
        await wait_for_calls(yard, "running", some=False)
        (call,) = await yard.state.journal.page(Query(), limit=1)
    assert call.reason == "CANCELLED"


async def test_clients_hear_when_a_plugin_comes(project: Path, home: Path, plugins: Path) -> None:
    heard: list[str] = []

    async def hear(message: Any) -> None:
        heard.append(getattr(message, "method", ""))

    async with open_client(project, home, mode="legacy", plugins=(plugins,), message_handler=hear) as (client, _):
        await client.list_tools()
        plugin(plugins, "Echo", ECHO)
        await wait_until(lambda: "notifications/tools/list_changed" in heard)
        assert "Echo" in {tool.name for tool in (await client.list_tools()).tools}
    async with open_client(project, home, plugins=(plugins,)) as (client, _):
        await client.list_tools()
        async with client.listen(tools_list_changed=True) as events:
            plugin(plugins, "Other", ECHO)
            async with asyncio.timeout(180):
                assert type(await anext(aiter(events))).__name__ == "ToolsListChanged"


async def test_a_long_result_is_cut_and_the_whole_is_a_resource(project: Path, home: Path, plugins: Path) -> None:
    long = 'import json\nprint(json.dumps({"status": "success", "result": "line\\n" * 5000}))\n'
    plugin(plugins, "Long", long, risk="read")
    async with open_client(project, home, plugins=(plugins,)) as (client, yard):
        confirm_read(yard, "Long")
        result = await client.call_tool("Long", {})
        assert envelope_of(result)["status"] == "partial"
        text, whole = (await client.list_resources()).resources
        assert [one.mime_type for one in (text, whole)] == ["text/plain", "application/json"]
        contents = [(await client.read_resource(one.uri)).contents[0] for one in (text, whole)]
        lines, envelope = [content.text for content in contents if isinstance(content, TextResourceContents)]
        assert [content.mime_type for content in contents] == ["text/plain", "application/json"]
        assert lines == "line\n" * 5000
        assert json.loads(envelope)["text"].count("line") == 5000
        for bad in ("toolyard://tool-output/../a.txt", "toolyard://tool-output/.gitignore", "toolyard://tasks/none"):
            with pytest.raises(MCPError, match="no such resource"):
                await client.read_resource(bad)


async def test_a_task_is_a_receipt_and_a_resource(project: Path, home: Path, plugins: Path) -> None:
    code = (
        "import json, os, sys, urllib.request\n"
        'print(json.dumps({"status": "success", "result": "{{VCP_ASYNC_RESULT::Later::t1}}"}), flush=True)\n'
        'url = os.environ["CALLBACK_BASE_URL"] + "/Later/t1"\n'
        'body = json.dumps({"status": "Succeed", "message": "it is done"}).encode()\n'
        'head = {"Content-Type": "application/json"}\n'
        "urllib.request.urlopen(urllib.request.Request(url, body, head)).read()\n"
    )
    plugin(plugins, "Later", code, risk="read", pluginType="asynchronous")
    async with open_client(project, home, plugins=(plugins,)) as (client, yard):
        confirm_read(yard, "Later")
        result = await client.call_tool("Later", {})
        (link,) = [part for part in result.content if part.type == "resource_link"]
        async with asyncio.timeout(180):
            await yard.state.tasks.wait(link.name)
        (content,) = (await client.read_resource(link.uri)).contents
    assert isinstance(content, TextResourceContents)
    assert json.loads(content.text)["result"]["message"] == "it is done"


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_starts_it_over_stdio(project: Path, home: Path, mode: str) -> None:
    (project / "a.txt").write_text("one\n")
    user = User()
    async with asyncio.timeout(180), Client(stdio(project, home), mode=mode, elicitation_callback=user) as client:
        assert "Read" in {tool.name for tool in (await client.list_tools()).tools}
        read = await client.call_tool("Read", {"path": "a.txt"})
        written = await client.call_tool("Write", {"path": "b.txt", "content": "x"})
    assert "1\tone" in "".join(part.text for part in read.content if isinstance(part, TextContent))
    assert not written.is_error
    assert (project / "b.txt").read_text() == "x"
    assert len(user.asked) == 1


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def lines(*requests: tuple[str, dict[str, Any]]) -> bytes:
    """A session as a client of 2025 writes it: the handshake, and these requests."""
    messages: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        *({"id": n, "method": method, "params": params} for n, (method, params) in enumerate(requests, 1)),
    ]
    return b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)


@pytest.mark.requirement("mcp:answers-after-eof")
@pytest.mark.parametrize("from_file", [False, True])
def test_input_that_ends_right_after_the_requests_gets_every_answer(
    project: Path, home: Path, tmp_path: Path, from_file: bool
) -> None:
    (project / "long.txt").write_text("x" * 70 + "\n" + "a line\n" * 2000)
    read = ("tools/call", {"name": "Read", "arguments": {"path": "long.txt"}})
    written = lines(*[read] * 20, ("tools/list", {}))
    (tmp_path / "messages").write_bytes(written)
    command = stdio(project, home)
    with (tmp_path / "messages").open("rb") as stdin:
        given: dict[str, Any] = {"stdin": stdin} if from_file else {"input": written}
        ended = subprocess.run(
            [command.command, *command.args], **given, env=command.env, capture_output=True, timeout=180, check=True
        )
    answers = {answer["id"]: answer for answer in map(json.loads, ended.stdout.splitlines()) if "id" in answer}
    assert answers[0]["result"]["serverInfo"]["name"] == "toolyard"
    assert all("a line" in str(answers[n]["result"]) for n in range(1, 21))
    assert "Read" in str(answers[21]["result"])


@pytest.mark.requirement("mcp:answers-after-eof")
async def test_when_nobody_reads_the_answers_any_more_the_calls_end(project: Path, home: Path) -> None:
    command = stdio(project, home)
    process = await asyncio.create_subprocess_exec(
        command.command,
        *command.args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=command.env,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(lines(("tools/call", {"name": "Write", "arguments": {"path": "a.txt", "content": "x"}})))
    async with asyncio.timeout(180):
        assert b"serverInfo" in await process.stdout.readline()
        async with Yard(load_config(project, home)) as yard:
            await wait_for_value(lambda: yard.state.approvals.page(("pending",), limit=1))
        process.stdin.close()
        process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]  # no public way to stop reading
        assert await process.wait() == 0
    assert not (project / "a.txt").exists()


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_reaches_it_over_http(project: Path, home: Path, mode: str) -> None:
    (project / "a.txt").write_text("one\n")
    user = User()
    async with asyncio.timeout(180), Yard(load_config(project, home)) as yard, serve_http(yard) as url:
        async with Client(url, mode=mode, elicitation_callback=user) as client:
            assert "Read" in {tool.name for tool in (await client.list_tools()).tools}
            read = await client.call_tool("Read", {"path": "a.txt"})
            written = await client.call_tool("Write", {"path": "b.txt", "content": "x"})
        callers = {call.caller for call in await yard.state.journal.page(Query(), limit=10)}
    assert "one" in str(envelope_of(read)["data"]["content"])
    assert not written.is_error
    assert len(user.asked) == 1
    assert callers == {"key:none"}
