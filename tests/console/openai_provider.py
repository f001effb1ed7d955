"""A model provider over real HTTP that speaks OpenAI: it knows its key, lists models, and asks for a tool once."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

KEY: Final = "sk-canary-77aa01c2"
REFUSAL: Final = "Incorrect API key: you are not <b>known</b> here."
MODELS: Final = ("text-embedding-small", "star-1", "星辰-大", "star-<i>")


@dataclass
class OpenAiProvider:
    url: str = ""
    keys: list[str] = field(default_factory=list)  # the Authorization of each request
    asked: list[str] = field(default_factory=list)  # the model of each chat request


@asynccontextmanager
async def openai_provider(models: Sequence[str] = MODELS, *, tool: str = "LS") -> AsyncIterator[OpenAiProvider]:
    """A chat gets one call of ``tool``, if that was offered, and then a sentence; streamed if that was asked for."""
    one = OpenAiProvider()

    def refuse(request: web.Request) -> web.Response | None:
        one.keys.append(request.headers.get("Authorization", ""))
        if one.keys[-1] == f"Bearer {KEY}":
            return None
        return web.json_response({"error": {"message": REFUSAL, "code": "invalid_api_key"}}, status=401)

    async def list_models(request: web.Request) -> web.Response:
        listed = [{"id": name, "object": "model"} for name in models]
        return refuse(request) or web.json_response({"object": "list", "data": listed})

    async def complete(request: web.Request) -> web.Response:
        if refusal := refuse(request):
            return refusal
        body = await request.json()
        if "model" not in body:  # a test of the provider finds out what it speaks
            return web.json_response({"error": {"message": "you must provide a model parameter"}}, status=400)
        one.asked.append(body["model"])
        message = _answer(body, tool)
        finish = "tool_calls" if "tool_calls" in message else "stop"
        head = {"id": "chatcmpl-1", "created": 1, "model": body["model"]}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return web.json_response({**head, "object": "chat.completion", "choices": [choice]})
        calls = [{"index": 0, **call} for call in message.get("tool_calls", ())]
        delta = {**message, **({"tool_calls": calls} if calls else {})}
        chunks = [{"index": 0, "delta": delta}, {"index": 0, "delta": {}, "finish_reason": finish}]
        lines = [json.dumps({**head, "object": "chat.completion.chunk", "choices": [one]}) for one in chunks]
        text = "".join(f"data: {line}\n\n" for line in (*lines, "[DONE]"))
        return web.Response(text=text, content_type="text/event-stream")

    app = web.Application()
    app.router.add_get("/v1/models", list_models)
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    one.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield one
    finally:
        await runner.cleanup()


def _answer(body: dict[str, Any], tool: str) -> dict[str, Any]:
    offered = [one["function"]["name"] for one in body.get("tools") or ()]
    if tool in offered and not any(message["role"] == "tool" for message in body["messages"]):
        call = {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": json.dumps({"path": "."})}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"role": "assistant", "content": "There is one file: **plan.md**."}
