"""One connected node: what it offers, the calls that it is asked for, and the messages between the two.

Messages are ``{type, data}``. A node registers manifests of plugins, may send its addresses and values of placeholders,
and answers each ``execute_tool`` with a ``tool_result``. Everything is bounded: what a node sends beyond a limit is
left out, and a node that does not take its messages is asked for nothing more. What cannot be read is passed over, as
VCPToolBox does it: another version of a node may send more than is known here.
"""

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final

from toolyard.dialects.vcp_nodes import (
    FILE_TOOL,
    Addresses,
    NodeMessage,
    PlaceholderValues,
    Registration,
    ToolAnswer,
    call_message,
    cancel_message,
)
from toolyard.message import Message
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.manifests.manifest import Manifest
from toolyard.protocol.manifests.manifest_parser import parse_manifest

MAX_TOOLS: Final = 500
MAX_PLACEHOLDERS: Final = 500
MAX_VALUE: Final = 64 * 1024  # characters of a placeholder's value
MAX_SENT: Final = 16 * 2**20  # bytes of a message to a node
MAX_UNSENT: Final = 64  # messages that wait until a node takes them
AT_ONCE: Final = 16  # calls in a node
_MAX_LEFT_OUT = 100
_MAX_NAME = 80


class NodeError(Exception):
    """A tool of a node failed; ``error`` is what it said."""

    def __init__(self, error: Json) -> None:
        super().__init__("a tool of a node failed")
        self.error = error


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
    def _title(self) -> str:
        return self.name or self.id

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
            self._send(call_message(request, tool, arguments))
            return await answer
        finally:
            del self._asked[request]
            if answer.cancelled() and self.can_cancel:
                with suppress(Failure):
                    self._send(cancel_message(request))

    def take(self, message: NodeMessage) -> bool:
        """Take what the node says, callbacks are for others; return whether it was an answer that is waited for."""
        match message:
            case Registration():
                self.name = message.name or self.name
                self.can_cancel = message.can_cancel
                for value in message.tools:
                    self._take_tool(value)
            case Addresses():
                self.name = message.name or self.name
                self.local_addresses, self.public_address = message.local, message.public
            case PlaceholderValues():
                for name, text in message.values.items():
                    if name in self.placeholders or len(self.placeholders) < MAX_PLACEHOLDERS:
                        self.placeholders[name] = text[:MAX_VALUE]
            case ToolAnswer():
                return self._take_answer(message)
            case _:
                pass
        return False

    def close(self) -> None:
        """Fail what it was asked for: it is gone."""
        self._is_gone = True
        for answer in self._asked.values():
            if not answer.done():
                message = Message("The node {name} left during the call, and nobody knows if it ran.", name=self._title)
                hint = Message("Look at what it may have changed before you call it again.")
                answer.set_exception(Failure(Reason.INTERRUPTED, message, hint=hint))

    def _send(self, message: JsonObject) -> None:
        if self._is_gone:
            raise Failure(Reason.INTERRUPTED, Message("The node {name} is gone.", name=self._title))
        text = json_bytes(message)
        if len(text) > MAX_SENT:
            too_large = Message("The call is larger than the {mib} MiB that a node gets.", mib=MAX_SENT >> 20)
            raise Failure(Reason.TOO_LARGE, too_large)
        try:
            self.unsent.put_nowait(text.decode())
        except asyncio.QueueFull:
            full = Message("The node {name} does not take its messages.", name=self._title)
            raise Failure(Reason.BUSY, full, hint=Message("Try again later.")) from None

    def _take_tool(self, value: JsonObject) -> None:
        """Add a tool to those that are registered: a node may send them one after another."""
        if value.get("name") == FILE_TOOL:
            return
        manifest, faults = parse_manifest(value)
        if manifest is None:
            why = next((fault.message for fault in faults if not fault.warning), "")
            self._leave_out(str(value.get("name"))[:_MAX_NAME], why or Message("it has no manifest that can be read"))
        elif manifest.name not in self.manifests and len(self.manifests) >= MAX_TOOLS:
            self._leave_out(manifest.name, Message("the node has more than {most} tools", most=MAX_TOOLS))
        else:
            self.manifests[manifest.name] = manifest
            self.left_out.pop(manifest.name, None)

    def _leave_out(self, name: str, why: str) -> None:
        if len(self.left_out) < _MAX_LEFT_OUT:
            self.left_out[name] = why

    def _take_answer(self, answer: ToolAnswer) -> bool:
        waiting = self._asked.get(answer.request)
        if waiting is None or waiting.done():
            return False
        if answer.is_error:
            waiting.set_exception(NodeError(answer.value))
        else:
            waiting.set_result(answer.value)
        return True
