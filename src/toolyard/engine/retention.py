"""Retention: deletes ended records after ``kept_s``, events after ``EVENTS_S``, and both earlier when the state has
grown beyond ``max_bytes``: then the oldest go first. Of what is younger than an hour the full results of calls go
before the calls themselves, because they take most of the space. The keys of idempotent requests stay for their day
however large the state is; the responses that are stored for them go with the rest.

What has not ended is never deleted. A sweep takes small steps with a pause after each, so that it shares the store
with heavy writers of this and of other processes; one sweep forgets at most ``MAX_STEPS`` pages and leaves the rest to
the next. Space that is freed is used again by what comes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from toolyard.engine.chats import idempotency, responses
from toolyard.engine.chats.idempotency import ENDED as ENDED_REQUESTS
from toolyard.engine.chats.idempotency import IDEMPOTENCY, RESPONSE
from toolyard.engine.chats.turns import REPEATED_S, TURN, TurnState
from toolyard.engine.clock import Clock
from toolyard.engine.history import backend_messages
from toolyard.engine.history.audit import AUDIT_S
from toolyard.protocol.access import ApprovalState
from toolyard.protocol.records import (
    approval_record,
    assistant_record,
    call_record,
    conversation_record,
    schedule_record,
    task_record,
)
from toolyard.protocol.records.audit_record import AUDIT
from toolyard.protocol.records.audit_record import KEPT as AUDIT_KEPT
from toolyard.protocol.store import Store

_log = logging.getLogger(__name__)
KEPT_S: Final = 30 * 86_400.0
EVENTS_S: Final = 7 * 86_400.0
MAX_BYTES: Final = 2 * 2**30
MAX_STEPS: Final = 2000
_FRESH_S = 3600.0  # of what is younger, the bulky goes first
_SHORTER = 0.9  # each time the state is still too large
_MUCH_SHORTER = 0.5  # the same for what is fresh
_NO_TIME_S = 1.0  # what is shorter counts as nothing
_PAGE = 200
_EVENTS_PAGE = 2000
_PAUSE_S = 0.005  # another process gets the lock of the file in between

_AWAITED = (
    schedule_record.ScheduleState.SCHEDULED,
    schedule_record.ScheduleState.PAUSED,
    schedule_record.ScheduleState.RUNNING,
)
ENDED: Final[Mapping[str, Sequence[str]]] = {
    call_record.RESULT: (call_record.KEPT,),
    backend_messages.KIND: (backend_messages.KEPT,),
    call_record.CALL: call_record.ENDED,
    responses.RESPONSE: responses.ENDED,
    task_record.KIND: tuple(state for state in task_record.TaskState if state is not task_record.TaskState.WAITING),
    approval_record.APPROVAL: tuple(state for state in ApprovalState if state is not ApprovalState.PENDING),
    approval_record.RULE: (approval_record.RuleState.REVOKED,),
    conversation_record.MESSAGES: (conversation_record.ConversationState.DELETED,),
    conversation_record.TEXT: (conversation_record.ConversationState.DELETED,),
    conversation_record.CONVERSATION: (conversation_record.ConversationState.DELETED,),
    assistant_record.ASSISTANT: (assistant_record.AssistantState.DELETED,),
    schedule_record.SCHEDULE: tuple(state for state in schedule_record.ScheduleState if state not in _AWAITED),
}

_BULKY = (call_record.RESULT, backend_messages.KIND)

MeasureSize = Callable[[], Awaitable[int]]
"""The bytes that the records and events of a store take now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    records: int
    events: int
    is_complete: bool  # False: there was more than one sweep takes
    fits: bool = True  # False: the rest is still larger than it may be


class Retention:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        used: MeasureSize | None = None,
        kept_s: float = KEPT_S,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._store, self._clock, self._used = store, clock, used
        self._kept_s, self._max_bytes = kept_s, max_bytes

    async def sweep(self) -> SweepResult:
        """Delete what is too old, then the oldest until the rest fits."""
        steps = _StepBudget(MAX_STEPS)
        records, events = await self._forget(steps, _Limit(tuple(ENDED), self._kept_s, EVENTS_S))
        fits = not await self.is_too_large()
        for limit in self._stricter_limits():
            if fits or not steps.left:
                break
            more_records, more_events = await self._forget(steps, limit)
            records, events = records + more_records, events + more_events
            fits = not await self.is_too_large()
        if steps.left and not fits:
            _log.warning(
                "the state is larger than it may be, though all that has ended is forgotten: raise history_mib"
            )
        return SweepResult(records=records, events=events, is_complete=bool(steps.left), fits=fits)

    async def is_too_large(self) -> bool:
        return self._used is not None and await self._used() > self._max_bytes

    def _stricter_limits(self) -> "Iterator[_Limit]":
        """Yield stricter and stricter limits while the state is too large."""
        kept_s = self._kept_s
        while kept_s > _FRESH_S:
            kept_s = max(_FRESH_S, kept_s * _SHORTER)
            yield _Limit(tuple(ENDED), kept_s, min(kept_s, EVENTS_S))
        for kinds in (_BULKY, tuple(ENDED)):
            fresh_s = min(kept_s, _FRESH_S)
            while fresh_s:
                fresh_s = fresh_s * _MUCH_SHORTER if fresh_s > _NO_TIME_S else 0.0
                yield _Limit(kinds, fresh_s, EVENTS_S if kinds is _BULKY else fresh_s)

    async def _forget(self, steps: "_StepBudget", limit: "_Limit") -> tuple[int, int]:
        now = self._clock.now().timestamp()
        records = 0
        for kind in limit.kinds:
            records += await self._remove(steps, kind, now - limit.kept_s, ENDED[kind])
        answers_s = min(limit.kept_s, idempotency.KEPT_S)
        records += await self._remove(steps, RESPONSE, now - answers_s, (idempotency.KEPT,))
        records += await self._remove(steps, IDEMPOTENCY, now - idempotency.KEPT_S, ENDED_REQUESTS)
        records += await self._remove(steps, TURN, now - REPEATED_S, (TurnState.DONE, TurnState.FAILED))
        records += await self._remove(steps, AUDIT, now - max(self._kept_s, AUDIT_S), (AUDIT_KEPT,))
        forget = partial(self._store.forget_events, now - limit.events_s, limit=_EVENTS_PAGE)
        return records, await steps.take(forget, _EVENTS_PAGE)

    async def _remove(self, steps: "_StepBudget", kind: str, before: float, states: Sequence[str]) -> int:
        return await steps.take(partial(self._store.remove, kind, before, states=states, limit=_PAGE), _PAGE)


@dataclass(frozen=True, slots=True)
class _Limit:
    """The age at which records of some kinds and events are deleted."""

    kinds: tuple[str, ...]
    kept_s: float
    events_s: float


@dataclass
class _StepBudget:
    left: int

    async def take(self, step: Callable[[], Awaitable[int]], page: int) -> int:
        """Repeat a step until it removes less than a page; return how much was removed."""
        total = 0
        while self.left:
            self.left -= 1
            removed = await step()
            total += removed
            if removed < page:
                break
            await asyncio.sleep(_PAUSE_S)
        return total
