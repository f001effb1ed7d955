"""``POST /v1/reply/render``: a structured reply as HTML, Markdown, terminal text or JSON."""

import asyncio

from fastapi import APIRouter, Response

from toolyard.protocol.replies.prompt import Language
from toolyard.protocol.reply import parse_reply
from toolyard.render.render import Target, render_parsed
from toolyard.web.answers import answer
from toolyard.web.shapes import Rendered, Reply


def router() -> APIRouter:
    routes = APIRouter(prefix="/v1/reply", tags=["replies"])

    @routes.post("/render", responses={200: {"model": Rendered}})
    async def render_reply(reply: Reply) -> Response:
        """Render what a model said. A text that is no reply gives its error and itself, with `ok` false."""
        return answer(await asyncio.to_thread(_render, reply))

    return routes


def _render(reply: Reply) -> dict[str, object]:
    parsed = parse_reply(reply.text)
    return {"ok": parsed.ok, "rendered": render_parsed(parsed, Target(reply.to), Language(reply.lang))}
