"""A server with plugins that live in VCPToolBox's process: started with it, reached by HTTP, and calling back."""

import asyncio
import json
from http import HTTPStatus
from pathlib import Path

import pytest

from tests.vcp.tree import ECHO, Tree
from tests.waiting import wait_until
from tests.web.conftest import run_server
from tests.web.test_websocket import follow, receive
from toolyard.protocol.access import Effect
from toolyard.protocol.envelope import Reason
from toolyard.protocol.json import Json
from toolyard.protocol.tool import Origin
from toolyard.vcp.prompts import Stage
from toolyard.web.security.scope import Scope

ROUTES = """
module.exports = {
  registerApiRoutes(router) {
    router.get("/hello", (request, response) => {
      response.writeHead(201, { "Content-Type": "text/html", "Set-Cookie": "a=b" });
      response.end(`hello ${request.url} ${request.headers.authorization}`);
    });
    router.post("/echo", (request, response) => request.pipe(response));
    router.get("/stream", (request, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write("data: first\\n\\n");
      request.on("close", () => {});
      response.on("close", () => require("fs").writeFileSync("dailynote/left", ""));
    });
    router.get("/broken", () => { throw new Error("no"); });
  },
  registerRoutes(app, admin, config, base) {
    admin.get("/panel", (request, response) => response.end("the panel"));
  },
};
"""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.mark.requirement("vcp:bridge:routes")
async def test_routes_of_plugins_stand_at_their_own_paths_and_need_our_keys(tree: Tree, tmp_path: Path) -> None:
    tree.add("Pages", ROUTES, kind="service")
    async with run_server(tmp_path, settings=tree.config) as running:
        answer = await running.get("/api/plugins/Pages/hello?a=1")
        assert answer.status == HTTPStatus.CREATED
        assert answer.body == b"hello /hello?a=1 undefined"  # without the key
        assert "set-cookie" not in answer.headers
        assert "sandbox" in answer.headers["content-security-policy"]
        assert (await running.get("/api/plugins/Pages/hello", key=None)).status == HTTPStatus.UNAUTHORIZED
        chat, tools = running.make_key(Scope.CHAT), running.make_key(Scope.TOOLS)
        assert (await running.get("/api/plugins/Pages/hello", key=chat)).status == HTTPStatus.FORBIDDEN
        assert (await running.get("/api/plugins/Pages/hello", key=tools)).status == HTTPStatus.CREATED
        assert (await running.get("/admin_api/panel", key=tools)).status == HTTPStatus.FORBIDDEN
        assert (await running.get("/admin_api/panel")).body == b"the panel"
        binary = {"Content-Type": "application/octet-stream"}
        body = bytes(range(256)) * 4000
        assert (await running.post("/api/plugins/Pages/echo", data=body, headers=binary)).body == body


@pytest.mark.requirement("vcp:bridge:routes")
async def test_a_stream_of_a_plugin_arrives_as_it_is_written_and_ends_with_its_client(
    tree: Tree, tmp_path: Path
) -> None:
    tree.add("Pages", ROUTES, kind="service")
    async with run_server(tmp_path, settings=tree.config) as running:
        headers = {"Authorization": f"Bearer {running.key}"}
        async with running.client.get(f"{running.url}/api/plugins/Pages/stream", headers=headers) as response:
            assert await response.content.readline() == b"data: first\n"
        await wait_until((tree.root / "dailynote/left").exists)


@pytest.mark.requirement("vcp:bridge:server")
async def test_services_run_from_the_start_of_a_server_and_give_placeholders(tree: Tree, tmp_path: Path) -> None:
    code = """
    module.exports = { initialize(config, { pluginManager }) {
      pluginManager.staticPlaceholderValues.set("Page", { value: "a page" });
    } };"""
    tree.add("Observer", code, kind="service")
    async with run_server(tmp_path, settings=tree.config) as running:
        await wait_until(lambda: running.server._static_placeholders().get("Page") == "a page")


@pytest.mark.requirement("vcp:bridge:server")
@pytest.mark.parametrize("network", ["", "strict_network = true"])
async def test_a_plugin_reaches_this_server_with_the_key_that_it_was_given(
    tree: Tree, tmp_path: Path, network: str
) -> None:
    code = """
    const http = require("http");
    module.exports = { processToolCall: (args) => new Promise((resolve, reject) => {
      const headers = { Authorization: `Bearer ${process.env.Key}` };
      http.get({ host: "127.0.0.1", port: process.env.PORT, path: args.path, headers }, (response) => {
        response.resume();
        response.on("end", () => resolve({ code: response.statusCode }));
      }).on("error", reject);
    }) };"""
    tree.add("Asks", code)
    tree.settings(network)
    async with run_server(tmp_path, settings=tree.config) as running:
        codes = [
            (await running.post("/v1/tools/Asks", {"path": path})).json["data"]["code"]
            for path in ("/v1/models", "/v1/tools", "/v1/settings")
        ]
        assert codes == [HTTPStatus.OK, HTTPStatus.OK, HTTPStatus.FORBIDDEN]
        assert not (running.home / "keys.json").exists()  # nothing of it is stored


@pytest.mark.requirement("vcp:bridge:server")
async def test_what_a_plugin_pushes_reaches_the_clients_of_its_channel(tree: Tree, tmp_path: Path) -> None:
    code = """
    const host = require("../../Plugin.js");
    module.exports = { processToolCall: async () => {
      host.getVCPLogFunctions().pushVcpLog({ tool_name: "Push" });
      host.webSocketServer.broadcastVCPInfo({ type: "INFO" });
      return 1;
    } };"""
    tree.add("Push", code)
    async with (
        run_server(tmp_path, settings=f"{tree.config}vcp_channels = true\n") as running,
        follow(running, f"/VCPlog/VCP_Key={running.key}", key=None) as log,
        follow(running, f"/vcpinfo/VCP_Key={running.key}", key=None) as info,
    ):
        await receive(log, 1)
        await receive(info, 1)
        call = asyncio.create_task(running.post("/v1/tools/Push", {}))
        assert {"type": "vcp_log", "data": {"tool_name": "Push"}} in await receive(log, 2)
        assert await receive(info, 1) == [{"type": "INFO"}]
        assert (await call).status == HTTPStatus.OK


@pytest.mark.requirement("vcp:bridge:only")
async def test_a_plugin_that_is_switched_off_leaves_the_process_and_back_on_is_there_again(
    tree: Tree, tmp_path: Path
) -> None:
    tree.add("Diary", ECHO)
    async with run_server(tmp_path, settings=tree.config) as running:
        bridge = running.yard.vcp.bridge
        assert bridge is not None
        await wait_until(lambda: bridge.pid)
        assert (await running.post("/v1/plugins/Diary/disable")).status == HTTPStatus.OK
        await wait_until(lambda: bridge.pid is None)
        assert (await running.post("/v1/plugins/Diary/enable")).status == HTTPStatus.OK
        await wait_until(lambda: bridge.pid)


@pytest.mark.requirement("vcp:bridge:messages")
async def test_preprocessors_see_the_messages_of_a_chat_before_the_model_does(tree: Tree, tmp_path: Path) -> None:
    code = """
    module.exports = { processMessages: async (messages) =>
      messages.map((one) => ({ ...one, content: `${one.content} NAME` })) };"""
    for name in ("VCPTavern", "ImageProcessor", "Other"):
        tree.add(name, code.replace("NAME", name), kind="messagePreprocessor")
    async with tree.open() as opened:
        vcp = opened.yard.vcp
        messages: list[Json] = [{"role": "user", "content": "hi"}]
        told = [await vcp.preprocess(stage, messages) for stage in Stage]
    assert [one[0]["content"] for one in told if isinstance(one[0], dict)] == [
        "hi VCPTavern",
        "hi ImageProcessor",
        "hi Other",
    ]


@pytest.mark.requirement("vcp:bridge:approvals")
async def test_the_approval_file_of_the_tree_becomes_rules_once(tree: Tree, tmp_path: Path) -> None:
    approvals = {"enabled": True, "approvalList": ["Asks", "Diary:delete::SilentReject"]}
    (tree.root / "toolApprovalConfig.json").write_text(json.dumps(approvals))
    tree.add("Diary")
    for start in (1, 2):
        async with run_server(tmp_path, settings=tree.config) as running:
            calls = running.yard.calls
            rules = await running.yard.state.approvals.rules()
            if rules:
                assert [(rule.tool, rule.command, rule.effect) for rule in rules] == [("Diary", "delete", Effect.DENY)]
                call = calls.request("Diary", {"command": "delete"}, origin=Origin.CHAT)
                assert (await calls.settle(call)).envelope.context["reason"] == Reason.DENIED
                assert await running.yard.state.approvals.revoke(rules[0].id)
            else:
                assert start == 2  # what the owner has revoked does not come back


@pytest.mark.requirement("vcp:bridge:approvals")
async def test_vcptoolbox_does_not_ask_again_about_a_call_that_toolyard_lets_run(tree: Tree) -> None:
    tree.add("Diary")  # of a host that asks about every call
    async with tree.open() as opened:
        assert (await opened.call("Diary")).envelope.error is None
