"""The providers of one chat turn, in order: the first that answers keeps the turn.

Another one is tried only before the turn has had any effect: no byte was answered, and no tool has run.
"""

import logging
from collections.abc import Sequence
from http import HTTPStatus

from toolyard.gateway.faults import ChatFailed, ChatFault
from toolyard.gateway.providers.answer import Answer
from toolyard.gateway.providers.forwarding import ForwardedAnswer, Outgoing
from toolyard.gateway.providers.upstream import Upstream
from toolyard.gateway.providers.wait import ProviderWait, WaitListener, ignore_wait
from toolyard.protocol.json import JsonObject, json_bytes, json_value

_log = logging.getLogger(__name__)
_OF_REQUEST = (
    HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY,
)  # fmt: skip


class Fallback:
    """An Upstream for one turn. ``candidates`` are providers, each with its own name of the model."""

    def __init__(self, candidates: Sequence[tuple[Upstream, str]]) -> None:
        self._candidates = candidates
        self._upstream, self._model = candidates[0]
        self._is_settled = False

    @property
    def name(self) -> str:
        return self._upstream.name

    @property
    def max_rounds(self) -> int | None:
        return self._upstream.max_rounds

    async def ask(self, body: bytes, *, stream: bool, retry: bool, on_wait: WaitListener = ignore_wait) -> Answer:
        """Ask the provider that keeps the turn; at first, whichever answers. ``body`` names the first one's model."""
        if self._is_settled or not retry:
            named = self._with_model(body, self._model)
            return await self._upstream.ask(named, stream=stream, retry=retry, on_wait=on_wait)
        first: ChatFailed | None = None
        for number, (upstream, model) in enumerate(self._candidates, 1):
            try:
                answer = await upstream.ask(self._with_model(body, model), stream=stream, retry=True, on_wait=on_wait)
            except ChatFailed as failed:
                if not may_fall_back(failed.fault):
                    raise
                _log.warning("%s does not answer for %s: %s", upstream.name, model, failed.fault.message[:500])
                first = first or failed
                for following, _ in self._candidates[number : number + 1]:
                    on_wait(ProviderWait(provider=upstream.name, fault=failed.fault, next_provider=following.name))
            else:
                self._upstream, self._model, self._is_settled = upstream, model, True
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

    def _with_model(self, body: bytes, model: str) -> bytes:
        if model == self._candidates[0][1]:
            return body
        request = json_value(body)
        return json_bytes({**request, "model": model})


def may_fall_back(fault: ChatFault) -> bool:
    """Return whether another provider may succeed: not when the request itself is wrong."""
    return fault.status not in _OF_REQUEST
