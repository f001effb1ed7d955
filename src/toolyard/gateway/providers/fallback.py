"""The providers of one chat turn, in order: the first that answers keeps the turn while it answers.

Another one is tried only while nothing of a round was answered. In a later round that repeats no tool: the model that
stands in gets the results of the calls that have run.
"""

import logging
from collections.abc import Sequence
from http import HTTPStatus

from toolyard.gateway.faults import ChatFailed, ChatFault
from toolyard.gateway.providers.answer import Answer
from toolyard.gateway.providers.forwarding import ForwardedAnswer, Outgoing
from toolyard.gateway.providers.upstream import Upstream
from toolyard.gateway.providers.wait import ProviderWait, WaitListener, ignore_wait
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_value

_log = logging.getLogger(__name__)
_OF_REQUEST = (
    HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY,
)  # fmt: skip
_COMMON = ("role", "content", "refusal", "name", "tool_calls", "function_call")
_COMMON_OF_CALLS = ("id", "type", "function", "custom")


class Fallback:
    """An Upstream for one turn. ``candidates`` are providers, each with its own name of the model."""

    def __init__(self, candidates: Sequence[tuple[Upstream, str]]) -> None:
        self._candidates = candidates
        self._upstream, self._model = candidates[0]
        self._writers: list[tuple[Upstream, str]] = []  # those that have answered in this turn

    @property
    def name(self) -> str:
        return self._upstream.name

    @property
    def max_rounds(self) -> int | None:
        return self._upstream.max_rounds

    async def ask(self, body: bytes, *, stream: bool, retry: bool, on_wait: WaitListener = ignore_wait) -> Answer:
        """Ask the provider that keeps the turn, and the others if it does not answer.

        ``body`` names the first one's model.
        """
        current = (self._upstream, self._model)
        order = [current, *(one for one in self._candidates if one != current)] if retry else [current]
        first: ChatFailed | None = None
        for number, (upstream, model) in enumerate(order, 1):
            is_other = any(writer != (upstream, model) for writer in self._writers)
            named = self._with_model(body, model, is_other=is_other)
            try:
                answer = await upstream.ask(named, stream=stream, retry=retry, on_wait=on_wait)
            except ChatFailed as failed:
                if not may_fall_back(failed.fault):
                    raise
                _log.warning("%s does not answer for %s: %s", upstream.name, model, failed.fault.message[:500])
                first = first or failed
                for following, _ in order[number : number + 1]:
                    on_wait(ProviderWait(provider=upstream.name, fault=failed.fault, next_provider=following.name))
            else:
                self._upstream, self._model = upstream, model
                self._writers.append((upstream, model))
                return answer
        raise first or RuntimeError("there is at least one")

    async def forward(self, request: Outgoing) -> ForwardedAnswer:
        return await self._upstream.forward(request)

    async def models(self) -> list[JsonObject]:
        return await self._upstream.models()

    def note_failure(self, failed: ChatFailed) -> None:
        self._upstream.note_failure(failed)

    async def close(self) -> None:
        """Do nothing: the providers belong to all turns."""

    def _with_model(self, body: bytes, model: str, *, is_other: bool = False) -> bytes:
        """Return the request for a model; ``is_other``: another one has written replies in it."""
        if model == self._candidates[0][1] and not is_other:
            return body
        request = json_value(body)
        messages = request.get("messages")
        if is_other and isinstance(messages, list):
            request["messages"] = [_select_common(message) for message in messages]
        return json_bytes({**request, "model": model})


def _select_common(message: Json) -> Json:
    """Return a message with what every model takes: signed reasoning of another one is refused."""
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return message
    made = {key: value for key, value in message.items() if key in _COMMON}
    if isinstance(calls := message.get("tool_calls"), list):
        made["tool_calls"] = [
            {key: value for key, value in call.items() if key in _COMMON_OF_CALLS} if isinstance(call, dict) else call
            for call in calls
        ]
    return made


def may_fall_back(fault: ChatFault) -> bool:
    """Return whether another provider may succeed: not when the request itself is wrong."""
    return fault.status not in _OF_REQUEST
