"""Limits of request bodies: content type, size and time, checked before and while a body arrives."""

import asyncio
from http import HTTPStatus
from typing import Final

from starlette.types import Message as AsgiMessage
from starlette.types import Receive

from toolyard.message import Message
from toolyard.plugins.long_work import callback
from toolyard.web.refusal import Refusal
from toolyard.web.security.request_head import RequestHead
from toolyard.web.security.scope import CALLBACK_PREFIX, FORWARDED_PATHS, VCP_PLUGINS

MAX_BODY: Final = 8 * 2**20
MAX_CALLBACK: Final = callback.MAX_BODY
MAX_CHAT: Final = 32 * 2**20
MAX_BACKUP: Final = 512 * 2**20
MAX_FORM: Final = 16 * 1024  # sent without a key
BODY_S: Final = 30.0
_BACKUP_FACTOR = 20  # times BODY_S
_TEXT = "/v1/human/tool"
_FORM = "/login"
_INSTALL = "/v1/plugins/install"
_RESTORE = "/v1/backup/restore"
_ATTACHMENT = "/v1/attachments"
_FORMS = ("/v1/images/", "/v1/audio/")
_LARGE = (
    "/v1/chat/",
    "/v1/chatvcp/",
    "/v1/responses",
    "/v1/messages",
    *FORWARDED_PATHS,
    *VCP_PLUGINS,
)  # to a model or a plugin
_ANY_TYPE = (
    "application/json", "text/plain", "text/html", "application/x-www-form-urlencoded", "multipart/form-data",
    "application/octet-stream",
)  # fmt: skip


def max_body_bytes(path: str) -> int:
    if path.startswith(CALLBACK_PREFIX):
        return MAX_CALLBACK
    if path == _FORM:
        return MAX_FORM
    if path == _RESTORE:
        return MAX_BACKUP
    return MAX_CHAT if path.startswith(_LARGE) or path in (_INSTALL, _ATTACHMENT) else MAX_BODY


def body_timeout_s(path: str, seconds: float) -> float:
    """Return how long the body of a path may take; ``seconds`` is the usual limit."""
    return seconds * (_BACKUP_FACTOR if path == _RESTORE else 1)


def require_valid_body(head: RequestHead) -> None:
    """Check a body by the request's headers alone: 413 when too large, 415 for a wrong content type."""
    if head.is_safe or not head.has_body:
        return
    size, most = head.get("content-length"), max_body_bytes(head.path)
    if size and (not size.isascii() or not size.isdigit() or len(size) > 15):
        raise Refusal(HTTPStatus.BAD_REQUEST, Message("Content-Length is not a number"))
    if size and int(size) > most:
        raise body_too_large(most)
    if head.content_type not in _list_content_types(head.path):
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            Message("send the body as {type}, with that Content-Type", type=_list_content_types(head.path)[0]),
        )


def body_too_large(most: int) -> Refusal:
    message = Message("the body is larger than {most} bytes", most=most)
    return Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message, headers={"Connection": "close"})


class BoundedBody:
    """An ASGI ``receive`` that fails after ``most`` bytes or ``seconds``."""

    __slots__ = ("_deadline", "_ended", "_most", "_receive", "_seconds", "_seen")

    def __init__(self, receive: Receive, most: int, seconds: float) -> None:
        self._receive, self._most, self._seconds = receive, most, seconds
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._seen, self._ended = 0, False

    async def __call__(self) -> AsgiMessage:
        if self._ended:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError as error:
            raise Refusal(
                HTTPStatus.REQUEST_TIMEOUT,
                Message("the body did not arrive within {seconds:g} s", seconds=self._seconds),
                headers={"Connection": "close"},
            ) from error
        self._seen += len(message.get("body", b""))
        self._ended = not message.get("more_body", False)
        if self._seen > self._most:
            raise body_too_large(self._most)
        return message


def _list_content_types(path: str) -> tuple[str, ...]:
    if path == _TEXT:
        return ("text/plain", "application/json")
    if path == _INSTALL:
        return ("application/json", "application/zip")
    if path == _RESTORE:
        return ("application/gzip",)
    if path == _ATTACHMENT:
        return ("application/octet-stream",)
    if path == _FORM:
        return ("application/x-www-form-urlencoded",)
    if path.startswith(CALLBACK_PREFIX):
        return ("application/json", "text/json", "")
    if path.startswith(_FORMS):
        return ("application/json", "multipart/form-data")
    if path.startswith(VCP_PLUGINS):
        return _ANY_TYPE
    return ("application/json",)
