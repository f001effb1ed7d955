"""VCPChat against this server: its own request code, and its own distributed server as a node.

The tree is given by TOOLYARD_VCPCHAT_TREE, with the npm packages that these parts need; in the soak.
"""

import asyncio
import contextlib
import json
import logging
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import free_port
from tests.gateway.serving import request
from tests.gateway.upstream import Script, provider, says, streamed
from tests.vcp.node import manifest
from tests.vcp.test_admin_api import add_settings
from tests.waiting import wait_for_value, wait_until
from tests.web.conftest import RunningServer, run_server
from toolyard.vcp.nodes import node_files
from toolyard.web.server.lifecycle import ServerOptions

TREE = os.environ.get("TOOLYARD_VCPCHAT_TREE", "")
HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(
    not TREE or not shutil.which("node"), reason="TOOLYARD_VCPCHAT_TREE names no VCPChat to run"
)


class VcpChat:
    """VCPChat's request code in a Node process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.heard: list[Any] = []  # what its windows were told
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.create_task(self._read())

    async def do(self, name: str, *args: Any) -> Any:
        number = len(self._waiting)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": number, "do": name, "args": args}).encode() + b"\n")
        async with asyncio.timeout(120):
            return await self._waiting[number]

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            answer = json.loads(line)
            waiting = self._waiting[answer["id"]]
            if "error" in answer:
                waiting.set_exception(AssertionError(answer["error"]))
            else:
                waiting.set_result(answer["value"])


def write_settings(app_data: Path, settings: dict[str, Any]) -> None:
    app_data.mkdir()
    (app_data / "settings.json").write_text(json.dumps(settings), encoding="utf-8")


@contextlib.asynccontextmanager
async def start_vcpchat(app_data: Path, settings: dict[str, Any]) -> AsyncIterator[VcpChat]:
    write_settings(app_data, settings)
    driver = str(HERE / "drive_vcpchat.js")
    process = await asyncio.create_subprocess_exec(
        "node", driver, TREE, str(app_data), stdin=PIPE, stdout=PIPE, limit=2**24
    )
    try:
        yield VcpChat(process)
    finally:
        process.kill()
        await process.wait()


KEY = "the-door-key-0123"
CONTEXT = {"agentId": "a", "topicId": "t"}


@pytest.mark.requirement("vcp:vcpchat")
async def test_vcpchats_own_request_code_is_served(tree: Path, tmp_path: Path) -> None:
    add_settings(tree, "AdminUsername=admin\nAdminPassword=panel-password\n")
    asked: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> Script:
        asked.append(body)
        text = str(body["messages"][-1]["content"])
        if text == "stop me":
            return Script(streamed("I go on")[:3], then="hang")
        return says(request("Write", path="a.md", content="x") if text == "write" else "It is done.")

    async with provider(answer) as upstream:
        model = f'upstream_url = "{upstream.url}"\nupstream_key = "sk"\n'
        settings = f'vcp = "{tree}"\n{model}offer = "text"\napproval_mode = "ask"\n'
        async with run_server(tmp_path, settings=settings) as running:
            url, socket = f"{running.url}/v1/chat/completions", running.url.replace("http", "ws")
            own = {"vcpServerUrl": url, "vcpApiKey": KEY, "enableVcpToolInjection": True}
            async with start_vcpchat(tmp_path / "AppData", own) as chat:
                assert "send-to-vcp" in await chat.do("start")
                assert "tour" in {one["id"] for one in await chat.do("models", url, KEY)}
                await chat.do("vcplog", socket, "channel-key-0123")
                await chat.do("vcpinfo", socket, "channel-key-0123")
                await hear(chat, lambda one: one == ["vcpinfo", "open"])
                await chat_with_approval(chat, url)
                assert (running.project / "a.md").read_text() == "x"
                assert not {"vcpchatExtensions", "contextTokenLimit", "requestId"} & asked[-1].keys()
                await interrupt(chat, url)
                await use_tools(chat, running)


async def hear(chat: VcpChat, is_it: Callable[[Any], bool]) -> Any:
    """Return the first thing that VCPChat's windows are told and that is meant, now or before."""

    async def look() -> Any:
        chat.heard.extend(await chat.do("heard"))
        return next((one for one in chat.heard if is_it(one)), None)

    return await wait_for_value(look)


def is_event(kind: str, message: str) -> Callable[[Any], bool]:
    return lambda one: one[0] == "vcp-stream-event" and (one[1]["type"], one[1]["messageId"]) == (kind, message)


def is_log(one: Any) -> bool:
    return bool(one[0] == "vcp-log-message" and one[1]["type"] == "vcp_log")


def is_approval(one: Any) -> bool:
    return bool(one[0] == "vcp-log-message" and one[1]["type"] == "tool_approval_request")


async def send(chat: VcpChat, url: str, text: str, name: str) -> None:
    messages = [{"role": "system", "content": "You help."}, {"role": "user", "content": text}]
    options = {"model": "m", "stream": True, "contextTokenLimit": 4000}
    started = await chat.do("invoke", "send-to-vcp", url, KEY, messages, options, name, False, CONTEXT)
    assert started == {"streamingStarted": True}


async def chat_with_approval(chat: VcpChat, url: str) -> None:
    await send(chat, url, "write", "message-1")
    asked = (await hear(chat, is_approval))[1]["data"]
    assert (asked["toolName"], asked["args"]["path"]) == ("Write", "a.md")
    answer = {"requestId": asked["requestId"], "approved": True}
    await chat.do("answer", {"type": "tool_approval_response", "data": answer})
    await hear(chat, is_event("end", "message-1"))
    chunks = [one[1]["chunk"] for one in chat.heard if is_event("data", "message-1")(one)]
    text = "".join(one["choices"][0]["delta"].get("content") or "" for one in chunks)
    assert "[[VCP调用结果信息汇总:" in text
    assert text.rstrip().endswith("It is done.")
    assert (await hear(chat, is_log))[1]["data"]["tool_name"] == "Write"


async def interrupt(chat: VcpChat, url: str) -> None:
    await send(chat, url, "stop me", "message-2")
    await hear(chat, is_event("data", "message-2"))
    stopped = await chat.do("invoke", "interrupt-vcp-request", {"messageId": "message-2"})
    assert stopped["success"] is True
    await hear(chat, is_event("end", "message-2"))
    again = await chat.do("invoke", "interrupt-vcp-request", {"messageId": "message-2"})
    assert again["success"] is False


async def use_tools(chat: VcpChat, running: RunningServer) -> None:
    call = {"url": f"{running.url}/v1/human/tool", "apiKey": KEY, "toolName": "LS", "userName": "Human", "args": {}}
    answer = await chat.do("invoke", "vcp-ht-execute-tool-proxy", call)
    assert (answer["success"], "a.md" in json.dumps(answer)) == (True, True)
    failed = await chat.do("invoke", "vcp-ht-execute-tool-proxy", {**call, "toolName": "NoSuchTool"})
    assert (failed["success"], "NoSuchTool" in failed["error"]) == (False, True)
    plugins = await chat.do("plugins", "127.0.0.1", running.port, "admin", "panel-password")
    assert {one["name"] for one in plugins} >= {"Show", "Store"}
    logging.getLogger("toolyard.test").warning("a line of the log")
    lines = await chat.do("log", f"{running.url}/", "admin", "panel-password")
    assert any("a line of the log" in str(line) for line in lines)


ECHO = """
let text = "";
process.stdin.on("data", (part) => (text += part)).on("end", () => {
  const args = JSON.parse(text || "{}");
  const answer = args.fail ? { status: "error", error: "It broke." } : { status: "success", result: args };
  console.log(JSON.stringify(answer));
});
"""
FILM = """
console.log(JSON.stringify({ status: "success", result: { message: "{{VCP_ASYNC_RESULT::Film::film-1}}" } }));
const body = JSON.stringify({ pluginName: "Film", taskId: "film-1", status: "Succeed", message: "The film is ready." });
const headers = { "Content-Type": "application/json" };
setTimeout(() => fetch(process.env.CALLBACK_BASE_URL, { method: "POST", headers, body }), 200);
"""


def make_node_folder(place: Path) -> Path:
    """Copy VCPChat's distributed server, with two plugins of its own and three of these tests."""
    source, folder = Path(TREE) / "VCPDistributedServer", place / "VCPDistributedServer"
    for name in ("PluginSourceViewer", "MusicController"):
        shutil.copytree(source / "Plugin" / name, folder / "Plugin" / name)
    for file in ("VCPDistributedServer.js", "Plugin.js"):
        shutil.copy(source / file, folder / file)
    (folder / "node_modules").symlink_to(Path(TREE) / "node_modules")
    kinds = {"Echo": ("synchronous", ECHO), "Film": ("asynchronous", FILM), "Clock": ("static", "console.log('noon');")}
    for name, (kind, code) in kinds.items():
        plugin = manifest(name, pluginType=kind)
        if kind == "static":
            plugin["capabilities"] = {"systemPromptPlaceholders": [{"placeholder": "{{NodeClock}}"}]}
        (folder / "Plugin" / name).mkdir()
        (folder / "Plugin" / name / "main.js").write_text(code)
        (folder / "Plugin" / name / "plugin-manifest.json").write_text(json.dumps(plugin))
    return folder


@contextlib.asynccontextmanager
async def start_node(folder: Path, url: str, key: str) -> AsyncIterator[None]:
    runner = str(HERE / "run_node.js")
    process = await asyncio.create_subprocess_exec(
        "node", runner, str(folder), url, key, "我的电脑", stdout=DEVNULL, stderr=DEVNULL
    )
    try:
        yield
    finally:
        process.kill()
        await process.wait()


def has_tool(running: RunningServer, name: str) -> bool:
    return name in {tool.spec.name for tool in running.yard.tools}


def has_value(running: RunningServer) -> bool:
    return running.yard.nodes.nodes is not None and "NodeClock" in running.yard.nodes.nodes.placeholders()


@pytest.mark.requirement("vcp:nodes:real")
async def test_vcpchats_own_distributed_server_is_a_node(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, port = make_node_folder(tmp_path), free_port()
    picture = tmp_path / "a b.txt"
    picture.write_text("a picture")
    monkeypatch.setattr(node_files, "_is_here", lambda _: False)  # the node has the same disk
    settings = f'vcp = "{tree}"\napproval_mode = "auto"\ntrusted_folders = ["{tree}/Plugin"]\n'
    options = ServerOptions(port=port, grace_s=2.0, ping_s=600.0)
    async with start_node(folder, f"http://127.0.0.1:{port}", "channel-key-0123"):
        async with run_server(tmp_path / "first", options, settings) as running:
            await wait_until(partial(has_tool, running, "Echo"))
            answer = (await running.post("/v1/tools/Echo@我的电脑", {"text": "hi", "maid": "Nova"})).json
            assert (answer["data"]["text"], answer["data"]["maid"]) == ("hi", "Nova")
            failed = (await running.post("/v1/tools/Echo", {"fail": "yes"})).json
            assert failed["error"]["message"] == "It broke."
            viewed = (await running.post("/v1/tools/PluginSourceViewer", {"targettool": "Echo"})).json
            assert "process.stdin" in viewed["text"]
            refused = (await running.post("/v1/tools/MusicController", {"command": "playSong", "songname": "x"})).json
            assert refused["status"] == "error"
            begun = (await running.post("/v1/tools/Film", {})).json
            task = await running.yard.state.tasks.wait(begun["data"]["tasks"][0]["id"])
            assert task.state == "succeeded"
            await wait_until(partial(has_value, running))
            filled = (await running.post("/v1/prompts/fill", {"text": "{{NodeClock}} {{VCPEcho}}"})).json["text"]
            assert filled.startswith("noon - [云端] The Echo (Echo)")
            brought = await running.yard.nodes.bring_files({"file": picture.as_uri()})
            assert str(brought["file"]).startswith((tree / ".file_cache").as_uri())
            assert next((tree / ".file_cache").iterdir()).read_text() == "a picture"
        async with run_server(tmp_path / "second", options, settings) as again:
            await wait_until(partial(has_tool, again, "Echo"))
            assert (await again.post("/v1/tools/Echo", {"text": "back"})).json["data"]["text"] == "back"
