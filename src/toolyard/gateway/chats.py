"""The chats of this host: running ones, records of ended ones, and replies that survive their client.

A surviving reply is recorded event by event. A reader gets every event after its cursor exactly once, the recorded
ones first; several may read. While the slowest of them is ``MAX_BEHIND`` bytes behind, reading the model pauses. Of one
reply the last ``MAX_RECORDED`` bytes are kept, and of all chats ``MAX_CHATS`` and ``MAX_KEPT`` bytes: an older cursor
gets a ``gap`` event first, and so does one of an earlier recording, whose numbers are higher.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from toolyard.gateway.chat_record import ChatRecord
from toolyard.gateway.faults import ChatFault
from toolyard.gateway.sinks.json_answer import JsonAnswer
from toolyard.gateway.sse import event_of
from toolyard.gateway.turn import Turn

MAX_BEHIND: Final = 1024 * 1024
MAX_RECORDED: Final = 4 * 1024 * 1024
MAX_CHATS: Final = 200
MAX_KEPT: Final = 32 * 1024 * 1024
_LOOK_S = 0.5


@dataclass(eq=False, slots=True)
class _Reader:
    at: int
    behind: int = 0  # bytes


class RecordedReply:
    """The events of one chat. Cursors count events, over all turns of the chat."""

    def __init__(self) -> None:
        self._events: deque[bytes] = deque()
        self._first = 0  # cursor of the oldest event that is kept
        self._readers: set[_Reader] = set()
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._patience: tuple[float, Callable[[], None]] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.size = 0
        self.ended = True

    @property
    def cursor(self) -> int:
        """The cursor after the newest event."""
        return self._first + len(self._events)

    def begin(self) -> int:
        """Begin another reply; return its cursor."""
        self.ended = False
        return self.cursor

    def end(self) -> None:
        self.ended = True
        self._cancel_timer()
        self._notify()

    def on_abandoned(self, seconds: float, then: Callable[[], None]) -> None:
        """Call ``then`` once nobody has followed the reply for ``seconds``."""
        self._patience = (seconds, then)
        self._start_timer()

    def _start_timer(self) -> None:
        if self._readers or self.ended or self._patience is None or self._timer is not None:
            return
        seconds, then = self._patience
        self._timer = asyncio.get_running_loop().call_later(seconds, then)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def put(self, piece: bytes) -> None:
        for event in piece.split(b"\n\n"):
            if event:
                self._events.append(event)
                self.size += len(event)
                for reader in self._readers:
                    reader.behind += len(event)
        while self.size > MAX_RECORDED and len(self._events) > 1:
            self.size -= len(self._events.popleft())
            self._first += 1
        self._notify()

    async def wait_for_room(self) -> None:
        """Wait until no reader is too far behind."""
        while any(reader.behind > MAX_BEHIND for reader in self._readers):
            self._room.clear()
            await self._room.wait()

    async def follow(self, cursor: int) -> AsyncGenerator[bytes, None]:
        """Yield every event after ``cursor`` with its own cursor as ``id``, until the reply has ended."""
        is_other = cursor > self.cursor  # from a recording that is gone: no reader of this one has such a cursor
        reader = _Reader(self._first if is_other else max(0, cursor))
        reader.behind = sum(map(len, list(self._events)[max(0, reader.at - self._first) :]))
        self._readers.add(reader)
        self._cancel_timer()
        try:
            if is_other:
                yield _gap(cursor, reader.at)
            while True:
                if reader.at < self._first:
                    yield _gap(reader.at, self._first)
                    reader.at = self._first
                if reader.at < self.cursor:
                    yield self._read(reader)
                elif self.ended:
                    return
                else:
                    self._news.clear()
                    await self._news.wait()
        finally:
            self._readers.discard(reader)
            self._room.set()
            self._start_timer()

    def _read(self, reader: _Reader) -> bytes:
        event = self._events[reader.at - self._first]
        reader.at += 1
        reader.behind -= len(event)
        if reader.behind <= MAX_BEHIND:
            self._room.set()
        return b"id: %d\n%b\n\n" % (reader.at, event)

    def _notify(self) -> None:
        self._news.set()


def _gap(cursor: int, first: int) -> bytes:
    """Return the event that reports missing events to a reader."""
    return event_of({"toolyard": {"type": "gap", "from": cursor, "to": first}, "choices": []})


@dataclass(eq=False, slots=True)
class Entry:
    record: ChatRecord
    handle: str = ""  # the client interrupts it by this
    turn: Turn | None = None  # while it runs
    answer: JsonAnswer | None = None  # of a turn that ``Chat.wait_early`` answers for
    recorded: RecordedReply | None = None
    opening: "asyncio.Task[None] | None" = field(default=None, repr=False)  # keeps a reference
    task: "asyncio.Task[Any] | None" = field(default=None, repr=False)
    request: bytes = field(default=b"", repr=False)  # as it came
    begun: int = 0  # the cursor of its reply

    @property
    def key(self) -> tuple[str, str]:
        return self.record.caller, self.record.id

    @property
    def size(self) -> int:
        return self.record.size + (self.recorded.size if self.recorded else 0)


class Chats:
    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], Entry] = {}
        self._ended: OrderedDict[tuple[str, str], int] = OrderedDict()  # sizes of ended chats, oldest first
        self._ended_size = 0  # bytes of those that ended

    def get(self, caller: str, chat: str) -> Entry | None:
        """Return a chat of this caller; other callers' chats are invisible."""
        return self._entries.get((caller, chat))

    def begin(self, entry: Entry) -> None:
        self._entries.pop(entry.key, None)
        self._ended_size -= self._ended.pop(entry.key, 0)
        self._entries[entry.key] = entry

    def end(self, entry: Entry) -> None:
        """Close the turn of a chat, begun or not. Ending twice is harmless."""
        if entry.turn is None:
            return
        entry.turn.close()
        entry.turn = entry.task = entry.answer = None
        if entry.recorded is not None:
            entry.recorded.end()
        if entry.record.state == "running":
            entry.record.state = "done"
        self._ended[entry.key] = entry.size  # a fire-and-forget call may still add to it
        self._ended_size += self._ended[entry.key]
        while self._is_full and self._ended:
            key, size = self._ended.popitem(last=False)
            self._ended_size -= size
            del self._entries[key]

    def interrupt(self, caller: str, *, handle: str = "", chat: str = "") -> bool:
        """Interrupt matching turns of this caller; return whether there was one."""
        turns = [
            entry.turn
            for entry in self._entries.values()
            if entry.turn is not None
            and entry.record.caller == caller
            and ((chat and entry.record.id == chat) or (handle and entry.handle == handle))
        ]
        for turn in turns:
            turn.interrupt()
        return bool(turns)

    async def wait_for_running(self) -> None:
        """Wait until every turn that runs now has ended."""
        running = [entry for entry in self._entries.values() if entry.turn is not None]
        while running:
            await asyncio.sleep(_LOOK_S)
            running = [entry for entry in running if entry.turn is not None]

    async def stop_running(self, fault: ChatFault, seconds: float) -> None:
        """Fail every running turn with ``fault``; wait up to ``seconds`` until each has said so."""
        running = [entry.turn for entry in self._entries.values() if entry.turn is not None]
        for turn in running:
            turn.interrupt(fault)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.wait_for_running()

    async def close(self) -> None:
        tasks = ((task, entry) for entry in self._entries.values() for task in (entry.opening, entry.task))
        running = {task: entry for task, entry in tasks if task is not None}
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=5.0)
        for entry in running.values():
            self.end(entry)  # a task that is cancelled before its first step ends nothing by itself

    @property
    def _is_full(self) -> bool:
        return len(self._entries) > MAX_CHATS or self._ended_size > MAX_KEPT
