"""The last contact with a model provider: its last answer and its last failure since the server started."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.providers.answer import Answer, WaitListener, ignore_wait
from toolyard.gateway.providers.forwarded_answer import ForwardedAnswer, Outgoing
from toolyard.gateway.providers.upstream import Upstream
from toolyard.protocol.json import JsonObject
from toolyard.provider_settings import ProviderProtocol

_LONGEST = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    answered: float | None = None  # seconds since 1970, as all times here
    failed: float | None = None
    error: str = ""  # of the last failure


class WatchedUpstream:
    """A provider whose contacts are recorded: an answer that has begun counts, and so does a list of its models.

    An answer that breaks off later is a failure as well.
    """

    def __init__(self, upstream: Upstream, now: Callable[[], datetime]) -> None:
        self.name, self._upstream, self._now = upstream.name, upstream, now
        self.contact = Contact()

    @property
    def protocol(self) -> ProviderProtocol:
        return self._upstream.protocol

    @property
    def max_rounds(self) -> int | None:
        return self._upstream.max_rounds

    @property
    def takes_native(self) -> bool:
        return self._upstream.takes_native

    def window(self, model: str) -> int | None:
        return self._upstream.window(model)

    async def ask(self, body: bytes, *, stream: bool, retry: bool, on_wait: WaitListener = ignore_wait) -> Answer:
        try:
            answer = await self._upstream.ask(body, stream=stream, retry=retry, on_wait=on_wait)
        except ChatFailed as failed:
            self.note_failure(failed)
            raise
        self._note_answer()
        return answer

    async def forward(self, request: Outgoing) -> ForwardedAnswer:
        try:
            forwarded = await self._upstream.forward(request)
        except ChatFailed as failed:
            self.note_failure(failed)
            raise
        forwarded.when_failed = self.note_failure
        self._note_answer()
        return forwarded

    async def models(self) -> list[JsonObject]:
        try:
            models = await self._upstream.models()
        except ChatFailed as failed:
            self.note_failure(failed)
            raise
        self._note_answer()
        return models

    def note_failure(self, failed: ChatFailed) -> None:
        message = failed.fault.message
        error = message if len(message) <= _LONGEST else message[:_LONGEST]
        self.contact = Contact(answered=self.contact.answered, failed=self._now().timestamp(), error=error)

    async def close(self) -> None:
        await self._upstream.close()

    def _note_answer(self) -> None:
        last = self.contact
        self.contact = Contact(answered=self._now().timestamp(), failed=last.failed, error=last.error)
