"""Calls of the command line that run in this process, and the wait for tasks, whoever runs them.

What a call or a task reports is shown on stderr as it comes.
"""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from toolyard.cli.commands.call import StopSignals, parse_pairs, wait_unless_given_up
from toolyard.cli.common_options import json_text
from toolyard.cli.detach import AnswerSink
from toolyard.config import Config
from toolyard.engine.history.journal import CALL_PROGRESS
from toolyard.hosts.open_yard import open_yard
from toolyard.protocol.arguments import find_schema
from toolyard.protocol.envelope import Envelope, ErrorCode, Failure, Fault, Reason, Status
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.task_record import Task, TaskState, write_result
from toolyard.protocol.tool import Origin, Outcome, ToolCall
from toolyard.web.server.running_server import RequestedCall, cli_caller
from toolyard.yard.plugin_source import HostOptions
from toolyard.yard.yard import Yard

if TYPE_CHECKING:
    from toolyard.cli.commands.call import CallRequest

_SHOW_AFTER_S = 0.3
_BAR = 24
_REASONS = {TaskState.CANCELLED: Reason.CANCELLED, TaskState.INTERRUPTED: Reason.INTERRUPTED}
_EARLIER_EVENTS = 200  # among which the call's own first ones may be


async def call_locally(request: "CallRequest", config: Config, say: AnswerSink, *, wait: bool) -> int:
    """Run a call here, pass on its result, and return the exit code."""
    quiet = request.common.quiet
    async with open_yard(config, outside=HostOptions(warm=False), serves=False) as yard:
        if request.common.plugins:
            from toolyard.cli.plugin_targets import warn_about_broken

            warn_about_broken(request.common, yard.plugins)
        arguments = {**request.written, **parse_tool_pairs(yard, request.tool, request.pairs)}
        later = arguments.pop("timely_contact", None)
        call = make_call(yard, request.tool, arguments, force=request.force)
        stops = StopSignals(lambda: yard.calls.cancel(call.id))
        telling = None if quiet else asyncio.create_task(_show_progress_later(yard, call.id))
        try:
            outcome = await (yard.calls.settle(call) if later is None else yard.calls.submit(call, at=str(later)))
        finally:
            if telling is not None:
                telling.cancel()
                await asyncio.gather(telling, return_exceptions=True)
        tasks = list_task_ids(outcome.envelope)
        if tasks and wait:
            outcome = await _wait_for_tasks(yard, outcome, tasks, stops, quiet=quiet)
        failed = int(outcome.envelope.error is not None)
        say(json_text(yard.results.express(call, outcome, request.dialect, shown=request.shown)), failed)
        goes_on = list_background_ids(outcome.envelope)
        if goes_on or (tasks and not wait):  # this process looks after the task
            await _wait_for_tasks(yard, outcome, goes_on or tasks, stops, quiet=not wait or quiet)
        return failed


async def wait_for_server_tasks(
    request: "CallRequest",
    config: Config,
    call: RequestedCall,
    receipt: JsonObject,
    tasks: tuple[str, ...],
    stops: StopSignals,
    say: AnswerSink,
) -> int:
    """Wait for the tasks of a call that the server runs, pass on their result, and return the exit code."""
    async with open_yard(config, outside=HostOptions(warm=False), serves=False) as yard:
        envelope, root = Envelope.from_dict(receipt), str(config.project.resolve())
        receipt_outcome = Outcome(envelope=envelope, root=root, arguments=dict(call.arguments))
        waiting = _wait_for_tasks(yard, receipt_outcome, tasks, stops, quiet=request.common.quiet)
        outcome = await wait_unless_given_up(waiting, stops, call.id, request.common)
        failed = int(outcome.envelope.error is not None)
        own = replace(make_call(yard, call.tool, dict(call.arguments), force=call.force), id=call.id)
        say(json_text(yard.results.express(own, outcome, request.dialect, shown=request.shown)), failed)
        return failed


async def _show_progress_later(yard: Yard, call_id: str) -> None:
    """Show what a call reports; most calls have ended before there is anything to show."""
    await asyncio.sleep(_SHOW_AFTER_S)

    await show_progress(yard, call_id)


async def _wait_for_tasks(
    yard: Yard, outcome: Outcome, ids: tuple[str, ...], stops: StopSignals, *, quiet: bool
) -> Outcome:

    return await wait_for_tasks(yard, outcome, ids, stops, quiet=quiet)


def make_call(yard: Yard, tool: str, arguments: JsonObject, *, force: bool = False) -> ToolCall:
    """Make a call of the command line; its caller is the project, whichever process runs it."""
    caller = cli_caller(yard.config)
    return yard.calls.request(tool, arguments, caller=caller, origin=Origin.CLI, force=force)


def parse_tool_pairs(yard: Yard, tool: str, pairs: tuple[str, ...]) -> JsonObject:
    """Parse ``key=value`` words by the schema of a tool of this process."""
    if not pairs:
        return {}

    def find(key: str) -> dict[str, Json]:
        try:
            return find_schema(yard.tools.get(yard.tools.resolve_name(tool)).spec, key)
        except Failure:
            return {}  # the call itself reports an unknown tool

    return parse_pairs(pairs, find)


async def wait_for_tasks(
    yard: Yard, outcome: Outcome, ids: tuple[str, ...], stops: StopSignals, *, quiet: bool
) -> Outcome:
    """Wait for the tasks of a call and return its outcome, with their results instead of the receipt."""
    cancels: list[asyncio.Future[list[bool]]] = []  # the loop holds no reference to them
    stops.set_handler(lambda: cancels.append(asyncio.gather(*map(yard.state.tasks.cancel, ids))))
    telling = None if quiet else asyncio.create_task(_show_task_progress(yard, ids))
    try:
        tasks = [await yard.state.tasks.wait(id_) for id_ in ids]
    finally:
        if telling is not None:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            click.echo(err=True)
    return replace(outcome, envelope=_merge_results(outcome.envelope, tasks))


def _merge_results(receipt: Envelope, tasks: list[Task]) -> Envelope:
    results: list[JsonObject] = [task.to_json() for task in tasks]
    text = "\n".join(write_result(task) for task in tasks)
    failed = next((task for task in tasks if task.state is not TaskState.SUCCEEDED), None)
    return replace(
        receipt,
        status=Status.ERROR if failed else receipt.status,
        data={**receipt.data, "tasks": list(results)},
        text=text,
        error=Fault(_error_code(failed), write_result(failed)) if failed else None,
        context={**receipt.context, **_reason_context(failed)},
    )


def _reason_context(failed: Task | None) -> JsonObject:
    reason = _REASONS.get(failed.state) if failed else None
    return {"reason": reason.value} if reason else {}


def _error_code(task: Task) -> ErrorCode:
    return ErrorCode.TIMEOUT if task.state is TaskState.TIMED_OUT else ErrorCode.EXECUTION_ERROR


async def _show_task_progress(yard: Yard, ids: tuple[str, ...]) -> None:
    """Show the progress of tasks as one line that is overwritten."""
    seen = 0
    click.echo("waiting for the task (Ctrl-C cancels it)", nl=False, err=True)
    while True:
        await yard.state.store.next_event(seen)
        for event in await yard.state.store.events(seen, limit=1000):
            seen = event.seq
            done = event.data.get("done")
            if event.type == "task.progress" and event.data.get("id") in ids and isinstance(done, int | float):
                bar = "█" * int(done * _BAR)
                click.echo(f"\r\x1b[K{bar:<{_BAR}} {done:4.0%}  {event.data.get('text', '')}", nl=False, err=True)


def list_task_ids(envelope: Envelope) -> tuple[str, ...]:
    """Return the ids of the tasks that a call started."""
    tasks = envelope.data.get("tasks")
    if envelope.error or not isinstance(tasks, list):
        return ()
    return tuple(str(task["id"]) for task in tasks if isinstance(task, dict) and "id" in task)


def list_background_ids(envelope: Envelope) -> tuple[str, ...]:
    """Return the id of the task that continues after the answer of a call."""
    background = envelope.context.get("background")
    return (str(background["task"]),) if isinstance(background, dict) and "task" in background else ()


async def show_server_progress(config: Config, call_id: str) -> None:
    """Show what a call of the running server reports, until cancelled."""
    async with open_yard(config, outside=HostOptions(warm=False), serves=False) as yard:
        await show_progress(yard, call_id)


async def show_progress(yard: Yard, call_id: str) -> None:
    """Show on stderr what a call reports and has reported, until cancelled."""
    seen = max(0, (await yard.state.store.event_span())[1] - _EARLIER_EVENTS)
    while True:
        for event in await yard.state.store.events(seen, limit=_EARLIER_EVENTS):
            seen = event.seq
            if event.type == CALL_PROGRESS and event.data.get("id") == call_id:
                _print_progress(event.data)
        await yard.state.store.next_event(seen)


def _print_progress(progress: JsonObject) -> None:
    from toolyard.cli.table import escape_unprintable  # most calls report nothing

    done = progress.get("done")
    start = f"{done:4.0%}  " if isinstance(done, int | float) else ""
    for line in str(progress.get("text", "")).split("\n"):
        click.echo(start + escape_unprintable(line), err=True)
