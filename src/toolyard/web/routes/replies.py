"""``POST /v1/reply/render``: what a model said as HTML, and a structured reply also as Markdown, text or JSON."""

import asyncio

from fastapi import APIRouter, Response

from toolyard.protocol.json import JsonObject
from toolyard.protocol.replies.prompt import Language
from toolyard.protocol.reply import ReplyError, parse_reply
from toolyard.web.answers import answer
from toolyard.web.refusal import bad_request
from toolyard.web.shapes import Rendered, Reply


def router() -> APIRouter:
    routes = APIRouter(prefix="/v1/reply", tags=["replies"])

    @routes.post("/render", responses={200: {"model": Rendered}})
    async def render_reply(reply: Reply) -> Response:
        """Render what a model said. A text that is no reply gives its error and itself, with `ok` false."""
        if reply.to == "html":
            return answer(await asyncio.to_thread(_drawn, reply))
        if reply.kind != "reply" or reply.partial:
            raise bad_request("'kind' and 'partial' are for HTML: leave them or 'to' out")
        return answer(await asyncio.to_thread(_rendered, reply))

    return routes


def _drawn(reply: Reply) -> JsonObject:
    from toolyard.render.spoken import Kind, draw  # with all that draws: the first reply brings it in

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
