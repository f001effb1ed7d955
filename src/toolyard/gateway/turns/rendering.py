"""Renderings of a log: what a client gets of the events of a turn, in the protocol that it speaks.

A rendering is made for one request. A streamed answer is every event from a cursor on as its writer writes it, one
JSON answer all of them taken together, and ``render_whole`` is what is stored to be sent again. Which of the two a
client gets is its own wish: a request that is sent again may ask for the other one, and reads the same log.

The protocols are in ``gateway.protocols``.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Protocol

from toolyard.engine.chats.idempotency import StoredResponse
from toolyard.engine.chats.turns import REPEATED_S
from toolyard.gateway.chat_ports import PendingApproval
from toolyard.gateway.chat_request import CHAT_HEADER
from toolyard.gateway.faults import ChatFailed, ChatFault
from toolyard.gateway.sse import KEEP_ALIVE
from toolyard.gateway.turns.turn_events import End, Failed, Gap, TurnEvent
from toolyard.gateway.turns.turn_log import Entry, LogReader, TurnLog

NO_RETRY: Final = {"x-should-retry": "false"}  # the SDKs of OpenAI and Anthropic repeat no request that is answered so


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAnswer:
    """The answer to a client: complete in ``body``, or streamed in ``pieces``."""

    id: str = ""  # of the chat
    status: int = HTTPStatus.OK
    body: bytes = b""
    pieces: AsyncGenerator[bytes, None] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    keep_alive: bytes = KEEP_ALIVE  # sent while a stream has nothing else to say

    @classmethod
    def from_stored(cls, response: StoredResponse) -> "ClientAnswer":
        body, headers = response.body or b"", {**response.headers}
        if response.is_stream:
            return cls(status=response.status, headers=headers, pieces=_single_piece(body))
        return cls(status=response.status, headers=headers, body=body)

    @property
    def all_headers(self) -> dict[str, str]:
        return self.headers | ({CHAT_HEADER: self.id} if self.id else {})


async def _single_piece(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body


class Writer(Protocol):
    """Writes the events of a log as a stream, in order from the beginning of the turn or from a cursor."""

    def write(self, entry: Entry) -> bytes:
        """Return the bytes of the next event; none when the stream does not carry it."""

    @property
    def is_over(self) -> bool:
        """True once its client has its answer, although the turn may go on."""


class JsonAnswer(Protocol):
    """The answer of one turn in one piece, as far as its events have come."""

    def take(self, event: TurnEvent) -> None:
        """Take the next event. Raises ChatFailed."""

    @property
    def body(self) -> bytes:
        """The answer, once it is over."""

    @property
    def is_over(self) -> bool:
        """True once it is complete, although the turn may go on."""

    def close_early(self, waiting: list[PendingApproval]) -> tuple[bytes, str]:
        """Return an answer for a client that cannot wait for these approvals, and its text. The turn continues."""


class Rendering(Protocol):
    """The answer to one request, in the protocol of its client."""

    @property
    def is_streamed(self) -> bool: ...

    @property
    def keep_alive(self) -> bytes:
        """The piece that a stream sends while it has nothing else to say."""

    @property
    def hidden_events(self) -> tuple[type[TurnEvent], ...]:
        """The kinds of events that begin no stream, because its client sees nothing of them."""

    def open_stream(self, log: TurnLog) -> Writer: ...

    def begin_answer(self, log: TurnLog) -> JsonAnswer: ...

    def write_fault(self, fault: ChatFault) -> bytes:
        """Return the body of an answer that is an error."""


def render_failure(rendering: Rendering, fault: ChatFault, chat: str = "") -> ClientAnswer:
    """Return the answer to a request that fails before anything was sent."""
    headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
    headers |= NO_RETRY if fault.is_final else {}
    return ClientAnswer(id=chat, status=fault.status, body=rendering.write_fault(fault), headers=headers)


async def render_stream(rendering: Rendering, log: TurnLog, reader: LogReader) -> ClientAnswer:
    """Answer once the model does, or once the client has to be told that it does not answer yet."""
    try:
        first = await reader.wait_for_event(rendering.hidden_events)
    except BaseException:
        reader.close()
        raise
    if isinstance(first, Failed):
        reader.finish()
        reader.close()
        return render_failure(rendering, first.fault, log.record.id)
    pieces = write_stream(rendering.open_stream(log), log, reader)
    await anext(pieces)  # a generator that has not begun would not leave the log when it is closed
    headers = _stream_headers(log)
    return ClientAnswer(id=log.record.id, pieces=pieces, headers=headers, keep_alive=rendering.keep_alive)


async def write_stream(writer: Writer, log: TurnLog, reader: LogReader) -> AsyncGenerator[bytes, None]:
    """Yield nothing once, then the events of a log as server-sent events."""
    is_named = log.names.is_chat_named
    with reader:
        yield b""
        while entries := await reader.next():
            pieces = _write_entries(writer, entries, reader.at - len(entries), is_named=is_named)
            for piece in pieces if is_named else [b"".join(pieces)]:
                if piece:
                    yield piece
            if writer.is_over and log.is_running:
                reader.patience_s = REPEATED_S if log.waiting else None
                return


def render_early(answer: JsonAnswer, log: TurnLog) -> ClientAnswer:
    """Return the answer of a turn that continues: its text so far, and the pending approvals."""
    body, text = answer.close_early(list(log.waiting.values()))
    log.turn.note_early_answer(text)
    return ClientAnswer(id=log.record.id, body=body)


def render_whole(rendering: Rendering, log: TurnLog, end: End) -> StoredResponse:
    """Return the complete answer with the end that nobody has read yet; without a body when it is too long."""
    entries = [*log.entries(), *log.to_entries(end)]
    first = next(entry.event for entry in entries if not isinstance(entry.event, rendering.hidden_events))
    if not rendering.is_streamed or isinstance(first, Failed):
        answer = _render_answer(rendering, log, [entry.event for entry in entries])
        return StoredResponse(status=answer.status, headers=answer.all_headers, body=answer.body)
    body = None
    if log.is_whole:
        writer = rendering.open_stream(log)
        body = b"".join(_write_entries(writer, entries, log.begun, is_named=log.names.is_chat_named))
    headers = ClientAnswer(id=log.record.id, headers=_stream_headers(log)).all_headers
    return StoredResponse(status=HTTPStatus.OK, headers=headers, body=body, is_stream=True)


def _render_answer(rendering: Rendering, log: TurnLog, events: list[TurnEvent]) -> ClientAnswer:
    answer = rendering.begin_answer(log)
    try:
        for event in events:
            answer.take(event)
    except ChatFailed as failed:
        return render_failure(rendering, failed.fault, log.record.id)
    return ClientAnswer(id=log.record.id, body=answer.body)


def _stream_headers(log: TurnLog) -> dict[str, str]:
    return {"X-Toolyard-Cursor": str(log.begun)} if log.names.is_chat_named else {}


def _write_entries(writer: Writer, entries: list[Entry], before: int, *, is_named: bool) -> list[bytes]:
    """Return each entry as it is sent: in a named chat with its cursor, which is ``before`` and its number."""
    pieces = [writer.write(entry) for entry in entries]
    if not is_named:
        return pieces
    return [
        piece if not piece or isinstance(entry.event, Gap) else b"id: %d\n%b" % (cursor, piece)
        for cursor, (entry, piece) in enumerate(zip(entries, pieces, strict=True), before + 1)
    ]
