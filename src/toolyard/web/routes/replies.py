"""``/v1/reply``: what a model said as HTML, and a structured reply also as Markdown, text or JSON; and pictures in it.

A picture, a sound or a film that stands elsewhere is fetched for a person who asked to see it, once, from public
addresses only (S-62, S-70): the page itself asks no other server for anything. At most ``_AT_ONCE`` at the same time.
"""

import asyncio
from http import HTTPStatus
from typing import Final

from fastapi import APIRouter, Response

from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.replies.prompt import Language
from toolyard.protocol.reply import AttachmentType, ReplyError, parse_reply
from toolyard.web.answers import answer
from toolyard.web.refusal import Refusal, bad_request
from toolyard.web.shapes import MediaElsewhere, Rendered, Reply
from toolyard.workspace.safe_fetch import SafeFetch

_AT_ONCE = 4
_FETCH_S = 20.0
_MEDIA: Final[JsonObject] = {"content": {"image/*": {}, "audio/*": {}, "video/*": {}}}


def router(fetch: SafeFetch | None = None) -> APIRouter:
    routes = APIRouter(prefix="/v1/reply", tags=["replies"])
    fetcher, turns = fetch or SafeFetch(max_s=_FETCH_S), asyncio.Semaphore(_AT_ONCE)

    @routes.post("/render", responses={200: {"model": Rendered}})
    async def render_reply(reply: Reply) -> Response:
        """Render what a model said. A text that is no reply gives its error and itself, with `ok` false."""
        if reply.to == "html":
            return answer(await asyncio.to_thread(_drawn, reply))
        if reply.kind != "reply" or reply.partial:
            raise bad_request("'kind' and 'partial' are for HTML: leave them or 'to' out")
        return answer(await asyncio.to_thread(_rendered, reply))

    @routes.post("/media", response_class=Response, responses={200: _MEDIA})
    async def load_media(wanted: MediaElsewhere) -> Response:
        """Fetch a picture, a sound or a film that a reply names elsewhere: its bytes, if they are such a thing."""
        async with turns:
            mime, content = await asyncio.to_thread(_fetched, fetcher, wanted)
        return Response(content, media_type=mime, headers={"Content-Disposition": "attachment"})

    return routes


def _fetched(fetcher: SafeFetch, wanted: MediaElsewhere) -> tuple[str, bytes]:
    from toolyard.render.html.media import MediaRefused, check_media_type

    try:
        content = fetcher.fetch(wanted.url, lambda: None).content
        return check_media_type(AttachmentType(wanted.kind), content), content
    except MediaRefused as refused:
        raise Refusal(HTTPStatus.BAD_GATEWAY, f"what is there is not {wanted.kind} that can be shown") from refused
    except Failure as failure:
        ours = failure.code in (ErrorCode.INVALID_PARAM, ErrorCode.ACCESS_DENIED)
        raise Refusal(HTTPStatus.BAD_REQUEST if ours else HTTPStatus.BAD_GATEWAY, failure.message) from failure


def _drawn(reply: Reply) -> JsonObject:
    from toolyard.render.draft import Kind, draw  # with all that draws: the first reply brings it in

    kind = None if reply.kind == "auto" else Kind(reply.kind)
    drawn = draw(reply.text, kind, Language(reply.lang), partial=reply.partial)
    return {
        "ok": drawn.error is None,
        "rendered": drawn.html,
        "kind": drawn.kind.value,
        "think": drawn.think,
        "error": _fault(drawn.error),
    }


def _rendered(reply: Reply) -> JsonObject:
    from toolyard.render.render import Target, render_parsed

    parsed = parse_reply(reply.text)
    think, error = ("", parsed) if isinstance(parsed, ReplyError) else (parsed.think or "", None)
    return {
        "ok": parsed.ok,
        "rendered": render_parsed(parsed, Target(reply.to), Language(reply.lang)),
        "kind": "reply",
        "think": think,
        "error": _fault(error),
    }


def _fault(error: ReplyError | None) -> JsonObject | None:
    return None if error is None else {"message": error.message, "line": error.line, "column": error.column}
