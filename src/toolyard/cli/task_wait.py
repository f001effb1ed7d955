"""Waiting for tasks at a terminal."""

import asyncio
from dataclasses import replace

import click

from toolyard.cli.stop_signals import StopSignals
from toolyard.protocol.envelope import Envelope, ErrorCode, Fault, Status
from toolyard.protocol.failure import Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.outcome import Outcome
from toolyard.protocol.task import Task, TaskState, write_result
from toolyard.yard.yard import Yard

_BAR = 24
_REASONS = {TaskState.CANCELLED: Reason.CANCELLED, TaskState.INTERRUPTED: Reason.INTERRUPTED}


async def wait_for_tasks(
    yard: Yard, outcome: Outcome, ids: tuple[str, ...], stops: StopSignals, *, quiet: bool
) -> Outcome:
    """Wait for the tasks of a call and return its outcome, with their results instead of the receipt."""
    cancels: list[asyncio.Future[list[bool]]] = []  # the loop holds no reference to them
    stops.set_handler(lambda: cancels.append(asyncio.gather(*map(yard.tasks.cancel, ids))))
    telling = None if quiet else asyncio.create_task(_show_progress(yard, ids))
    try:
        tasks = [await yard.tasks.wait(id_) for id_ in ids]
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


async def _show_progress(yard: Yard, ids: tuple[str, ...]) -> None:
    """Show the progress of tasks as one line that is overwritten."""
    seen = 0
    click.echo("waiting for the task (Ctrl-C cancels it)", nl=False, err=True)
    while True:
        await yard.store.next_event(seen)
        for event in await yard.store.events(seen, limit=1000):
            seen = event.seq
            done = event.data.get("done")
            if event.type == "task.progress" and event.data.get("id") in ids and isinstance(done, int | float):
                bar = "█" * int(done * _BAR)
                click.echo(f"\r\x1b[K{bar:<{_BAR}} {done:4.0%}  {event.data.get('text', '')}", nl=False, err=True)
