"""Permissions of MCP servers: they may run as the owner has reviewed them, command and tools (S-83).

A permission holds the hash of the command and the definitions of all tools, as they were shown. Another command needs
another review, and until then none of its tools runs. A tool that was allowed and is absent at a later review of the
same command stays allowed: servers add and remove tools while they run. Kept in
``mcp-trust.json`` of the home; when that cannot be read, nothing counts as reviewed.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Final

from toolyard.errors import ToolyardError
from toolyard.message import Message
from toolyard.plugins.mcp.declarations import ConfiguredServer
from toolyard.plugins.mcp.definition import ToolDefinition, ToolListing, from_json
from toolyard.plugins.package.trust import NO_LINKS
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.json import Json, JsonObject
from toolyard.workspace.home_folder import StateFile

FILE_NAME: Final = "mcp-trust.json"
PENDING_FILE: Final = "mcp-pending.json"
_LOG: Final = logging.getLogger(__name__)
_CHANGED = Message("has changed since its owner allowed it")
_GONE = Message("is not there any more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A stored permission: what was allowed."""

    review: str  # which one: another review of the same is another
    launch: str
    command_line: str
    definitions: tuple[ToolDefinition, ...]
    links: Mapping[str, str] = field(default_factory=dict)  # that were shown, and where they led


class Pins:
    def __init__(self, home: Path) -> None:
        self._file = StateFile(home / FILE_NAME)
        self._value: JsonObject = {}  # of the file, from which all in ``_pins`` was read
        self._pins: dict[str, Pin | None] = {}
        self._revision = 0

    @property
    def problem(self) -> str:
        self._file.read()
        return self._file.problem

    def version(self) -> int:
        """Return a number that changes whenever a permission does."""
        self.refresh()
        return self._revision

    def get(self, entry: ConfiguredServer) -> Pin | None:
        """Return the permission; the same object until the file changes."""
        self.refresh()
        return self.get_cached(entry)

    def refresh(self) -> None:
        """Read the file if it has changed."""
        value = self._file.read()
        if value is not self._value:
            self._value, self._pins = value, {}
            self._revision += 1

    def get_cached(self, entry: ConfiguredServer) -> Pin | None:
        """Return the permission as of the last read, without looking at the file."""
        if entry.trust_key not in self._pins:
            servers = self._value.get("servers")
            self._pins[entry.trust_key] = _read_pin(servers.get(entry.trust_key)) if isinstance(servers, dict) else None
        return self._pins[entry.trust_key]

    def allow(
        self, entry: ConfiguredServer, shown: Sequence[ToolDefinition], *, links: Mapping[str, str] = NO_LINKS, at: str
    ) -> None:
        """Allow exactly what was shown, and what was allowed before and is absent now. Raises ConfigError."""
        before, names = self.get(entry), {one.name for one in shown}
        absent = before.definitions if before is not None and before.launch == entry.digest else ()
        definitions = [*shown, *(one for one in absent if one.name not in names)]
        pinned: JsonObject = {
            "review": token_hex(8),
            "launch": entry.digest,
            "command_line": entry.command_line,
            "tools": [one.to_json() for one in definitions],
            "links": dict(links),
            "at": at,
        }

        def put(value: JsonObject) -> None:
            servers = value.setdefault("servers", {})
            if isinstance(servers, dict):
                servers[entry.trust_key] = pinned

        self._file.update(put)

    def revoke(self, entry: ConfiguredServer) -> None:
        def take(value: JsonObject) -> None:
            servers = value.get("servers")
            if isinstance(servers, dict):
                servers.pop(entry.trust_key, None)

        self._file.update(take)


def _read_pin(pinned: Json) -> Pin | None:
    if not isinstance(pinned, dict):
        return None
    tools, links = pinned.get("tools"), pinned.get("links")
    definitions = [from_json(tool) for tool in tools] if isinstance(tools, list) else []
    return Pin(
        review=str(pinned.get("review") or ""),
        launch=str(pinned.get("launch") or ""),
        command_line=str(pinned.get("command_line") or ""),
        definitions=tuple(one for one in definitions if one is not None),
        links={path: str(lead) for path, lead in links.items()} if isinstance(links, dict) else {},
    )


def describe_changes(pin: Pin, entry: ConfiguredServer, now: Sequence[ToolDefinition]) -> list[str]:
    """Return what has changed since it was allowed, for people to read."""
    lines: list[str] = []
    if pin.launch != entry.digest:
        lines.append(Message("the command was: {command}", command=pin.command_line))
    before, after = ({one.name: one for one in many} for many in (pin.definitions, now))
    for name in sorted({*before, *after}):
        if name not in before:
            lines.append(Message("added {tool}", tool=name))
        elif name not in after:
            lines.append(Message("not there now: {tool}", tool=name))
        elif before[name] != after[name]:
            lines.append(Message("changed {tool}", tool=name))
    return lines


class PendingTools:
    """Tools that wait for a review, in ``mcp-pending.json`` of the home.

    A tool that a server adds or changes while it runs is known only to the process that started this server. It is
    noted here, so that the command line can show and approve it too. A definition in this file allows nothing.
    """

    def __init__(self, home: Path) -> None:
        self._file = StateFile(home / PENDING_FILE)

    def get(self, entry: ConfiguredServer) -> tuple[ToolDefinition, ...]:
        """Return the tools that were last noted for a server with this command."""
        servers = self._file.read().get("servers")
        noted = servers.get(entry.trust_key) if isinstance(servers, dict) else None
        if not isinstance(noted, dict) or noted.get("launch") != entry.digest:
            return ()
        tools = noted.get("tools")
        definitions = [from_json(tool) for tool in tools] if isinstance(tools, list) else []
        return tuple(one for one in definitions if one is not None)

    def note(self, entry: ConfiguredServer, tools: Sequence[ToolDefinition]) -> None:
        """Store the tools of a server that wait now. A file that cannot be written is logged: its server still runs."""
        if tuple(tools) == self.get(entry):
            return
        noted: Json = {"launch": entry.digest, "tools": [one.to_json() for one in tools]}

        def put(value: JsonObject) -> None:
            servers = value.setdefault("servers", {})
            if isinstance(servers, dict):
                servers[entry.trust_key] = noted

        self._update(put)

    def remove(self, entry: ConfiguredServer) -> None:
        def take(value: JsonObject) -> None:
            servers = value.get("servers")
            if isinstance(servers, dict):
                servers.pop(entry.trust_key, None)

        if self.get(entry):
            self._update(take)

    def _update(self, edit: Callable[[JsonObject], None]) -> None:
        try:
            self._file.update(edit)
        except ToolyardError as error:
            _LOG.warning("%s", error)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewStatus:
    """The listed tools of a server, compared with the allowed ones."""

    withheld: Mapping[str, str] = field(default_factory=dict)  # allowed tools that may not be called, and why
    pending: tuple[str, ...] = ()  # what waits for a review


class ToolGate:
    """The gate of one server: only tools that are listed now exactly as their owner allowed them may be called.

    A tool that is new or has changed waits for a review of the difference; the others go on. One that is gone is not
    offered while it is. ``on_pending`` is called in a thread with the tools that wait, whenever a listing has some.
    """

    def __init__(
        self,
        server: str,
        pin: Callable[[], Pin | None],
        allow: str,
        on_pending: Callable[[Sequence[ToolDefinition]], None] = lambda _: None,
    ) -> None:
        self._server, self._pin, self._allow, self._on_pending = server, pin, allow, on_pending
        self._listing: ToolListing | None = None
        self._compared: tuple[Pin, ToolListing, ReviewStatus] | None = None

    async def set_listing(self, listing: ToolListing) -> None:
        """Set the current listing of the server."""
        self._listing = listing
        pin = self._pin()
        if pin is not None and (pending := find_pending(pin, listing.tools)):
            await asyncio.to_thread(self._on_pending, pending)

    @property
    def has_listing(self) -> bool:
        return self._listing is not None

    @property
    def left_out(self) -> Mapping[str, str]:
        """The tools of the last listing that cannot be offered, and why."""
        return self._listing.left_out if self._listing else {}

    @property
    def status(self) -> ReviewStatus:
        pin, listing = self._pin(), self._listing
        if pin is None or listing is None:
            return ReviewStatus()
        if self._compared is None or self._compared[0] is not pin or self._compared[1] is not listing:
            self._compared = pin, listing, _compare(pin, listing)
        return self._compared[2]

    def require_allowed(self, tool: str) -> None:
        """Raise Failure when this tool may not be called."""
        why = self.status.withheld.get(tool)
        if why:
            raise Failure(
                Reason.DENIED,
                Message("The tool {tool} of the MCP server {server} {why}.", tool=tool, server=self._server, why=why),
                hint=Message("Its owner can look at it with '{command}'.", command=self._allow),
            )


def find_pending(pin: Pin, tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """Return the tools that are not as they were allowed."""
    allowed = {one.name: one for one in pin.definitions}
    return tuple(one for one in tools if allowed.get(one.name) != one)


def describe_pending(pin: Pin, tools: Sequence[ToolDefinition]) -> tuple[str, ...]:
    """Return a line for each of these tools that waits for a review: "added x", "changed y"."""
    allowed = {one.name for one in pin.definitions}
    pending = find_pending(pin, tools)
    return tuple(
        sorted(
            Message("changed {tool}", tool=one.name) if one.name in allowed else Message("added {tool}", tool=one.name)
            for one in pending
        )
    )


def _compare(pin: Pin, listing: ToolListing) -> ReviewStatus:
    allowed, now = ({one.name: one for one in many} for many in (pin.definitions, listing.tools))
    withheld = {name: _GONE if name not in now else _CHANGED for name in allowed if now.get(name) != allowed[name]}
    return ReviewStatus(withheld=withheld, pending=describe_pending(pin, listing.tools))
