"""What is forgotten, and when: ended things after ``kept_s``, events after ``EVENTS_S``, and earlier when the state
has grown beyond ``max_bytes``. The keys of idempotent requests stay for their day however large the state is; the
answers that are kept for them go with the rest.

What has not ended is never forgotten. A sweep takes small steps with a pause after each, so that it shares the store
with heavy writers of this and of other processes; one sweep forgets at most ``MAX_STEPS`` pages and leaves the rest to
the next. Space that is freed is used again by what comes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from toolyard.engine import approvals, backend, conversations, idempotency, journal, schedules
from toolyard.engine.clock import Clock
from toolyard.protocol import approval, task
from toolyard.protocol.store import Store

KEPT_S: Final = 30 * 86_400.0
EVENTS_S: Final = 7 * 86_400.0
MAX_BYTES: Final = 2 * 2**30
MAX_STEPS: Final = 2000
_SHORTEST_S = 3600.0  # what is younger stays, however large it is
_SHORTER = 0.9  # each time the state is still too large
_PAGE = 200
_EVENTS_PAGE = 2000
_PAUSE_S = 0.005  # another process gets the lock of the file in between

_AWAITED = (schedules.State.SCHEDULED, schedules.State.PAUSED, schedules.State.RUNNING)
ENDED: Final[Mapping[str, Sequence[str]]] = {
    journal.RESULT: (journal.KEPT,),
    backend.KIND: (backend.KEPT,),
    journal.CALL: journal.ENDED,
    task.KIND: tuple(state for state in task.TaskState if state is not task.TaskState.WAITING),
    approvals.KIND: tuple(state for state in approval.State if state is not approval.State.PENDING),
    approvals.RULE: ("revoked",),
    conversations.MESSAGES: (conversations.State.DELETED,),
    conversations.KIND: (conversations.State.DELETED,),
    schedules.KIND: tuple(state for state in schedules.State if state not in _AWAITED),
}

Used = Callable[[], Awaitable[int]]
"""The bytes that the records and events of a store take now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    records: int
    events: int
    whole: bool  # False: there was more than one sweep takes


class Retention:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        used: Used | None = None,
        kept_s: float = KEPT_S,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._store, self._clock, self._used = store, clock, used
        self._kept_s, self._max_bytes = kept_s, max_bytes

    async def sweep(self) -> Swept:
        """Forget what is too old, then what is oldest until the rest fits."""
        steps = _Steps(MAX_STEPS)
        kept = self._kept_s
        records, events = await self._forget(steps, kept, EVENTS_S)
        while steps.left and kept > _SHORTEST_S and await self._too_large():
            kept = max(_SHORTEST_S, kept * _SHORTER)
            more, told = await self._forget(steps, kept, min(kept, EVENTS_S))
            records, events = records + more, events + told
        return Swept(records=records, events=events, whole=bool(steps.left))

    async def _too_large(self) -> bool:
        return self._used is not None and await self._used() > self._max_bytes

    async def _forget(self, steps: "_Steps", kept_s: float, events_s: float) -> tuple[int, int]:
        now = self._clock.now().timestamp()
        records = 0
        for kind, states in ENDED.items():
            records += await self._remove(steps, kind, now - kept_s, states)
        answers_s = min(kept_s, idempotency.KEPT_S)
        records += await self._remove(steps, idempotency.RESPONSE, now - answers_s, (idempotency.KEPT,))
        records += await self._remove(steps, idempotency.KIND, now - idempotency.KEPT_S, idempotency.ENDED)
        forget = partial(self._store.forget_events, now - events_s, limit=_EVENTS_PAGE)
        return records, await steps.take(forget, _EVENTS_PAGE)

    async def _remove(self, steps: "_Steps", kind: str, before: float, states: Sequence[str]) -> int:
        return await steps.take(partial(self._store.remove, kind, before, states=states, limit=_PAGE), _PAGE)


@dataclass
class _Steps:
    left: int

    async def take(self, step: Callable[[], Awaitable[int]], page: int) -> int:
        """Repeat a step until it finds less than a page; how much it was in all."""
        gone = 0
        while self.left:
            self.left -= 1
            removed = await step()
            gone += removed
            if removed < page:
                break
            await asyncio.sleep(_PAUSE_S)
        return gone
