"""Requests that go to the provider of a model untouched: embeddings, images, audio, moderations, legacy completions.

The model is named in the body, JSON or a form; without one it is the default provider's. A form is sent on while it
arrives, as soon as its model is known. Of the body only the model's name changes, where the provider knows it by
another, and secrets in JSON are masked as in a chat.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

import orjson

from toolyard.gateway.faults import ChatFailed, bad_request, encode_request
from toolyard.gateway.offers.offer_policy import split_alias
from toolyard.gateway.providers.form_model import FormModel, boundary_of
from toolyard.gateway.providers.forwarding import ForwardedAnswer, Outgoing
from toolyard.gateway.providers.upstreams import Upstreams
from toolyard.message import Message
from toolyard.protocol.json import json_value

FORM: Final = "multipart/form-data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A request as a client sends it."""

    path: str  # below /v1, such as /embeddings
    content_type: str
    pieces: AsyncIterator[bytes]  # its body
    length: int | None = None  # of the body, if the client says it
    accept: str = ""

    @property
    def is_form(self) -> bool:
        return self.content_type.partition(";")[0].strip().lower() == FORM


class PassThrough:
    def __init__(self, upstreams: Callable[[], Upstreams], mask: Callable[[str], str]) -> None:
        self._upstreams, self.mask = upstreams, mask

    async def forward(self, request: Incoming) -> ForwardedAnswer:
        """Send a request on. Raises ChatFailed when it has no provider, or the provider refuses."""
        return await (self._forward_form(request) if request.is_form else self._forward_json(request))

    async def _forward_json(self, request: Incoming) -> ForwardedAnswer:
        raw = b"".join([piece async for piece in request.pieces])
        try:
            body = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise bad_request(
                Message("chat.body_invalid_json", "the body is not valid JSON: {error}", error=error)
            ) from error
        if not isinstance(body, dict):
            raise bad_request(Message("chat.body_not_object", "the body must be a JSON object"))
        model = body.get("model")
        if not isinstance(model, str | None):
            raise bad_request(Message("chat.model_must_text", "'model' must be a text"))

        def outgoing(name: str) -> Outgoing:
            data = raw if not model or name == model else encode_request({**json_value(raw), "model": name})
            text = data.decode("utf-8", "replace")
            masked = self.mask(text)
            data = data if masked is text else masked.encode()
            return Outgoing(path=request.path, body=data, content_type="application/json", accept=request.accept)

        return await self._upstreams().forward(split_alias(model or "")[0], outgoing)

    async def _forward_form(self, request: Incoming) -> ForwardedAnswer:
        boundary = boundary_of(request.content_type)
        if not boundary:
            raise bad_request(Message("request.form_boundary_missing", "the Content-Type of a form names its boundary"))
        form = FormModel(boundary)
        async for piece in request.pieces:
            form.feed(piece)
            if form.is_done:
                break

        upload = _Upload(form, request.pieces)

        def outgoing(name: str) -> Outgoing:
            length = request.length
            if form.span is not None and form.model and name != form.model:
                start, end = form.span
                length = None if length is None else length + len(name.encode()) - (end - start)
                form.data[start:end] = name.encode()
            return Outgoing(
                path=request.path,
                body=upload.pieces(),
                content_type=request.content_type,
                accept=request.accept,
                length=length,
            )

        try:
            return await self._upstreams().forward(split_alias(form.model)[0], outgoing)
        except ChatFailed as failed:
            raise upload.failure or failed from None


class _Upload:
    """A form that is sent on while it arrives; keeps the reason why it stopped, which its sender does not see."""

    def __init__(self, form: FormModel, rest: AsyncIterator[bytes]) -> None:
        self._form, self._rest = form, rest
        self.failure: Exception | None = None

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        yield bytes(self._form.data)
        self._form.data.clear()
        try:
            async for piece in self._rest:
                yield piece
        except Exception as error:
            self.failure = error
            raise
