"""Waiting for calls and their tasks at a terminal, and stopping them."""

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


def task_ids(envelope: Envelope) -> tuple[str, ...]:
    """The tasks that a call has opened."""
    tasks = envelope.data.get("tasks")
    if envelope.error or not isinstance(tasks, list):
        return ()
    return tuple(str(task["id"]) for task in tasks if isinstance(task, dict) and "id" in task)


def background_ids(envelope: Envelope) -> tuple[str, ...]:
    """The task of the work that goes on after the answer of a call."""
    background = envelope.context.get("background")
    return (str(background["task"]),) if isinstance(background, dict) and "task" in background else ()


class Stops:
    """Ctrl-C and SIGTERM, from now on: what runs ends as cancelled, and its result is still printed.

    A call may have become a task by the time that it is to be stopped: then that is.
    """

    def __init__(self, stop: Callable[[], object] = lambda: None) -> None:
        self._asked, self._stop = False, stop
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._ask)

    def instead(self, stop: Callable[[], object]) -> None:
        """Do this from now on, and at once if a stop was asked for before."""
        self._stop = stop
        if self._asked:
            stop()

    def _ask(self) -> None:
        self._asked = True
        self._stop()


async def waited(yard: Yard, outcome: Outcome, ids: tuple[str, ...], stops: Stops, *, quiet: bool) -> Outcome:
    """The outcome of a call once its tasks have ended: what they came to instead of the receipt."""
    cancels: list[asyncio.Future[list[bool]]] = []  # the loop itself keeps no hold of them
    stops.instead(lambda: cancels.append(asyncio.gather(*map(yard.tasks.cancel, ids))))
    telling = None if quiet else asyncio.create_task(_tell(yard, ids))
    try:
        tasks = [await yard.tasks.wait(id_) for id_ in ids]
    finally:
        if telling is not None:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            click.echo(err=True)
    return replace(outcome, envelope=_together(outcome.envelope, tasks))


def _together(receipt: Envelope, tasks: list[Task]) -> Envelope:
    told: list[JsonObject] = [task.to_json() for task in tasks]
    text = "\n".join(write_result(task) for task in tasks)
    failed = next((task for task in tasks if task.state is not TaskState.SUCCEEDED), None)
    return replace(
        receipt,
        status=Status.ERROR if failed else receipt.status,
        data={**receipt.data, "tasks": list(told)},
        text=text,
        error=Fault(_code(failed), write_result(failed)) if failed else None,
        context={**receipt.context, **_reason(failed)},
    )


def _reason(failed: Task | None) -> JsonObject:
    reason = _REASONS.get(failed.state) if failed else None
    return {"reason": reason.value} if reason else {}


def _code(task: Task) -> ErrorCode:
    return ErrorCode.TIMEOUT if task.state is TaskState.TIMED_OUT else ErrorCode.EXECUTION_ERROR


async def _tell(yard: Yard, ids: tuple[str, ...]) -> None:
    """One line that is written over; a terminal shows a bar."""
    seen = 0
    click.echo("waiting for the task (Ctrl-C stops it)", nl=False, err=True)
    while True:
        await yard.store.next_event(seen)
        for event in await yard.store.events(seen, limit=1000):
            seen = event.seq
            done = event.data.get("done")
            if event.type == "task.progress" and event.data.get("id") in ids and isinstance(done, int | float):
                bar = "█" * int(done * _BAR)
                click.echo(f"\r\x1b[K{bar:<{_BAR}} {done:4.0%}  {event.data.get('text', '')}", nl=False, err=True)
