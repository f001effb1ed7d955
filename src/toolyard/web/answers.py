"""Helpers of the routes: the current principal, JSON responses, and pages of records."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from math import isfinite
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Depends, Query, Request, Response

from toolyard.message import Message
from toolyard.protocol.json import JsonObject, json_bytes
from toolyard.protocol.store import PageCursor
from toolyard.web.refusal import Refusal, bad_request
from toolyard.web.security.scope import Principal, get_principal

T = TypeVar("T")


async def _get_principal(request: Request) -> Principal:
    return get_principal(request.scope)


async def _parse_cursor(
    after: Annotated[str, Query(max_length=200, description="`next` of the previous page.")] = "",
) -> PageCursor | None:
    if not after:
        return None
    at, _, id_ = after.partition("~")
    try:
        place = PageCursor(at=float(at), id=id_)
    except ValueError:
        place = None
    if place is None or not isfinite(place.at) or not id_:
        raise bad_request(Message("'after' must be the 'next' of the previous page"))
    return place


CurrentPrincipal = Annotated[Principal, Depends(_get_principal)]
After = Annotated[PageCursor | None, Depends(_parse_cursor)]
Limit = Annotated[int, Query(ge=1, le=200, description="Maximum number of items.")]


def parse_object(raw: bytes) -> JsonObject:
    """Parse a body that a route reads on its own. Raises Refusal."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise bad_request(Message("the body is not valid JSON: {error}", error=error)) from error
    if not isinstance(body, dict):
        raise bad_request(Message("the body must be a JSON object"))
    return body


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(json_bytes(value), status, dict(headers) if headers else None, "application/json")


def page_response(
    items: Sequence[T], limit: int, to_json: Callable[[T], JsonObject], place: Callable[[T], PageCursor]
) -> Response:
    """Return one page; ``next`` is the cursor of the following page, null on the last one."""
    more = place(items[-1]) if len(items) == limit else None
    return json_response({"data": [to_json(one) for one in items], "next": f"{more.at!r}~{more.id}" if more else None})


def require_admin_for_masked(principal: Principal) -> None:
    """Raise 403 unless the principal may see masked values."""
    if not principal.is_admin:
        raise Refusal(HTTPStatus.FORBIDDEN, Message("the key lacks the scope 'admin', which masked values require"))


def require_owner(principal: Principal, caller: str, what: str) -> None:
    """Raise 404 unless ``caller`` is the principal's own; records of other keys do not exist for it."""
    if not principal.can_see(caller):
        raise Refusal(HTTPStatus.NOT_FOUND, Message("there is no {what}", what=what))
