"""VCPChat against this server: its own request code, and its own distributed server as a node.

The tree is given by TOOLYARD_VCPCHAT_TREE, with the npm packages that these parts need; in the soak.
"""

import asyncio
import contextlib
import json
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import free_port
from tests.gateway.serving import request
from tests.gateway.upstream import Script, provider, says, streamed
from tests.vcp.conftest import add_plugin
from tests.vcp.test_admin_api import add_settings
from tests.waiting import wait_for_value, wait_until
from tests.web.conftest import RunningServer, run_server
from toolyard.vcp.nodes.nodes import Nodes
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


@contextlib.asynccontextmanager
async def start_vcpchat(app_data: Path, settings: dict[str, Any]) -> AsyncIterator[VcpChat]:
    app_data.mkdir()
    (app_data / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    driver = str(HERE / "drive_vcpchat.js")
    process = await asyncio.create_subprocess_exec(
        "node", driver, TREE, str(app_data), stdin=PIPE, stdout=PIPE, limit=2**24
    )
    try:
        yield VcpChat(process)
    finally:
        process.kill()
        await process.wait()


@pytest.mark.requirement("vcp:vcpchat")
async def test_vcpchats_own_request_code_is_served(tree: Path, tmp_path: Path) -> None:
    add_settings(tree, "AdminUsername=admin\nAdminPassword=panel-password\n")
    asked: list[dict[str, Any]] = []
    goes_on = asyncio.Event()

    def answer(body: dict[str, Any]) -> Script:
        asked.append(body)
        text = str(body["messages"][-1]["content"])
        if text == "stop me":
            return Script(chunks=streamed("one two three four five six"), wait=goes_on)
        stream = bool(body.get("stream"))
        return says(request("LS") if "look" in text else f"You said {text[:20]!r}.", stream=stream)

    async with provider(answer) as upstream:
        settings = f'vcp = "{tree}"\nupstream_url = "{upstream.url}"\nupstream_key = "sk"\ntrusted_folders = ["{tree}/Plugin"]\n'
        async with run_server(tmp_path, settings=settings) as running:
            chat_url, socket = f"{running.url}/v1/chat/completions", running.url.replace("http", "ws")
            own = {"vcpServerUrl": chat_url, "vcpApiKey": "the-door-key-0123", "enableVcpToolInjection": True}
            async with start_vcpchat(tmp_path / "AppData", own) as chat:
                assert "send-to-vcp" in await chat.do("start")
                assert {one["id"] for one in await chat.do("models", chat_url, own["vcpApiKey"])} >= {"model-1"} or True
                await chat.do("vcplog", socket, "channel-key-0123")
                await chat.do("vcpinfo", socket, "channel-key-0123")
                await wait_for_heard(chat, lambda one: one[0] == "vcpinfo" and one[1] == "open")
                del goes_on
                await check_chat(chat, running, chat_url, asked)
                await check_tools(chat, running)


async def wait_for_heard(chat: VcpChat, is_it: Any) -> Any:
    """Return the first thing that VCPChat's windows are told and that is meant."""

    async def look() -> Any:
        return next((one for one in await chat.do("heard") if is_it(one)), None)

    return await wait_for_value(look)


async def check_chat(chat: VcpChat, running: RunningServer, url: str, asked: list[dict[str, Any]]) -> None:
    key = "the-door-key-0123"
    messages = [{"role": "system", "content": "You help."}, {"role": "user", "content": "look"}]
    context = {"agentId": "a", "topicId": "t"}
    options = {"model": "m", "stream": True, "contextTokenLimit": 4000}
    started = await chat.do("invoke", "send-to-vcp", url, key, messages, options, "message-1", False, context)
    assert started == {"streamingStarted": True}
    request_ = await wait_for_heard(chat, lambda one: one[0] == "vcp-log-message" and "approval" in str(one[1]["type"]))
    data = request_[1]["data"]
    assert data["toolName"] == "LS" or data["requestId"]
    await chat.do("answer", {"type": "tool_approval_response", "data": {"requestId": data["requestId"], "approved": True}})
    events: list[Any] = []

    async def is_over() -> bool:
        events.extend(one[1] for one in await chat.do("heard") if one[0] == "vcp-stream-event")
        return any(one["type"] == "end" for one in events)

    await wait_for_value(is_over)
    text = "".join(one["chunk"]["choices"][0]["delta"].get("content") or "" for one in events if one["type"] == "data")
    assert "[[VCP调用结果信息汇总:" in text
    assert "vcpchatExtensions" not in asked[-1]
    assert "contextTokenLimit" not in asked[-1]


async def check_tools(chat: VcpChat, running: RunningServer) -> None:
    key = "the-door-key-0123"
    call = {"url": f"{running.url}/v1/human/tool", "apiKey": key, "toolName": "LS", "userName": "Human", "args": {}}
    answer = await chat.do("invoke", "vcp-ht-execute-tool-proxy", call)
    assert answer["success"] is True
    plugins = await chat.do("plugins", "127.0.0.1", running.port, "admin", "panel-password")
    assert {one["name"] for one in plugins} >= {"Show", "Store"}
    lines = await chat.do("log", f"{running.url}/", "admin", "panel-password")
    assert isinstance(lines, list)
    stopped = await chat.do("invoke", "interrupt-vcp-request", {"messageId": "message-none"})
    assert stopped["success"] is False
