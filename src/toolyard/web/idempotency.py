"""The ``Idempotency-Key`` header: its format, and the errors it can cause.

Errors of requests that must not be repeated have status 400 and ``x-should-retry: false``: client libraries retry 408,
409, 429 and 5xx on their own, and some of them unknown statuses too.
"""

import asyncio
import re
from http import HTTPStatus
from typing import Final

from starlette.requests import Request

from toolyard.engine.idempotency import MAX_RESPONSE, hash_request
from toolyard.message import Message
from toolyard.own_command import OwnCommand
from toolyard.protocol.call_record import CallRecord
from toolyard.web.refusal import Refusal

KEY: Final = "Idempotency-Key"
KEY_HELP: Final = (
    "A unique name of this request, such as a UUID: it runs once, and repeats with the same name get the same response."
)
REPLAYED: Final = "Idempotency-Replayed"
SHOULD_RETRY: Final = "x-should-retry"
_NO_RETRY = {SHOULD_RETRY: "false"}
_RETRY_LATER = {"Retry-After": "5"}
_VALID_KEY = re.compile(r"[ -~]{1,255}")
_LARGE_BODY = 2**20  # bytes from which a body is hashed in a thread
_MAX_NAMED_CALLS = 20  # of an interrupted request


def require_valid_key(request: Request) -> None:
    """Raise Refusal unless a request has exactly one valid key."""
    keys = request.headers.getlist(KEY)
    if len(keys) != 1 or not _VALID_KEY.fullmatch(keys[0]):
        message = Message(
            "idempotency.invalid_key",
            "send one {key} of 1 to 255 printable ASCII characters, such as a UUID",
            key=KEY,
        )
        raise Refusal(HTTPStatus.BAD_REQUEST, message, code="invalid_idempotency_key")


async def fingerprint_request(request: Request) -> str:
    """Return the fingerprint of a request: its route and its body."""
    url, body = request.url, await request.body()
    route = f"{request.method} {url.path}?{url.query}"
    if len(body) < _LARGE_BODY:
        return hash_request(route, body)
    return await asyncio.to_thread(hash_request, route, body)


def describe_calls(calls: list[CallRecord], own_command: OwnCommand) -> str:
    """Return a sentence that names the calls of a request, and how to look at one."""
    if not calls:
        return "The journal has no calls of it."
    named = ", ".join(f"{call.id} ({call.tool}, {call.state})" for call in calls[:_MAX_NAMED_CALLS])
    more = f" and {len(calls) - _MAX_NAMED_CALLS} more" if len(calls) > _MAX_NAMED_CALLS else ""
    return f"Its calls: {named}{more}. See GET /v1/calls/ID or '{own_command.for_home.format('journal show ID')}'."


def interrupted_refusal(calls: str) -> Refusal:
    message = Message(
        "idempotency.interrupted",
        "The first request with this {key} was interrupted before it was answered, and will not run again. {calls} "
        "To run it again, send another {key}.",
        key=KEY,
        calls=calls,
    )
    return Refusal(HTTPStatus.BAD_REQUEST, message, code="interrupted", headers=_NO_RETRY)


def not_kept_refusal() -> Refusal:
    message = Message(
        "idempotency.response_not_stored",
        "The first request with this {key} was answered and will not run again. Its response is no longer stored: "
        "at most {max_response} bytes are kept, and less while the state is too large. Its calls are in GET /v1/calls.",
        key=KEY,
        max_response=MAX_RESPONSE,
    )
    return Refusal(HTTPStatus.BAD_REQUEST, message, code="response_not_kept", headers=_NO_RETRY)


def conflict_refusal() -> Refusal:
    message = Message(
        "idempotency.key_reused",
        "This {key} was used for a different request: repeat that one unchanged, or send another {key}.",
        key=KEY,
    )
    return Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, message, code="idempotency_key_reused", headers=_NO_RETRY)


def too_many_refusal(most: int) -> Refusal:
    message = Message(
        "idempotency.too_many_running",
        "{most} requests with an {key} are running: try again later",
        most=most,
        key=KEY,
    )
    return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, message, code="too_many_running", headers=_RETRY_LATER)


def in_progress_refusal() -> Refusal:
    message = Message(
        "idempotency.running_elsewhere",
        "The first request with this {key} is still running on another host: repeat it to get its response.",
        key=KEY,
    )
    return Refusal(HTTPStatus.CONFLICT, message, code="idempotency_in_progress", headers=_RETRY_LATER)
