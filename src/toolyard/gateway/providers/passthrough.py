"""Requests that go to the provider of a model untouched: embeddings, images, audio, moderations, legacy completions.

The model is named in the body, JSON or a form; without one it is the default provider's. A form is sent on while it
arrives, as soon as its model is known. Of the body only the model's name changes, where the provider knows it by
another, and secrets in JSON are masked as in a chat. The field ``model`` of a form is found while it is uploaded,
before the files that follow it.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

import orjson

from toolyard.gateway.faults import ChatFailed, bad_request, encode_request
from toolyard.gateway.offer_policy import split_alias
from toolyard.gateway.providers.forwarded_answer import ForwardedAnswer, Outgoing
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
            raise bad_request(Message("the body is not valid JSON: {error}", error=error)) from error
        if not isinstance(body, dict):
            raise bad_request(Message("the body must be a JSON object"))
        model = body.get("model")
        if not isinstance(model, str | None):
            raise bad_request(Message("'model' must be a text"))

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
            raise bad_request(Message("the Content-Type of a form names its boundary"))
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


class FormModel:
    """Feed it a form until ``is_done``; ``data`` is everything it was fed, ``span`` the place of the name in it."""

    def __init__(self, boundary: str) -> None:
        self.data = bytearray()
        self.span: tuple[int, int] | None = None
        self._delimiter = b"--" + boundary.encode("latin-1", "replace")
        self._between = _LINE + self._delimiter
        self._at = self._start = 0  # searched up to here; start of the current piece
        self._seeks = _Seeks.PART
        self._is_first = True

    @property
    def is_done(self) -> bool:
        return self._seeks is _Seeks.NOTHING

    @property
    def model(self) -> str:
        """The model's name; empty when the form has none."""
        return bytes(self.data[slice(*self.span)]).decode("utf-8", "replace") if self.span else ""

    def feed(self, piece: bytes) -> None:
        self.data += piece
        steps = {
            _Seeks.PART: self._seek_part,
            _Seeks.KIND: self._seek_kind,
            _Seeks.HEAD: self._seek_head,
            _Seeks.VALUE: self._seek_value,
        }
        while not self.is_done and steps[self._seeks]():
            pass

    def _find(self, what: bytes) -> int:
        """Return the position of ``what``; -1 when it has not arrived yet. Searches no byte twice."""
        start = self.data.find(what, self._at)
        if start < 0:
            self._at = max(self._at, len(self.data) - len(what) + 1)
        return start

    def _seek_part(self) -> bool:
        what = self._delimiter if self._is_first else self._between
        start = self._find(what)
        if start < 0:
            return False
        self._at, self._is_first, self._seeks = start + len(what), False, _Seeks.KIND
        return True

    def _seek_kind(self) -> bool:
        if len(self.data) < self._at + 2:
            return False
        is_last = self.data[self._at : self._at + 2] == _LAST
        self._start, self._seeks = self._at, _Seeks.NOTHING if is_last else _Seeks.HEAD
        return True

    def _seek_head(self) -> bool:
        end = self._find(_HEAD_END)
        if end < 0:
            self._give_up_beyond(_MAX_HEAD)
            return False
        if end - self._start > _MAX_HEAD:
            self._seeks = _Seeks.NOTHING
            return False
        is_model = _is_model(bytes(self.data[self._start : end]))
        self._start = end + len(_HEAD_END)
        self._at = end + len(_LINE)  # an empty value ends with the line that ends the head
        self._seeks = _Seeks.VALUE if is_model else _Seeks.PART
        return True

    def _seek_value(self) -> bool:
        end = self._find(self._between)
        if end < 0:
            self._give_up_beyond(MAX_NAME)
            return False
        if end - self._start <= MAX_NAME:
            self.span = (min(self._start, end), end)
        self._seeks = _Seeks.NOTHING
        return True

    def _give_up_beyond(self, most: int) -> None:
        if len(self.data) - self._start > most:
            self._seeks = _Seeks.NOTHING


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


MAX_NAME: Final = 1024  # bytes of a model's name
_MAX_HEAD = 16 * 1024  # of the head of one part
_BOUNDARY = re.compile(r"boundary=(?:\"([^\"]{1,70})\"|([^\s\";,]{1,70}))", re.IGNORECASE)
_FIELD = re.compile(rb"content-disposition:\s*form-data\s*;([^\r\n]*)", re.IGNORECASE)
_NAME = re.compile(rb"(?:^|[;\s])name=(?:\"([^\"\r\n]*)\"|([^\s;\"]+))", re.IGNORECASE)
_FILE = re.compile(rb"(?:^|[;\s])filename\*?=", re.IGNORECASE)
_LINE, _HEAD_END, _LAST = b"\r\n", b"\r\n\r\n", b"--"


class _Seeks(Enum):
    """States of the form reader, each named by the piece it looks for next."""

    PART = "the line that begins a part"
    KIND = "whether that line was the last"
    HEAD = "the end of the part's head"
    VALUE = "the end of the model's name"
    NOTHING = "nothing"


def boundary_of(content_type: str) -> str:
    """Return the boundary of a form; empty when its header names none."""
    match = _BOUNDARY.search(content_type)
    return (match[1] or match[2]) if match else ""


def _is_model(head: bytes) -> bool:
    field = _FIELD.search(head)
    name = _NAME.search(field[1]) if field else None
    return field is not None and name is not None and (name[1] or name[2]) == b"model" and not _FILE.search(field[1])
