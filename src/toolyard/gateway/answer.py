"""An answer of a model provider while it comes, and how long it may take.

It is idle when no whole event came for that time, however many bytes did.
"""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from toolyard.gateway.chunks import as_events
from toolyard.gateway.fair import Fair
from toolyard.gateway.faults import cut_off, too_slow, unreadable
from toolyard.gateway.sse import Events

if TYPE_CHECKING:
    import aiohttp

MAX_WHOLE: Final = 32 * 1024 * 1024


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
    """An answer that has begun, with status 200."""

    async def events(self) -> list[bytes]:
        """The next events, as many as there are; none at the end. Raises ChatFailed."""
        ...

    async def whole(self) -> bytes: ...

    def close(self) -> None:
        """Stop it at once. Closing twice is harmless."""
        ...


class HttpAnswer:
    __slots__ = ("_events", "_fair", "_limits", "_name", "_patience", "_response")

    def __init__(self, name: str, response: "aiohttp.ClientResponse", limits: Limits, fair: Fair) -> None:
        self._name, self._response, self._limits, self._fair = name, response, limits, fair
        self._events = Events()
        self._patience = limits.first_byte_s

    async def events(self) -> list[bytes]:
        if self._response.content_type != "text/event-stream":
            return as_events(self._name, await self.whole())
        deadline = asyncio.get_running_loop().time() + self._patience
        while data := await self._some(deadline):
            await self._fair.step()  # before it grows: of very many, most wait here
            try:
                found = self._events.feed(data)
            except ValueError as error:
                raise unreadable(self._name, f"sent nonsense: {error}") from error
            if found:
                self._patience = self._limits.idle_s
                return found
        rest = self._events.finish()
        return [rest] if rest else []

    async def whole(self) -> bytes:
        content = self._response.content
        data = content.read_nowait(-1) if content.is_eof() else await self._rest()  # as nearly always: it is there
        if len(data) > MAX_WHOLE:
            raise unreadable(self._name, f"sent more than {MAX_WHOLE} bytes")
        return data

    async def _rest(self) -> bytes:
        import aiohttp

        try:
            async with asyncio.timeout(self._limits.whole_s):
                data = await self._response.content.read(MAX_WHOLE + 1)
                while len(data) <= MAX_WHOLE and (more := await self._response.content.read(MAX_WHOLE)):
                    data += more
                return data
        except TimeoutError as error:
            raise too_slow(self._name, f"did not end within {self._limits.whole_s:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise cut_off(self._name, str(error)) from error

    def close(self) -> None:
        if self._response.content.at_eof():
            self._response.release()  # the connection is good for the next
        else:
            self._response.close()

    async def _some(self, deadline: float) -> bytes:
        """The next bytes; none at the end."""
        import aiohttp

        content = self._response.content
        try:
            data = content.read_nowait(-1)
            if data or content.at_eof():
                return data
            async with asyncio.timeout_at(deadline):
                return await content.readany()
        except TimeoutError as error:
            raise too_slow(self._name, f"fell silent for {self._patience:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise cut_off(self._name, str(error)) from error
