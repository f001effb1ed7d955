"""``/media``: pictures, sounds and films of tools for whoever has a link to them, on a page of any origin.

The signature of a link is the permission; no key is needed and none is looked at. Only media types of a fixed list are
sent, under exactly that type, and what is sent can run nothing. Reading changes nothing, and there is no list.
"""

from http import HTTPStatus
from typing import Final

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse

from toolyard.gateway.media_link import LinkState, MediaLinks
from toolyard.protocol.json import JsonObject
from toolyard.storage.media import KEPT
from toolyard.web.refusal import Refusal
from toolyard.web.shapes import ErrorBody

_HEADERS: Final = {
    "Content-Disposition": "inline",
    "Content-Security-Policy": "default-src 'none'; img-src 'self'; frame-ancestors 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Cache-Control": f"private, max-age={KEPT.total_seconds():.0f}, immutable",
}
_PLAYED: Final = _HEADERS | {  # browsers play nothing in a sandbox
    "Content-Security-Policy": "default-src 'none'; media-src 'self'; frame-ancestors 'none'"
}
_MEDIA: Final[JsonObject] = {"content": {"image/*": {}, "audio/*": {}, "video/*": {}}}


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
        """Send a picture, a sound or a film that a tool gave in a chat, to whoever has its link; ranges are served."""
        state = await links.check(name, expires, signature)
        if state is LinkState.FORGED:
            raise Refusal(
                HTTPStatus.FORBIDDEN, "the signature of this link does not match: use the link exactly as it was given"
            )
        stored = await links.find(name) if state is LinkState.VALID else None
        if stored is None:
            raise Refusal(
                HTTPStatus.GONE,
                f"media are kept for {KEPT.days} days, and this file is gone: ask for it again in a chat",
            )
        headers = _HEADERS if stored.mime.startswith("image/") else _PLAYED
        return FileResponse(stored.path, media_type=stored.mime, headers=headers)

    return routes
