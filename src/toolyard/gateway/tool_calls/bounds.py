"""Bounds of the calls of one chat, set by its client: some tools only, read-only, or no approval for safe changes.

The owner's rules and mode apply in any case. ``auto-safe`` is the only mode that permits more, so it takes a key that
may answer approvals; it never applies to a call that runs later.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus

from toolyard.engine.permission_request import PermissionRequest
from toolyard.gateway.faults import bad_request
from toolyard.gateway.tool_calls.jobs import Job
from toolyard.message import Message
from toolyard.protocol.chat_mode import Mode
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import ToolSpec

_MOST = 1000  # tools that a client may name


@dataclass(frozen=True, slots=True)
class Bounds:
    tools: frozenset[str] | None = None  # their names; None: all
    mode: Mode = Mode.ASK

    def apply(self, job: Job, spec_of: Callable[[str], ToolSpec | None]) -> Job:
        """Return the job, or one that tells the model why it was refused."""
        if job.call is None or job.call.unreadable:
            return job
        if self.tools is not None and job.call.tool not in self.tools:
            problem = Message(
                "chat.tool_not_allowed",
                "This chat may not use {tool}. The tools it may use: {names}.",
                tool=job.tool,
                names=", ".join(sorted(self.tools)) or Message("chat.no_tools", "none"),
            )
            return replace(job, call=None, problem=problem)
        if self.mode is Mode.READ_ONLY:
            spec = spec_of(job.call.tool)
            if spec is None or not PermissionRequest(call=job.call, spec=spec).is_read_only:
                problem = Message(
                    "chat.only_reads",
                    "{tool} would change something, and this chat may only look. Say what you would do instead.",
                    tool=job.tool,
                )
                return replace(job, call=None, problem=problem)
        if self.mode is Mode.AUTO_SAFE and not job.at:
            return replace(job, call=replace(job.call, auto_safe=True))
        return job


def parse_bounds(fields: JsonObject, *, may_approve: bool = False) -> Bounds:
    """Read the bounds from a request's options. Raises ChatFailed. ``may_approve``: the caller may answer approvals."""
    tools, mode = fields.get("tools"), fields.get("mode", Mode.ASK)
    if mode not in list(Mode):
        raise bad_request(
            Message(
                "chat.mode_one_not",
                "'mode' is one of {names}, not '{mode}'",
                names=", ".join(Mode),
                mode=str(mode)[:50],
            )
        )
    if mode == Mode.AUTO_SAFE and not may_approve:
        raise bad_request(
            Message(
                "chat.auto_safe_needs_approve",
                "'auto-safe' lets calls run that would ask, so it takes a key that may answer them: one with the "
                "scope 'approve'",
            ),
            "forbidden",
            HTTPStatus.FORBIDDEN,
        )
    if tools is not None and not _are_names(tools):
        raise bad_request(
            Message(
                "chat.invalid_tools_list",
                "'tools' of 'toolyard' is a list of names, at most {most}",
                most=_MOST,
            )
        )
    names = frozenset(str(name) for name in tools) if isinstance(tools, list) else None
    return Bounds(names, Mode(str(mode)))


def _are_names(tools: Json) -> bool:
    return isinstance(tools, list) and len(tools) <= _MOST and all(isinstance(name, str) for name in tools)
