"""``tour``: the built-in model, for a server without a provider. Deterministic: the same words get the same answer.

It speaks the same protocol as any provider, so its tool requests really run. It reads the user's last message, calls
tools, and comments on their results. It answers in Chinese when the user writes Chinese.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

import orjson

from toolyard.engine.step_limiter import StepLimiter
from toolyard.gateway.faults import ChatFailed, bad_request
from toolyard.gateway.providers.answer import Answer
from toolyard.gateway.providers.forwarding import ForwardedAnswer, Outgoing
from toolyard.gateway.providers.wait import WaitListener, ignore_wait
from toolyard.gateway.sse import DONE
from toolyard.gateway.tour.script import ScriptedReply, write_reply
from toolyard.gateway.vcp import PAYLOAD
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject

_PIECE = re.compile(r"\s*\S{1,12}\s?|\s+")  # a word, or a few characters of a text without blanks
_CREATED: Final = 1_700_000_000


class Tour:
    name = "tour"
    max_rounds = None

    def __init__(self, now: Callable[[], datetime], *, pause_s: float = 0.0, has_provider: bool = False) -> None:
        self._now, self._pause_s, self._has_provider = now, pause_s, has_provider
        self._fair = StepLimiter()

    async def ask(
        self,
        body: bytes,
        *,
        stream: bool,  # noqa: ARG002 it can do both
        retry: bool,  # noqa: ARG002 it never fails
        on_wait: WaitListener = ignore_wait,  # noqa: ARG002
    ) -> Answer:
        request = orjson.loads(body)
        messages = [message for message in request.get("messages", []) if isinstance(message, dict)]
        reply = write_reply(
            _last_user_text(messages),
            _results(messages),
            _last_own_text(messages),
            self._now(),
            has_provider=self._has_provider,
        )
        words = sum(len(_text(message)) for message in messages) // 4
        usage: JsonObject = {
            "prompt_tokens": words,
            "completion_tokens": len(reply.text) // 4,
            "total_tokens": words + len(reply.text) // 4,
        }
        counts = isinstance(request.get("stream_options"), dict) and bool(
            request["stream_options"].get("include_usage")
        )
        return _ScriptedAnswer(reply, usage, self._fair, counts=counts, pause_s=self._pause_s)

    async def forward(self, request: Outgoing) -> ForwardedAnswer:  # noqa: ARG002
        raise bad_request(
            Message("chat.tour_only_chats", "the built-in guide 'tour' can only chat: name a model of a provider"),
            "no_provider",
        )

    async def models(self) -> list[JsonObject]:
        return [{"id": self.name, "object": "model", "created": _CREATED, "owned_by": "toolyard"}]

    def note_failure(self, failed: ChatFailed) -> None:
        """Do nothing: it never fails."""

    async def close(self) -> None:
        """Do nothing: it holds no resources."""


class _ScriptedAnswer:
    def __init__(
        self, reply: ScriptedReply, usage: JsonObject, fair: StepLimiter, *, counts: bool, pause_s: float
    ) -> None:
        self._reply, self._usage, self._fair, self._counts, self._pause_s = reply, usage, fair, counts, pause_s
        self._pending = self._batches()
        self._begun = False

    async def events(self) -> list[bytes]:
        if self._begun:
            await asyncio.sleep(self._pause_s)
        self._begun = True
        await self._fair.step()  # very many pauses may end at the same moment
        return next(self._pending, [])

    def _batches(self) -> Iterator[list[bytes]]:
        yield [_event({"role": "assistant", "content": ""})]
        for piece in _PIECE.findall(self._reply.thought):
            yield [_event({"reasoning_content": piece})]
        for piece in _PIECE.findall(self._reply.text):
            yield [_event({"content": piece})]
        last = [_event({}, "stop")]
        if self._counts:
            last.append(
                b"data: " + orjson.dumps(_shell("chat.completion.chunk") | {"choices": [], "usage": self._usage})
            )
        yield [*last, DONE.strip()]

    async def read_all(self) -> bytes:
        message: JsonObject = {"role": "assistant", "content": self._reply.text}
        if self._reply.thought:
            message["reasoning_content"] = self._reply.thought
        choice: JsonObject = {"index": 0, "message": message, "finish_reason": "stop"}
        return orjson.dumps(_shell("chat.completion") | {"choices": [choice], "usage": self._usage})

    def close(self) -> None:
        """Do nothing: it holds no resources."""


def _shell(kind: str) -> JsonObject:
    return {"id": "chatcmpl-tour", "object": kind, "created": _CREATED, "model": "tour"}


def _event(delta: JsonObject, finish: str | None = None) -> bytes:
    choices: list[Json] = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + orjson.dumps(_shell("chat.completion.chunk") | {"choices": choices})


def _text(message: JsonObject) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _last_user_text(messages: list[JsonObject]) -> str:
    """Return the user's last message."""
    texts = (_text(message) for message in reversed(messages) if message.get("role") == "user")
    return next((text for text in texts if not text.startswith(PAYLOAD)), "")


def _results(messages: list[JsonObject]) -> str | None:
    """Return the tools' results; None when the last message has none."""
    last = _text(messages[-1]) if messages else ""
    return last.removeprefix(PAYLOAD).strip() if last.startswith(PAYLOAD) else None


def _last_own_text(messages: list[JsonObject]) -> str:
    """Return the guide's own last message, with the results that have arrived since."""
    texts = (_text(message) for message in reversed(messages) if message.get("role") == "assistant")
    return next(texts, "")
