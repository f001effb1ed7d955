"""``/v1/tasks``: work that continues after its call."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Literal, cast

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from toolyard.engine.background.tasks import repeat_arguments
from toolyard.engine.chats.conversations import Conversations
from toolyard.message import Message, to_fields
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.task_record import Task, TaskState
from toolyard.protocol.store import PageCursor
from toolyard.protocol.store import Query as RecordQuery
from toolyard.protocol.tool import Origin
from toolyard.web.answers import After, CurrentPrincipal, Limit, json_response, page_response, require_owner
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.routes.calls.events import Pushes
from toolyard.web.routes.calls.tools import require_begun, run_until_disconnect
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import ChangedRecord, Code, Envelope, Params, StrictModel
from toolyard.web.schemas.records import page_model, record_model
from toolyard.web.security.scope import Principal, Scope
from toolyard.yard.yard import Yard


class TaskFailure(StrictModel):
    reason: Annotated[str, Field(max_length=2000)] = ""


class TaskCount(BaseModel):
    by_state: dict[str, int]


class CallbackRow(BaseModel):
    at: float
    result: Literal["accepted", "duplicate", "refused"]
    status: Annotated[int, Field(description="The response status: 200, 401 or 409.")]
    why: str
    why_code: Code = ""
    why_params: Params


class PushTarget(BaseModel):
    target: Annotated[str | None, Field(description="The clients that get it: VCPLog or VCPInfo; null: both.")]
    type: str
    open: Annotated[bool, Field(description="Whether the channels are enabled.")]


class PushRow(BaseModel):
    seq: Annotated[int, Field(description="The number of the event that was pushed.")]
    at: float
    target: str | None
    type: str
    clients: Annotated[int, Field(description="Number of listeners.")]
    reached: Annotated[int, Field(description="Number of listeners that took it.")]
    again: Annotated[bool, Field(description="Whether it was pushed again on request.")]


class TaskProgress(BaseModel):
    done: Annotated[float | None, Field(description="From 0 to 1; null when it is not known.")] = None
    text: str = ""


class LateCallback(BaseModel):
    at: float
    duplicate: Annotated[bool, Field(description="It had the body of the first one.")] = False
    body: Annotated[Any, Field(description="Of a callback that differs, as the plugin sent it.")] = None


class _TaskSummary(StrictModel):
    progress: Annotated[TaskProgress, Field(description="As the plugin last reported it; empty at first.")]
    audit: Annotated[list[LateCallback], Field(description="Late and repeated callbacks.")]
    pushes: list[PushRow]


class _TaskDetails(_TaskSummary):
    chat_kept: Annotated[bool, Field(description="Whether this key has a conversation of that id.")]
    callbacks: list[CallbackRow]
    push: Annotated[PushTarget | None, Field(description="The push in the manifest; null without one.")]


TaskDetail = record_model("TaskDetail", Task, _TaskDetails)


TaskPage = page_model("TaskPage", record_model("TaskRow", Task, _TaskSummary))


_MAX_WAIT_S = 60.0


def router(yard: Yard, pushes: Pushes, chats: Conversations) -> Routes:
    routes = Routes("/v1/tasks", tag="tasks", scope=Scope.TOOLS)

    @routes.get("", TaskPage)
    async def list_tasks(
        principal: CurrentPrincipal,
        after: After,
        limit: Limit = 50,
        state: Annotated[list[TaskState], Query(max_length=10)] = [],  # noqa: B006 FastAPI copies it
        plugin: str | None = None,
    ) -> Response:
        """List tasks, newest first."""
        query = RecordQuery(states=tuple(state), tool=plugin, caller=principal.caller_filter)
        tasks = await yard.state.tasks.page(query, limit=limit, after=after)
        return page_response(tasks, limit, Task.to_json, lambda task: PageCursor(at=task.created, id=task.id))

    @routes.get("/count", TaskCount)
    async def count_tasks(principal: CurrentPrincipal) -> Response:
        """Return the number of tasks in each state."""
        return json_response({"by_state": await yard.state.tasks.count(principal.caller_filter)})

    @routes.get("/{id}", TaskDetail)
    async def show_task(
        id: str,  # noqa: A002 it is the word of the OpenAPI
        principal: CurrentPrincipal,
        wait: Annotated[float, Query(ge=0, le=_MAX_WAIT_S, description="Seconds to wait for a change.")] = 0,
    ) -> Response:
        """Return one task by its id or `plugin::id`; with `wait`, when it has changed or after that time."""
        task = await _get_task(yard, id, principal)
        if wait and not task.is_ended:
            task = await _wait_for_change(yard, task, wait)
        return json_response(
            {
                **task.to_json(),
                "callbacks": _list_callbacks(task, yard.state.tasks.refusal_times(task)),
                "push": _push_to_json(pushes, task),
                "chat_kept": await chats.has(principal.caller, task.chat or ""),
            }
        )

    _add_end_routes(routes, yard)
    _add_repeat_routes(routes, yard, pushes)
    return routes


def _add_end_routes(routes: Routes, yard: Yard) -> None:
    """Add the routes that end a task."""

    @routes.post("/{id}/cancel", ChangedRecord)
    async def cancel_task(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Cancel a running task."""
        task = await _get_task(yard, id, principal)
        if not await yard.state.tasks.cancel(task.id):
            raise Refusal(HTTPStatus.CONFLICT, Message("{id} had ended already", id=task.id))
        return json_response({"ok": True, "id": task.id})

    @routes.post("/{id}/fail", ChangedRecord)
    async def fail_task(id: str, principal: CurrentPrincipal, failing: TaskFailure | None = None) -> Response:  # noqa: A002
        """Mark a running task as failed."""
        task = await _get_task(yard, id, principal)
        reason = (failing or TaskFailure()).reason or Message("It was marked as failed.")
        if not await yard.state.tasks.fail(task.id, reason):
            raise Refusal(HTTPStatus.CONFLICT, Message("{id} had ended already", id=task.id))
        return json_response({"ok": True, "id": task.id})


def _add_repeat_routes(routes: Routes, yard: Yard, pushes: Pushes) -> None:
    """Add the routes that push or run a task again."""

    @routes.post("/{id}/push", ChangedRecord)
    async def push_task(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Push the result of a task again, as when its callback arrived."""
        task = await _get_task(yard, id, principal)
        if task.result is None:
            raise Refusal(HTTPStatus.CONFLICT, Message("{id} has no callback result", id=task.id))
        if pushes.find_push(task.plugin) is None:
            raise Refusal(HTTPStatus.CONFLICT, Message("the manifest of {plugin} has no push", plugin=task.plugin))
        if not pushes.is_open:
            raise Refusal(HTTPStatus.CONFLICT, Message("there are no listeners: the setting vcp_channels is off"))
        await yard.state.tasks.request_push(task)
        return json_response({"ok": True, "id": task.id})

    @routes.post("/{id}/retry", Envelope)
    async def retry_task(id: str, principal: CurrentPrincipal, request: Request) -> Response:  # noqa: A002
        """Call the plugin of a task again with the same arguments; returns the envelope of the new call."""
        task = await _get_task(yard, id, principal)
        call = yard.calls.request(task.plugin, repeat_arguments(task), caller=principal.caller, origin=Origin.HTTP)
        call = replace(call, retry_of=task.call_id)
        outcome = await run_until_disconnect(yard, call, request)
        require_begun(outcome)
        return json_response(yard.results.express(call, outcome, "envelope", codes=True))


async def _get_task(yard: Yard, id_: str, principal: Principal) -> Task:
    task = await yard.state.tasks.get(id_)
    if task is None:
        raise not_found(_name_task(id_[:100]))
    require_owner(principal, task.caller, _name_task(id_[:100]))
    return task


async def _wait_for_change(yard: Yard, task: Task, seconds: float) -> Task:
    """Return the task once it has changed, or after ``seconds``."""
    now = task
    try:
        async with asyncio.timeout(seconds):
            while now.version == task.version:
                _, seq = await yard.state.store.event_span()
                now = await yard.state.tasks.get(task.id) or task
                if now.version == task.version:
                    await yard.state.store.next_event(seq)
    except TimeoutError:
        pass
    return now


def _list_callbacks(task: Task, refusal_times: Sequence[float]) -> list[JsonObject]:
    """Return the recorded callbacks in order: the accepted one, duplicates and late ones, and wrong tokens."""
    came: list[JsonObject] = []
    if task.result is not None:
        came.append({"at": task.updated, "result": "accepted", "status": int(HTTPStatus.OK), "why": ""})
    for late in task.audit:
        if late.get("duplicate"):
            came.append({"at": late["at"], "result": "duplicate", "status": int(HTTPStatus.OK), "why": ""})
        else:
            ended = Message("the task has already ended: {state}", state=task.state.value)
            refused: JsonObject = {"at": late.get("at"), "result": "refused", "status": int(HTTPStatus.CONFLICT)}
            came.append(refused | to_fields("why", ended))
    why = Message("its token is not the task's")
    unknown = int(HTTPStatus.UNAUTHORIZED)
    came += [{"at": at, "result": "refused", "status": unknown, **to_fields("why", why)} for at in refusal_times]
    return sorted(came, key=lambda one: cast("float", one["at"]))


def _push_to_json(pushes: Pushes, task: Task) -> JsonObject | None:
    """Return the push target of the plugin and whether the channels are open; None without a push."""
    request_push = pushes.find_push(task.plugin)
    if request_push is None:
        return None
    return {"target": request_push.target_client_type, "type": request_push.message_type, "open": pushes.is_open}


def _name_task(id_: str) -> Message:
    return Message("task '{id}'", id=id_)
