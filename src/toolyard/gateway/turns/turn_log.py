"""The log of a turn: typed events, each with a cursor. All that a client sees of a turn is a rendering of its log.

A streamed answer, one JSON answer, following after a reload, a retry that joins, the repeat of an idempotent request
and the early answer while an approval waits read the same log (``rendering``). A request finds a log or begins one
(``Chat._find_or_begin``): by the key of an idempotent request, or by its fingerprint, because a client that got no
answer sends the same request again, often without saying so, and no effect may happen twice. A named chat is followed
by its name.

The state of a log changes so (``_NEXT``; what is not listed changes nothing):

    state                               a reader  the last  patience  it ends  it is     it fails  a reader
                                        comes     leaves    is over   well     stopped             has it all
    UNREAD     it runs, with no reader  READ                LEAVING   MISSED   STOPPED   FAILED
    READ       it runs, with a reader             UNREAD              MISSED   STOPPED   FAILED
    LEAVING    it ends for its client                                 FAILED   FAILED    FAILED
    MISSED     ended well, not read                                                                DELIVERED
    DELIVERED  ended well, and read
    STOPPED    a person stopped it
    FAILED     it failed, or was left

and decides what a request does that repeats the one of the log (``_REPEATED``; marked: the client says that it does):

    state      marked     not marked
    UNREAD     joins      joins
    READ       joins      begins another turn: the same wish, twice; joins once a tool has begun
    LEAVING    continues  continues, once it has ended
    MISSED     joins      joins
    DELIVERED  joins      begins another turn
    STOPPED    begins     begins another turn
    FAILED     continues  continues

To continue is to begin a turn with the replies and results of the one before, so nothing runs again. While such a turn
runs, every repetition joins it: its request is known to be one that clients repeat. So is any in which a tool has
begun: some clients give up a stream, and ask for the same without one while the first request still looks alive. Where
no tool has run there is nothing to repeat: whoever would join an ended log or continue simply begins. A repeat with the
key of an idempotent request always joins; once the log has ended it gets the stored answer (see
``engine.chats.idempotency``).

A turn without a reader goes on for its patience, and is then told to leave. While the slowest reader is ``MAX_BEHIND``
bytes behind, the turn pauses. Of one streamed log the last ``MAX_LOG`` bytes are kept, and of all logs ``MAX_LOGS`` and
``MAX_KEPT`` bytes of ended ones: an older cursor gets a gap first, and so does one of a log that is gone, whose numbers
are higher. The log of a key is for readers from its beginning: while all of it is kept nobody holds it up, and after
that nothing is dropped that a reader has yet to read. The cursors of a chat go on over its turns.

What outlives this process is the matter of the log's keeper (``turn_keeper``).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from types import TracebackType
from typing import Final, NamedTuple

from toolyard.engine.chats.turns import REPEATED_S
from toolyard.gateway.chat_ports import PendingApproval
from toolyard.gateway.reply.chunks import Chunk, Head
from toolyard.gateway.sse import END, event_of
from toolyard.gateway.turns.turn import Turn
from toolyard.gateway.turns.turn_events import (
    ApprovalAnswered,
    ApprovalAsked,
    Delta,
    Ended,
    Ending,
    Gap,
    Note,
    ReplyEnded,
    TurnEvent,
)
from toolyard.gateway.turns.turn_plan import NO_HISTORY

MAX_BEHIND: Final = 1024 * 1024
MAX_LOG: Final = 4 * 1024 * 1024
MAX_LOGS: Final = 200
MAX_KEPT: Final = 32 * 1024 * 1024
GRACE_S: Final = 30.0  # for a client that timed out to come back
_SMALL = 200  # bytes that an event without text takes


class State(Enum):
    UNREAD = auto()
    READ = auto()
    LEAVING = auto()
    MISSED = auto()
    DELIVERED = auto()
    STOPPED = auto()
    FAILED = auto()


class Change(Enum):
    READER_CAME = auto()
    READERS_LEFT = auto()
    PATIENCE_OVER = auto()
    DONE = auto()
    STOPPED = auto()
    FAILED = auto()
    DELIVERED = auto()


class Repeat(Enum):
    """The effect of a request that was sent before."""

    JOIN = auto()
    CONTINUE = auto()
    BEGIN = auto()


_ENDS: Final = {Change.DONE: State.MISSED, Change.STOPPED: State.STOPPED, Change.FAILED: State.FAILED}
_NEXT: Final[dict[State, dict[Change, State]]] = {
    State.UNREAD: {Change.READER_CAME: State.READ, Change.PATIENCE_OVER: State.LEAVING, **_ENDS},
    State.READ: {Change.READERS_LEFT: State.UNREAD, **_ENDS},
    State.LEAVING: dict.fromkeys(_ENDS, State.FAILED),
    State.MISSED: {Change.DELIVERED: State.DELIVERED},
    State.DELIVERED: {},
    State.STOPPED: {},
    State.FAILED: {},
}
_RUNNING: Final = (State.UNREAD, State.READ, State.LEAVING)
_REPEATED: Final = {  # marked, not marked
    State.UNREAD: (Repeat.JOIN, Repeat.JOIN),
    State.READ: (Repeat.JOIN, Repeat.BEGIN),
    State.LEAVING: (Repeat.CONTINUE, Repeat.CONTINUE),
    State.MISSED: (Repeat.JOIN, Repeat.JOIN),
    State.DELIVERED: (Repeat.JOIN, Repeat.BEGIN),
    State.STOPPED: (Repeat.BEGIN, Repeat.BEGIN),
    State.FAILED: (Repeat.CONTINUE, Repeat.CONTINUE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNames:
    """The names by which requests find a log."""

    request: bytes = b""  # the fingerprint of its request; empty: nothing repeats it
    key: str = ""  # of an idempotent request
    handle: str = ""  # its client interrupts it by this
    is_chat_named: bool = False  # by its client, who may follow it


class Entry(NamedTuple):
    head: Head  # of the answer that the event is part of
    event: TurnEvent
    size: int


class TurnLog:
    """The events of one turn, after those of the earlier turns of its chat."""

    def __init__(
        self,
        turn: Turn,
        names: LogNames = LogNames(),  # noqa: B008 it is frozen
        *,
        patience_s: float = 0.0,
        before: "TurnLog | None" = None,
    ) -> None:
        """``before``: the log of the turn before in a chat that its client has named."""
        self.names, self.record = names, turn.record
        self.head, self.is_streamed = turn.head, turn.request.streams
        self.state = State.UNREAD
        self.waiting: dict[str, PendingApproval] = {}  # by the ids of their calls
        self._turn: Turn | None = turn  # while it runs
        self._has_run_tools = False  # once it has ended
        self.history = NO_HISTORY  # the same, if it may be continued
        self.is_kept = names.is_chat_named and turn.request.streams  # its events may be asked for again by name
        earlier = before.followed if before else None
        self._earlier = None if self.is_streamed else earlier
        self._entries: list[Entry] = []
        self._first = self._size = 0  # the cursor before the oldest entry; bytes
        if self.is_streamed and earlier is not None:
            self._entries, self._first, self._size = [*earlier._entries], earlier._first, earlier._size
        self.begun = self.cursor  # the cursor before the first event of this turn
        self._patience_s = patience_s
        self._readers: set[LogReader] = set()
        self._listener: Callable[[Entry], None] | None = None
        self._changed = _Signal()
        self._timer: asyncio.TimerHandle | None = None
        self._last: TurnEvent | None = None
        self.ended_at = 0.0
        self.task: asyncio.Task[None] | None = None  # that runs the turn

    @property
    def followed(self) -> "TurnLog | None":
        """The log in which the cursors of its chat count: this one, or an earlier one when it is not streamed."""
        return self if self.is_streamed else self._earlier

    @property
    def turn(self) -> Turn:
        """The turn, while it runs."""
        if self._turn is None:
            raise RuntimeError("the turn has ended")
        return self._turn

    @property
    def chat(self) -> tuple[str, str]:
        return self.record.caller, self.record.id

    @property
    def cursor(self) -> int:
        """The cursor after the newest event."""
        return self._first + len(self._entries)

    @property
    def size(self) -> int:
        return self._size + self.record.size

    @property
    def is_running(self) -> bool:
        return self.state in _RUNNING

    @property
    def is_whole(self) -> bool:
        """True while a reader gets all of this turn."""
        return self._first <= self.begun

    def judge_repeat(self, *, is_marked: bool) -> Repeat:
        """Return the effect of a request that repeats the one of this log."""
        marked, unmarked = _REPEATED[self.state]
        has_begun_tools = self.is_running and bool(self.turn.continues or self.turn.calls_run)
        repeat = marked if is_marked or has_begun_tools else unmarked
        is_harmless = not self.is_running and not self._has_run_tools
        return Repeat.BEGIN if is_harmless and self.state is not State.MISSED else repeat

    def _change(self, change: Change) -> bool:
        """Go to the next state; return whether there is one."""
        after = _NEXT[self.state].get(change)
        if after is not None:
            self.state = after
        return after is not None

    # --- writing

    def append(self, event: TurnEvent) -> None:
        if isinstance(event, ApprovalAsked):
            self.waiting[event.approval.call_id] = event.approval
        elif isinstance(event, ApprovalAnswered):
            self.waiting.pop(event.call_id, None)
        added = self.to_entries(event)
        size = sum([entry.size for entry in added])
        self._entries.extend(added)
        self._size += size
        self._last = event
        for reader in self._readers:
            reader.behind += size
        if self._listener is not None:
            for entry in added:
                self._listener(entry)
        if self._size > MAX_LOG and self.is_streamed:
            self._drop_beginning()
        self._changed.send()

    def listen(self, listener: Callable[[Entry], None]) -> None:
        """Tell each further entry at once to one who is no reader: the turn waits for none of those."""
        self._listener = listener

    def to_entries(self, event: TurnEvent) -> list[Entry]:
        """Return what is kept of an event. Each chunk is an entry of its own, so that a cursor names exactly what a
        client has."""
        made = []
        if isinstance(event, Delta | Ended):
            for chunk in event.chunks:
                raw = chunk.raw or event_of(chunk.data).removesuffix(END)
                made.append(Entry(self.head, Delta([Chunk({}, raw)]), len(raw)))  # its bytes say it all
        if isinstance(event, Ended) and event.chunks:
            event = Ended(event.ending)
        return made if isinstance(event, Delta) else [*made, Entry(self.head, event, _size_of(event))]

    def _drop_beginning(self) -> None:
        last = self.cursor - 1
        if self.names.key:
            last = min([last, *(reader.at for reader in self._readers)])
        dropped = 0
        while self._size > MAX_LOG and self._first + dropped < last:
            self._size -= self._entries[dropped].size
            dropped += 1
        del self._entries[:dropped]
        self._first += dropped

    @property
    def is_far_ahead(self) -> bool:
        """True while a reader is too far behind for the turn to go on."""
        if not self.is_streamed or (self.names.key and self.is_whole and self._size <= MAX_LOG):
            return False
        return any(reader.behind > MAX_BEHIND for reader in self._readers)

    async def wait_for_readers(self) -> None:
        while self.is_far_ahead:
            await self._changed.wait()

    async def wait_for_end(self) -> None:
        while self.is_running:
            await self._changed.wait()

    def end(self) -> None:
        """End the log; its last event says how. Ending twice is harmless."""
        if self._turn is None:
            return
        self._turn.disconnect()  # the way back here: nothing else keeps the turn
        history = self._turn.history
        self._turn = self.task = None
        self.ended_at = asyncio.get_running_loop().time()
        self._has_run_tools = bool(history.rounds)
        is_stopped = isinstance(self._last, Ended) and self._last.ending is Ending.INTERRUPTED
        self._change(
            Change.FAILED if not isinstance(self._last, Ended) else Change.STOPPED if is_stopped else Change.DONE
        )
        if self.state is State.FAILED:  # the results of others may be large, and nobody asks for them
            self.history = history
        self._stop_timer()
        self._changed.send()
        self._release()

    def _release(self) -> None:
        """Drop the events that no request will ask for again."""
        is_useless = not self.is_running and not self._readers and self.judge_repeat(is_marked=True) is Repeat.BEGIN
        if is_useless and not self.is_kept:
            self._entries.clear()
            self._size = 0

    # --- reading

    def read(self, cursor: int, *, timeout_s: float | None = None) -> "LogReader":
        """Return a reader of every event after ``cursor``; it counts as one until it is closed.

        ``timeout_s``: for so long its client waits before it sends the same request again.
        """
        reader = LogReader(self, cursor, timeout_s)
        self._readers.add(reader)
        self._change(Change.READER_CAME)
        self._stop_timer()
        return reader

    def entries(self) -> list[Entry]:
        """Return the entries of this turn so far."""
        return self._entries[max(0, self.begun - self._first) :]

    def _remove(self, reader: "LogReader", patience_s: float | None) -> None:
        self._readers.discard(reader)
        self._changed.send()
        if patience_s is not None:
            self._patience_s = max(patience_s, self._patience_s)
        if not self._readers:
            self._change(Change.READERS_LEFT)
        if self._readers or not self.is_running:
            self._release()
        elif self._patience_s > 0:
            self.expect_reader(self._patience_s)
        else:
            self.leave()

    def expect_reader(self, seconds: float) -> None:
        """End the turn when no reader has come by then."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self.leave)

    def leave(self) -> None:
        """Stop the turn, because nobody reads it."""
        if self._change(Change.PATIENCE_OVER):
            self.turn.leave()  # the log may end with it

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Signal:
    """Wakes everybody who waits for the next change of a log. An ``asyncio.Event`` would take 0.8 KB of each stream."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def send(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    async def wait(self) -> None:
        woken = asyncio.get_running_loop().create_future()
        self._waiting.append(woken)
        try:
            await woken
        except asyncio.CancelledError:
            with suppress(ValueError):
                self._waiting.remove(woken)
            raise


class LogReader:
    """Reads a log from a cursor; used as ``with log.read(cursor) as reader``."""

    def __init__(self, log: TurnLog, cursor: int, timeout_s: float | None) -> None:
        self._log = log
        self._is_other = cursor > log.cursor  # of a log that is gone: no reader of this one has such a cursor
        self._missed = cursor
        self.at = log._first if self._is_other else max(0, cursor)
        self.behind = sum(entry.size for entry in log._entries[max(0, self.at - log._first) :])
        self._taken = 0  # bytes of the events that were returned last
        self._came, self._timeout_s = asyncio.get_running_loop().time(), timeout_s
        self.patience_s: float | None = None  # of the turn once this reader has left; None: as it is

    def __enter__(self) -> "LogReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the log. A client that has waited as long as it said it would comes back. Closing twice is harmless."""
        waited = asyncio.get_running_loop().time() - self._came
        if self._timeout_s is not None and waited >= self._timeout_s - 1:
            self.patience_s = max(GRACE_S, self.patience_s or 0.0)
        self._log._remove(self, self.patience_s)

    def finish(self) -> None:
        """Note that the client of this reader gets the whole answer."""
        self._log._change(Change.DELIVERED)

    @property
    def has_news(self) -> bool:
        """True when there is something to read, or the end."""
        return self._log.cursor > self.at or not self._log.is_running

    async def wait(self) -> None:
        """Wait for news. What was returned last counts as read: until then it may still be on its way."""
        if self._taken:
            self.behind -= self._taken
            self._taken = 0
            self._log._changed.send()
        while not self.has_news:
            await self._log._changed.wait()

    async def wait_for_event(self, but: tuple[type[TurnEvent], ...] = ()) -> TurnEvent | None:
        """Return the next event without taking it, ``but`` none of these kinds, once it is there; None at the end."""
        log, at = self._log, self.at
        while True:
            while log.cursor <= at and log.is_running:
                await log._changed.wait()
            at = max(at, log._first)
            if log.cursor <= at:
                return None
            event = log._entries[at - log._first].event
            if not isinstance(event, but):
                return event
            at += 1

    async def next(self) -> list[Entry]:
        """Return the next events; none at the end of the log. ``at`` is the cursor after them."""
        log = self._log
        await self.wait()
        if self._is_other or self.at < log._first:
            before = self._missed if self._is_other else self.at
            self._is_other, self.at = False, max(self.at, log._first)
            self.behind = sum([entry.size for entry in log._entries])
            return [Entry(log.head, Gap(before, self.at), 0)]
        entries = log._entries[self.at - log._first :]
        if not entries:
            self.finish()
        self.at += len(entries)
        self._taken = sum([entry.size for entry in entries])
        return entries


class TurnLogs:
    """The logs of this host: of running turns, and of ended ones while they fit."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, str], TurnLog] = {}  # the newest of each chat
        self._by_request: dict[tuple[str, bytes], TurnLog] = {}  # the newest of each request
        self._by_key: dict[str, TurnLog] = {}  # running ones of idempotent requests
        self._ended: OrderedDict[tuple[str, str], int] = OrderedDict()  # sizes of ended logs, oldest first
        self._ended_size = 0

    def get(self, caller: str, chat: str) -> TurnLog | None:
        """Return the log of a chat of this caller; other callers' chats are invisible."""
        return self._logs.get((caller, chat))

    def get_by_key(self, key: str) -> TurnLog | None:
        return self._by_key.get(key)

    def find_repeated(self, caller: str, request: bytes) -> TurnLog | None:
        """Return the newest log of the same request, while it may be repeated."""
        log = self._by_request.get((caller, request)) if request else None
        if log is None or (not log.is_running and asyncio.get_running_loop().time() - log.ended_at > REPEATED_S):
            return None
        return log

    def begin(self, log: TurnLog) -> None:
        self._forget(log.chat)
        self._logs[log.chat] = log
        if log.names.request:
            self._by_request[log.record.caller, log.names.request] = log
        if log.names.key:
            self._by_key[log.names.key] = log

    def end(self, log: TurnLog) -> None:
        """End a log; the oldest ended ones are dropped when there is no more room. Ending twice is harmless."""
        if not log.is_running:
            return
        log.end()
        if self._by_key.get(log.names.key) is log:
            del self._by_key[log.names.key]
        if log.record.state == "running":
            log.record.state = "done"
        self._ended[log.chat] = log.size  # a fire-and-forget call may still add to it
        self._ended_size += self._ended[log.chat]
        while self._ended and (len(self._logs) > MAX_LOGS or self._ended_size > MAX_KEPT):
            self._forget(next(iter(self._ended)))

    def _forget(self, chat: tuple[str, str]) -> None:
        log = self._logs.pop(chat, None)
        self._ended_size -= self._ended.pop(chat, 0)
        if log is not None and self._by_request.get((chat[0], log.names.request)) is log:
            del self._by_request[chat[0], log.names.request]

    def running(self) -> list[TurnLog]:
        return [log for log in self._logs.values() if log.is_running]

    def interrupt(self, caller: str, *, handle: str = "", chat: str = "") -> bool:
        """Interrupt matching turns of this caller; return whether there was one."""
        logs = [
            log
            for log in self.running()
            if log.record.caller == caller
            and ((chat and log.record.id == chat) or (handle and log.names.handle == handle))
        ]
        for log in logs:
            log.turn.interrupt()
        return bool(logs)

    async def wait_for_running(self, *, keyed: bool = False) -> None:
        """Wait until every turn that runs now has ended; with ``keyed`` only those of idempotent requests."""
        for log in self.running():
            if log.names.key or not keyed:
                await log.wait_for_end()

    async def close(self) -> None:
        """Cancel what still runs."""
        running = self.running()
        tasks = {log.task for log in running if log.task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5.0)
        for log in running:
            self.end(log)  # a task that is cancelled before its first step ends nothing by itself


def _size_of(event: TurnEvent) -> int:
    match event:
        case ReplyEnded(reply):
            return len(reply.raw)
        case Note(text):
            return _SMALL + len(text)
        case _:
            return _SMALL
