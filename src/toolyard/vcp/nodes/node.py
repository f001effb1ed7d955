"""One connected node: what it offers, the calls that it is asked for, and the messages between the two.

Messages are ``{type, data}``. A node registers manifests of plugins, may send its addresses and values of placeholders,
and answers each ``execute_tool`` with a ``tool_result``. Everything is bounded: what a node sends beyond a limit is
left out, and a node that does not take its messages is asked for nothing more. What cannot be read is passed over, as
VCPToolBox does it: another version of a node may send more than is known here.
"""

import asyncio
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from toolyard.message import Message
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.manifests.manifest import Manifest
from toolyard.protocol.manifests.manifest_parser import parse_manifest
from toolyard.protocol.manifests.safe_text import strip_hidden

MAX_TOOLS: Final = 500
MAX_PLACEHOLDERS: Final = 500
MAX_VALUE: Final = 64 * 1024  # characters of a placeholder's value
MAX_SENT: Final = 16 * 2**20  # bytes of a message to a node
MAX_UNSENT: Final = 64  # messages that wait until a node takes them
AT_ONCE: Final = 16  # calls in a node
FILE_TOOL: Final = "internal_request_file"  # every node has it; it is no tool for models
_MAX_LEFT_OUT = 100
_MAX_NAME = 80
_MAX_ADDRESSES = 32


class NodeError(Exception):
    """A tool of a node failed; ``error`` is what it said."""

    def __init__(self, error: Json) -> None:
        super().__init__("a tool of a node failed")
        self.error = error


@dataclass(frozen=True, slots=True)
class ForwardedCallback:
    """What a program of a node sent to its callback address."""

    plugin: str
    task_id: str
    body: JsonObject


class Node:
    """A connection; ``id`` is its own, another one after a reconnect."""

    def __init__(self, address: str, connected: datetime) -> None:
        self.id = f"dist-{secrets.token_hex(6)}"
        self.address, self.connected, self.seen = address, connected, connected
        self.name = ""  # as it calls itself; empty until it has said so
        self.manifests: dict[str, Manifest] = {}
        self.left_out: dict[str, str] = {}  # tools that cannot be offered, and why
        self.placeholders: dict[str, str] = {}  # without braces
        self.local_addresses: tuple[str, ...] = ()
        self.public_address = ""
        self.can_cancel = False
        self.slots = asyncio.Semaphore(AT_ONCE)
        self.unsent: asyncio.Queue[str] = asyncio.Queue(MAX_UNSENT)
        self._asked: dict[str, asyncio.Future[Json]] = {}
        self._is_gone = False

    @property
    def running_count(self) -> int:
        return len(self._asked)

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Json:
        """Return what a tool of the node answers; cancelled, the node is told to stop it, if it can.

        Raises NodeError, and Failure when the node is gone or does not take the call.
        """
        request = secrets.token_hex(8)
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._asked[request] = answer
        try:
            self._send("execute_tool", {"requestId": request, "toolName": tool, "toolArgs": dict(arguments)})
            return await answer
        finally:
            del self._asked[request]
            if answer.cancelled() and self.can_cancel:
                with suppress(Failure):
                    self._send("cancel_tool", {"requestId": request})

    def take(self, message: JsonObject) -> ForwardedCallback | None:
        """Take a message of the node; return a callback, which is for others."""
        data = message.get("data")
        if not isinstance(data, dict):
            return None
        match message.get("type"):
            case "register_tools":
                self._take_tools(data)
            case "report_ip":
                self._take_name(data)
                self.local_addresses = tuple(_list_texts(data.get("localIPs")))
                self.public_address = _read_short(data.get("publicIP"))
            case "update_static_placeholders":
                self._take_placeholders(data.get("placeholders"))
            case "tool_result":
                self._take_result(data)
            case "plugin_callback_forward":
                return _read_callback(data.get("callbackData"))
        return None

    def close(self) -> None:
        """Fail what it was asked for: it is gone."""
        self._is_gone = True
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(self._gone("The node {name} left during the call, and nobody knows if it ran."))

    def _send(self, kind: str, data: JsonObject) -> None:
        if self._is_gone:
            raise self._gone("The node {name} is gone.")
        text = json_bytes({"type": kind, "data": data})
        if len(text) > MAX_SENT:
            message = Message("The call is larger than the {mib} MiB that a node gets.", mib=MAX_SENT >> 20)
            raise Failure(Reason.TOO_LARGE, message)
        try:
            self.unsent.put_nowait(text.decode())
        except asyncio.QueueFull:
            message = Message("The node {name} does not take its messages.", name=self.name)
            raise Failure(Reason.BUSY, message, hint=Message("Try again later.")) from None

    def _gone(self, template: str) -> Failure:
        hint = Message("Look at what it may have changed before you call it again.")
        return Failure(Reason.INTERRUPTED, Message(template, name=self.name or self.id), hint=hint)

    # --- what it sends ---

    def _take_name(self, data: JsonObject) -> None:
        self.name = _read_short(data.get("serverName")) or self.name

    def _take_tools(self, data: JsonObject) -> None:
        """Add tools to those it has registered before: a node may send them one after another."""
        self._take_name(data)
        capabilities = data.get("capabilities")
        self.can_cancel = isinstance(capabilities, dict) and capabilities.get("cancelTool") is True
        tools = data.get("tools")
        for value in tools if isinstance(tools, list) else ():
            if not isinstance(value, dict) or value.get("name") == FILE_TOOL:
                continue
            manifest, faults = parse_manifest(value)
            name = manifest.name if manifest else _read_short(value.get("name"))
            if manifest is None:
                why = next((fault.message for fault in faults if not fault.warning), "")
                self._leave_out(name, why or Message("it has no manifest that can be read"))
            elif name not in self.manifests and len(self.manifests) >= MAX_TOOLS:
                self._leave_out(name, Message("the node has more than {most} tools", most=MAX_TOOLS))
            else:
                self.manifests[name] = manifest
                self.left_out.pop(name, None)

    def _leave_out(self, name: str, why: str) -> None:
        if len(self.left_out) < _MAX_LEFT_OUT:
            self.left_out[name] = why

    def _take_placeholders(self, values: Json) -> None:
        for key, value in values.items() if isinstance(values, dict) else ():
            name = _read_short(key.strip().strip("{}").strip())
            text = value if isinstance(value, str) else json_bytes(value).decode()
            if name and (name in self.placeholders or len(self.placeholders) < MAX_PLACEHOLDERS):
                self.placeholders[name] = text[:MAX_VALUE]

    def _take_result(self, data: JsonObject) -> None:
        answer = self._asked.get(str(data.get("requestId")))
        if answer is None or answer.done():
            return  # nobody waits for it any more
        if data.get("status") == "success":
            answer.set_result(data.get("result"))
        else:
            answer.set_exception(NodeError(data.get("error")))


def _read_short(value: Json) -> str:
    """Return a name or an address: one line without hidden characters."""
    return " ".join(strip_hidden(value).split())[:_MAX_NAME] if isinstance(value, str) else ""


def _list_texts(values: Json) -> Iterator[str]:
    for value in values[:_MAX_ADDRESSES] if isinstance(values, list) else ():
        if text := _read_short(value):
            yield text


def _read_callback(body: Json) -> ForwardedCallback | None:
    if not isinstance(body, dict):
        return None
    plugin = next((body[key] for key in ("pluginName", "PLUGIN_NAME_FOR_CALLBACK") if body.get(key)), None)
    task_id = next((body[key] for key in ("taskId", "task_id", "TaskId", "requestId") if body.get(key)), None)
    if not isinstance(plugin, str) or not isinstance(task_id, str | int):
        return None
    return ForwardedCallback(plugin, str(task_id), body)
