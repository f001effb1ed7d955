"""Messages of VCPToolBox: its answers, WebSocket channels, ``/v1/human/tool`` and ``/v1/schedule_task``.

An answer of VCP Protocol v2 (000 §1.2) has two statuses, content parts for the model, and details for programs.
"""

import re
from typing import Any, Final

from toolyard.dialects.content_parts import list_parts
from toolyard.message import add_hint
from toolyard.protocol.content import Part
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.plugin_answers.plugin_content import is_repeated, to_vcp_item
from toolyard.protocol.tool import Outcome

_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s|$)|[。！？]|$)", re.MULTILINE)
LOG: Final = "VCPLog"
INFO: Final = "VCPInfo"
_MAX_CONTENT = 500
_BRIEF = ("status", "message")
_ACTION = ("_specialAction", "payload", "payload_left_out")


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


def connected_message(channel: str) -> JsonObject:
    return {"type": "connection_ack", "message": f"WebSocket connection successful for {channel}."}


def log_line(call: JsonObject) -> JsonObject:
    """Return the line for the data of a ``call.finished`` event, with the special action that its tool asks for."""
    status = "success" if call.get("error") is None else "error"
    content = str(call.get("text", ""))[:_MAX_CONTENT]
    data: JsonObject = {"tool_name": call.get("tool"), "status": status, "content": content}
    return {"type": "vcp_log", "data": data | _read_action(call)}


def action_message(call: JsonObject) -> JsonObject | None:
    """Return the special action of a finished call as a message of its own; None when it has none."""
    action = _read_action(call)
    return {"type": "special_action", "data": {"tool_name": call.get("tool"), **action}} if action else None


def _read_action(call: JsonObject) -> JsonObject:
    return {name: call[name] for name in _ACTION if name in call}


def approval_request(request: JsonObject, at: float, local_time: str) -> JsonObject:
    """Return the message for the data of an ``approval.requested`` event; clients show ``local_time`` as it is."""
    expires = request.get("expires")
    data: JsonObject = {
        "requestId": request.get("id"),
        "toolName": request.get("tool"),
        "maid": request.get("maid"),
        "args": request.get("arguments"),
        "timestamp": local_time,
        "approvalTtlMs": round(max(0.0, expires - at) * 1000) if isinstance(expires, int | float) else 0,
    }
    return {"type": "tool_approval_request", "data": data}


def parse_approval_response(message: JsonObject) -> tuple[str, bool, str] | None:
    """Return id, whether it is allowed, and the reason; None when the message is no answer to an approval."""
    data = message.get("data")
    if message.get("type") != "tool_approval_response" or not isinstance(data, dict):
        return None
    id_, approved, reason = data.get("requestId"), data.get("approved"), data.get("reason")
    if not isinstance(id_, str) or not isinstance(approved, bool):
        return None
    return id_, approved, reason if isinstance(reason, str) else ""


def push_message(message_type: str, plugin: str, task_id: str, body: Json, *, full: bool) -> JsonObject:
    """Return a callback's message for clients: its full body, or only its status and message."""
    if full:
        return {"type": message_type, "data": body}
    fields = body if isinstance(body, dict) else {}
    brief: JsonObject = {"plugin": plugin, "id": task_id}
    return {"type": message_type, "data": brief | {name: fields.get(name) for name in _BRIEF}}


def human_answer(encoded: dict[str, Any], *, maid: str | None, at: str, hint: str) -> JsonObject:
    """Return the result of one ``/v1/human/tool`` block, or its error and the hint; ``encoded``: its outcome as VCP."""
    signed: JsonObject = {"timestamp": at}
    if maid:
        signed["MaidName"] = maid
    if "error" in encoded:
        return {"plugin_error": add_hint(encoded["error"], hint), **signed}
    return {**encoded["result"], **{name: encoded[name] for name in _ACTION if name in encoded}, **signed}


def human_schedule_answer(schedule_id: str, tool: str, *, requested: str, due: str) -> JsonObject:
    return {
        "status": "success",
        "scheduled": True,
        "taskId": schedule_id,
        "tool_name": tool,
        "requestedAt": requested,
        "scheduledTime": due,
    }


def schedule_answer(schedule_id: str, tool: str, due: str) -> JsonObject:
    details: JsonObject = {"taskId": schedule_id, "scheduledTime": due}
    return {"status": "success", "message": f"{tool} is scheduled for {due}.", "details": details}


def schedule_refusal(problem: str) -> JsonObject:
    return {"status": "error", "error": problem}
