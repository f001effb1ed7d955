"""Messages of MCP that are read and written without the SDK: calls, their cancels and their results.

The content of a result is for the model. Clients that find structured content give their model this instead, so only a
tool of an MCP server has any: what that server has sent. Programs find the envelope in ``_meta``.
"""

import re
from typing import Any, Final
from urllib.parse import quote

from toolyard.dialects.model_parts import list_parts
from toolyard.protocol.content import Part, Text
from toolyard.protocol.json import JsonObject, json_bytes, json_value
from toolyard.protocol.result_limits import HARD_CAP_BYTES
from toolyard.protocol.tool import Outcome, ToolCall

ENVELOPE: Final = "toolyard/envelope"  # in ``_meta``: for programs, never for the model
SPECIAL_ACTION: Final = "toolyard/specialAction"  # in ``_meta``: for the client, never for the model
RequestId = str | int
_PARAMS = {"name", "arguments", "_meta"}
_PER_REQUEST = ("progressToken", "traceparent", "tracestate", "baggage")
_ID = rb'"id"\s*:\s*(?:"([^"\\]*)"|(-?\d+))'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID + rb"\s*,")
_ID_LAST: Final = re.compile(rb",\s*" + _ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*$")
_MAX_ID = 500  # bytes at either end of a reply in which its id stands
_CALL, _CANCELLED = b'"tools/call"', b'"notifications/cancelled"'


def encode(call: ToolCall, outcome: Outcome) -> dict[str, Any]:
    action, own = outcome.extras.describe_action(), outcome.extras.mcp
    return {
        "content": [_encode_part(part) for part in list_parts(call, outcome)],
        **({"structuredContent": own["structured_content"]} if own else {}),
        "isError": outcome.envelope.error is not None,
        "_meta": {ENVELOPE: outcome.envelope.to_dict(), **({SPECIAL_ACTION: action} if action else {})},
    }


def drop_unfit(result: dict[str, Any], *, only_objects: bool) -> None:
    """Remove what a client would refuse: the content says all of it.

    ``only_objects``: before 2026-07-28 structured content had to be an object. The TypeScript SDK checks that of a
    failure against the schema of results, too. An envelope may have no more bytes than a whole result.
    """
    if result["isError"] or (only_objects and not isinstance(result.get("structuredContent"), dict)):
        result.pop("structuredContent", None)
    if len(json_bytes(result["_meta"][ENVELOPE])) > HARD_CAP_BYTES:
        del result["_meta"][ENVELOPE]


def _encode_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if part.kind in ("image", "audio"):
        return {"type": part.kind, "data": part.base64(), "mimeType": part.mime}
    uri = "toolyard://content/" + quote(part.name or "media")
    return {"type": "resource", "resource": {"uri": uri, "mimeType": part.mime, "blob": part.base64()}}


def parse_call(line: bytes) -> tuple[RequestId, JsonObject] | None:
    """Return the id and the parameters of a plain tools/call request; None for anything else."""
    request = _parse_object(line) if _CALL in line else {}
    if request.get("method") != "tools/call" or request.get("jsonrpc") != "2.0":
        return None
    id_, params = request.get("id"), request.get("params")
    if not isinstance(id_, str | int) or isinstance(id_, bool) or not isinstance(params, dict):
        return None
    is_plain = params.keys() <= _PARAMS and isinstance(params.get("name"), str)
    return (id_, params) if is_plain and isinstance(params.get("arguments", {}), dict) else None


def parse_cancelled_id(line: bytes) -> RequestId | None:
    """Return the id of the request that a line cancels; None when it cancels none."""
    return read_cancelled_id(_parse_object(line).get("params")) if _CANCELLED in line else None


def read_cancelled_id(params: object) -> RequestId | None:
    """Return the id of the request that a notification with these parameters cancels."""
    id_ = params.get("requestId") if isinstance(params, dict) else None
    return id_ if isinstance(id_, str | int) else None


def find_reply_id(line: bytes) -> RequestId | None:
    """Return the id of a reply that no parser takes, such as one that is nested too deeply; None if it has none.

    Only members at either end are looked at: they belong to the message, not to what is in it.
    """
    found = _ID_FIRST.match(line[:_MAX_ID]) or _ID_LAST.search(line[-_MAX_ID:])
    if found is None:
        return None
    return int(found[2]) if found[2] else found[1].decode(errors="replace")


def strip_envelope(envelope: object) -> JsonObject:
    """Return the ``_meta`` of a request without what differs from request to request."""
    return (
        {key: value for key, value in envelope.items() if key not in _PER_REQUEST} if isinstance(envelope, dict) else {}
    )


def add_completion(result: JsonObject, meta: JsonObject) -> JsonObject:
    """Return a result as protocols since 2026-07-28 require it; ``meta`` describes the server."""
    own = result.get("_meta")
    return {**result, "resultType": "complete", "_meta": {**(own if isinstance(own, dict) else {}), **meta}}


def write_response(id_: RequestId, result: JsonObject) -> bytes:
    return json_bytes({"jsonrpc": "2.0", "id": id_, "result": result}) + b"\n"


def _parse_object(line: bytes) -> dict[str, Any]:
    try:
        value = json_value(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
