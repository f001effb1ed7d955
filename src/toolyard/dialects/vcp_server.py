"""Messages of VCPToolBox's server: its WebSocket channels, ``/v1/human/tool`` and ``/v1/schedule_task``."""

from typing import Any, Final

from toolyard.message import add_hint
from toolyard.protocol.json import Json, JsonObject

LOG: Final = "VCPLog"
INFO: Final = "VCPInfo"
_MAX_CONTENT = 500
_BRIEF = ("status", "message")
_ACTION = ("_specialAction", "payload", "payload_left_out")


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
