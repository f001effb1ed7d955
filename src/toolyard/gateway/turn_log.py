"""The log of a turn: typed events, each with a cursor. All that a client sees of a turn is a rendering of its log.

A streamed answer, one JSON answer, following after a reload, a retry that joins and the early answer while an approval
waits read the same log. A request finds a log or begins one (``TurnLogs.find``), by its chat or by its fingerprint: a
client that got no answer sends the same request again, often without saying so, and no effect may happen twice.

What a repeated request does depends on the state of the log (``MARKED``: the client says that it is a retry):

    state                               marked        not marked
    READ       it runs, with a reader   joins         begins another turn: the same wish, twice
    UNREAD     it runs, with no reader  joins         joins
    LEAVING    it ends for its client   continues     continues, once it has ended
    MISSED     ended well, not read     joins         joins
    DELIVERED  ended well, and read     joins         begins another turn
    STOPPED    a person stopped it      begins        begins another turn
    FAILED     it failed, or was left   continues     continues

To continue is to begin a turn with the replies and results of the one before, so nothing runs again. While such a turn
runs, every repetition joins it: its request is known to be one that clients repeat. Where no tool has
run there is nothing to repeat: whoever would join an ended log or continue simply begins.

A turn without a reader goes on for its patience, and is then told to leave. While the slowest reader is ``MAX_BEHIND``
bytes behind, the turn pauses. Of one streamed log the last ``MAX_LOG`` bytes are kept, and of all logs ``MAX_LOGS`` and
``MAX_KEPT`` bytes of ended ones: an older cursor gets a gap first, and so does one of a log that is gone, whose numbers
are higher. The cursors of a chat go on over its turns.
"""

import asyncio
from collections import OrderedDict, deque
from enum import Enum, auto
from itertools import islice
from types import TracebackType
from typing import Final, NamedTuple

from toolyard.engine.turns import REPEATED_S
from toolyard.gateway.reply.chunks import Chunk, Head
from toolyard.gateway.reply.unstreamed_reply import UnstreamedReply
from toolyard.gateway.sinks.events import CallUpdate, Delta, Ending, Finished, Gap, Note, ReplyEnded, TurnEvent
from toolyard.gateway.sse import END, event_of
from toolyard.gateway.turn import NO_HISTORY, Turn

MAX_BEHIND: Final = 1024 * 1024
MAX_LOG: Final = 4 * 1024 * 1024
MAX_LOGS: Final = 200
MAX_KEPT: Final = 32 * 1024 * 1024
GRACE_S: Final = 30.0  # for a client that timed out to come back
_SMALL = 200  # bytes that an event without text takes


class State(Enum):
    READ = auto()
    UNREAD = auto()
    LEAVING = auto()
    MISSED = auto()
    DELIVERED = auto()
    STOPPED = auto()
    FAILED = auto()


class Repeat(Enum):
    """The effect of a request that was sent before."""

    JOIN = auto()
    CONTINUE = auto()
    BEGIN = auto()


_MARKED: Final = {
    State.READ: Repeat.JOIN,
    State.UNREAD: Repeat.JOIN,
    State.LEAVING: Repeat.CONTINUE,
    State.MISSED: Repeat.JOIN,
    State.DELIVERED: Repeat.JOIN,
    State.STOPPED: Repeat.BEGIN,
    State.FAILED: Repeat.CONTINUE,
}
_UNMARKED: Final = {**_MARKED, State.READ: Repeat.BEGIN, State.DELIVERED: Repeat.BEGIN}
_RUNNING = (State.READ, State.UNREAD, State.LEAVING)


class Entry(NamedTuple):
    head: Head  # of the answer that the event is part of
    event: TurnEvent
    size: int


class TurnLog:
    """The events of one turn, after those of the earlier turns of its chat."""

    def __init__(
        self,
        turn: Turn,
        *,
        request: bytes = b"",
        patience_s: float = 0.0,
        handle: str = "",
        before: "TurnLog | None" = None,
    ) -> None:
        """``request``: the fingerprint of its request; ``handle``: the client interrupts it by this; ``before``: the
        log of the turn before in a chat that its client has named."""
        self.record, self.request, self.handle = turn.record, request, handle
        self.head, self.is_streamed = turn.head, turn.request.streams
        self._turn: Turn | None = turn  # while it runs
        self._has_run_tools = False  # once it has ended
        self.history = NO_HISTORY  # the same, if it may be continued
        earlier = before.followed if before else None
        self._earlier = None if self.is_streamed else earlier
        self._entries: deque[Entry] = deque()
        self._first = self._size = 0  # the cursor before the oldest entry; bytes
        if self.is_streamed and earlier is not None:
            self._entries, self._first, self._size = deque(earlier._entries), earlier._first, earlier._size
        self.begun = self.cursor  # the cursor before the first event of this turn
        self._patience_s = patience_s
        self._readers: set[LogReader] = set()
        self._news, self._room, self.has_ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._last: TurnEvent | None = None
        self._is_left = self._is_delivered = False
        self.ended_at = 0.0
        self.is_named = False  # by its client, who may follow it
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
    def key(self) -> tuple[str, str]:
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
        return not self.has_ended.is_set()

    @property
    def state(self) -> State:
        if self.is_running:
            return State.LEAVING if self._is_left else State.READ if self._readers else State.UNREAD
        if not isinstance(self._last, Finished) or self._is_left:
            return State.FAILED
        if self._last.ending is Ending.INTERRUPTED:
            return State.STOPPED
        return State.DELIVERED if self._is_delivered else State.MISSED

    @property
    def is_left(self) -> bool:
        """True when the turn was stopped because nobody read it."""
        return self._is_left

    def judge_repeat(self, *, is_marked: bool) -> Repeat:
        """Return the effect of a request that repeats the one of this log."""
        state = self.state
        repeat = (_MARKED if is_marked or (self.is_running and self.turn.continues) else _UNMARKED)[state]
        is_harmless = state not in _RUNNING and not self._has_run_tools
        return Repeat.BEGIN if is_harmless and state is not State.MISSED else repeat

    # --- writing

    def append(self, event: TurnEvent) -> None:
        """Add an event. Each chunk is an entry of its own, so that a cursor names exactly what a client has.

        A stream has the words of a reply already, so the reply itself is not kept with them.
        """
        added = []
        if isinstance(event, Delta | Finished):
            for chunk in event.chunks:
                raw = chunk.raw or event_of(chunk.data).removesuffix(END)
                added.append(Entry(self.head, Delta([Chunk({}, raw)]), len(raw)))  # its bytes say it all
        if self.is_streamed and isinstance(event, ReplyEnded):
            event = CallUpdate(event.use)
        elif self.is_streamed and isinstance(event, Finished):
            event = Finished(event.ending)
        if not isinstance(event, Delta):
            added.append(Entry(self.head, event, _size_of(event)))
        size = sum([entry.size for entry in added])
        self._entries.extend(added)
        self._size += size
        self._last = event
        for reader in self._readers:
            reader.behind += size
        while self._size > MAX_LOG and len(self._entries) > 1 and self.is_streamed:
            self._size -= self._entries.popleft().size
            self._first += 1
        self._news.set()

    @property
    def is_far_ahead(self) -> bool:
        """True while a reader is too far behind for the turn to go on."""
        return self.is_streamed and any(reader.behind > MAX_BEHIND for reader in self._readers)

    async def wait_for_readers(self) -> None:
        while self.is_far_ahead:
            self._room.clear()
            await self._room.wait()

    def end(self) -> None:
        """End the log. Ending twice is harmless."""
        if self._turn is None:
            return
        self._turn.close()
        self._turn.tell = self._turn.before_calls = None  # they lead back here, and nothing else keeps the turn
        history = self._turn.history
        self._turn = self.task = None
        self.ended_at = asyncio.get_running_loop().time()
        self.has_ended.set()
        self._has_run_tools = bool(history.rounds)
        if self.state is State.FAILED:  # the results of others may be large, and nobody asks for them
            self.history = history
        self._stop_timer()
        self._news.set()
        self._release()

    def _release(self) -> None:
        """Drop the events that no request will ask for again."""
        is_useless = not self.is_running and not self._readers and self.judge_repeat(is_marked=True) is Repeat.BEGIN
        if is_useless and not (self.is_named and self.is_streamed):
            self._entries.clear()
            self._size = 0

    # --- reading

    def read(self, cursor: int) -> "LogReader":
        """Return a reader of every event after ``cursor``; it counts as one until it is closed."""
        reader = LogReader(self, cursor)
        self._readers.add(reader)
        self._stop_timer()
        return reader

    def events(self) -> list[TurnEvent]:
        """Return the events of this turn so far."""
        return [entry.event for entry in list(self._entries)[max(0, self.begun - self._first) :]]

    def _remove(self, reader: "LogReader", patience_s: float | None) -> None:
        self._readers.discard(reader)
        self._room.set()
        if patience_s is not None:
            self._patience_s = max(patience_s, self._patience_s)
        if self._readers or not self.is_running:
            self._release()
            return
        if self._patience_s <= 0:
            self.leave()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._patience_s, self.leave)

    def leave(self) -> None:
        """Stop the turn, because nobody reads it."""
        if self.is_running and not self._is_left:
            self._is_left = True
            self.turn.leave()  # the log may end with it

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class LogReader:
    """Reads a log from a cursor; used as ``with log.read(cursor) as reader``."""

    def __init__(self, log: TurnLog, cursor: int) -> None:
        self._log = log
        self._is_other = cursor > log.cursor  # of a log that is gone: no reader of this one has such a cursor
        self._missed = cursor
        self.at = log._first if self._is_other else max(0, cursor)
        self.behind = sum(entry.size for entry in list(log._entries)[max(0, self.at - log._first) :])
        self._taken = 0  # bytes of the events that were returned last
        self.patience_s: float | None = None  # of the turn once this reader has left; None: as it is

    def __enter__(self) -> "LogReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the log. Closing twice is harmless."""
        self._log._remove(self, self.patience_s)

    def finish(self) -> None:
        """Note that the client of this reader gets the whole answer."""
        self._log._is_delivered = True

    async def wait_for_event(self) -> TurnEvent | None:
        """Return the next event without taking it, once it is there; None at the end."""
        while self._log.cursor <= self.at and self._log.is_running:
            self._log._news.clear()
            await self._log._news.wait()
        at = max(self.at, self._log._first)
        return self._log._entries[at - self._log._first].event if self._log.cursor > at else None

    async def next(self) -> list[Entry]:
        """Return the next events; none at the end of the log. ``at`` is the cursor after them.

        They count as read when the next ones are asked for: until then they may still be on their way to the client.
        """
        log = self._log
        self.behind -= self._taken
        self._taken = 0
        log._room.set()
        await self.wait_for_event()
        if self._is_other or self.at < log._first:
            before = self._missed if self._is_other else self.at
            self._is_other, self.at = False, max(self.at, log._first)
            self.behind = sum([entry.size for entry in log._entries])
            return [Entry(log.head, Gap(before, self.at), 0)]
        entries = list(islice(log._entries, self.at - log._first, None))
        if not entries:
            self.finish()
        self.at += len(entries)
        self._taken = sum([entry.size for entry in entries])
        return entries


class TurnLogs:
    """The logs of this host: of running turns, and of ended ones while they fit."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, str], TurnLog] = {}
        self._by_request: dict[tuple[str, bytes], TurnLog] = {}  # the newest for each request
        self._ended: OrderedDict[tuple[str, str], int] = OrderedDict()  # sizes of ended logs, oldest first
        self._ended_size = 0

    def get(self, caller: str, chat: str) -> TurnLog | None:
        """Return the log of a chat of this caller; other callers' chats are invisible."""
        return self._logs.get((caller, chat))

    def find(self, caller: str, request: bytes) -> TurnLog | None:
        """Return the newest log of the same request, while it may be repeated."""
        log = self._by_request.get((caller, request)) if request else None
        if log is None or (not log.is_running and asyncio.get_running_loop().time() - log.ended_at > REPEATED_S):
            return None
        return log

    def begin(self, log: TurnLog) -> None:
        self._forget(log.key)
        self._logs[log.key] = log
        if log.request:
            self._by_request[log.record.caller, log.request] = log

    def end(self, log: TurnLog) -> None:
        """End a log; the oldest ended ones are dropped when there is no more room. Ending twice is harmless."""
        if not log.is_running:
            return
        log.end()
        if log.record.state == "running":
            log.record.state = "done"
        self._ended[log.key] = log.size  # a fire-and-forget call may still add to it
        self._ended_size += self._ended[log.key]
        while self._ended and (len(self._logs) > MAX_LOGS or self._ended_size > MAX_KEPT):
            self._forget(next(iter(self._ended)))

    def _forget(self, key: tuple[str, str]) -> None:
        log = self._logs.pop(key, None)
        self._ended_size -= self._ended.pop(key, 0)
        if log is not None and self._by_request.get((key[0], log.request)) is log:
            del self._by_request[key[0], log.request]

    def running(self) -> list[TurnLog]:
        return [log for log in self._logs.values() if log.is_running]

    def interrupt(self, caller: str, *, handle: str = "", chat: str = "") -> bool:
        """Interrupt matching turns of this caller; return whether there was one."""
        logs = [
            log
            for log in self.running()
            if log.record.caller == caller and ((chat and log.record.id == chat) or (handle and log.handle == handle))
        ]
        for log in logs:
            log.turn.interrupt()
        return bool(logs)

    async def wait_for_running(self) -> None:
        """Wait until every turn that runs now has ended."""
        for log in self.running():
            await log.has_ended.wait()

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
        case ReplyEnded(reply) if isinstance(reply, UnstreamedReply):
            return len(reply.raw)
        case Note(text):
            return _SMALL + len(text)
        case _:
            return _SMALL
