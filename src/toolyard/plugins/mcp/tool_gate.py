"""The gate of one MCP server: only tools that are listed now exactly as their owner allowed them may be called.

A tool that is new or has changed waits for a review of the difference; the others go on. One that is gone is not
offered while it is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from toolyard.message import Message
from toolyard.plugins.mcp.definition import ToolListing
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
    def __init__(self, server: str, pin: Callable[[], Pin | None], allow: str) -> None:
        self._server, self._pin, self._allow = server, pin, allow
        self._listing: ToolListing | None = None
        self._compared: tuple[Pin, ToolListing, ReviewStatus] | None = None

    def set_listing(self, listing: ToolListing) -> None:
        """Set the current listing of the server."""
        self._listing = listing

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
                hint=f"Its owner can look at it with '{self._allow}'.",
            )


def _compare(pin: Pin, listing: ToolListing) -> ReviewStatus:
    allowed, now = ({one.name: one for one in many} for many in (pin.definitions, listing.tools))
    withheld = {name: _GONE if name not in now else _CHANGED for name in allowed if now.get(name) != allowed[name]}
    added = [f"added {name}" for name in now if name not in allowed]
    changed = [f"changed {name}" for name, why in withheld.items() if why == _CHANGED]
    return ReviewStatus(withheld=withheld, pending=tuple(sorted([*added, *changed])))
