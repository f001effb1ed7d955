"""``/v1/schedules``: calls that run later; and ``/v1/schedule_task``, the form VCPToolBox's plugins send."""

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response

from toolyard.app import Yard
from toolyard.dialects.vcp_server import task_not_scheduled, task_scheduled
from toolyard.protocol.call import Origin
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import Place, Record
from toolyard.protocol.store import Query as Wanted
from toolyard.web.access import Visitor
from toolyard.web.answers import After, Limit, Who, answer, own_only, page, require_own
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.shapes import Done, NewSchedule, RecordPage, RecordShown, VcpSchedule

_OBJECT: JsonObject = {"application/json": {"schema": {"type": "object"}}}


def router(yard: Yard) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["schedules"])

    @routes.get("/schedules", responses={200: {"model": RecordPage}})
    async def list_schedules(
        who: Who,
        after: After,
        limit: Limit = 50,
        state: Annotated[list[str], Query(max_length=10)] = [],  # noqa: B006 FastAPI copies it
        tool: str | None = None,
    ) -> Response:
        """The schedules, newest first."""
        wanted = Wanted(states=tuple(state), tool=tool, caller=own_only(who))
        found = await yard.schedules.page(wanted, limit=limit, after=after)
        return page(found, limit, yard.schedules.to_dict, lambda one: Place(created=one.created, id=one.id))

    @routes.post("/schedules", status_code=201, responses={201: {"model": RecordShown}})
    async def add_schedule(new: NewSchedule, who: Who) -> Response:
        """Run a tool at a time, or at every time that a cron expression names."""
        call = yard.request(new.tool, new.arguments, caller=who.caller, origin=Origin.HTTP)
        record = await yard.schedules.submit(replace(call, maid=new.maid), at=new.at, cron=new.cron)
        return answer(yard.schedules.to_dict(record), HTTPStatus.CREATED)

    @routes.get("/schedules/{id}", responses={200: {"model": RecordShown}})
    async def show_schedule(id: str, who: Who) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """One schedule with its runs."""
        return answer(yard.schedules.to_dict(await _schedule(yard, id, who)))

    @routes.post("/schedules/{id}/cancel", responses={200: {"model": Done}})
    async def cancel_schedule(id: str, who: Who) -> Response:  # noqa: A002
        """Let a schedule never run (again)."""
        await _schedule(yard, id, who)
        if not await yard.schedules.cancel(id):
            raise Refusal(HTTPStatus.CONFLICT, f"{id} runs now or has ended")
        return answer({"ok": True, "id": id})

    @routes.post("/schedules/{id}/run", responses={200: {"model": Done}})
    async def run_schedule(id: str, who: Who) -> Response:  # noqa: A002
        """Run one now that is scheduled or expired. Its result is kept with it."""
        await _schedule(yard, id, who)
        if not await yard.schedules.run_by_hand(id):
            raise Refusal(HTTPStatus.CONFLICT, f"{id} runs now or has ended")
        return answer({"ok": True, "id": id})

    @routes.post(
        "/schedule_task",
        responses={
            200: {"description": "It is scheduled.", "content": _OBJECT},
            400: {"description": "It is not.", "content": _OBJECT},
        },
    )
    async def schedule_task(new: VcpSchedule, who: Who) -> Response:
        """Schedule a call in the form of VCPToolBox."""
        tool = new.tool_call.tool_name
        call = yard.request(tool, new.tool_call.arguments, caller=who.caller, origin=Origin.HTTP)
        try:
            record = await yard.schedules.submit(call, at=new.schedule_time)
        except Failure as failure:
            return answer(task_not_scheduled(f"{failure.message} {failure.hint}".strip()), HTTPStatus.BAD_REQUEST)
        return answer(task_scheduled(record.id, tool, str(record.body["for"])))

    return routes


async def _schedule(yard: Yard, id_: str, who: Visitor) -> Record:
    record = await yard.schedules.get(id_)
    if record is None:
        raise not_found(f"schedule '{id_[:100]}'")
    require_own(who, record.caller, f"schedule '{id_[:100]}'")
    return record
