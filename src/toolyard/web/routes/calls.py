"""``/v1/calls``: the journal."""

from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from toolyard.app import Yard
from toolyard.engine.clock import Clock
from toolyard.engine.statistics import compute_statistics
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import PageCursor
from toolyard.protocol.store import Query as Wanted
from toolyard.web.access import Visitor
from toolyard.web.answers import After, Limit, Who, answer, own_only, page, require_own
from toolyard.web.call_view import files, row, whole
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.shapes import Done, RecordPage
from toolyard.web.shapes_calls import CallFiles, CallShown, CallStatistics

_DAY_S = 86_400.0
CallState = Literal["running", "success", "partial", "error", "cancelled", "interrupted"]


def router(yard: Yard, clock: Clock) -> APIRouter:
    routes = APIRouter(prefix="/v1/calls", tags=["calls"])

    @routes.get("", responses={200: {"model": RecordPage}})
    async def list_calls(
        who: Who,
        after: After,
        limit: Limit = 50,
        state: Annotated[list[CallState], Query(max_length=10)] = [],  # noqa: B006 FastAPI copies it
        tool: str | None = None,
        caller: Annotated[str | None, Query(description="Of this caller only; others' need `admin`.")] = None,
        search: Annotated[str, Query(max_length=200, description="Words of the arguments or of the result.")] = "",
        since: Annotated[float | None, Query(description="Seconds since 1970.", allow_inf_nan=False)] = None,
    ) -> Response:
        """The calls, newest first."""
        wanted = Wanted(states=tuple(state), tool=tool, caller=own_only(who) or caller, text=search, since=since)
        found = await yard.journal.page(wanted, limit=limit, after=after)
        return page(found, limit, row, lambda one: PageCursor(created=one.created, id=one.id))

    @routes.get("/stats", responses={200: {"model": CallStatistics}})
    async def count_calls(
        who: Who,
        since: Annotated[float | None, Query(description="Seconds since 1970; a day ago.", allow_inf_nan=False)] = None,
    ) -> Response:
        """What the calls came to: how they ended, how long they ran. At most 10,000, the newest."""
        begin = clock.now().timestamp() - _DAY_S if since is None else since
        return answer(await compute_statistics(yard.store, since=begin, caller=own_only(who)))

    @routes.get("/{id}", responses={200: {"model": CallShown}})
    async def show_call(id: str, who: Who) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """One call with its arguments and the whole of its result; secrets are masked."""
        return answer(await whole(yard, await _call(yard, id, who), only=own_only(who)))

    @routes.get("/{id}/files", responses={200: {"model": CallFiles}})
    async def show_files(id: str, who: Who) -> Response:  # noqa: A002
        """The files that a call wrote, whole, before and after it, while they are kept; secrets are masked.

        At most 50 files, 512 KiB of each text and 4 MiB of all together.
        """
        await _call(yard, id, who)
        return answer(await files(yard, id))

    @routes.post("/{id}/cancel", responses={200: {"model": Done}})
    async def cancel_call(id: str, who: Who) -> Response:  # noqa: A002
        """Stop a call that runs here."""
        await _call(yard, id, who)
        if not yard.cancel(id):
            raise Refusal(HTTPStatus.CONFLICT, f"{id} does not run here any more")
        return answer({"ok": True, "id": id})

    @routes.post("/{id}/undo", responses={200: {"model": Done}})
    async def undo_call(id: str, who: Who) -> Response:  # noqa: A002
        """Put back what a call wrote over or deleted, if the files have not changed since."""
        await _call(yard, id, who)
        return answer({"ok": True, "id": id, "restored": await yard.undo(id, by=who.caller)})

    return routes


async def _call(yard: Yard, id_: str, who: Visitor) -> JsonObject:
    found = await yard.journal.get(id_)
    if found is None:
        raise not_found(f"call '{id_[:100]}'")
    require_own(who, str(found["caller"]), f"call '{id_[:100]}'")
    return found
