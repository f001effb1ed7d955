"""The envelope: the only result that crosses a boundary; and the failure that becomes one.

An ``Envelope`` that exists is valid: its rules are checked when it is built, so no reader has to check again. Its JSON
has the keys ``status``, ``data``, ``text``, ``error`` (only on errors), ``stats``, ``context``, in this order and no
others. ``data``, ``stats`` and ``context`` are shared with the JSON form: treat them as read-only. Models and programs
get ``to_dict``: its sentences have no codes. Clients that show an envelope to people get ``to_json``: its ``context``
has the code and the parameters of a text that is a message, as ``text_code`` and ``text_params``, and for a failure
those of the error's message, as ``message_code`` and ``message_params``, and the hint at the end of the text, as
``hint``, ``hint_code`` and ``hint_params``; each of ``data.failed_items`` has those of its message beside it.

A ``Failure`` is raised inside a tool, and turned into an error envelope by the runner. The ten error codes are for
machines; a ``Reason`` is the finer cause and decides its code, so the two can never disagree.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from toolyard.errors import InvalidEnvelope
from toolyard.message import Message, from_fields, read_hint, restore_hint, to_fields
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_problem

if TYPE_CHECKING:
    from toolyard.protocol.content import Blob, Media, Part

MESSAGE_KEYS = ("message_code", "message_params")  # of the context, for an error whose message has a code
TEXT_KEYS = ("text_code", "text_params")  # and for a text that is a message
HINT_KEYS = ("hint", "hint_code", "hint_params")
KEYS = ("status", "data", "text", "error", "stats", "context")
_ERROR_KEYS = {"code", "message", *MESSAGE_KEYS}  # the codes only from earlier versions
_REASON = r"[A-Z][A-Z0-9_]*"
MAX_PAYLOAD: Final = 64 * 1024  # bytes of the payload of a special action in events and records
_MAX_NAME = 200


class Status(StrEnum):
    SUCCESS = "success"  # done completely, as asked
    PARTIAL = "partial"  # done with limits: truncated, by a fallback, a dry run, some items failed
    ERROR = "error"  # no usable result


class ErrorCode(StrEnum):
    NOT_FOUND = "NOT_FOUND"
    ACCESS_DENIED = "ACCESS_DENIED"  # outside the project root, or an approval was refused
    PERMISSION_DENIED = "PERMISSION_DENIED"  # the operating system refused
    INVALID_PARAM = "INVALID_PARAM"
    TIMEOUT = "TIMEOUT"
    INTERNAL_ERROR = "INTERNAL_ERROR"  # a bug of ours
    EXECUTION_ERROR = "EXECUTION_ERROR"  # plugin and I/O faults, cancelled, interrupted, busy
    CONFLICT = "CONFLICT"
    IS_DIRECTORY = "IS_DIRECTORY"
    BINARY_FILE = "BINARY_FILE"


@dataclass(frozen=True, slots=True)
class Fault:
    """The ``error`` of an envelope."""

    code: ErrorCode
    message: str  # often a Message, with a code and parameters

    def to_dict(self) -> JsonObject:
        return {"code": self.code.value, "message": self.message}

    def to_json(self) -> JsonObject:
        """Return the JSON form for records and events, with the code and the parameters of its message."""
        return {"code": self.code.value, **to_fields("message", self.message)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    status: Status
    data: JsonObject
    text: str  # often a Message
    error: Fault | None = None
    stats: Mapping[str, int | float | str]
    context: JsonObject

    def __post_init__(self) -> None:
        fields = {key: getattr(self, key) for key in KEYS}
        problems = list(_kind_problems(fields)) or list(_problems(self))
        if problems:
            raise InvalidEnvelope(problems)

    def to_dict(self) -> dict[str, Any]:
        error = {"error": self.error.to_dict()} if self.error else {}
        return {
            "status": self.status.value,
            "data": self.data,
            "text": self.text,
            **error,
            "stats": dict(self.stats),
            "context": self.context,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form with the codes and the parameters of its sentences."""
        written = self.to_dict()
        codes = to_fields("message", self.error.message) if self.error else {}
        if isinstance(self.text, Message):
            hint = read_hint(self.text)
            codes |= to_fields("hint", hint) if hint else to_fields("text", self.text)
        written["context"] = {**self.context, **_leave_out(codes, ("message", "text"))}
        if isinstance(failed := self.data.get("failed_items"), list):
            written["data"] = {**self.data, "failed_items": [_write_item(item) for item in failed]}
        return written

    @classmethod
    def from_dict(cls, value: object) -> "Envelope":
        """Read either JSON form; ``"error": null`` is accepted. Raises InvalidEnvelope with every problem found."""
        if not isinstance(value, Mapping):
            raise InvalidEnvelope([f"expected an object, got {type(value).__name__}"])
        problems = list(_shape_problems(value))
        if problems:
            raise InvalidEnvelope(problems)
        value = move_codes(value)
        data, context, error = value["data"], value["context"], value.get("error")
        fault = None
        if error:
            fault = Fault(ErrorCode(error["code"]), from_fields("message", {**context, **error}))
            context = _leave_out(context, MESSAGE_KEYS)
        text, context = _read_text(value["text"], context, fault)
        if isinstance(failed := data.get("failed_items"), list):
            data = {**data, "failed_items": [_read_item(item) for item in failed]}
        return cls(
            status=Status(value["status"]), data=data, text=text, error=fault, stats=value["stats"], context=context
        )


def move_codes(envelope: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON of an envelope with the codes of its error in ``context``: earlier versions left them in it."""
    error, context = envelope.get("error"), envelope.get("context")
    if not isinstance(error, dict) or not isinstance(context, dict) or not error.keys() & set(MESSAGE_KEYS):
        return envelope
    codes = {name: error[name] for name in MESSAGE_KEYS if name in error}
    return {**envelope, "error": _leave_out(error, MESSAGE_KEYS), "context": {**context, **codes}}


def _write_item(item: Json) -> Json:
    message = item.get("message") if isinstance(item, dict) else None
    return {**item, **to_fields("message", message)} if isinstance(item, dict) and isinstance(message, str) else item


def _read_item(item: Json) -> Json:
    if not isinstance(item, dict) or not isinstance(item.get("message"), str):
        return item
    message = from_fields("message", item)
    return {**_leave_out(item, MESSAGE_KEYS), "message": message} if isinstance(message, Message) else item


def _read_text(text: str, context: JsonObject, fault: Fault | None) -> tuple[str, JsonObject]:
    """Return a text of the JSON form as the message it is, and the context without its code and parameters."""
    if fault and context.get("hint") and isinstance(context["hint"], str):
        return restore_hint(text, fault.message, from_fields("hint", context)), _leave_out(context, HINT_KEYS)
    message = from_fields("text", {**context, "text": text})
    return (message, _leave_out(context, TEXT_KEYS)) if isinstance(message, Message) else (text, context)


def _leave_out(values: JsonObject, names: Collection[str]) -> JsonObject:
    return {name: value for name, value in values.items() if name not in names}


def is_partial(data: Mapping[str, object]) -> bool:
    """Return whether ``data`` itself says that a result is incomplete: success is then not the right status."""
    return (
        data.get("truncated") is True
        or "fallback" in data
        or data.get("applied") is False
        or bool(data.get("failed_items"))
    )


def _shape_problems(value: Mapping[Any, Any]) -> Iterator[str]:
    for key in value:
        if key not in KEYS:
            yield f"unknown top-level key {key!r} (allowed: {', '.join(KEYS)})"
    for key in KEYS:
        if key not in value and key != "error":
            yield f"missing key {key!r}"
    if "status" in value and value["status"] not in [status.value for status in Status]:
        yield f"status is {value['status']!r}, expected success, partial or error"
    yield from _kind_problems(value)
    error = value.get("error")
    if error is not None:
        if not isinstance(error, dict) or not {"code", "message"} <= set(error) <= _ERROR_KEYS:
            yield "error must be an object of code and message"
        elif not isinstance(error["message"], str):
            yield "error.message must be a string"
        elif not isinstance(error.get("message_code", ""), str) or not isinstance(
            error.get("message_params", {}), dict
        ):
            yield "error.message_code must be a string and error.message_params an object"
        elif error["code"] not in [code.value for code in ErrorCode]:
            yield f"error.code is {error['code']!r}, expected one of {', '.join(ErrorCode)}"


def _kind_problems(fields: Mapping[str, object]) -> Iterator[str]:
    for key in ("data", "stats", "context"):
        if not isinstance(fields.get(key, {}), Mapping):
            yield f"{key} must be an object"
    if not isinstance(fields.get("text", ""), str):
        yield "text must be a string"


def _problems(envelope: Envelope) -> Iterator[str]:
    for name, part in envelope.to_dict().items():
        problem = json_problem(part, name)
        if problem:
            yield problem
    if not envelope.text.strip():
        yield "text is empty: it must say what was done"
    yield from _status_problems(envelope)
    yield from _data_problems(envelope.data)
    yield from _stats_problems(envelope.stats)
    yield from _context_problems(envelope.context)


def _status_problems(envelope: Envelope) -> Iterator[str]:
    if (envelope.status is Status.ERROR) != (envelope.error is not None):
        yield "error must be there exactly when status is error"
    if envelope.error is not None and not envelope.error.message:
        yield "error.message is empty"
    if envelope.status is Status.SUCCESS and is_partial(envelope.data):
        yield "status is success although data says truncated, fallback, applied=false or failed_items: that is partial"


def _data_problems(data: Mapping[str, object]) -> Iterator[str]:
    for flag in ("truncated", "applied"):
        if not isinstance(data.get(flag, False), bool):
            yield f"data.{flag} must be true or false"
    items = data.get("failed_items", [])
    if not isinstance(items, list):
        yield "data.failed_items must be a list"
        return
    for index, item in enumerate(items):
        if not isinstance(item, dict) or not {"item", "code", "message"} <= set(item):
            yield f"data.failed_items[{index}] must have item, code and message"
        elif item["code"] not in [code.value for code in ErrorCode]:
            yield f"data.failed_items[{index}].code is {item['code']!r}, expected one of {', '.join(ErrorCode)}"


def _stats_problems(stats: Mapping[str, object]) -> Iterator[str]:
    time_ms = stats.get("time_ms")
    if isinstance(time_ms, bool) or not isinstance(time_ms, int | float) or not 0 <= time_ms < math.inf:
        yield "stats.time_ms must be a number of at least 0"
    for name, value in stats.items():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            yield f"stats.{name} must be a number or a string"


def _context_problems(context: Mapping[str, object]) -> Iterator[str]:
    if "params_input" not in context:
        yield "context.params_input is missing: it holds what the caller sent"
    for key in ("cwd", "path_resolved"):
        path = context.get(key)
        if path is None and (key == "path_resolved" and key not in context):
            continue
        if not isinstance(path, str) or not path or path.startswith("/") or ".." in path.split("/"):
            yield f"context.{key} must be a POSIX path relative to the project root"
    if not isinstance(context.get("truncation_skip", False), bool):
        yield "context.truncation_skip must be true or false"
    reason = context.get("reason")
    if reason is not None and not (isinstance(reason, str) and re.fullmatch(_REASON, reason)):
        yield "context.reason must be UPPER_SNAKE_CASE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """Data that travel beside an envelope and are written only by dialects."""

    parts: "tuple[Part, ...]" = ()
    note: str = ""  # follows the parts: the reason why the result is partial, and the next step
    content_key: str = ""  # the key of ``data`` under which the host describes the parts
    attached: "tuple[Media | Blob, ...]" = ()  # media from elsewhere in ``data``, replaced there by references
    details: JsonObject | None = None  # those of a VCP v2 answer, written unchanged
    mcp: JsonObject | None = None  # of an MCP server: its ``structured_content``, if it has one, written unchanged
    action: str | None = None  # ``_specialAction`` of the VCP dialect
    payload: Json = None
    before: str | None = None  # the file's text before a write
    after: str | None = None
    reads: bool | None = None  # in a batch: its content is the answer; None: decided by the tool's risk

    def describe_action(self) -> JsonObject:
        """Return the special action as every client reads it (000 §1.2): ``_specialAction`` and ``payload``, if any."""
        action: JsonObject = {} if self.action is None else {"_specialAction": self.action}
        return action if self.payload is None else {**action, "payload": self.payload}

    def summarize_action(self) -> JsonObject:
        """Return the same for what is stored and pushed: a large payload is left out, and only the answer has it."""
        if self.action is None:
            return {}
        action = {**self.describe_action(), "_specialAction": self.action[:_MAX_NAME]}
        if self.payload is not None and len(json_bytes(self.payload)) > MAX_PAYLOAD:
            action |= {"payload": None, "payload_left_out": True}
        return action


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
