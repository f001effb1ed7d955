"""Waiting for tasks at a terminal, and stopping them by a signal."""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import replace

import click

from toolyard.app import Yard
from toolyard.protocol.envelope import Envelope, ErrorCode, Fault, Status
from toolyard.protocol.failure import Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.outcome import Outcome
from toolyard.protocol.task import Task, TaskState, write_result

_BAR = 24
_REASONS = {TaskState.CANCELLED: Reason.CANCELLED, TaskState.INTERRUPTED: Reason.INTERRUPTED}


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


class StopSignals:
    """Handler of Ctrl-C and SIGTERM: running work is cancelled, and its result still printed.

    A call may have become a task by then; ``set_handler`` switches what is stopped.
    """

    def __init__(self, stop: Callable[[], object] = lambda: None) -> None:
        self._is_requested, self._stop = False, stop
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._handle_signal)

    def set_handler(self, stop: Callable[[], object]) -> None:
        """Set what a signal does, and do it at once if one came before."""
        self._stop = stop
        if self._is_requested:
            stop()

    def _handle_signal(self) -> None:
        self._is_requested = True
        self._stop()


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
