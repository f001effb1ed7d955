"""Keepers of a log: what outlives this process of a turn. A log without one is kept in memory alone.

A keeper is asked twice, and the turn waits for it: before calls with effects begin, and before anybody reads the end.
What it could not store is not lost to those who read the log now.

``RepeatKeeper`` stores what has run under the fingerprint of the request (``engine.chats.turns``), ``AnswerKeeper`` the
answer under the key of an idempotent request (``engine.chats.idempotency``).
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol, TypeVar
from uuid import uuid4

from toolyard.engine.chats.idempotency import Started, StoredResponse
from toolyard.engine.chats.turns import StoredRound, StoredTurn, Turns, TurnState
from toolyard.gateway.faults import ChatFault
from toolyard.gateway.turns.rendering import Rendering, render_whole
from toolyard.gateway.turns.turn import Turn
from toolyard.gateway.turns.turn_events import End, Ended, Failed
from toolyard.gateway.turns.turn_log import State, TurnLog

T = TypeVar("T")


class TurnKeeper(Protocol):
    @property
    def is_keeping(self) -> bool:
        """True once it has something of the turn: then it wants the end too."""

    async def keep_calls(self, turn: Turn) -> None:
        """Keep what the turn is about to do: its last round has calls that may have effects."""

    async def keep_end(self, log: TurnLog, end: End | None) -> End | None:
        """Keep the end of a turn, none when a bug cut it off; return the end that readers get."""


class SingleRun(Protocol):
    """The one run that the key of an idempotent request gets."""

    @property
    def key(self) -> str: ...

    @property
    def chat(self) -> str:
        """The id of its chat, unless the request names one."""

    async def find_or_start(
        self, running: Callable[[str], T | None], start: Callable[[Started], Awaitable[T]]
    ) -> T | StoredResponse:
        """Return what runs under the key, what ``start`` returns when it is the first, or the stored answer."""

    def refuse_late(self) -> Exception:
        """Return the refusal of a repeat that joins a stream whose beginning is no longer kept."""

    async def finish(self, response: StoredResponse) -> None:
        """Store the answer; an error before any tool has run leaves the key free instead."""

    async def interrupt(self) -> ChatFault:
        """Give up the request for good; return the fault for those who wait for it."""

    async def fail(self) -> ChatFault | None:
        """Interrupt the request if a tool has run, else leave the key free."""


class RepeatKeeper:
    def __init__(self, turns: Turns, request: bytes) -> None:
        self._turns, self._request = turns, request
        self._stored: StoredTurn | None = None

    @property
    def is_keeping(self) -> bool:
        return self._stored is not None

    async def keep_calls(self, turn: Turn) -> None:
        stored = self._stored or StoredTurn(
            id=f"turn_{uuid4().hex}", caller=turn.request.caller, request=self._request.hex(), chat=turn.record.id,
            created=turn.record.started, nonce=turn.request.nonce,
        )  # fmt: skip
        rounds = tuple(StoredRound(reply=one.reply, calls=tuple(one.calls)) for one in turn.played)
        self._stored = await self._turns.keep(replace(stored, rounds=rounds))

    async def keep_end(self, log: TurnLog, end: End | None) -> End | None:
        is_done = isinstance(end, Ended) and log.state is not State.LEAVING
        state = TurnState.DONE if is_done else TurnState.FAILED
        if self._stored is not None:
            self._stored = await self._turns.keep(replace(self._stored, state=state))
        return end


class AnswerKeeper:
    is_keeping = True

    def __init__(self, single: SingleRun, rendering: Rendering) -> None:
        """``rendering``: of the request that begins the turn; its repeats get the same."""
        self._single, self._rendering = single, rendering

    async def keep_calls(self, turn: Turn) -> None:
        """The journal has them, and its record says that they began."""

    async def keep_end(self, log: TurnLog, end: End | None) -> End | None:
        if log.state is State.LEAVING or log.turn.is_cut:
            return Failed(await self._single.interrupt())
        if end is None:
            fault = await self._single.fail()
            return None if fault is None else Failed(fault)
        await self._single.finish(render_whole(self._rendering, log, end))
        return end
