"""``/v1/calls``: the journal."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from toolyard.engine.clock import Clock
from toolyard.engine.statistics import compute_statistics
from toolyard.message import Message
from toolyard.protocol.call_record import CallState
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Reason, list_causes
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import PageCursor
from toolyard.protocol.store import Query as RecordQuery
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.responses import (
    After,
    CurrentPrincipal,
    Limit,
    json_response,
    page_response,
    require_owner,
)
from toolyard.web.schemas.calls import CallDetail, CallFiles, CallPage, CallStatistics
from toolyard.web.schemas.common import ChangedRecord, UndoneCall
from toolyard.web.security.principal import Principal
from toolyard.web.views.call import find_media_source, list_files, to_json, to_row_json
from toolyard.yard.yard import Yard

_DAY_S = 86_400.0
_PLAYED = ("image", "audio", "video")
_BINARY: JsonObject = {"schema": {"type": "string", "format": "binary"}}
_MEDIA: dict[str, Any] = {"content": {f"{kind}/*": _BINARY for kind in _PLAYED}}
_MEDIA_HEADERS = {
    "Content-Disposition": "inline",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
}


def router(yard: Yard, clock: Clock) -> APIRouter:
    routes = APIRouter(prefix="/v1/calls", tags=["calls"])

    @routes.get("", responses={200: {"model": CallPage}})
    async def list_calls(
        principal: CurrentPrincipal,
        after: After,
        limit: Limit = 50,
        state: Annotated[list[CallState], Query(max_length=10)] = [],  # noqa: B006 FastAPI copies it
        code: Annotated[
            list[ErrorCode | Reason],
            Query(max_length=10, description="Calls that ended with one of these error codes or reasons."),
        ] = [],  # noqa: B006
        tool: str | None = None,
        caller: Annotated[str | None, Query(description="Calls of this caller; those of others need `admin`.")] = None,
        search: Annotated[str, Query(max_length=200, description="Words in the arguments or the result.")] = "",
        since: Annotated[float | None, Query(description="Seconds since the epoch.", allow_inf_nan=False)] = None,
        before: Annotated[
            float | None,
            Query(description="Calls that began before it, in seconds since the epoch.", allow_inf_nan=False),
        ] = None,
    ) -> Response:
        """List calls, newest first."""
        query = RecordQuery(
            states=tuple(state), tool=tool, caller=principal.caller_filter or caller, text=search, since=since,
            before=before, codes=tuple(name for one in code for name in list_causes(one)),
        )  # fmt: skip
        calls = await yard.journal.page(query, limit=limit, after=after)
        return page_response(calls, limit, to_row_json, lambda one: PageCursor(at=one.started, id=one.id))

    @routes.get("/stats", responses={200: {"model": CallStatistics}})
    async def count_calls(
        principal: CurrentPrincipal,
        since: Annotated[
            float | None, Query(description="Seconds since the epoch; default: one day ago.", allow_inf_nan=False)
        ] = None,
    ) -> Response:
        """Return statistics of the newest calls, at most 10,000: how they ended and how long they ran."""
        begin = clock.now().timestamp() - _DAY_S if since is None else since
        return json_response(await compute_statistics(yard.store, since=begin, caller=principal.caller_filter))

    @routes.get("/{id}", responses={200: {"model": CallDetail}})
    async def show_call(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Return one call with its arguments and full result; secrets are masked."""
        return json_response(await to_json(yard, await _get_call(yard, id, principal), only=principal.caller_filter))

    @routes.get("/{id}/files", responses={200: {"model": CallFiles}})
    async def show_files(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Return the files that a call wrote, before and after it, while they are kept; secrets are masked.

        At most 50 files, 512 KiB of each and 4 MiB in total.
        """
        await _get_call(yard, id, principal)
        return json_response(await list_files(yard, id))

    @routes.get("/{id}/media/{number}", response_class=Response, responses={200: _MEDIA})
    async def show_media(id: str, number: int, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Return an image, audio or video of the result, by its place in the `content` of `data`, while it is kept."""
        source = find_media_source(await _get_call(yard, id, principal), number)
        media = await yard.load_media(source) if source else None
        if media is None or media.kind not in _PLAYED:
            raise not_found(Message("http.call_media", "media {number} of call '{id}'", number=number, id=id[:100]))
        return Response(media.data, media_type=media.mime, headers=_MEDIA_HEADERS)

    @routes.post("/{id}/cancel", responses={200: {"model": ChangedRecord}})
    async def cancel_call(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Cancel a running call."""
        await _get_call(yard, id, principal)
        if not yard.cancel(id):
            raise Refusal(
                HTTPStatus.CONFLICT, Message("host.not_running_here", "{id} is not running on this host", id=id)
            )
        return json_response({"ok": True, "id": id})

    @routes.post("/{id}/undo", responses={200: {"model": UndoneCall}})
    async def undo_call(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Restore the files that a call overwrote or deleted and delete those that it created, unless changed since."""
        await _get_call(yard, id, principal)
        undone = await yard.undo(id, by=principal.caller)
        return json_response({"ok": True, "id": id, "restored": undone.restored, "deleted": undone.deleted})

    return routes


async def _get_call(yard: Yard, id_: str, principal: Principal) -> JsonObject:
    call = await yard.journal.get(id_)
    if call is None:
        raise not_found(_name_call(id_[:100]))
    require_owner(principal, str(call["caller"]), _name_call(id_[:100]))
    return call


def _name_call(id_: str) -> Message:
    return Message("http.call", "call '{id}'", id=id_)
