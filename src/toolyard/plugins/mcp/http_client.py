"""An HTTP client for MCP servers whose answers have a limit, counted after decompression.

A body is read in pieces of at most 1 MiB and given up beyond ``MAX_BODY``, so that a small compressed answer cannot
become gigabytes. A stream of events may go on for ever; of that each event has the same limit, which the SDK enforces.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2

from toolyard.message import Message
from toolyard.plugins.mcp.stdio_transport import MAX_LINE

MAX_BODY: Final = MAX_LINE
_ENCODED = ("content-encoding", "content-length")  # no longer true of a body that was decoded
_LARGE = 64 * 1024


class BoundedClient(httpx2.AsyncClient):
    """A client whose responses raise ``StreamError`` when their bodies are too large.

    ``refusal`` is the last answer that was none, such as "HTTP 401 Unauthorized".
    """

    refusal = ""

    async def send(
        self,
        request: httpx2.Request,
        *,
        stream: bool = False,
        auth: Any = httpx2.USE_CLIENT_DEFAULT,
        follow_redirects: Any = httpx2.USE_CLIENT_DEFAULT,
    ) -> httpx2.Response:
        response = await super().send(request, stream=True, auth=auth, follow_redirects=follow_redirects)
        if response.is_error or response.is_redirect:
            status = f"{response.status_code} {response.reason_phrase}".rstrip()
            self.refusal = (
                Message(
                    "mcp.http_redirect",
                    "it answered HTTP {status} to {place}",
                    status=status,
                    place=response.headers["location"][:200],
                )
                if response.has_redirect_location
                else Message("mcp.http_status", "it answered HTTP {status}", status=status)
            )
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _ENCODED]
        bounded = httpx2.Response(
            response.status_code,
            headers=headers,
            stream=_BoundedBody(response),
            request=response.request,
            extensions=response.extensions,
            history=response.history,
        )
        bounded.next_request = response.next_request
        if not stream:
            try:
                await bounded.aread()
            except BaseException:
                await bounded.aclose()
                raise
        return bounded


class _BoundedBody(httpx2.AsyncByteStream):
    """The decoded body of a response, up to the limit."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        kind = response.headers.get("content-type", "").lower()
        self._is_endless = kind.startswith("text/event-stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for chunk in self._response.aiter_bytes():
            total += len(chunk)
            if total > MAX_BODY and not self._is_endless:
                raise httpx2.StreamError(
                    Message("mcp.answer_too_large", "its answer is larger than {most} MiB", most=MAX_BODY >> 20)
                )
            yield chunk
            if len(chunk) >= _LARGE:
                await asyncio.sleep(0)  # a compressed megabyte is a thousand of these: let others work in between

    async def aclose(self) -> None:
        await self._response.aclose()
