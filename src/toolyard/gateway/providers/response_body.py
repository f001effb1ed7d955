"""The body of a provider's response: its bytes in pieces, decompressed; bytes before a break are delivered.

Requests ask for no compression, yet some providers compress: gzip and deflate are decompressed in a thread, ``STEP``
bytes at a time, so that the reader can stop a small body that expands into a huge one. Any other encoding is refused.
"""

import asyncio
import logging
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from toolyard.gateway.faults import broken_answer, describe_provider, slow_provider, unreadable_answer
from toolyard.message import Message

if TYPE_CHECKING:
    import aiohttp

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
                        "provider.unknown_compression",
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

    async def read(self, deadline: float, describe_silence: Callable[[], str]) -> bytes:
        """Return the next bytes; none at the end.

        ``describe_silence`` returns the message for a provider that sends none until the deadline. Raises
        ChatFailed when it broke off, but only after every byte that came before.
        """
        if self._decompressor is None:
            return await self._receive(deadline, describe_silence)
        try:
            while not (data := await asyncio.to_thread(self._decompressor.step)):
                more = await self._receive(deadline, describe_silence)
                if not more:
                    self._decompressor.finish()
                    return b""
                self._decompressor.feed(more)
        except zlib.error as error:
            raise unreadable_answer(
                Message(
                    "provider.unreadable_compression",
                    "{provider} sent a compressed answer that cannot be read: {error}",
                    provider=describe_provider(self._name),
                    error=error,
                )
            ) from error
        except EOFError as error:
            raise broken_answer(
                self._name, Message("provider.incomplete_compression", "its compressed answer is not complete")
            ) from error
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
