"""Calls and their outcomes as JSON text, for transfer between hosts.

Exact: the value read equals the value written, media bytes, long integers and stray surrogates included; only a tuple
inside a JSON value comes back as a list. The text is plain ASCII, so every store and wire carries it unchanged. Read
only what a Toolyard wrote: other text is a ValueError, KeyError or InvalidEnvelope.
"""

import base64
import json
from typing import Any

from toolyard.protocol.call import Origin, ToolCall
from toolyard.protocol.content import Blob, Link, Media, Part, Text
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.outcome import BatchItem, Course, Extras, Outcome


def call_to_text(call: ToolCall) -> str:
    return _text(_call(call))


def call_from_text(text: str) -> ToolCall:
    return _read_call(json.loads(text))


def outcome_to_text(outcome: Outcome) -> str:
    return _text(_outcome(outcome))


def outcome_from_text(text: str) -> Outcome:
    return _read_outcome(json.loads(text))


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _call(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id, "tool": call.tool, "arguments": call.arguments, "maid": call.maid, "caller": call.caller,
        "origin": call.origin.value, "timeout_s": call.timeout_s, "force": call.force, "approved": call.approved,
        "metadata": call.metadata, "chat": call.chat, "retry_of": call.retry_of,
        "avoids_protected": call.avoids_protected,
    }  # fmt: skip


def _read_call(value: dict[str, Any]) -> ToolCall:
    return ToolCall(**{**value, "origin": Origin(value["origin"])})


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "envelope": outcome.envelope.to_json(), "root": outcome.root, "arguments": outcome.arguments,
        "extras": _extras(outcome.extras), "batch": [_item(item) for item in outcome.batch],
        "course": _course(outcome.course),
    }  # fmt: skip


def _read_outcome(value: dict[str, Any]) -> Outcome:
    return Outcome(
        envelope=Envelope.from_dict(value["envelope"]),
        root=value["root"],
        arguments=value["arguments"],
        extras=_read_extras(value["extras"]),
        batch=tuple(_read_item(item) for item in value["batch"]),
        course=Course(**value["course"]),
    )


def _course(course: Course) -> dict[str, Any]:
    return {"ran": course.ran, "waited_ms": course.waited_ms, "process": course.process}


def _item(item: BatchItem) -> dict[str, Any]:
    return {"call": _call(item.call), "outcome": _outcome(item.outcome), "reads": item.reads}


def _read_item(value: dict[str, Any]) -> BatchItem:
    return BatchItem(call=_read_call(value["call"]), outcome=_read_outcome(value["outcome"]), reads=value["reads"])


def _extras(extras: Extras) -> dict[str, Any]:
    return {
        "parts": [_part(part) for part in extras.parts], "note": extras.note, "content_key": extras.content_key,
        "attached": [_part(part) for part in extras.attached], "details": extras.details, "mcp": extras.mcp,
        "action": extras.action, "payload": extras.payload, "before": extras.before, "after": extras.after,
        "reads": extras.reads,
    }  # fmt: skip


def _read_extras(value: dict[str, Any]) -> Extras:
    parts, attached = ([_read_part(part) for part in value[name]] for name in ("parts", "attached"))
    media = tuple(part for part in attached if isinstance(part, Media | Blob))
    return Extras(**{**value, "parts": tuple(parts), "attached": media})


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Media():
            own = {"mime": part.mime, "data": part.base64(), "name": part.name, "source": part.source}
        case Blob():
            raw = base64.b64encode(part.data).decode("ascii")
            own = {"text": part.text, "data": raw, "name": part.name, "source": part.source}
        case Link():
            own = {"text": part.text, "kind": part.kind}
        case _:
            own = {"text": part.text}
    return own if part.original is None else {**own, "original": part.original}


def _read_part(value: dict[str, Any]) -> Part:
    value.setdefault("original", None)
    if "data" in value:
        value["data"] = base64.b64decode(value["data"], validate=True)
    if "mime" in value:
        return Media(**value)
    return Blob(**value) if "data" in value else Link(**value) if "kind" in value else Text(**value)
