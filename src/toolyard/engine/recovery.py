"""Recovery: what dead hosts left behind is ended or adopted.

A call, a schedule's run and an idempotent request of a process that is gone end as ``interrupted``: nobody knows how
far they came, so nobody says more, and none is repeated. A call that waited for an approval never began, which is
known: in a chat the question stays open and its call is settled anew, else both are ended. A task is different,
because its own process may have outlived the host: while that lives the task is left alone, to be adopted. When it is
gone too, the task gets
``GRACE_S`` from its last sign of life, for a callback that is still on its way, and is then ``interrupted``. What runs
on another machine, or has left its process by design, can only be judged by its total limit. A task that has ended
while its process lives is left too, so that whoever adopts it ends the process.

Every step is a compare-and-set, so any number of processes may do this at the same time and again.
"""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from toolyard.engine.approvals import Approvals
from toolyard.engine.background.schedules import Schedules
from toolyard.engine.background.tasks import Tasks
from toolyard.engine.chats.idempotency import Idempotency
from toolyard.engine.chats.turns import Turns
from toolyard.engine.clock import Clock
from toolyard.engine.history.journal import Journal
from toolyard.engine.ownership import IsAlive, find_orphans, is_owner_alive
from toolyard.message import Message
from toolyard.process_numbers import is_process_alive
from toolyard.protocol.records.approval_record import Approval
from toolyard.protocol.records.task_record import KIND, Task, TaskState
from toolyard.protocol.store import Query, Store

GRACE_S: Final = 30.0
_LINGER_S = 86_400.0  # no process outlives its task longer unnoticed
_MAX_LINGERING = 500
_ENDED = tuple(state for state in TaskState if state is not TaskState.WAITING)

IsDetached = Callable[[str], bool]
"""Returns whether the process of a plugin may end before its work does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryReport:
    """The numbers of records that were ended, and the tasks whose processes go on without a host."""

    calls: int = 0
    schedules: int = 0
    approvals: int = 0
    tasks: int = 0
    requests: int = 0
    left: tuple[Task, ...] = ()
    waiting: tuple[Approval, ...] = ()  # questions that were taken over, whose calls are to be settled anew

    @property
    def settled(self) -> int:
        return self.calls + self.schedules + self.approvals + self.tasks + self.requests


class Parts(Protocol):
    """The parts of this host that have records."""

    @property
    def store(self) -> Store: ...
    @property
    def journal(self) -> Journal: ...
    @property
    def schedules(self) -> Schedules: ...
    @property
    def approvals(self) -> Approvals: ...
    @property
    def tasks(self) -> Tasks: ...
    @property
    def idempotency(self) -> Idempotency: ...
    @property
    def turns(self) -> Turns: ...


@dataclass(frozen=True, slots=True)
class Recovery:
    """Ends what dead hosts left behind, with the parts of this host."""

    parts: Parts
    clock: Clock
    takes_over: bool  # whether this host lives long enough to wait for approvals
    is_detached: IsDetached

    async def recover(self, alive: IsAlive = is_owner_alive) -> RecoveryReport:
        """End the records of dead hosts. Costs seven empty pages when there are none."""
        waiting, interrupted = await self.parts.approvals.settle_orphans(alive, takes_over=self.takes_over)
        schedules = await self.parts.schedules.settle_orphans(alive)
        calls = await self.parts.journal.settle_orphans(
            alive,
            waiting={one.call_id for one in waiting},
            unstarted={one.call_id for one in interrupted},
            takes_over=self.takes_over,
        )
        requests = await self.parts.idempotency.settle_orphans(alive)  # after their calls, whose ends they name
        await self.parts.turns.settle_orphans(alive)  # so that the same request continues them
        tasks, left = 0, list[Task]()
        async for page in find_orphans(self.parts.store, KIND, (TaskState.WAITING,), alive):
            orphaned = [Task.from_record(record) for record in page]
            verdicts = [self._judge(task) for task in orphaned]
            ends = [
                self.parts.tasks.end(task.id, verdict[0], message=verdict[1])
                for task, verdict in zip(orphaned, verdicts, strict=True)
                if verdict
            ]
            tasks += sum(await asyncio.gather(*ends))
            left += [task for task, verdict in zip(orphaned, verdicts, strict=True) if not verdict]
        left += await self._find_lingering(alive)
        return RecoveryReport(
            calls=calls, schedules=schedules, approvals=len(interrupted), tasks=tasks, requests=requests,
            left=tuple(left), waiting=tuple(waiting) if self.takes_over else (),
        )  # fmt: skip

    async def _find_lingering(self, alive: IsAlive) -> list[Task]:
        """Return ended tasks whose process still runs and whose host is dead."""
        since = self.clock.now().timestamp() - _LINGER_S
        ended = await self.parts.store.find(KIND, Query(states=_ENDED, since=since), limit=_MAX_LINGERING)
        return [task for task in map(Task.from_record, ended) if _runs_here(task) and not alive(task.owner)]

    def _judge(self, task: Task) -> tuple[TaskState, str] | None:
        """Return the end state and message of a task without a host; None while it may go on."""
        now, process = self.clock.now().timestamp(), task.process
        here = process is None or process.host == socket.gethostname()
        if _runs_here(task):
            return None
        if not here or self.is_detached(task.plugin):
            late = now > task.deadline + GRACE_S
            why = Message("It ran past its limit, and no callback came.")
            return (TaskState.TIMED_OUT, why) if late else None
        if now < task.updated + GRACE_S:
            return None
        return TaskState.INTERRUPTED, Message(
            "Its process ended while the server was down: what it had done is not known."
        )


def _runs_here(task: Task) -> bool:
    process = task.process
    return (
        process is not None and process.host == socket.gethostname() and is_process_alive(process.pid, process.started)
    )
