"""VCP Protocol v2 (000 §1.2): two statuses, content parts for the model, details for programs."""

import re
from typing import Any

from toolyard.dialects.content import content_of
from toolyard.protocol.content import Part, Text
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.json import JsonObject
from toolyard.protocol.outcome import Outcome

_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s|$)|[。！？]|$)", re.MULTILINE)


def encode(outcome: Outcome) -> dict[str, Any]:
    """``partial`` is a success here: its text says why it is not whole."""
    envelope, extras = outcome.envelope, outcome.extras
    message: dict[str, Any] = {"status": "error" if envelope.error else "success"}
    if envelope.error:
        message["error"] = envelope.error.message
    message["result"] = {
        "content": [_part(part) for part in content_of(outcome)],
        "details": {"message": _first_sentence(envelope), **envelope.data},
    }
    if extras.action is not None:
        message["_specialAction"] = extras.action
    if extras.payload is not None:
        message["payload"] = extras.payload
    return message


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": part.data_uri()}}  # audio and video too: 000 §3


def _first_sentence(envelope: Envelope) -> str:
    match = _SENTENCE.search(envelope.text)
    return match[0].strip() if match else envelope.text


def timed_call(*, task_id: str, requested: str, due: str, triggered: str, original: str, late: bool) -> JsonObject:
    """What VCPToolBox tells a plugin that runs on schedule."""
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
