"""An answer of a model provider as it arrives, with its time limits.

It is idle when no complete event came for that time, however many bytes did. Requests ask for no compression, yet some
providers compress: gzip and deflate are decompressed in a thread, ``STEP`` bytes at a time, so that the reader can stop
a small body that expands into a huge one. Any other encoding is refused.
"""

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from toolyard.engine.step_limiter import StepLimiter
from toolyard.gateway.faults import (
    ChatFault,
    broken_answer,
    describe_provider,
    describe_silence,
    no_completion,
    oversized_answer,
    slow_provider,
    unreadable_answer,
)
from toolyard.gateway.protocols.chat_chunks import AnswerReader
from toolyard.gateway.providers.provider_json import StreamRepair, may_be_odd, repair_provider_json
from toolyard.gateway.reply.chunks import to_events
from toolyard.gateway.sse import Events, data_of
from toolyard.message import Message
from toolyard.protocol.json import JsonObject

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
        data, self._begun = self._begun, b""
        while not self._events.problem and (data := data or await self._body.read(deadline, self._describe_silence)):
            await self._fair.step()  # before it grows: of very many, most wait here
            if events := self._take(self._events.feed(data)):
                self._patience = self._limits.idle_s
                return events
            data = b""
        if self._events.problem:
            raise unreadable_answer(
                Message(
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

    def _describe_silence(self) -> str:
        return describe_silence(self._name, self._patience)

    def _describe_delay(self) -> str:
        return Message(
            "{provider} did not end within {seconds:g} s",
            provider=describe_provider(self._name),
            seconds=self._limits.whole_s,
        )

    async def _is_one_piece(self, deadline: float) -> bool:
        """Return whether a JSON value or a page begins the body, and no event; peeks at its first bytes."""
        begun = b""
        while len(begun) < _MAX_BLANK and (data := await self._body.read(deadline, self._describe_silence)):
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


class TranslatedAnswer(HttpAnswer):
    """An answer in another protocol, read as one of chat."""

    __slots__ = ("_reader",)

    def __init__(
        self, name: str, response: "aiohttp.ClientResponse", limits: Limits, fair: StepLimiter, reader: AnswerReader
    ) -> None:
        super().__init__(name, response, limits, fair)
        self._reader = reader

    async def events(self) -> list[bytes]:
        while events := await super().events():
            if self._is_unstreamed:
                return events
            if chunks := self._reader.read_events(events):
                return chunks
        self._reader.finish()
        return []

    async def read_all(self) -> bytes:
        data = await super().read_all()
        return await asyncio.to_thread(self._reader.to_completion, data)  # a long one takes a while

    async def _as_events(self) -> list[bytes]:
        data = await super().read_all()
        return await asyncio.to_thread(self._reader.read_whole, data) if data else []


_log = logging.getLogger(__name__)
STEP: Final = 128 * 1024  # bytes that are decompressed at once
_INPUT = 16 * 1024  # of them before: what is left over is copied in each step
_GZIP, _ZLIB, _RAW = 31, 15, -15
_MAGIC = b"\x1f\x8b"  # gzip's first bytes
_ENCODINGS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}


class ResponseBody:
    """The bytes of a response. Raises ChatFailed for an encoding that it does not support."""

    __slots__ = ("_content", "_decompressor", "_name")

    def __init__(self, name: str, response: "aiohttp.ClientResponse") -> None:
        self._name, self._content = name, response.content
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        self._decompressor: Decompressor | None = None
        if encoding not in ("", "identity"):
            if encoding not in _ENCODINGS:
                raise unreadable_answer(
                    Message(
                        "{provider} sent its answer compressed as '{encoding}', which nobody asked for",
                        provider=describe_provider(name),
                        encoding=encoding[:50],
                    )
                )
            self._decompressor = Decompressor(_ENCODINGS[encoding])

    @property
    def is_complete(self) -> bool:
        """Return whether the body has arrived completely, so that ``read_rest`` need not wait."""
        return self._decompressor is None and self._content.is_eof()

    def read_rest(self) -> bytes:
        return self._content.read_nowait(-1)

    def read(self, deadline: float, describe_silence: Callable[[], str]) -> Awaitable[bytes]:
        """Return the next bytes; none at the end.

        ``describe_silence`` returns the message for a provider that sends none until the deadline. Raises
        ChatFailed when it broke off, but only after every byte that came before.
        """
        if self._decompressor is None:
            return self._receive(deadline, describe_silence)
        return self._decompress(self._decompressor, deadline, describe_silence)

    async def _decompress(
        self, decompressor: "Decompressor", deadline: float, describe_silence: Callable[[], str]
    ) -> bytes:
        try:
            while not (data := await asyncio.to_thread(decompressor.step)):
                more = await self._receive(deadline, describe_silence)
                if not more:
                    decompressor.finish()
                    return b""
                decompressor.feed(more)
        except zlib.error as error:
            raise unreadable_answer(
                Message(
                    "{provider} sent a compressed answer that cannot be read: {error}",
                    provider=describe_provider(self._name),
                    error=error,
                )
            ) from error
        except EOFError as error:
            raise broken_answer(self._name, Message("its compressed answer is not complete")) from error
        return data

    async def read_all(
        self, most: int, deadline: float, describe_silence: Callable[[], str], *, begun: bytes = b""
    ) -> bytes:
        """Return ``begun`` and the rest of the body: at most ``most`` bytes and the piece that exceeds them."""
        pieces, size = [begun], len(begun)
        while size <= most and (data := await self.read(deadline, describe_silence)):
            pieces.append(data)
            size += len(data)
        return b"".join(pieces)

    async def _receive(self, deadline: float, describe_silence: Callable[[], str]) -> bytes:
        import aiohttp

        content = self._content
        try:
            data = content.read_nowait(-1)
            if data or content.at_eof():
                return data
            async with asyncio.timeout_at(deadline):
                return await content.readany()
        except TimeoutError as error:
            raise slow_provider(describe_silence()) from error
        except (aiohttp.ClientError, OSError) as error:
            if data := content._read_nowait(-1):  # the public methods drop bytes received before a connection broke
                return data
            _log.info("the answer of %s broke off: %s: %s", self._name, type(error).__name__, error)
            raise broken_answer(self._name) from error


class Decompressor:
    """Decompression in steps. Raises zlib.error for bytes of another kind."""

    def __init__(self, kind: int) -> None:
        self._kind, self._input = kind, b""
        self._inflate = zlib.decompressobj(kind)
        self._begun = self._ended = False
        self._may_have_more = False  # from the input it has already

    def feed(self, data: bytes) -> None:
        if not self._ended:  # whatever follows is no part of it
            self._input += data

    def step(self) -> bytes:
        """Return at most ``STEP`` bytes; none when more input is needed."""
        while self._can_go_on():
            compressed, self._input = self._input[:_INPUT], self._input[_INPUT:]
            data = self._inflate.decompress(compressed, STEP)
            self._may_have_more = len(data) == STEP and not self._inflate.eof
            self._input = self._inflate.unconsumed_tail + self._inflate.unused_data + self._input
            if data:
                return data
        return b""

    def finish(self) -> None:
        """Raise EOFError when the end is missing; an answer without any bytes is complete."""
        if self._begun and not self._inflate.eof:
            raise EOFError

    def _can_go_on(self) -> bool:
        if self._inflate.eof and not self._begin_member():
            return False
        if not self._begun and self._input:
            self._begun = True
            if self._kind == _ZLIB and self._input[0] & 0x0F != zlib.DEFLATED:
                self._inflate = zlib.decompressobj(_RAW)  # some leave out the zlib header
        return bool(self._input) or self._may_have_more

    def _begin_member(self) -> bool:
        """Begin the next gzip member, if there is one."""
        if self._kind == _GZIP and self._input.startswith(_MAGIC):
            self._inflate = zlib.decompressobj(_GZIP)
            return True
        if self._kind != _GZIP or not _MAGIC.startswith(self._input):
            self._input, self._ended = b"", True
        return False


_PREFIX = "upstream_"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderWait:
    provider: str
    fault: ChatFault  # the reason
    pause_s: float = 0.0
    attempt: int = 0  # the number of the next attempt at this provider, and of how many
    attempts: int = 0
    next_provider: str = ""  # asked instead

    def to_event(self) -> JsonObject:
        """Return the wait for clients that draw it; ``status`` is the provider's own, if it answered with one."""
        status = self.fault.code.removeprefix(_PREFIX)
        event: JsonObject = {
            "type": "provider.fallback" if self.next_provider else "provider.retry",
            "provider": self.provider,
            "code": self.fault.code,
            "status": int(status) if status.isdecimal() else None,
        }
        if self.next_provider:
            return event | {"next": self.next_provider}
        return event | {"pause_s": round(self.pause_s, 3), "attempt": self.attempt, "attempts": self.attempts}


WaitListener = Callable[[ProviderWait], None]


def ignore_wait(_: ProviderWait) -> None:
    """Do nothing, for callers whose client is not told."""
