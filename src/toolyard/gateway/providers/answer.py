"""An answer of a model provider as it arrives, with its time limits.

It is idle when no complete event came for that time, however many bytes did.
"""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from toolyard.engine.step_limiter import StepLimiter
from toolyard.gateway.faults import (
    describe_provider,
    describe_silence,
    no_completion,
    oversized_answer,
    unreadable_answer,
)
from toolyard.gateway.providers.provider_json import StreamRepair, may_be_odd, repair_provider_json
from toolyard.gateway.providers.response_body import ResponseBody
from toolyard.gateway.reply.chunks import to_events
from toolyard.gateway.sse import Events, data_of
from toolyard.message import Message

if TYPE_CHECKING:
    import aiohttp

MAX_UNSTREAMED: Final = 32 * 1024 * 1024
MAX_BATCH: Final = 256  # events that are returned at once
_MAX_BLANK = 64 * 1024  # bytes before the first non-blank one
_BOM = b"\xef\xbb\xbf"
_UNSTREAMED_STARTS = (b"{", b"[", b'"', b"<")  # no line of an event stream begins with one


@dataclass(frozen=True, slots=True)
class Limits:
    connect_s: float = 10.0
    first_byte_s: float = 120.0
    idle_s: float = 60.0
    whole_s: float = 600.0  # for an answer that is not streamed, whose first byte is its last
    tries: int = 3
    pause_s: float = 0.5  # before the second try; doubled for each further one
    longest_pause_s: float = 20.0  # a longer Retry-After is left to the client


class Answer(Protocol):
    """An answer that has begun, with a success status."""

    async def events(self) -> list[bytes]:
        """Return the next events, as many as have arrived; none at the end. Raises ChatFailed."""
        ...

    async def read_all(self) -> bytes: ...

    def close(self) -> None:
        """Stop it at once. Closing twice is harmless."""
        ...


class HttpAnswer:
    """An answer over HTTP. Its bytes decide, not its content type: a stream of events, or JSON in one piece."""

    __slots__ = ("_begun", "_body", "_events", "_fair", "_has_data", "_is_unstreamed", "_junk", "_limits", "_name",
                 "_patience", "_ready", "_repair", "_response")  # fmt: skip

    def __init__(self, name: str, response: "aiohttp.ClientResponse", limits: Limits, fair: StepLimiter) -> None:
        self._name, self._response, self._limits, self._fair = name, response, limits, fair
        self._body = ResponseBody(name, response)
        self._events, self._repair = Events(), StreamRepair()
        self._patience = limits.first_byte_s
        self._begun = b""  # read already, to see what it is
        self._is_unstreamed: bool | None = None
        self._ready: list[bytes] = []  # events that come with the next reads, not yet repaired
        self._has_data = False  # an event had data
        self._junk = b""  # the first event without data

    async def events(self) -> list[bytes]:
        if self._ready:
            await asyncio.sleep(0)  # lets other tasks run between batches
            return self._next_ready()
        deadline = asyncio.get_running_loop().time() + self._patience
        if self._is_unstreamed is None:
            self._is_unstreamed = await self._is_one_piece(deadline)
        if self._is_unstreamed:
            return await self._as_events()
        while not self._events.problem and (data := await self._read(deadline)):
            await self._fair.step()  # before it grows: of very many, most wait here
            if events := self._take(self._events.feed(data)):
                self._patience = self._limits.idle_s
                return events
        if self._events.problem:
            raise unreadable_answer(
                Message(
                    "provider.sent_nonsense",
                    "{provider} sent nonsense: {problem}",
                    provider=describe_provider(self._name),
                    problem=self._events.problem,
                )
            )
        rest = self._take(self._events.finish())
        if self._junk and not self._has_data:
            raise no_completion(self._name, self._junk)
        return rest

    async def read_all(self) -> bytes:
        data = await self._read_body()
        if not may_be_odd(data):
            return data
        return await asyncio.to_thread(repair_provider_json, data)  # a long one takes a while

    def close(self) -> None:
        if self._response.content.at_eof():
            self._response.release()  # the connection is good for the next
        else:
            self._response.close()

    async def _read_body(self) -> bytes:
        if self._body.is_complete and not self._begun:  # as nearly always
            data = self._body.read_rest()
        else:
            deadline = asyncio.get_running_loop().time() + self._limits.whole_s
            begun, self._begun = self._begun, b""
            data = await self._body.read_all(MAX_UNSTREAMED, deadline, self._describe_delay, begun=begun)
        if len(data) > MAX_UNSTREAMED:
            raise oversized_answer(self._name, MAX_UNSTREAMED)
        return data

    async def _read(self, deadline: float) -> bytes:
        if self._begun:
            data, self._begun = self._begun, b""
            return data
        return await self._body.read(deadline, partial(describe_silence, self._name, self._patience))

    def _describe_delay(self) -> str:
        return Message(
            "provider.did_not_end",
            "{provider} did not end within {seconds:g} s",
            provider=describe_provider(self._name),
            seconds=self._limits.whole_s,
        )

    async def _is_one_piece(self, deadline: float) -> bool:
        """Return whether a JSON value or a page begins the body, and no event; peeks at its first bytes."""
        begun = b""
        while len(begun) < _MAX_BLANK and (data := await self._read(deadline)):
            begun += data
            if start := begun.removeprefix(_BOM).lstrip()[:1]:
                self._begun = begun.removeprefix(_BOM)
                return start in _UNSTREAMED_STARTS
        self._begun = begun
        return False

    async def _as_events(self) -> list[bytes]:
        """Return the events of a complete answer, once; none afterwards."""
        data = await self.read_all()
        return to_events(self._name, data) if data else []

    def _take(self, events: list[bytes]) -> list[bytes]:
        if not self._has_data:
            self._check_data(events)
        self._ready = events
        return self._next_ready()

    def _next_ready(self) -> list[bytes]:
        if len(self._ready) <= MAX_BATCH:
            events, self._ready = self._ready, []
        else:
            events, self._ready = self._ready[:MAX_BATCH], self._ready[MAX_BATCH:]
        return list(map(self._repair.repair_event, events))

    def _check_data(self, events: list[bytes]) -> None:
        for event in events:
            if data_of(event) is not None:
                self._has_data = True
                return
            self._junk = self._junk or (b"" if event.startswith(b":") else event)
