"""What the calls of one chat may do, as its client wishes: only some tools, or only look.

It narrows and never widens: what the owner's rules and mode say holds in any case.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from toolyard.engine.ask import Ask
from toolyard.gateway.faults import bad_request
from toolyard.gateway.work import Job
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import ToolSpec

_MOST = 1000  # tools that a client may name


class Mode(StrEnum):
    ASK = "ask"  # as the owner's settings have it
    READ_ONLY = "read-only"  # what would change anything is refused


@dataclass(frozen=True, slots=True)
class Bounds:
    tools: frozenset[str] | None = None  # their names; None: all
    mode: Mode = Mode.ASK

    def within(self, job: Job, spec_of: Callable[[str], ToolSpec | None]) -> Job:
        """The job, or one that tells the model why it is not done."""
        if job.call is None:
            return job
        if self.tools is not None and job.call.tool not in self.tools:
            may = ", ".join(sorted(self.tools)) or "none"
            return replace(job, call=None, problem=f"This chat may not use {job.tool}. The tools it may use: {may}.")
        if self.mode is Mode.READ_ONLY:
            spec = spec_of(job.call.tool)
            if spec is None or not Ask(call=job.call, spec=spec).reads:
                problem = (
                    f"{job.tool} would change something, and this chat may only look. Say what you would do instead."
                )
                return replace(job, call=None, problem=problem)
        return job


def bounds_of(said: JsonObject) -> Bounds:
    """From what a request says to the host; raises ChatFailed."""
    tools, mode = said.get("tools"), said.get("mode", Mode.ASK)
    if mode not in list(Mode):
        raise bad_request(f"'mode' is one of {', '.join(Mode)}, not '{str(mode)[:50]}'")
    if tools is not None and not _are_names(tools):
        raise bad_request(f"'tools' of 'toolyard' is a list of names, at most {_MOST}")
    names = frozenset(str(name) for name in tools) if isinstance(tools, list) else None
    return Bounds(names, Mode(str(mode)))


def _are_names(tools: Json) -> bool:
    return isinstance(tools, list) and len(tools) <= _MOST and all(isinstance(name, str) for name in tools)
