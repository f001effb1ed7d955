"""The results of a call: the tool's Result, and the Outcome that dialects read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from toolyard.protocol.call import ToolCall
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.extras import Extras
from toolyard.protocol.json import JsonObject

__all__ = ["BatchItem", "Course", "Extras", "Outcome", "Result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The return value of a tool for the runner, which times it and makes the envelope."""

    data: JsonObject
    text: str  # what was done, why it is partial, what to do next
    partial: bool = False  # partial for a reason that ``data`` does not show by itself
    stats: Mapping[str, int | float | str] = field(default_factory=dict)
    context: JsonObject = field(default_factory=dict)
    extras: Extras = field(default_factory=Extras)


class Course(NamedTuple):
    """The course of a call, for its record."""

    ran: float | None = None  # start of its tool, in seconds since 1970; None: it never started
    waited_ms: float = 0.0  # for approval; not part of its run time
    process: JsonObject | None = None  # of a plugin: its process and exit


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The envelope of a finished call, and the data that the envelope does not show."""

    envelope: Envelope
    root: str  # the project's absolute path
    arguments: JsonObject = field(default_factory=dict)  # as the tool got them: canonical names, typed, complete
    extras: Extras = field(default_factory=Extras)
    batch: "tuple[BatchItem, ...]" = ()
    course: Course = Course()  # noqa: RUF009 it is a tuple


class BatchItem(NamedTuple):
    """One call of a batch, and its outcome."""

    call: ToolCall
    outcome: Outcome
    reads: bool  # its content is the answer; a write only has a message
