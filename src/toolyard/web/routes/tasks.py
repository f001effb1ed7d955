"""``/v1/tasks``: what goes on after its call."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, cast

from fastapi import APIRouter, Query, Request, Response

from toolyard.app import Yard
from toolyard.engine.conversations import Conversations
from toolyard.engine.tasks import repeat_arguments
from toolyard.protocol.call import Origin
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import PageCursor
from toolyard.protocol.store import Query as Wanted
from toolyard.protocol.task import Task, TaskState
from toolyard.web.access import Visitor
from toolyard.web.answers import After, Limit, Who, answer, own_only, page, require_own
from toolyard.web.pushes import Pushes
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.routes.tools import until_gone
from toolyard.web.shapes import Done, EnvelopeShown, RecordPage
from toolyard.web.shapes_records import Failing, TaskCount, TaskShown

_LONGEST_S = 60.0


def router(yard: Yard, pushes: Pushes, chats: Conversations) -> APIRouter:
    routes = APIRouter(prefix="/v1/tasks", tags=["tasks"])

    @routes.get("", responses={200: {"model": RecordPage}})
    async def list_tasks(
        who: Who,
        after: After,
        limit: Limit = 50,
        state: Annotated[list[TaskState], Query(max_length=10)] = [],  # noqa: B006 FastAPI copies it
        plugin: str | None = None,
    ) -> Response:
        """The tasks, newest first."""
        wanted = Wanted(states=tuple(state), tool=plugin, caller=own_only(who))
        found = await yard.tasks.page(wanted, limit=limit, after=after)
        return page(found, limit, Task.to_json, lambda task: PageCursor(created=task.created, id=task.id))

    @routes.get("/count", responses={200: {"model": TaskCount}})
    async def count_tasks(who: Who) -> Response:
        """How many tasks are in each state."""
        return answer({"by_state": await yard.tasks.count(own_only(who))})

    @routes.get("/{id}", responses={200: {"model": TaskShown}})
    async def show_task(
        id: str,  # noqa: A002 it is the word of the OpenAPI
        who: Who,
        wait: Annotated[float, Query(ge=0, le=_LONGEST_S, description="Seconds to wait for a change.")] = 0,
    ) -> Response:
        """One task, by its id or by `plugin::id`; with `wait` when it has changed, or after that time."""
        task = await _task(yard, id, who)
        if wait and not task.is_ended:
            task = await _changed(yard, task, wait)
        return answer(
            {
                **task.to_json(),
                "callbacks": _callbacks(task, yard.tasks.refusal_times(task)),
                "push": _push(pushes, task),
                "chat_kept": await chats.has(who.caller, task.chat),
            }
        )

    _moves(routes, yard)
    _again(routes, yard, pushes)
    return routes


def _moves(routes: APIRouter, yard: Yard) -> None:
    """What ends a task."""

    @routes.post("/{id}/cancel", responses={200: {"model": Done}})
    async def cancel_task(id: str, who: Who) -> Response:  # noqa: A002
        """End a task that still runs."""
        task = await _task(yard, id, who)
        if not await yard.tasks.cancel(task.id):
            raise Refusal(HTTPStatus.CONFLICT, f"{task.id} had ended already")
        return answer({"ok": True, "id": task.id})

    @routes.post("/{id}/fail", responses={200: {"model": Done}})
    async def fail_task(id: str, who: Who, failing: Failing | None = None) -> Response:  # noqa: A002
        """Mark a task as failed that nothing will come of any more."""
        task = await _task(yard, id, who)
        if not await yard.tasks.fail(task.id, (failing or Failing()).reason or "It was marked as failed."):
            raise Refusal(HTTPStatus.CONFLICT, f"{task.id} had ended already")
        return answer({"ok": True, "id": task.id})


def _again(routes: APIRouter, yard: Yard, pushes: Pushes) -> None:
    """What is done once more."""

    @routes.post("/{id}/push", responses={200: {"model": Done}})
    async def push_task(id: str, who: Who) -> Response:  # noqa: A002
        """Push the result of a task once more, as its plugin has it pushed when the callback comes."""
        task = await _task(yard, id, who)
        if task.result is None:
            raise Refusal(HTTPStatus.CONFLICT, f"{task.id} has no result of a callback")
        if pushes.of(task.plugin) is None:
            raise Refusal(HTTPStatus.CONFLICT, f"the manifest of {task.plugin} wants nothing pushed")
        if not pushes.is_open:
            raise Refusal(HTTPStatus.CONFLICT, "nobody can listen: the setting vcp_channels is off")
        await yard.tasks.request_push(task)
        return answer({"ok": True, "id": task.id})

    @routes.post("/{id}/retry", responses={200: {"model": EnvelopeShown}})
    async def retry_task(id: str, who: Who, request: Request) -> Response:  # noqa: A002
        """Call the plugin of a task again with the same arguments; the answer is the envelope of the new call."""
        task = await _task(yard, id, who)
        call = yard.request(task.plugin, repeat_arguments(task), caller=who.caller, origin=Origin.HTTP)
        call = replace(call, retry_of=task.call_id)
        return answer(yard.express(call, await until_gone(yard, call, request), "envelope"))


async def _task(yard: Yard, id_: str, who: Visitor) -> Task:
    task = await yard.tasks.get(id_)
    if task is None:
        raise not_found(f"task '{id_[:100]}'")
    require_own(who, task.caller, f"task '{id_[:100]}'")
    return task


async def _changed(yard: Yard, task: Task, seconds: float) -> Task:
    """The task when it differs from ``task``, or after the time is over."""
    now = task
    try:
        async with asyncio.timeout(seconds):
            while now.version == task.version:
                _, seq = await yard.store.event_span()
                now = await yard.tasks.get(task.id) or task
                if now.version == task.version:
                    await yard.store.next_event(seq)
    except TimeoutError:
        pass
    return now


def _callbacks(task: Task, refusals: Sequence[float]) -> list[JsonObject]:
    """The callbacks that came, as far as they were noted: the one that ended the task, those that came again or too
    late, and those of late whose token was not the task's."""
    came: list[JsonObject] = []
    if task.result is not None:
        came.append({"at": task.updated, "result": "accepted", "status": int(HTTPStatus.OK), "why": ""})
    for late in task.audit:
        if late.get("duplicate"):
            came.append({"at": late["at"], "result": "duplicate", "status": int(HTTPStatus.OK), "why": ""})
        else:
            why = f"the task had ended already: {task.state.value}"
            came.append({"at": late.get("at"), "result": "refused", "status": int(HTTPStatus.CONFLICT), "why": why})
    why = "its token was not that of the task"
    unknown = int(HTTPStatus.UNAUTHORIZED)
    came += [{"at": at, "result": "refused", "status": unknown, "why": why} for at in refusals]
    return sorted(came, key=lambda one: cast("float", one["at"]))


def _push(pushes: Pushes, task: Task) -> JsonObject | None:
    """What becomes of the result beside ``/ws``: whom its plugin wants told, and whether anybody can be."""
    push = pushes.of(task.plugin)
    if push is None:
        return None
    return {"target": push.target_client_type, "type": push.message_type, "open": pushes.is_open}
