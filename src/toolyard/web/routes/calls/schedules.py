"""``/v1/schedules``: scheduled calls; and ``/v1/schedule_task``, which takes VCPToolBox's format."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Literal, cast

from fastapi import Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field

from toolyard.dialects.vcp_messages import schedule_answer, schedule_refusal
from toolyard.engine.background.schedule_time import normalize_time, preview_times
from toolyard.engine.chats.conversations import Conversations
from toolyard.engine.clock import Clock
from toolyard.message import Message, to_fields
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.client_json import to_client_json
from toolyard.protocol.records.schedule_record import Schedule, ScheduleState
from toolyard.protocol.store import PageCursor
from toolyard.protocol.store import Query as RecordQuery
from toolyard.protocol.tool import Origin
from toolyard.web.answers import (
    After,
    CurrentPrincipal,
    Limit,
    json_response,
    page_response,
    require_admin_for_masked,
    require_owner,
)
from toolyard.web.refusal import Refusal, describe_validation_error, not_found
from toolyard.web.routes.calls.audit import add_audit_detail
from toolyard.web.routing import Audited, Route, Routes
from toolyard.web.schemas.common import ChangedRecord, Code, Params, StrictModel
from toolyard.web.schemas.records import MaskedText, RevealedArguments, page_model, record_model
from toolyard.web.security.scope import Principal, Scope
from toolyard.yard.yard import Yard


class NewSchedule(StrictModel):
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = Field(default_factory=dict)
    at: Annotated[
        str, Field(max_length=100, description="YYYY-MM-DD-HH:mm in the configured time zone, or ISO 8601.")
    ] = ""
    cron: Annotated[str, Field(max_length=100, description="A cron expression of five fields, instead of `at`.")] = ""
    maid: Annotated[str | None, Field(max_length=200)] = None


class _ScheduleCondition(StrictModel):
    condition: Annotated[
        str, Field(description="Its state, or `proposed`, `late`, or `blocked` while an approval is pending.")
    ]
    late_s: Annotated[float | None, Field(description="Seconds since its time.")]
    late_because: Annotated[str | None, Field(description="`no_host`, `busy` or `storage`.")]
    approval: Annotated[str | None, Field(description="The approval that its run waits for.")]


class _ScheduleDetails(_ScheduleCondition):
    hidden: Annotated[list[MaskedText], Field(description="The masked texts of the arguments.")]
    chat_kept: Annotated[bool, Field(description="Whether this key has a conversation of that id.")]


ScheduleDetail = record_model("ScheduleDetail", Schedule, _ScheduleDetails)


SchedulePage = page_model("SchedulePage", record_model("ScheduleRow", Schedule, _ScheduleCondition))


class ScheduleTime(StrictModel):
    at: Annotated[str, Field(max_length=100, description="Phrases too: `tomorrow 9:00`, `in 1 hour`.")] = ""
    cron: Annotated[str, Field(max_length=100)] = ""
    days: Annotated[
        int, Field(ge=0, le=31, description="All times of a cron expression within so many days, at most 200.")
    ] = 0


class SchedulePreview(BaseModel):
    at: Annotated[str | None, Field(description="The time in the format of a schedule.")]
    times: Annotated[list[str], Field(description="With offset: one for a time, the next five for a cron expression.")]
    in_seconds: float | None
    zone: str
    offset: Annotated[str, Field(description="The current offset of the zone.")]
    note: Annotated[str, Field(description="A note about a daylight saving change, if any.")]
    note_code: Code = ""
    note_params: Params
    problem: str | None
    problem_code: Code = ""
    problem_params: Params


class VcpToolCall(BaseModel):
    tool_name: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = Field(default_factory=dict)


class VcpSchedule(BaseModel):
    schedule_time: Annotated[str, Field(max_length=100)]
    task_id: str = ""
    tool_call: VcpToolCall


class VcpScheduleDetails(BaseModel):
    taskId: str  # noqa: N815 as VCPToolBox names it
    scheduledTime: str  # noqa: N815


class VcpScheduleAnswer(BaseModel):
    status: Literal["success"]
    message: str
    details: VcpScheduleDetails


class VcpScheduleRefusal(BaseModel):
    status: Literal["error"]
    error: str


def router(yard: Yard, clock: Clock, chats: Conversations) -> Routes:
    routes = Routes(tag="schedules", scope=Scope.TOOLS)

    async def to_json(schedule: Schedule, principal: Principal) -> JsonObject:
        (row,) = await yard.state.schedules.list_json([schedule])
        hidden: list[Json] = [to_client_json(one) for one in yard.state.schedules.list_hidden(schedule)]
        return row | {"hidden": hidden, "chat_kept": await chats.has(principal.caller, schedule.chat or "")}

    @routes.get("/v1/schedules", SchedulePage)
    async def list_schedules(
        principal: CurrentPrincipal,
        after: After,
        limit: Limit = 50,
        state: Annotated[list[ScheduleState], Query(max_length=10)] = [],  # noqa: B006 FastAPI copies it
        tool: str | None = None,
    ) -> Response:
        """List schedules, newest first."""
        query = RecordQuery(states=tuple(state), tool=tool, caller=principal.caller_filter)
        schedules = await yard.state.schedules.page(query, limit=limit, after=after)
        rows = dict(zip((one.id for one in schedules), await yard.state.schedules.list_json(schedules), strict=True))
        return page_response(
            schedules, limit, lambda one: rows[one.id], lambda one: PageCursor(at=one.created, id=one.id)
        )

    @routes.post("/v1/schedules", ScheduleDetail, status=201, audit="schedule.created")
    async def add_schedule(new: NewSchedule, principal: CurrentPrincipal, request: Request) -> Response:
        """Schedule a call, once at a time or repeatedly with a cron expression."""
        call = yard.calls.request(new.tool, new.arguments, caller=principal.caller, origin=Origin.HTTP)
        schedule = await yard.state.schedules.submit(replace(call, maid=new.maid), at=new.at, cron=new.cron)
        add_audit_detail(request.scope, target=schedule.id, tool=schedule.tool, at=new.at, cron=new.cron)
        return json_response(await to_json(schedule, principal), HTTPStatus.CREATED)

    @routes.post("/v1/schedules/preview", SchedulePreview)
    async def preview_schedule(when: ScheduleTime) -> Response:
        """Return the times that a time or cron expression denotes."""
        now, zone = clock.now(), yard.state.zone
        at = normalize_time(when.at, zone, now)
        seen = await asyncio.to_thread(preview_times, at, when.cron, zone, now, days=when.days)
        return json_response(
            {
                "at": at if at and seen.times else None,
                "times": [moment.isoformat(timespec="seconds") for moment in seen.times],
                "in_seconds": (seen.times[0] - now).total_seconds() if seen.times else None,
                "zone": zone.key,
                "offset": now.astimezone(zone).isoformat()[-6:],
                **to_fields("note", seen.note),
                **(to_fields("problem", seen.problem) if seen.problem else {"problem": None}),
            }
        )

    @routes.get("/v1/schedules/{id}", ScheduleDetail)
    async def show_schedule(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Return one schedule with its runs."""
        return json_response(await to_json(await _get_schedule(yard, id, principal), principal))

    @routes.put("/v1/schedules/{id}", ScheduleDetail, audit="schedule.changed")
    async def change_schedule(id: str, new: NewSchedule, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Change the call or the time of a scheduled or paused schedule."""
        schedule = await _get_schedule(yard, id, principal)
        arguments = cast("JsonObject", yard.mask.restore(new.arguments, schedule.arguments))
        call = yard.calls.request(new.tool, arguments, caller=schedule.caller, origin=Origin.HTTP)
        changed = await yard.state.schedules.change(id, replace(call, maid=new.maid), at=new.at, cron=new.cron)
        if changed is None:
            raise Refusal(HTTPStatus.CONFLICT, _ended_message(id))
        return json_response(await to_json(changed, principal))

    @routes.get("/v1/schedules/{id}/arguments", RevealedArguments)
    async def reveal_arguments(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Return the unmasked arguments; requires the scope `admin`."""
        schedule = await _get_schedule(yard, id, principal)
        require_admin_for_masked(principal)
        return json_response({"id": id, "arguments": schedule.arguments})

    _add_state_routes(routes, yard)

    @routes.post(
        "/v1/schedule_task",
        VcpScheduleAnswer,
        audit=Audited("schedule.created", only_with_detail=True),
        responses={400: {"description": "The call is not scheduled.", "model": VcpScheduleRefusal}},
        response_description="The call is scheduled.",
        route_class_override=_VcpErrorRoute,
    )
    async def schedule_task(new: VcpSchedule, principal: CurrentPrincipal, request: Request) -> Response:
        """Schedule a call, in VCPToolBox's format."""
        tool = new.tool_call.tool_name
        call = yard.calls.request(tool, new.tool_call.arguments, caller=principal.caller, origin=Origin.HTTP)
        try:
            schedule = await yard.state.schedules.submit(call, at=new.schedule_time)
        except Failure as failure:
            return json_response(schedule_refusal(f"{failure.message} {failure.hint}".strip()), HTTPStatus.BAD_REQUEST)
        add_audit_detail(request.scope, target=schedule.id, tool=tool, at=new.schedule_time)
        return json_response(schedule_answer(new.task_id or schedule.id, tool, schedule.scheduled_for))

    return routes


def _add_state_routes(routes: Routes, yard: Yard) -> None:
    """Add the routes that approve, pause, resume, cancel and run a schedule."""

    @routes.post("/v1/schedules/{id}/allow", ChangedRecord, audit="schedule.allowed")
    async def allow_schedule(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Approve the call of a proposed schedule to run without asking; requires the scope `approve`."""
        await _get_schedule(yard, id, principal)
        if not principal.can_approve:
            raise Refusal(HTTPStatus.FORBIDDEN, Message("the key lacks the scope 'approve'"))
        return _done_response(id, await yard.state.schedules.allow(id), _ended_message(id))

    @routes.post("/v1/schedules/{id}/pause", ChangedRecord, audit="schedule.paused")
    async def pause_schedule(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Pause a schedule."""
        await _get_schedule(yard, id, principal)
        return _done_response(id, await yard.state.schedules.pause(id), Message("{id} is not scheduled", id=id))

    @routes.post("/v1/schedules/{id}/resume", ChangedRecord, audit="schedule.resumed")
    async def resume_schedule(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Resume a paused schedule; 400 when its time has passed."""
        await _get_schedule(yard, id, principal)
        return _done_response(id, await yard.state.schedules.resume(id), Message("{id} is not paused", id=id))

    @routes.post("/v1/schedules/{id}/cancel", ChangedRecord, audit="schedule.cancelled")
    async def cancel_schedule(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Cancel a schedule permanently."""
        await _get_schedule(yard, id, principal)
        return _done_response(id, await yard.state.schedules.cancel(id), _ended_message(id))

    @routes.post("/v1/schedules/{id}/run", ChangedRecord, audit="schedule.run")
    async def run_schedule(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Run a scheduled or expired schedule now. Its result is stored with it."""
        await _get_schedule(yard, id, principal)
        return _done_response(
            id, await yard.state.schedules.run_by_hand(id), Message("{id} is running, is paused or has ended", id=id)
        )


def _done_response(id_: str, done: bool, problem: Message) -> Response:  # noqa: FBT001 the result of the operation
    if not done:
        raise Refusal(HTTPStatus.CONFLICT, problem)
    return json_response({"ok": True, "id": id_})


def _ended_message(id_: str) -> Message:
    return Message("{id} is running or has ended", id=id_)


class _VcpErrorRoute(Route):
    """A route that reports validation errors in VCPToolBox's format."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await inner(request)
            except RequestValidationError as error:
                return json_response(schedule_refusal(describe_validation_error(error)), HTTPStatus.BAD_REQUEST)

        return handle


async def _get_schedule(yard: Yard, id_: str, principal: Principal) -> Schedule:
    schedule = await yard.state.schedules.get(id_)
    if schedule is None:
        raise not_found(_name_schedule(id_[:100]))
    require_owner(principal, schedule.caller, _name_schedule(id_[:100]))
    return schedule


def _name_schedule(id_: str) -> Message:
    return Message("schedule '{id}'", id=id_)
