"""A response of a model provider, forwarded byte for byte.

When the client disconnects, the provider's response is closed at once. A stream of events that breaks off ends with an
error event; for other types the connection is closed, because nothing else shows a client that bytes are missing.
"""

import logging
from collections.abc import Callable, Coroutine
from contextlib import aclosing, closing
from typing import Any, Final

from starlette.types import Send

from toolyard.gateway.chat import Chat
from toolyard.gateway.faults import ChatFailed, ChatFault, server_stopping
from toolyard.gateway.providers.forwarding import ForwardedAnswer
from toolyard.web.chat_response import ChatResponse

_log = logging.getLogger("toolyard.web")
EVENTS: Final = "text/event-stream"
_BYTES = "application/octet-stream"
_KINDS = (
    "application/json", "application/x-ndjson", _BYTES, EVENTS, "text/plain", "text/vtt", "application/x-subrip",
    "audio/", "image/png", "image/jpeg", "image/webp", "image/gif", "video/",
)  # fmt: skip


class ForwardedResponse(ChatResponse):
    __slots__ = ("_chat", "_forwarding", "_mask")

    def __init__(self, making: Coroutine[Any, Any, ForwardedAnswer], mask: Callable[[str], str], chat: Chat) -> None:
        """``chat`` ends it when the server stops."""
        self._forwarding, self._mask, self._chat = making, mask, chat
        self._sending, self._is_client_gone, self._is_ending = None, False, False

    async def _send(self, send: Send) -> None:
        try:
            forwarded = await self._forwarding
        except ChatFailed as failed:
            await self._refuse(send, self._find_fault(failed))
            return
        with closing(forwarded), self._chat.ended_by_stop(forwarded.close):
            kind = safe_content_type(forwarded.content_type)
            headers = [(b"content-type", kind.encode("latin-1"))]
            await send({"type": "http.response.start", "status": int(forwarded.status), "headers": headers})
            try:
                async with aclosing(forwarded.pieces()) as pieces:
                    async for piece in pieces:
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
            except ChatFailed as failed:
                fault = self._find_fault(failed)
                if not kind.startswith(EVENTS):
                    _log.warning("%s, so the client connection is closed", fault.message)
                    return  # without an end, so the server closes the connection
                await send({"type": "http.response.body", "body": fault.to_event(), "more_body": True})
        self._is_ending = True
        await send({"type": "http.response.body", "body": b""})

    def _find_fault(self, failed: ChatFailed) -> ChatFault:
        return server_stopping() if self._chat.is_stopping else failed.fault.mask_secrets(self._mask)

    async def _refuse(self, send: Send, fault: ChatFault) -> None:
        body = fault.to_bytes()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if fault.retry_after:
            headers.append((b"retry-after", fault.retry_after.encode("latin-1")))
        await send({"type": "http.response.start", "status": int(fault.status), "headers": headers})
        self._is_ending = True
        await send({"type": "http.response.body", "body": body})


def safe_content_type(content_type: str) -> str:
    """Return the content type of a response, or a binary one if a browser could take it for a page of ours."""
    is_header = content_type.isascii() and content_type.isprintable()
    return content_type if is_header and content_type.strip().lower().startswith(_KINDS) else _BYTES
