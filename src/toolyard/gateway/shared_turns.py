"""Turns that a repeated request joins instead of starting another, so that no effect happens twice.

A client that timed out sends its request again by itself, and OpenAI's SDKs say so (``x-stainless-retry-count``). Such
a request joins the turn of the same caller and the same bytes: while it runs, and for ``KEPT_S`` seconds after its end
if a tool has run in it. So does any repetition of a request that was answered early because a call waits for approval.

A turn whose client timed out continues for ``GRACE_S`` seconds; if no request joins it by then, it ends. At most
``MAX_TURNS`` ended turns and ``MAX_BYTES`` of their requests and answers are kept.
"""

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from toolyard.gateway.sinks.json_answer import JsonAnswer

if TYPE_CHECKING:
    from toolyard.gateway.chat import ChatRun
    from toolyard.gateway.turn import Turn

KEPT_S: Final = 600.0
GRACE_S: Final = 30.0
MAX_TURNS: Final = 200
MAX_BYTES: Final = 32 * 1024 * 1024


@dataclass(eq=False, slots=True)
class SharedTurn:
    """A turn whose answer comes in one piece, and the clients that wait for it."""

    request: bytes  # as it came
    turn: "Turn"
    answer: JsonAnswer
    task: "asyncio.Task[ChatRun]" = field(init=False)
    clients: int = 0  # waiting now

    @property
    def size(self) -> int:
        """Bytes of its request and its answer, once it has ended."""
        return len(self.request) + (0 if self.task.cancelled() else len(self.task.result().body))


class SharedTurns:
    def __init__(self) -> None:
        self._running: dict[SharedTurn, None] = {}
        self._ended: dict[SharedTurn, float] = {}  # time of the end; the oldest first
        self._answered_early: dict[SharedTurn, None] = {}
        self._size = 0  # bytes of those that ended

    def find(self, caller: str, request: bytes, *, is_retry: bool) -> SharedTurn | None:
        """Return the newest turn that this request repeats."""
        self._forget_old()
        pools = (self._running, self._ended) if is_retry else (self._answered_early,)
        candidates = (shared for pool in pools for shared in reversed(pool) if shared.turn.request.caller == caller)
        return next((shared for shared in candidates if shared.request == request), None)

    def add(self, shared: SharedTurn) -> None:
        self._running[shared] = None
        shared.task.add_done_callback(lambda _: self._end(shared))

    def leave(self, shared: SharedTurn, *, timed_out: bool) -> None:
        """Note that a client no longer waits; end a turn that no client can come back for."""
        shared.clients -= 1
        if shared.clients or shared.task.done() or shared in self._answered_early:
            return
        if timed_out:
            asyncio.get_running_loop().call_later(GRACE_S, self._cancel_abandoned, shared)
        else:
            shared.task.cancel()

    def answer_early(self, shared: SharedTurn) -> None:
        """Note that its client was told about the pending approval; the turn continues for a repeated request."""
        shared.clients -= 1
        if shared not in self._answered_early:
            self._answered_early[shared] = None
            asyncio.get_running_loop().call_later(KEPT_S, self._cancel_abandoned, shared)

    def deliver(self, shared: SharedTurn) -> None:
        """Note that a client got the complete answer: from now on only its own retries join."""
        shared.clients -= 1
        self._answered_early.pop(shared, None)
        if not shared.turn.calls_run:
            self._forget(shared)

    def _cancel_abandoned(self, shared: SharedTurn) -> None:
        if not shared.clients:
            shared.task.cancel()

    def _end(self, shared: SharedTurn) -> None:
        del self._running[shared]
        if not shared.turn.calls_run and not shared.clients and shared not in self._answered_early:
            return  # without tool calls, running it again repeats no effect
        self._ended[shared] = asyncio.get_running_loop().time()
        self._size += shared.size
        self._forget_old()

    def _forget(self, shared: SharedTurn) -> None:
        self._answered_early.pop(shared, None)
        if self._ended.pop(shared, None) is not None:
            self._size -= shared.size

    def _forget_old(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._ended:
            oldest, ended = next(iter(self._ended.items()))
            if now - ended <= KEPT_S and len(self._ended) <= MAX_TURNS and self._size <= MAX_BYTES:
                return
            self._forget(oldest)
