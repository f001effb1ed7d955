"""Messages of MCP that are read and written without the SDK: calls, their cancels and their results."""

import re
from typing import Any, Final

from toolyard.protocol.json import JsonObject, json_bytes, json_value

RequestId = str | int

_PARAMS = {"name", "arguments", "_meta"}
_PER_REQUEST = ("progressToken", "traceparent", "tracestate", "baggage")
_ID = rb'"id"\s*:\s*(?:"([^"\\]*)"|(-?\d+))'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID + rb"\s*,")
_ID_LAST: Final = re.compile(rb",\s*" + _ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*$")
_MAX_ID = 500  # bytes at either end of a reply in which its id stands
_CALL, _CANCELLED = b'"tools/call"', b'"notifications/cancelled"'


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
