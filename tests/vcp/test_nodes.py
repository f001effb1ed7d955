"""Nodes on a real socket: their tools, names, placeholders and files, and what they may not do."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from websockets.exceptions import InvalidStatus

from tests.fakes import FakeClock
from tests.vcp.conftest import add_plugin as add_installed
from tests.vcp.node import PATH, Node, connect_node, manifest
from tests.waiting import wait_for_value, wait_until
from tests.web.conftest import RunningServer, run_server
from tests.web.test_websocket import follow, wait_close_code
from toolyard.cli import toolyard
from toolyard.protocol.envelope import ErrorCode, Reason
from toolyard.protocol.tool import Origin, Outcome
from toolyard.vcp.nodes.nodes import MAX_NODES, Nodes
from toolyard.web.routes.plugins import nodes as routes
from toolyard.web.security.scope import Scope
from toolyard.web.server.lifecycle import ServerOptions

OPEN = 'vcp_channels = true\napproval_mode = "auto"\n'


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningServer]:
    async with run_server(tmp_path, settings=OPEN) as one:
        yield one


def get_nodes(running: RunningServer) -> Nodes:
    assert running.yard.nodes.nodes is not None
    return running.yard.nodes.nodes


def has_placeholder(running: RunningServer, name: str) -> bool:
    return name in get_nodes(running).placeholders()


def has_no_nodes(running: RunningServer) -> bool:
    return not get_nodes(running).to_json()


def start_call(running: RunningServer, tool: str, /, **arguments: Any) -> "asyncio.Task[Outcome]":
    call = running.yard.calls.request(tool, arguments, caller="key:owner", origin=Origin.CHAT)
    return asyncio.create_task(running.yard.calls.settle(call))


async def finish(waiting: "asyncio.Task[Outcome]") -> Any:
    async with asyncio.timeout(60):
        return (await waiting).envelope


@pytest.mark.requirement("vcp:nodes:call")
async def test_a_tool_of_a_node_is_listed_called_and_journalled_like_any_other(running: RunningServer) -> None:
    async with connect_node(running) as node:
        await node.register(manifest("Lamp"), manifest("internal_request_file"), {"name": "broken"})
        tools = {one["name"]: one for one in (await running.get("/v1/tools")).json["data"]}
        names = tools.keys()
        assert (tools["Lamp"]["kind"], tools["Lamp"]["display_name"]) == ("remote", "The Lamp (laptop)")
        assert "internal_request_file" not in names
        sent = asyncio.create_task(running.post("/v1/tools/Lamp", {"text": "on", "maid": "Nova"}))
        asked = await node.answer({"message": "It is on.", "content": [{"type": "text", "text": "It is on."}]})
        assert (asked["toolName"], asked["toolArgs"]) == ("Lamp", {"text": "on", "maid": "Nova"})
        answer = (await sent).json
        assert (answer["status"], answer["text"], answer["context"]["node"]) == ("success", "It is on.", "laptop")
        (row,) = (await running.get("/v1/calls?tool=Lamp")).json["data"]
        assert (row["state"], row["tool"]) == ("success", "Lamp")
        (listed,) = (await running.get("/v1/nodes")).json["data"]
        assert (listed["name"], listed["tools"], [*listed["left_out"]]) == ("laptop", ["Lamp"], ["broken"])


@pytest.mark.requirement("vcp:nodes:call")
async def test_a_chat_asks_before_a_tool_of_a_node_and_a_failure_of_it_is_its_own(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings="vcp_channels = true") as running, connect_node(running) as node:
        await node.register(manifest("Lamp"))
        waiting = start_call(running, "Lamp", text="on")
        approvals = running.yard.state.approvals
        (asked,) = await wait_for_value(lambda: approvals.page(limit=10))
        await approvals.answer(asked.id, allowed=True, by="key:owner")
        request = await node.next()
        await node.send("tool_result", requestId=request["requestId"], status="error", error="The bulb is broken.")
        envelope = await finish(waiting)
        assert envelope.error is not None
        assert (envelope.error.code, envelope.error.message) == (ErrorCode.EXECUTION_ERROR, "The bulb is broken.")


@pytest.mark.requirement("vcp:nodes:key")
async def test_a_wrong_key_is_called_wrong_and_a_right_one_never_is(
    running: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def find_refusal(key: str) -> tuple[int, str]:
        with pytest.raises(InvalidStatus) as refused:
            async with follow(running, PATH + key, key=None):
                pass
        response = refused.value.response
        return response.status_code, json.loads(response.body)["error"]["message"]

    status, said = await find_refusal("somebody-elses")
    assert (status, said[:9]) == (HTTPStatus.UNAUTHORIZED, "wrong key")
    status, said = await find_refusal("short")
    assert (status, "wrong" in said) == (HTTPStatus.UNAUTHORIZED, False)
    status, said = await find_refusal(running.make_key(Scope.CHAT, Scope.TOOLS, Scope.APPROVE))
    assert (status, "node" in said) == (HTTPStatus.FORBIDDEN, True)
    for _ in range(30):  # as many as lock out a guesser
        await find_refusal("somebody-elses")
    async with connect_node(running, running.make_key(Scope.NODE)) as node:
        await node.register(manifest("Lamp"))
    assert any("node" in one.getMessage() and "wrong key" in one.getMessage() for one in caplog.records)


@pytest.mark.requirement("vcp:nodes:key", "vcp:keys")
@pytest.mark.parametrize("key", ["plain-key-0123", "with/a+slash=0123", "per%41cent-0123", "密钥-密钥-密钥"])
async def test_the_key_of_an_installation_is_taken_however_it_is_written_in_the_address(
    tree: Path, tmp_path: Path, key: str
) -> None:
    (tree / "Plugin/VCPLog/config.env").write_text(f'VCP_Key="{key}"\n', encoding="utf-8")
    async with run_server(tmp_path, settings=f'vcp = "{tree}"') as running:
        async with connect_node(running, key) as node:
            await node.register(manifest("Lamp"))
        for channel in ("VCPlog", "vcpinfo"):
            async with follow(running, f"/{channel}/VCP_Key={key}", key=None) as connection:
                assert json.loads(await connection.recv())["type"] == "connection_ack"


@pytest.mark.requirement("vcp:nodes:key")
async def test_nodes_are_told_where_the_socket_is_closed_and_leave_with_their_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "_LOOK_S", 0.02)
    async with run_server(tmp_path / "closed") as closed:
        with pytest.raises(InvalidStatus) as refused:
            async with follow(closed, PATH + closed.key, key=None):
                pass
        assert "vcp_channels" in str(refused.value.response.body)
        assert (await closed.get("/v1/nodes")).json == {"is_open": False, "data": []}
    async with run_server(tmp_path, settings=OPEN) as running:
        key, text = running.server.access.keys.add("node", [Scope.NODE], 0.0)
        async with connect_node(running, text) as node:
            running.server.access.keys.remove(key.id)
            assert await wait_close_code(node.connection) == 1008


@pytest.mark.requirement("vcp:nodes:names")
async def test_the_same_name_on_two_nodes_and_here_stays_callable(running: RunningServer) -> None:
    async with connect_node(running) as first, connect_node(running) as second, connect_node(running) as third:
        await first.register(manifest("Lamp"), manifest("LS"), name="客厅")
        await second.register(manifest("Lamp"), name="kitchen pc")
        await third.register(manifest("Lamp"), name="kitchen pc")
        names = {tool.spec.name for tool in running.yard.tools}
        assert {"Lamp", "LS", "LS@客厅", "Lamp@kitchen-pc", "Lamp@kitchen-pc-2"} <= names
        newest, older = third, second  # from one address: the older connection may be a dead one of the same node
        by_name = [("Lamp", first), ("Lamp@客厅", first), ("Lamp@kitchen-pc", newest), ("Lamp@kitchen-pc-2", older)]
        for name, node in by_name:
            waiting = start_call(running, name, text="on")
            await node.answer({"message": name})
            assert (await finish(waiting)).text == name
        spec = running.yard.tools.get("Lamp@kitchen-pc").spec
        assert "tool_name:「始」Lamp@kitchen-pc「末」" in str(spec.prompt_text)
        assert spec.plugin_id != running.yard.tools.get("Lamp").spec.plugin_id
    await wait_until(lambda: not get_nodes(running).to_json())
    assert "Lamp" not in {tool.spec.name for tool in running.yard.tools}


@pytest.mark.requirement("vcp:nodes:cancel")
async def test_a_call_that_is_cancelled_or_takes_too_long_is_cancelled_in_its_node(running: RunningServer) -> None:
    async with connect_node(running) as node:
        quick = manifest("Quick", communication={"protocol": "stdio", "timeout": 1000})
        await node.register(manifest("Lamp"), quick, cancels=True)
        call = running.yard.calls.request("Lamp", {}, caller="key:owner")
        waiting = asyncio.create_task(running.yard.calls.settle(call))
        asked = await node.next()
        running.yard.cancel(call.id)
        assert await node.next("cancel_tool") == {"requestId": asked["requestId"]}
        envelope = await finish(waiting)
        assert envelope.context["reason"] == Reason.CANCELLED
        await node.send("tool_result", requestId=asked["requestId"], status="success", result="too late")

        waiting = start_call(running, "Quick")
        asked = await node.next()
        assert await node.next("cancel_tool") == {"requestId": asked["requestId"]}
        envelope = await finish(waiting)
        assert envelope.error is not None
        assert envelope.error.code is ErrorCode.TIMEOUT


@pytest.mark.requirement("vcp:nodes:gone")
async def test_calls_of_a_node_that_leaves_fail_at_once_and_it_may_come_back(running: RunningServer) -> None:
    async with connect_node(running) as node:
        await node.register(manifest("Lamp"))
        waiting = start_call(running, "Lamp")
        await node.next()
        old = running.yard.tools.get("Lamp")
    envelope = await finish(waiting)
    assert envelope.error is not None
    assert (envelope.context["reason"], "laptop" in envelope.error.message) == (Reason.INTERRUPTED, True)
    assert (await finish(start_call(running, "Lamp"))).error is not None
    async with connect_node(running) as node:
        await node.register(manifest("Lamp"))
        assert running.yard.tools.get("Lamp") is not old
        waiting = start_call(running, "Lamp")
        await node.answer("on")
        assert (await finish(waiting)).error is None


@pytest.mark.requirement("vcp:nodes:gone")
async def test_a_node_that_reconnects_is_used_although_its_old_connection_seems_to_live(
    running: RunningServer,
) -> None:
    async with connect_node(running) as dead, connect_node(running) as node:
        await dead.register(manifest("Lamp"))
        await node.register(manifest("Lamp"))
        waiting = start_call(running, "Lamp")
        await node.answer("on")
        assert (await finish(waiting)).error is None


@pytest.mark.requirement("vcp:nodes:gone")
async def test_only_the_node_that_was_asked_can_answer(running: RunningServer) -> None:
    async with connect_node(running) as node, connect_node(running) as other:
        await node.register(manifest("Lamp"))
        await other.register(manifest("Door"), name="other")
        waiting = start_call(running, "Lamp")
        asked = await node.next()
        await other.send("tool_result", requestId=asked["requestId"], status="success", result="forged")
        await other.register(manifest("Bell"), name="other")  # so the forged answer has been read
        await node.send("tool_result", requestId=asked["requestId"], status="success", result="real")
        assert "real" in str((await finish(waiting)).data)


@pytest.mark.requirement("vcp:nodes:bounds")
async def test_what_a_node_sends_is_bounded(running: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MAX_MESSAGE", 100_000)
    monkeypatch.setattr("toolyard.vcp.nodes.node.MAX_TOOLS", 3)
    monkeypatch.setattr("toolyard.vcp.nodes.node.MAX_VALUE", 10)
    async with connect_node(running) as node:
        await node.connection.send("no JSON")
        await node.connection.send("[1]")
        await node.send("unknown", a=1)
        await node.send("update_static_placeholders", serverName="x", placeholders={"{{Long}}": "x" * 20, "": "y"})
        await node.register(*(manifest(f"Tool{number}") for number in range(5)))
        (row,) = get_nodes(running).to_json()
        assert isinstance(row, dict)
        assert row["tools"] == ["Tool0", "Tool1", "Tool2"]
        assert isinstance(row["left_out"], dict)
        assert [*row["left_out"]] == ["Tool3", "Tool4"]
        assert get_nodes(running).placeholders()["Long"] == "x" * 10
        await node.connection.send("x" * 200_000)
        assert await wait_close_code(node.connection) == 1009
    async with connect_node(running) as node:
        for _ in range(routes.RATE + 50):
            await node.connection.send("{}")
        assert await wait_close_code(node.connection) == 1008
    monkeypatch.setattr("toolyard.vcp.nodes.nodes.MAX_NODES", 0)
    async with follow(running, PATH + running.key, key=None) as connection:
        assert await wait_close_code(connection) == 1013
    assert MAX_NODES > 0


@pytest.mark.requirement("vcp:nodes:bounds", "vcp:nodes:call")
async def test_a_fast_node_answers_as_many_calls_as_there_are(
    running: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "RATE", 5)
    async with connect_node(running) as node:
        await node.register(manifest("Lamp"))
        waiting = [start_call(running, "Lamp", text=str(number)) for number in range(32)]
        for _ in waiting:
            asked = await node.next()
            text = asked["toolArgs"]["text"]
            await node.send("tool_result", requestId=asked["requestId"], status="success", result={"message": text})
        assert [(await finish(one)).text for one in waiting] == [str(number) for number in range(32)]


@pytest.mark.requirement("vcp:nodes:bounds")
async def test_a_node_that_takes_no_messages_is_asked_for_nothing_more(
    running: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolyard.vcp.nodes.node.MAX_SENT", 1000)
    async with connect_node(running) as node:
        await node.register(manifest("Lamp"))
        envelope = await finish(start_call(running, "Lamp", text="x" * 2000))
        assert envelope.context["reason"] == Reason.TOO_LARGE


@pytest.mark.requirement("vcp:nodes:prompts")
async def test_prompts_have_the_placeholders_tools_and_list_of_nodes(tree: Path, tmp_path: Path) -> None:
    text = "{{Window}} | {{VCPLamp}} | {{VCPDistributedServerList}}"
    for settings in (OPEN, f'{OPEN}vcp = "{tree}"\n'):
        async with run_server(tmp_path, settings=settings) as running, connect_node(running) as node:
            await node.register(manifest("Lamp"))
            values = {"{{Window}}": "an editor <<<[TOOL_REQUEST]>>>"}
            await node.send("report_ip", serverName="laptop", localIPs=["192.0.2.7"], publicIP=None)
            await node.send("update_static_placeholders", serverName="laptop", placeholders=values)
            await wait_until(partial(has_placeholder, running, "Window"))
            filled = (await running.post("/v1/prompts/fill", {"text": text})).json["text"]
            window, lamp, listed = filled.split(" | ")
            assert (window[:9], "<<<[TOOL_REQUEST]>>>" in window) == ("an editor", False)
            assert lamp.startswith("- [云端] The Lamp (Lamp) - 命令: Do:")
            assert "serverName: laptop" in listed
            assert "localIPs: 192.0.2.7" in listed
            await node.connection.close()
            await wait_until(partial(has_no_nodes, running))
            gone = (await running.post("/v1/prompts/fill", {"text": "{{Window}}"})).json["text"]
            assert gone == "{{Window}}"


@pytest.mark.requirement("vcp:nodes:review")
async def test_with_node_review_a_node_waits_until_exactly_its_tools_are_allowed(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings=f"{OPEN}node_review = true\n") as running, connect_node(running) as node:
        await node.register(manifest("Lamp"))
        await node.send("update_static_placeholders", serverName="laptop", placeholders={"Window": "an editor"})
        await wait_until(lambda: "Window" in str(get_nodes(running).to_json()))
        assert "Window" not in get_nodes(running).placeholders()
        assert "Lamp" not in {tool.spec.name for tool in running.yard.tools}
        envelope = await finish(start_call(running, "Lamp"))
        assert envelope.context["reason"] == Reason.DENIED
        answer = await running.post(f"/v1/nodes/{node.id}/allow", {})
        assert (answer.status, answer.json["allowed"]) == (HTTPStatus.OK, True)
        (entry,) = (await running.get("/v1/audit?action=node.allowed")).json["data"]
        assert entry["target"] == "laptop"
        waiting = start_call(running, "Lamp")
        await node.answer("on")
        assert (await finish(waiting)).error is None
        await node.register(manifest("Lamp", description="Another one."))
        await wait_until(lambda: not get_nodes(running).list_allowed())
        assert (await running.post("/v1/nodes/dist-unknown/allow", {})).status == HTTPStatus.NOT_FOUND


async def run_command(running: RunningServer, *words: str) -> Result:
    place = ["--home", str(running.home), "--project", str(running.project)]
    return await asyncio.to_thread(CliRunner().invoke, toolyard, [*words, *place])


@pytest.mark.requirement("vcp:nodes:shown")
async def test_the_command_line_and_the_doctor_show_nodes_and_allow_them(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings=f"{OPEN}node_review = true\n") as running:
        assert "No node is connected." in (await run_command(running, "vcp", "nodes")).output
        async with connect_node(running) as node:
            await node.register(manifest("Lamp"), {"name": "broken"})
            listed = await run_command(running, "vcp", "nodes")
            assert "waiting" in listed.output
            checks = [one for one in (await running.get("/v1/doctor")).json["data"] if one["name"] == "nodes"]
            assert [one["level"] for one in checks] == ["ok", "warn", "warn"]
            assert "vcp nodes --allow laptop" in checks[1]["fix"]
            assert "broken" in checks[2]["message"]
            assert "connected: laptop" in str(
                (await run_command(running, "vcp", "nodes", "--allow", "nobody")).exception
            )
            allowed = await run_command(running, "vcp", "nodes", "--allow", "laptop", "--json")
            (row,) = json.loads(allowed.output)["data"]
            assert (row["allowed"], row["tools"]) == (True, ["Lamp"])
            assert "nodes: 1 connected: laptop" in (await run_command(running, "doctor")).output
    async with run_server(tmp_path / "closed") as closed:
        assert "cannot connect" in (await run_command(closed, "vcp", "nodes")).output


RECEIPT = {"message": "Begun: {{VCP_ASYNC_RESULT::Film::film-1}}"}


@pytest.mark.requirement("vcp:nodes:tasks")
@pytest.mark.parametrize("is_early", [False, True])
async def test_the_result_of_an_asynchronous_plugin_of_a_node_ends_its_task_and_is_pushed(
    running: RunningServer, is_early: bool
) -> None:
    push = {"enabled": True, "messageType": "film_ready", "targetClientType": "VCPLog"}
    film = manifest("Film", pluginType="asynchronous", webSocketPush=push)
    body = {"pluginName": "Film", "taskId": "film-1", "status": "Succeed", "message": "The film is ready."}
    async with connect_node(running) as node, follow(running, f"/VCPlog/VCP_Key={running.key}", key=None) as log:
        await node.register(film)
        waiting = start_call(running, "Film")
        asked = await node.next()
        if is_early:
            await node.send("plugin_callback_forward", callbackData=body)
        await node.send("tool_result", requestId=asked["requestId"], status="success", result=RECEIPT)
        envelope = await finish(waiting)
        (opened,) = envelope.data["tasks"]
        if not is_early:
            await node.send("plugin_callback_forward", callbackData=body)
        async with asyncio.timeout(60):
            task = await running.yard.state.tasks.wait(opened["id"])
            assert (task.state, task.result) == ("succeeded", body)
            while (message := json.loads(await log.recv()))["type"] != "film_ready":
                pass
        assert message["data"] == body


@pytest.mark.requirement("vcp:nodes:tasks")
async def test_a_task_of_a_node_that_never_ends_times_out(running: RunningServer) -> None:
    film = manifest("Film", pluginType="asynchronous", communication={"protocol": "stdio", "timeout": 1000})
    async with connect_node(running) as node:
        await node.register(film)
        await node.send("plugin_callback_forward", callbackData={"pluginName": "LS", "taskId": "a"})  # not its own
        waiting = start_call(running, "Film")
        await node.answer(RECEIPT)
        (opened,) = (await finish(waiting)).data["tasks"]
        async with asyncio.timeout(60):
            assert (await running.yard.state.tasks.wait(opened["id"])).state == "timed_out"


SHOW_FILE = """
import json, sys, urllib.parse
asked = json.loads(sys.stdin.read())
path = urllib.parse.urlsplit(asked["image"]).path
try:
    text = open(path).read()
except OSError as error:
    text = type(error).__name__
print(json.dumps({"status": "success", "result": {"image": asked["image"], "text": text, "note": asked["note"]}}))
"""


async def serve_files(node: Node, files: dict[str, bytes]) -> None:
    """Answer requests for files for as long as the node is connected."""
    while True:
        asked = await node.next()
        assert asked["toolName"] == "internal_request_file"
        content = files.get(asked["toolArgs"]["fileUrl"])
        if content is None:
            await node.send("tool_result", requestId=asked["requestId"], status="error", error="File not found")
        else:
            data = {"status": "success", "fileData": base64.b64encode(content).decode(), "mimeType": "text/plain"}
            await node.send("tool_result", requestId=asked["requestId"], status="success", result=data)


@pytest.mark.requirement("vcp:nodes:files")
async def test_a_file_that_only_a_node_has_is_brought_before_a_plugin_runs(tree: Path, tmp_path: Path) -> None:
    add_installed(tree, "ShowFile", SHOW_FILE)
    url, spoilt, here = "file:///C:/pictures/my%20cat.txt", "file:///C:/two.txt", (tree / "agent_map.json").as_uri()
    trusted = f'trusted_folders = ["{tree / "Plugin"}"]\n'
    settings = f'{OPEN}vcp = "{tree}"\n{trusted}'
    clock = FakeClock()
    async with (
        run_server(tmp_path, ServerOptions(port=0, grace_s=2.0, ping_s=600.0, clock=clock), settings) as running,
        connect_node(running) as node,
        connect_node(running) as other,
        asyncio.timeout(120),
    ):
        await node.register(manifest("Lamp"))
        await other.register(manifest("Door"), name="other")
        serving = [
            asyncio.create_task(serve_files(node, {url: b"a cat", spoilt: b"one"})),
            asyncio.create_task(serve_files(other, {spoilt: b"another"})),
        ]
        shown = await finish(start_call(running, "ShowFile", image=url, note=f"see {url}, and {here}"))
        assert shown.data["text"] == "a cat"
        copy = str(shown.data["image"])
        assert copy.startswith((tree / ".file_cache").as_uri())
        assert copy.endswith(".txt")
        assert shown.data["note"] == f"see {copy}, and {here}"
        assert shown.context["params_input"]["image"] == url
        missing = await finish(start_call(running, "ShowFile", image="file:///C:/none.txt", note=""))
        assert missing.data["image"] == "file:///C:/none.txt"
        ambiguous = await finish(start_call(running, "ShowFile", image=spoilt, note=""))
        assert ambiguous.error is not None
        assert "Several nodes" in ambiguous.error.message
        for work in serving:
            work.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
