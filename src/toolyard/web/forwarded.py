"""An answer of a model provider on its way to the client, byte for byte.

When the client leaves, the provider's answer is closed at once. One that breaks off ends with an event that says so
where it is a stream of events; else the connection breaks, because nothing else tells a client that bytes are missing.
"""

import logging
from collections.abc import Callable, Coroutine
from contextlib import aclosing, closing
from typing import Any, Final

from starlette.types import Send

from toolyard.gateway.faults import ChatFailed, ChatFault
from toolyard.gateway.forwarding import ForwardedAnswer
from toolyard.web.running import Running

_log = logging.getLogger("toolyard.web")
EVENTS: Final = "text/event-stream"
_BYTES = "application/octet-stream"
_KINDS = (
    "application/json", "application/x-ndjson", _BYTES, EVENTS, "text/plain", "text/vtt", "application/x-subrip",
    "audio/", "image/png", "image/jpeg", "image/webp", "image/gif", "video/",
)  # fmt: skip


class ForwardedResponse(Running):
    __slots__ = ("_making", "_mask")

    def __init__(self, making: Coroutine[Any, Any, ForwardedAnswer], mask: Callable[[str], str]) -> None:
        self._making, self._mask = making, mask
        self._sending, self._gone, self._ending = None, False, False

    async def _send(self, send: Send) -> None:
        try:
            forwarded = await self._making
        except ChatFailed as failed:
            await self._refuse(send, failed.fault.mask_secrets(self._mask))
            return
        with closing(forwarded):
            kind = safe_kind(forwarded.content_type)
            headers = [(b"content-type", kind.encode("latin-1"))]
            await send({"type": "http.response.start", "status": int(forwarded.status), "headers": headers})
            try:
                async with aclosing(forwarded.pieces()) as pieces:
                    async for piece in pieces:
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
            except ChatFailed as failed:
                fault = failed.fault.mask_secrets(self._mask)
                if not kind.startswith(EVENTS):
                    _log.warning("%s, so the connection of its client is closed", fault.message)
                    return  # without an end: the server closes it
                await send({"type": "http.response.body", "body": fault.to_event(), "more_body": True})
        self._ending = True
        await send({"type": "http.response.body", "body": b""})

    async def _refuse(self, send: Send, fault: ChatFault) -> None:
        body = fault.to_bytes()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if fault.retry_after:
            headers.append((b"retry-after", fault.retry_after.encode("latin-1")))
        await send({"type": "http.response.start", "status": int(fault.status), "headers": headers})
        self._ending = True
        await send({"type": "http.response.body", "body": body})


def safe_kind(content_type: str) -> str:
    """The content type of an answer, unless a browser might take it for a page of ours."""
    is_header = content_type.isascii() and content_type.isprintable()
    return content_type if is_header and content_type.strip().lower().startswith(_KINDS) else _BYTES
