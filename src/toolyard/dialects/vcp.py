"""VCP Protocol v2 (000 §1.2): two statuses, content parts for the model, details for programs."""

import re
from typing import Any

from toolyard.dialects.content import list_parts
from toolyard.protocol.content import Part
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.outcome import Outcome
from toolyard.protocol.plugin_content import to_vcp_item
from toolyard.protocol.shown_outcome import is_repeated

_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s|$)|[。！？]|$)", re.MULTILINE)


def encode(outcome: Outcome) -> dict[str, Any]:
    """Return the VCP v2 answer; ``partial`` is a success here: its text says why it is incomplete."""
    envelope = outcome.envelope
    message: dict[str, Any] = {"status": "error" if envelope.error else "success"}
    if envelope.error:
        message["error"] = envelope.error.message
    message["result"] = {"content": [_encode_part(part) for part in list_parts(outcome)], "details": _details(outcome)}
    return message | outcome.extras.describe_action()


def _details(outcome: Outcome) -> JsonObject:
    """Return the data without the host's notes about the parts; the details of a VCP v2 answer stay as they came."""
    if outcome.extras.details is not None:
        return outcome.extras.details
    data, key = outcome.envelope.data, outcome.extras.content_key
    return {"message": _message(outcome.envelope), **{name: value for name, value in data.items() if name != key}}


def _encode_part(part: Part) -> Json:
    return to_vcp_item(part) if part.original is None else part.original


def _message(envelope: Envelope) -> str:
    """Return the first sentence; empty where the text is nothing but the data as JSON."""
    structured = [value for value in (envelope.data, envelope.data.get("result")) if not isinstance(value, str)]
    if any(is_repeated(value, envelope.text) for value in structured):
        return "The tool finished."
    match = _SENTENCE.search(envelope.text)
    return match[0].strip() if match else envelope.text


def describe_timed_call(
    *, task_id: str, requested: str, due: str, triggered: str, original: str, late: bool
) -> JsonObject:
    """Return the object that VCPToolBox passes to a plugin that runs on schedule."""
    return {
        "__vcp_timed_call": {
            "taskId": task_id,
            "requestedAt": requested,
            "scheduledFor": due,
            "triggeredAt": triggered,
            "originalTimelyContact": original,
            "source": "schedule",
            "late": late,
        }
    }
