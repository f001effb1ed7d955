"""Errors as clients of Messages read them."""

from http import HTTPStatus
from typing import Final

from toolyard.protocol.json import JsonObject

_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def error_type(status: int) -> str:
    return _TYPES.get(status, "api_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error")


def error_object(status: int, message: str, code: str = "", request_id: str = "") -> JsonObject:
    """Return an error as clients of Messages read it; ``code`` is ours."""
    error: JsonObject = {"type": error_type(status), "message": str(message)}
    made: JsonObject = {"type": "error", "error": error | ({"code": code} if code else {})}
    return made | ({"request_id": request_id} if request_id else {})
