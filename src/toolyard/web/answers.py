"""What routes share: who asks, answers in JSON, and pages of records."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from math import isfinite
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request, Response

from toolyard.protocol.json import JsonObject, json_bytes
from toolyard.protocol.store import PageCursor
from toolyard.web.access import Visitor
from toolyard.web.edge import VISITOR
from toolyard.web.refusal import Refusal, bad_request

T = TypeVar("T")


async def _visitor(request: Request) -> Visitor:
    visitor = request.scope.get(VISITOR)
    if not isinstance(visitor, Visitor):
        raise Refusal(HTTPStatus.UNAUTHORIZED, "send the key as 'Authorization: Bearer KEY'")
    return visitor


async def _place(
    after: Annotated[str, Query(max_length=200, description="`next` of the page before.")] = "",
) -> PageCursor | None:
    if not after:
        return None
    created, _, id_ = after.partition("~")
    try:
        place = PageCursor(created=float(created), id=id_)
    except ValueError:
        place = None
    if place is None or not isfinite(place.created) or not id_:
        raise bad_request("'after' is what the page before gave as 'next'")
    return place


Who = Annotated[Visitor, Depends(_visitor)]
After = Annotated[PageCursor | None, Depends(_place)]
Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(json_bytes(value), status, dict(headers) if headers else None, "application/json")


def page(found: Sequence[T], limit: int, show: Callable[[T], JsonObject], place: Callable[[T], PageCursor]) -> Response:
    """One page; ``next`` is where the following one begins, or null when this is the last."""
    more = place(found[-1]) if len(found) == limit else None
    return answer({"data": [show(one) for one in found], "next": f"{more.created!r}~{more.id}" if more else None})


def own_only(visitor: Visitor) -> str | None:
    """The caller whose records a visitor sees; None: everybody's."""
    return None if visitor.is_admin else visitor.caller


def require_own(visitor: Visitor, caller: str, what: str) -> None:
    """What belongs to another key does not exist for this one."""
    if not visitor.is_admin and caller != visitor.caller:
        raise Refusal(HTTPStatus.NOT_FOUND, f"there is no {what}")
