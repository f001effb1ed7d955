"""Renderings of a log: what clients that speak OpenAI's chat completions get of the events of a turn.

``write_stream`` sends every event from a cursor on, ``render_answer`` makes one JSON object of them, ``render_early``
the same for a client that cannot wait for an approval, and ``render_whole`` what is stored to be sent again. With one
round and nothing to hide the client gets the provider's bytes unchanged. Else the message of a JSON answer has the
texts and the reasoning of all rounds, and the usage is that of all rounds.

Another protocol is another module of this kind; it reads the same logs.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from toolyard.engine.idempotency import StoredResponse
from toolyard.gateway.client_request import CHAT_HEADER
from toolyard.gateway.faults import ChatFailed, ChatFault
from toolyard.gateway.reply.chunks import Head, KeptValue
from toolyard.gateway.reply.model_reply import UnstreamedReply
from toolyard.gateway.sse import DONE, END, event_of
from toolyard.gateway.turns.display import approval_event, approvals_extension, write_approvals
from toolyard.gateway.turns.turn_events import (
    ApprovalAsked,
    CallBegun,
    CallEnded,
    Delta,
    End,
    Ended,
    Ending,
    Failed,
    Gap,
    Note,
    ProviderRetried,
    ReplyEnded,
    ReplyParsed,
    SpecialActions,
    TurnEvent,
    Usage,
)
from toolyard.gateway.turns.turn_log import Entry, LogReader, TurnLog
from toolyard.protocol.json import Json, JsonObject, json_bytes

_NO_RETRY = {"x-should-retry": "false"}  # OpenAI's SDKs repeat no request that is answered so
_COME_BACK = "\nOnce it is allowed, send the same request again within 10 minutes: it goes on from here.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAnswer:
    """The answer to a client: complete in ``body``, or streamed in ``pieces``."""

    id: str = ""  # of the chat
    status: int = HTTPStatus.OK
    body: bytes = b""
    pieces: AsyncGenerator[bytes, None] | None = None
    headers: dict[str, str] = field(default_factory=dict)

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


def render_failure(fault: ChatFault, chat: str = "") -> ClientAnswer:
    """Return the answer to a request that fails before anything was sent."""
    headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
    headers |= _NO_RETRY if fault.is_final else {}
    return ClientAnswer(id=chat, status=fault.status, body=fault.to_bytes(), headers=headers)


async def render_stream(log: TurnLog, reader: LogReader) -> ClientAnswer:
    """Answer once the model does, or once the client has to be told that it does not answer yet."""
    try:
        first = await reader.wait_for_event()
    except BaseException:
        reader.close()
        raise
    if isinstance(first, Failed):
        reader.finish()
        reader.close()
        return render_failure(first.fault, log.record.id)
    pieces = write_stream(log, reader)
    await anext(pieces)  # a generator that has not begun would not leave the log when it is closed
    return ClientAnswer(id=log.record.id, pieces=pieces, headers=_stream_headers(log))


async def write_stream(log: TurnLog, reader: LogReader) -> AsyncGenerator[bytes, None]:
    """Yield nothing once, then the events of a log as server-sent events."""
    is_named = log.names.is_chat_named
    with reader:
        yield b""
        while entries := await reader.next():
            pieces = _write_entries(entries, reader.at - len(entries), is_named=is_named)
            for piece in pieces if is_named else [b"".join(pieces)]:
                if piece:
                    yield piece


def render_answer(log: TurnLog, more: Sequence[TurnEvent] = ()) -> ClientAnswer:
    """Return the answer of a turn that has ended; ``more``: with these events."""
    answer = JsonAnswer(log.head)
    try:
        for event in (*(entry.event for entry in log.entries()), *more):
            answer.take(event)
    except ChatFailed as failed:
        return render_failure(failed.fault, log.record.id)
    return ClientAnswer(id=log.record.id, body=answer.body)


def render_early(log: TurnLog) -> ClientAnswer:
    """Return the answer of a turn that continues: its text so far, and the pending approvals."""
    answer, waiting = JsonAnswer(log.head), list(log.waiting.values())
    for entry in log.entries():
        answer.take(entry.event)
    note = write_approvals(waiting, answer.text) + _COME_BACK
    log.turn.note_early_answer(answer.text + note)
    return ClientAnswer(id=log.record.id, body=answer.close_early(note, approvals_extension(waiting)))


def render_whole(log: TurnLog, end: End) -> StoredResponse:
    """Return the complete answer with the end that nobody has read yet; without a body when it is too long."""
    entries = [*log.entries(), *log.to_entries(end)]
    if not log.is_streamed or isinstance(entries[0].event, Failed):
        answer = render_answer(log, [end])
        return StoredResponse(status=answer.status, headers=answer.all_headers, body=answer.body)
    body = None
    if log.is_whole:
        body = b"".join(_write_entries(entries, log.begun, is_named=log.names.is_chat_named))
    headers = ClientAnswer(id=log.record.id, headers=_stream_headers(log)).all_headers
    return StoredResponse(status=HTTPStatus.OK, headers=headers, body=body, is_stream=True)


def _stream_headers(log: TurnLog) -> dict[str, str]:
    return {"X-Toolyard-Cursor": str(log.begun)} if log.names.is_chat_named else {}


def _write_entries(entries: list[Entry], before: int, *, is_named: bool) -> list[bytes]:
    """Return each entry as it is sent: in a named chat with its cursor, which is ``before`` and its number."""
    pieces = [write_event(entry.head, entry.event) for entry in entries]
    if not is_named:
        return pieces
    return [
        piece if not piece or isinstance(entry.event, Gap) else b"id: %d\n%b" % (cursor, piece)
        for cursor, (entry, piece) in enumerate(zip(entries, pieces, strict=True), before + 1)
    ]


def write_event(head: Head, event: TurnEvent) -> bytes:
    """Return the bytes of an event; none when a stream does not carry it. Chunks keep the bytes in which they came."""
    match event:
        case Delta(chunks):
            pieces = ((chunk.raw, END) if chunk.raw else (event_of(chunk.data),) for chunk in chunks)
            return b"".join([piece for pair in pieces for piece in pair])  # large events are copied once
        case Note(text):
            return event_of(head.chunk({"content": text}))
        case SpecialActions(actions):
            return event_of(head.chunk({}) | {"special_actions": [*actions]})
        case ReplyParsed(reply):
            return _write_drawn(head, {"type": "reply", "reply": reply})
        case Gap(after, to):
            return event_of({"toolyard": {"type": "gap", "from": after, "to": to}, "choices": []})
        case Ended():
            return DONE
        case Failed(fault):
            return fault.to_event()
        case _:
            return _draw_work(head, event) if head.draws_work else b""


def _draw_work(head: Head, event: TurnEvent) -> bytes:
    """Return an event of the work for a client that draws it; none for one that only its log needs."""
    match event:
        case CallBegun(data) | CallEnded(data):
            return _write_drawn(head, data)
        case ApprovalAsked(approval):
            return _write_drawn(head, approval_event(approval))
        case ProviderRetried(wait, at):
            return _write_drawn(head, wait.to_event() | {"at": at})
        case Usage(usage, tools, tokens):
            offer: JsonObject = {"tools": tools, "tokens": tokens}
            return _write_drawn(head, {"type": "round.ended", "usage": usage, "offer": offer})
        case _:
            return b""


def _write_drawn(head: Head, data: JsonObject) -> bytes:
    return event_of(head.stamp({"choices": [], "toolyard": data}))


_SEPARATE = ("role", "content", "tool_calls", "function_call")


class JsonAnswer:
    """The answer of one turn, as far as its events have come."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._first: JsonObject = {}
        self._texts: list[str] = []
        self._actions: list[Json] = []
        self._more: dict[str, KeptValue] = {}  # further fields of the messages, such as reasoning
        self._parsed: JsonObject = {}
        self.body = b""  # once the turn has finished

    @property
    def text(self) -> str:
        return "".join(self._texts)

    def take(self, event: TurnEvent) -> None:
        """Take the next event. Raises ChatFailed."""
        match event:
            case ReplyEnded(reply):
                self._first = self._first or reply.body
                self._texts.append(reply.visible_text)
                self._keep_more(reply.message())
            case Note(text):
                self._texts.append(text)
            case SpecialActions(actions):
                self._actions += actions
            case ReplyParsed(parsed, text):
                self._parsed = {"reply": parsed}
                self._texts = self._texts if text is None else [text]
            case Ended(Ending.DONE, reply) if reply is not None:
                same = reply.is_first and reply.is_unchanged and len(self._texts) <= 1 and not self._parsed
                self.body = reply.raw if same else self._build(reply)
            case Ended(ending, reply):
                self.body = self._build(reply, ending)
            case Failed(fault):
                raise ChatFailed(fault)
            case _:
                pass

    def close_early(self, note: str, extension: JsonObject) -> bytes:
        """Return an answer for a client that cannot wait: the text so far and a note. The turn continues."""
        message = self._join_more() | {"content": self.text + note}
        return json_bytes(self._object(message, "stop") | {"toolyard": extension})

    def _keep_more(self, message: JsonObject) -> None:
        for key, value in message.items():
            if key not in _SEPARATE and value is not None:
                kept = self._more.setdefault(key, KeptValue())
                if isinstance(value, str) and len(kept):
                    kept.add("\n\n")
                kept.add(value)

    def _join_more(self) -> JsonObject:
        return {key: kept.to_json() for key, kept in self._more.items()}

    def _build(self, reply: UnstreamedReply | None, ending: Ending = Ending.DONE) -> bytes:
        if reply is None:
            so_far = self._join_more() | {"content": self.text}
            made = self._object(so_far, "stop") | {"toolyard": {"type": ending.value}}
            return json_bytes(made | self._list_actions())
        identity = {key: self._first[key] for key in ("id", "created", "model") if key in self._first}
        is_done = ending is Ending.DONE
        message: JsonObject = reply.message_for_client() if is_done else {"role": "assistant"}
        message |= self._join_more()
        content: Json = self.text or ("" if message.get("content") is not None else None)
        finish = reply.finish if is_done else "stop"
        usage: JsonObject = {"usage": spent} if (spent := reply.total_usage()) else {}
        type_ = "reply" if is_done else ending.value
        extension: JsonObject = {"toolyard": {"type": type_, **self._parsed}} if self._parsed or not is_done else {}
        choice = reply.choice | {"message": message | {"content": content}, "finish_reason": finish}
        return json_bytes(reply.body | identity | {"choices": [choice]} | usage | extension | self._list_actions())

    def _list_actions(self) -> JsonObject:
        return {"special_actions": self._actions} if self._actions else {}

    def _object(self, message: JsonObject, finish: str) -> JsonObject:
        base = self._first or (self._head.stamp({}) | {"object": "chat.completion"})
        choice: JsonObject = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
        return base | {"choices": [choice]}
