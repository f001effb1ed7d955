"""``/v1/schedules``: calls that run later; and ``/v1/schedule_task``, the form VCPToolBox's plugins send."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from toolyard.app import Yard
from toolyard.dialects.vcp_server import schedule_answer, schedule_refusal
from toolyard.engine.clock import Clock
from toolyard.engine.conversations import Conversations
from toolyard.engine.schedule_runs import ScheduleState
from toolyard.engine.schedule_time import preview_times
from toolyard.engine.typed_time import normalize_time
from toolyard.protocol.call import Origin
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import PageCursor, Record
from toolyard.protocol.store import Query as Wanted
from toolyard.web.access import Visitor
from toolyard.web.answers import After, Limit, Who, answer, own_only, page, require_own
from toolyard.web.refusal import Refusal, not_found, problems
from toolyard.web.shapes import Done, RecordPage
from toolyard.web.shapes_records import NewSchedule, Preview, ScheduleShown, VcpSchedule, When

_OBJECT: JsonObject = {"application/json": {"schema": {"type": "object"}}}


def router(yard: Yard, clock: Clock, chats: Conversations) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["schedules"])

    async def told(record: Record, who: Visitor) -> JsonObject:
        (shown,) = await yard.schedules.list_json([record])
        return shown | {"chat_kept": await chats.has(who.caller, str(record.body.get("chat") or ""))}

    @routes.get("/schedules", responses={200: {"model": RecordPage}})
    async def list_schedules(
        who: Who,
        after: After,
        limit: Limit = 50,
        state: Annotated[list[ScheduleState], Query(max_length=10)] = [],  # noqa: B006 FastAPI copies it
        tool: str | None = None,
    ) -> Response:
        """The schedules, newest first."""
        wanted = Wanted(states=tuple(state), tool=tool, caller=own_only(who))
        found = await yard.schedules.page(wanted, limit=limit, after=after)
        shown = dict(zip((one.id for one in found), await yard.schedules.list_json(found), strict=True))
        return page(found, limit, lambda one: shown[one.id], lambda one: PageCursor(created=one.created, id=one.id))

    @routes.post("/schedules", status_code=201, responses={201: {"model": ScheduleShown}})
    async def add_schedule(new: NewSchedule, who: Who) -> Response:
        """Run a tool at a time, or at every time that a cron expression names."""
        call = yard.request(new.tool, new.arguments, caller=who.caller, origin=Origin.HTTP)
        record = await yard.schedules.submit(replace(call, maid=new.maid), at=new.at, cron=new.cron)
        return answer(await told(record, who), HTTPStatus.CREATED)

    @routes.post("/schedules/preview", responses={200: {"model": Preview}})
    async def preview_schedule(when: When) -> Response:
        """The moments that a time or a cron expression means, as far as it means any."""
        now, zone = clock.now(), yard.config.zone
        at = normalize_time(when.at, zone, now)
        seen = await asyncio.to_thread(preview_times, at, when.cron, zone, now, days=when.days)
        return answer(
            {
                "at": at if at and seen.times else None,
                "times": [moment.isoformat(timespec="seconds") for moment in seen.times],
                "in_seconds": (seen.times[0] - now).total_seconds() if seen.times else None,
                "zone": zone.key,
                "offset": now.astimezone(zone).isoformat()[-6:],
                "note": seen.note,
                "problem": seen.problem or None,
            }
        )

    @routes.get("/schedules/{id}", responses={200: {"model": ScheduleShown}})
    async def show_schedule(id: str, who: Who) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """One schedule with its runs."""
        return answer(await told(await _schedule(yard, id, who), who))

    @routes.put("/schedules/{id}", responses={200: {"model": ScheduleShown}})
    async def change_schedule(id: str, new: NewSchedule, who: Who) -> Response:  # noqa: A002
        """Another call or another time for one that is scheduled or paused."""
        record = await _schedule(yard, id, who)
        arguments = cast("JsonObject", yard.mask.restore(new.arguments, record.body["arguments"]))
        call = yard.request(new.tool, arguments, caller=record.caller, origin=Origin.HTTP)
        changed = await yard.schedules.change(id, replace(call, maid=new.maid), at=new.at, cron=new.cron)
        if changed is None:
            raise Refusal(HTTPStatus.CONFLICT, f"{id} runs now or has ended")
        return answer(await told(changed, who))

    _moves(routes, yard)

    async def schedule_task(new: VcpSchedule, who: Who) -> Response:
        """Schedule a call in the form of VCPToolBox."""
        tool = new.tool_call.tool_name
        call = yard.request(tool, new.tool_call.arguments, caller=who.caller, origin=Origin.HTTP)
        try:
            record = await yard.schedules.submit(call, at=new.schedule_time)
        except Failure as failure:
            return answer(schedule_refusal(f"{failure.message} {failure.hint}".strip()), HTTPStatus.BAD_REQUEST)
        return answer(schedule_answer(new.task_id or record.id, tool, str(record.body["for"])))

    answers: dict[int | str, dict[str, Any]] = {
        200: {"description": "It is scheduled.", "content": _OBJECT},
        400: {"description": "It is not.", "content": _OBJECT},
    }
    routes.add_api_route(
        "/schedule_task", schedule_task, methods=["POST"], responses=answers, route_class_override=_AsVcpToolBox
    )
    return routes


def _moves(routes: APIRouter, yard: Yard) -> None:
    """What ends, begins or holds up a schedule."""

    @routes.post("/schedules/{id}/pause", responses={200: {"model": Done}})
    async def pause_schedule(id: str, who: Who) -> Response:  # noqa: A002
        """Let a schedule wait until it is resumed."""
        await _schedule(yard, id, who)
        return _done(id, await yard.schedules.pause(id), "does not wait for its time")

    @routes.post("/schedules/{id}/resume", responses={200: {"model": Done}})
    async def resume_schedule(id: str, who: Who) -> Response:  # noqa: A002
        """Let a paused schedule go on; 400 when its time has passed."""
        await _schedule(yard, id, who)
        return _done(id, await yard.schedules.resume(id), "is not paused")

    @routes.post("/schedules/{id}/cancel", responses={200: {"model": Done}})
    async def cancel_schedule(id: str, who: Who) -> Response:  # noqa: A002
        """Let a schedule never run (again)."""
        await _schedule(yard, id, who)
        return _done(id, await yard.schedules.cancel(id), "runs now or has ended")

    @routes.post("/schedules/{id}/run", responses={200: {"model": Done}})
    async def run_schedule(id: str, who: Who) -> Response:  # noqa: A002
        """Run one now that is scheduled or expired. Its result is kept with it."""
        await _schedule(yard, id, who)
        return _done(id, await yard.schedules.run_by_hand(id), "runs now, is paused or has ended")


def _done(id_: str, done: bool, problem: str) -> Response:  # noqa: FBT001 it is what was asked
    if not done:
        raise Refusal(HTTPStatus.CONFLICT, f"{id_} {problem}")
    return answer({"ok": True, "id": id_})


class _AsVcpToolBox(APIRoute):
    """A route whose clients understand one form of error only."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handled = super().get_route_handler()

        async def told(request: Request) -> Response:
            try:
                return await handled(request)
            except RequestValidationError as error:
                return answer(schedule_refusal(problems(error)), HTTPStatus.BAD_REQUEST)

        return told


async def _schedule(yard: Yard, id_: str, who: Visitor) -> Record:
    record = await yard.schedules.get(id_)
    if record is None:
        raise not_found(f"schedule '{id_[:100]}'")
    require_own(who, record.caller, f"schedule '{id_[:100]}'")
    return record
