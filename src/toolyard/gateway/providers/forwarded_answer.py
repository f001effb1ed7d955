"""Requests forwarded to a model provider unchanged, and their answers: embeddings, images, audio and others."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from toolyard.engine.step_limiter import StepLimiter
from toolyard.gateway.faults import ChatFailed, describe_silence, oversized_answer
from toolyard.gateway.providers.answer import Limits, ResponseBody

if TYPE_CHECKING:
    import aiohttp

MAX_ANSWER: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A request to a provider. One whose body comes in pieces can be sent only once."""

    path: str  # below the address of the provider, such as /embeddings
    body: bytes | AsyncIterator[bytes]
    content_type: str
    accept: str = ""
    length: int | None = None  # of a body in pieces, if it is known
    more: Mapping[str, str] = field(default_factory=dict)  # headers of the client that belong to its protocol

    @property
    def headers(self) -> dict[str, str]:
        made = {"Content-Type": self.content_type}
        if self.accept:
            made["Accept"] = self.accept
        if self.length is not None:
            made["Content-Length"] = str(self.length)
        return made


class ForwardedAnswer:
    """The answer to such a request, which has begun. Its holder closes it."""

    def __init__(self, name: str, response: "aiohttp.ClientResponse", limits: Limits, fair: StepLimiter) -> None:
        self._name, self._response, self._limits, self._fair = name, response, limits, fair
        self._body = ResponseBody(name, response)
        self.status = response.status
        self.content_type = response.headers.get("Content-Type", "")
        self.when_failed: Callable[[ChatFailed], None] | None = None  # called when it breaks off
        self.when_closed: Callable[[], None] | None = None

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the body. Raises ChatFailed when it breaks off, stalls, or exceeds ``MAX_ANSWER`` bytes."""
        size, patience = 0, self._limits.idle_s
        try:
            while True:
                deadline = asyncio.get_running_loop().time() + patience
                data = await self._body.read(deadline, partial(describe_silence, self._name, patience))
                if not data:
                    return
                size += len(data)
                if size > MAX_ANSWER:
                    raise oversized_answer(self._name, MAX_ANSWER)
                await self._fair.step()
                yield data
        except ChatFailed as failed:
            if self.when_failed is not None:
                self.when_failed(failed)
            raise

    def close(self) -> None:
        """Stop it at once. Closing twice is harmless."""
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()
        done, self.when_closed = self.when_closed, None
        if done is not None:
            done()
