"""``/v1/reply``: model replies rendered as HTML, Markdown, text or JSON, and their remote media.

Remote images, audio and video are fetched once, when a person asks to see them, from public addresses only (S-62,
S-70): the page itself requests nothing from other servers. At most ``_MAX_FETCHES`` at the same time.
"""

import asyncio
from http import HTTPStatus
from typing import Annotated, Final, Literal

from fastapi import Response
from pydantic import BaseModel, Field

from toolyard.message import Message, to_fields
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.replies.reply_values import AttachmentType, ReplyError
from toolyard.protocol.reply import parse_reply
from toolyard.web.answers import json_response
from toolyard.web.refusal import Refusal, bad_request
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import MessageFields, StrictModel
from toolyard.web.security.scope import Scope
from toolyard.workspace.safe_fetch import SafeFetch


class ReplyRequest(StrictModel):
    text: Annotated[str, Field(description="The text of the model.")]
    to: Literal["html", "markdown", "terminal", "json"] = "html"
    lang: Literal["en", "zh"] = "en"
    kind: Annotated[
        Literal["auto", "reply", "markdown"],
        Field(description="The kind of text. `auto` detects it, and omits the thinking from the HTML."),
    ] = "reply"
    partial: Annotated[bool, Field(description="The text is incomplete: missing parts are no error.")] = False


class RemoteMediaRequest(StrictModel):
    url: Annotated[str, Field(max_length=8192, description="As in the reply; only public addresses are fetched.")]
    kind: Literal["image", "audio", "video"] = "image"


class ReplyParseError(MessageFields):
    line: int
    column: int


class RenderedReply(BaseModel):
    ok: bool
    rendered: str
    kind: Literal["reply", "markdown"]
    think: Annotated[str, Field(description="The thinking, as text.")]
    error: ReplyParseError | None


_MAX_FETCHES = 4
_FETCH_S = 20.0
_BINARY: Final[JsonObject] = {"schema": {"type": "string", "format": "binary"}}
_MEDIA: Final[JsonObject] = {"content": {"image/*": _BINARY, "audio/*": _BINARY, "video/*": _BINARY}}


def router(fetch: SafeFetch | None = None) -> Routes:
    routes = Routes("/v1/reply", tag="replies", scope=frozenset({Scope.CHAT, Scope.TOOLS}))
    fetcher, turns = fetch or SafeFetch(max_s=_FETCH_S), asyncio.Semaphore(_MAX_FETCHES)

    @routes.post("/render", RenderedReply)
    async def render_reply(reply: ReplyRequest) -> Response:
        """Render the text of a model. For an invalid structured reply `ok` is false, with the error and the text."""
        if reply.to == "html":
            return json_response(await asyncio.to_thread(_draw_html, reply))
        if reply.kind != "reply" or reply.partial:
            raise bad_request(Message("'kind' and 'partial' apply to HTML only: omit them or 'to'"))
        return json_response(await asyncio.to_thread(_render_text, reply))

    @routes.post("/media", responses={200: _MEDIA}, response_class=Response)
    async def load_media(media: RemoteMediaRequest) -> Response:
        """Fetch a remote image, audio or video file of a reply, if it is of that type."""
        async with turns:
            mime, content = await asyncio.to_thread(_fetch_media, fetcher, media)
        return Response(content, media_type=mime, headers={"Content-Disposition": "attachment"})

    return routes


def _fetch_media(fetcher: SafeFetch, media: RemoteMediaRequest) -> tuple[str, bytes]:
    from toolyard.render.html.media import MediaRefused, check_media_type

    try:
        content = fetcher.fetch(media.url, lambda: None).content
        return check_media_type(AttachmentType(media.kind), content), content
    except MediaRefused as refused:
        raise Refusal(
            HTTPStatus.BAD_GATEWAY, Message("the content is not {kind} that can be shown", kind=media.kind)
        ) from refused
    except Failure as failure:
        ours = failure.code in (ErrorCode.INVALID_PARAM, ErrorCode.ACCESS_DENIED)
        raise Refusal(HTTPStatus.BAD_REQUEST if ours else HTTPStatus.BAD_GATEWAY, failure.message) from failure


def _draw_html(reply: ReplyRequest) -> JsonObject:
    from toolyard.render.draft import Kind, draw  # imported with the first reply

    kind = None if reply.kind == "auto" else Kind(reply.kind)
    drawn = draw(reply.text, kind, Language(reply.lang), partial=reply.partial)
    return {
        "ok": drawn.error is None,
        "rendered": drawn.html,
        "kind": drawn.kind.value,
        "think": drawn.think,
        "error": _error_to_json(drawn.error),
    }


def _render_text(reply: ReplyRequest) -> JsonObject:
    from toolyard.render import Target, render_parsed

    parsed = parse_reply(reply.text)
    think, error = ("", parsed) if isinstance(parsed, ReplyError) else (parsed.think or "", None)
    return {
        "ok": parsed.ok,
        "rendered": render_parsed(parsed, Target(reply.to), Language(reply.lang)),
        "kind": "reply",
        "think": think,
        "error": _error_to_json(error),
    }


def _error_to_json(error: ReplyError | None) -> JsonObject | None:
    return (
        None
        if error is None
        else {
            **to_fields("message", error.message),
            "line": error.line,
            "column": error.column,
        }
    )
