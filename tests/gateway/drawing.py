"""A tool that gives media, and models that ask for it."""

import json
from typing import Any

from tests.fakes import FakeTool
from tests.gateway.serving import Gateway
from tests.gateway.upstream import DONE, Script, chunk, completion
from toolyard.protocol.content import Media, Text
from toolyard.protocol.envelope import Extras
from toolyard.protocol.tool import Checkpoint, Result, ToolCall

LARGE = Media("image/png", b"\x89PNG\r\n\x1a\n" + b"x" * 20_000, "chart.png")
SMALL = Media("image/png", b"\x89PNG\r\n\x1a\n" + b"x" * 100, "dot.png")
SOUND = Media("audio/mpeg", b"ID3\x04" + b"x" * 100, "song.mp3")


def add_draw(one: Gateway, *media: Media) -> list[Media]:
    """Let the gateway have a tool Draw that gives these; the list may be changed."""
    parts = list(media)

    async def draw(_: ToolCall, __: Checkpoint) -> Result:
        return Result(data={"drawn": True}, text="Drew it.", extras=Extras(parts=(Text("Drew it."), *parts)))

    one.yard.tools.add(FakeTool(draw, name="Draw"))
    return parts


def asks_natively(body: dict[str, Any], *names: str, text: str = "", reasoning: str = "") -> Script:
    """A reply with native calls, streamed or whole as the request asks for."""
    functions = [{"name": name, "arguments": "{}"} for name in names]
    listed = [{"id": f"n{at}", "type": "function", "function": one} for at, one in enumerate(functions, 1)]
    thought = {"reasoning_content": reasoning} if reasoning else {}
    if not body.get("stream"):
        message = {"role": "assistant", "content": text or None, "tool_calls": listed, **thought}
        return Script([completion(message, "tool_calls")], kind="application/json")
    indexed = [{"index": at, **call} for at, call in enumerate(listed)]
    return Script([chunk({"content": text, "tool_calls": indexed, **thought}), chunk({}, "tool_calls"), DONE])


def refuses(message: str, status: int = 400) -> Script:
    return Script([json.dumps({"error": {"message": message}}).encode()], status=status, kind="application/json")
