"""Errors of the HTTP API, in the shape of OpenAI's, or of Anthropic's for its clients."""

from collections.abc import Mapping
from http import HTTPStatus

import orjson
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from toolyard.gateway.protocols.messages.errors import error_object
from toolyard.message import Message, to_fields

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
_CODES = {413: "body_too_large", 422: "invalid_request"}  # Python 3.13 renamed these


class Refusal(HTTPException):
    """An HTTP error; ``code`` is for programs."""

    def __init__(
        self, status: HTTPStatus, message: str, *, code: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status.value, message, dict(headers) if headers else None)
        self.code = code or error_code(status.value)


def error_type(status: int) -> str:
    return _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")


def error_code(status: int) -> str:
    return _CODES.get(status) or HTTPStatus(status).name.lower()


def error_body(status: int, message: str, code: str = "") -> bytes:
    fields = {"message": message, "type": error_type(status), "code": code or error_code(status)}
    return orjson.dumps({"error": fields | to_fields("message", message)})


def write_error(
    status: int, message: str, code: str = "", *, speaks_messages: bool = False, request_id: str = ""
) -> bytes:
    """Return the body of an error, in the shape of Messages for a client that speaks it."""
    if not speaks_messages:
        return error_body(status, message, code)
    return orjson.dumps(error_object(status, message, code or error_code(status), request_id))


def internal_error(request_id: str) -> Refusal:
    message = Message("internal error: see {request_id} in the log", request_id=request_id)
    return Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, message)


def not_found(what: str) -> Refusal:
    return Refusal(HTTPStatus.NOT_FOUND, Message("there is no {what}", what=what))


def bad_request(message: str) -> Refusal:
    return Refusal(HTTPStatus.BAD_REQUEST, message)


def describe_validation_error(error: RequestValidationError) -> str:
    """Return every validation error with its location, in one line."""
    problems = [f"{'.'.join(str(step) for step in one['loc'])}: {one['msg']}" for one in error.errors()]
    return "; ".join(problems)[:2000]
