"""``/media``: images, audio and video of tools, for anyone with a signed link, on pages of any origin.

The signature is the permission; no key is needed or checked. Only a fixed list of media types is served, each as
exactly that type, and nothing served can run scripts. There is no listing.
"""

from http import HTTPStatus
from typing import Final

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse

from toolyard.gateway.media.media_link import LinkState, MediaLinks
from toolyard.message import Message
from toolyard.protocol.json import JsonObject
from toolyard.storage.media import KEPT
from toolyard.web.refusal import Refusal
from toolyard.web.schemas.common import ErrorBody

_HEADERS: Final = {
    "Content-Disposition": "inline",
    "Content-Security-Policy": "default-src 'none'; img-src 'self'; frame-ancestors 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Cache-Control": f"private, max-age={KEPT.total_seconds():.0f}, immutable",
}
_PLAYED: Final = _HEADERS | {  # browsers play no media in a sandbox
    "Content-Security-Policy": "default-src 'none'; media-src 'self'; frame-ancestors 'none'"
}
_BINARY: Final[JsonObject] = {"schema": {"type": "string", "format": "binary"}}
_MEDIA: Final[JsonObject] = {"content": {"image/*": _BINARY, "audio/*": _BINARY, "video/*": _BINARY}}


def router(links: MediaLinks) -> APIRouter:
    routes = APIRouter(tags=["media"])

    @routes.head("/media/{name}", include_in_schema=False)
    @routes.get(
        "/media/{name}",
        response_class=Response,
        responses={200: _MEDIA, 206: _MEDIA, 403: {"model": ErrorBody}, 410: {"model": ErrorBody}},
        openapi_extra={"security": []},
    )
    async def show_media(name: str, expires: str = "", signature: str = "") -> Response:
        """Return an image, audio or video file of a chat by its signed link; ranges are supported."""
        state = await links.check(name, expires, signature)
        if state is LinkState.FORGED:
            raise Refusal(
                HTTPStatus.FORBIDDEN,
                Message(
                    "http.invalid_link_signature",
                    "the signature of this link is invalid: use the link unchanged",
                ),
            )
        stored = await links.find(name) if state is LinkState.VALID else None
        if stored is None:
            raise Refusal(
                HTTPStatus.GONE,
                Message(
                    "file.media_expired",
                    "this file has expired: media are kept for {days} days",
                    days=KEPT.days,
                ),
            )
        headers = _HEADERS if stored.mime.startswith("image/") else _PLAYED
        return FileResponse(stored.path, media_type=stored.mime, headers=headers)

    return routes
