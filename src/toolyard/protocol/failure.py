"""Failures: raised inside a tool, turned into an error envelope by the runner.

The ten error codes are for machines; a ``Reason`` is the finer cause and decides its code, so the two can never
disagree.
"""

from collections.abc import Mapping
from enum import StrEnum

from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.extras import Extras
from toolyard.protocol.json import JsonObject


class Reason(StrEnum):
    # edits
    NOT_FOUND_IN_FILE = "NOT_FOUND_IN_FILE"
    NOT_UNIQUE = "NOT_UNIQUE"
    NO_CHANGE = "NO_CHANGE"
    STALE = "STALE"
    TOO_LARGE = "TOO_LARGE"
    UNSUPPORTED_ENCODING = "UNSUPPORTED_ENCODING"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    # plugins and the runner
    START_FAILED = "START_FAILED"
    NO_OUTPUT = "NO_OUTPUT"
    INVALID_OUTPUT = "INVALID_OUTPUT"
    OUTPUT_TOO_LARGE = "OUTPUT_TOO_LARGE"
    CRASHED = "CRASHED"
    BUSY = "BUSY"
    INTERRUPTED = "INTERRUPTED"
    CANCELLED = "CANCELLED"
    DENIED = "DENIED"
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED"  # it waits for a person, longer than its client does


_CODES: Mapping[Reason, ErrorCode] = {
    Reason.NOT_FOUND_IN_FILE: ErrorCode.INVALID_PARAM,
    Reason.NOT_UNIQUE: ErrorCode.INVALID_PARAM,
    Reason.NO_CHANGE: ErrorCode.INVALID_PARAM,
    Reason.TOO_LARGE: ErrorCode.INVALID_PARAM,
    Reason.UNSUPPORTED_ENCODING: ErrorCode.INVALID_PARAM,
    Reason.STALE: ErrorCode.CONFLICT,
    Reason.ALREADY_EXISTS: ErrorCode.CONFLICT,
    Reason.DENIED: ErrorCode.ACCESS_DENIED,
}


def code_of(cause: ErrorCode | Reason) -> ErrorCode:
    """Return the code a cause is reported under; faults of a plugin or of the run itself are an EXECUTION_ERROR."""
    return cause if isinstance(cause, ErrorCode) else _CODES.get(cause, ErrorCode.EXECUTION_ERROR)


def list_causes(code: str) -> tuple[str, ...]:
    """Return the names of all causes that are reported under a code, or that of a reason alone."""
    return (code, *(reason.value for reason in Reason if code_of(reason) == code))


class Failure(Exception):
    """A tool cannot give a result: the reason (``message``) and the caller's next step (``hint``).

    A ``text`` is said instead of the message, before the hint. ``stats`` and ``extras`` are those of an answer that
    reports the error.
    """

    def __init__(
        self,
        cause: ErrorCode | Reason,
        message: str,
        *,
        hint: str = "",
        text: str = "",
        data: JsonObject | None = None,
        stats: Mapping[str, int | float | str] | None = None,
        context: JsonObject | None = None,
        extras: Extras = Extras(),  # noqa: B008 it is frozen
    ) -> None:
        super().__init__(message)
        self.code = code_of(cause)
        self.reason = cause if isinstance(cause, Reason) else None
        self.message = message
        self.hint = hint
        self.text = text
        self.data: JsonObject = data or {}
        self.stats = stats or {}
        self.context: JsonObject = context or {}
        self.extras = extras
