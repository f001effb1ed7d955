"""The gate of one MCP server: only tools that are listed now exactly as their owner allowed them may be called.

A tool that is new or has changed waits for a review of the difference; the others go on. One that is gone is not
offered while it is. ``on_pending`` is called in a thread with the tools
that wait, whenever a listing has some.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from toolyard.message import Message
from toolyard.plugins.mcp.definition import ToolDefinition, ToolListing
from toolyard.plugins.mcp.pins import Pin
from toolyard.protocol.failure import Failure, Reason

_CHANGED = Message("mcp.tool_changed", "has changed since its owner allowed it")
_GONE = Message("mcp.tool_gone", "is not there any more")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewStatus:
    """The listed tools of a server, compared with the allowed ones."""

    withheld: Mapping[str, str] = field(default_factory=dict)  # allowed tools that may not be called, and why
    pending: tuple[str, ...] = ()  # what waits for a review


class ToolGate:
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
                Message(
                    "mcp.tool_mcp_server",
                    "The tool {tool} of the MCP server {server} {why}.",
                    tool=tool,
                    server=self._server,
                    why=why,
                ),
                hint=Message("hint.look_with", "Its owner can look at it with '{command}'.", command=self._allow),
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
            Message("mcp.review_changed", "changed {tool}", tool=one.name)
            if one.name in allowed
            else Message("mcp.review_added", "added {tool}", tool=one.name)
            for one in pending
        )
    )


def _compare(pin: Pin, listing: ToolListing) -> ReviewStatus:
    allowed, now = ({one.name: one for one in many} for many in (pin.definitions, listing.tools))
    withheld = {name: _GONE if name not in now else _CHANGED for name in allowed if now.get(name) != allowed[name]}
    return ReviewStatus(withheld=withheld, pending=describe_pending(pin, listing.tools))
