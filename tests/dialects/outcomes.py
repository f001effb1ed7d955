"""Outcomes as a tool would leave them, for the dialects to write."""

from typing import Any

from toolyard.message import add_hint
from toolyard.protocol.content import Part
from toolyard.protocol.envelope import Envelope, Extras, Failure, Fault, Status, is_partial
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import BatchItem, Outcome, ToolCall

ROOT = "/home/user/project"


def outcome(
    text: str = "Done.",
    data: JsonObject | None = None,
    *,
    path: str | None = None,
    arguments: JsonObject | None = None,
    parts: tuple[Part, ...] = (),
    partial: bool = False,
    batch: tuple[BatchItem, ...] = (),
    **extras: Any,
) -> Outcome:
    """What a call that gave a result leads to."""
    data, arguments = data or {}, arguments or {}
    envelope = Envelope(
        status=Status.PARTIAL if partial or is_partial(data) else Status.SUCCESS,
        data=data,
        text=text,
        stats={"time_ms": 3},
        context={"cwd": ".", "params_input": arguments, **({"path_resolved": path} if path else {})},
    )
    beside = Extras(parts=parts, **extras)
    return Outcome(envelope=envelope, root=ROOT, arguments=arguments, extras=beside, batch=batch)


def failed(failure: Failure, *, arguments: JsonObject | None = None) -> Outcome:
    """What a call that failed leads to, made as the runner makes it."""
    reason = {"reason": failure.reason.value} if failure.reason else {}
    envelope = Envelope(
        status=Status.ERROR,
        data=failure.data,
        text=add_hint(failure.message, failure.hint),
        error=Fault(failure.code, failure.message),
        stats={"time_ms": 3},
        context={"cwd": ".", "params_input": arguments or {}, **failure.context, **reason},
    )
    return Outcome(envelope=envelope, root=ROOT, arguments=arguments or {})


def read(result: Outcome) -> BatchItem:
    return BatchItem(call=ToolCall(id="call_1#1", tool="FileOperator"), outcome=result, reads=True)


def write(result: Outcome) -> BatchItem:
    return BatchItem(call=ToolCall(id="call_1#1", tool="FileOperator"), outcome=result, reads=False)
