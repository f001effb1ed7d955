"""The rendering of a turn for a Responses client: its stream, its JSON object, and errors.

The object repeats what the client asked for, with the usual value of each field that it left out: readers of Open
Responses want every field.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from toolyard.gateway.chat_ports import PendingApproval
from toolyard.gateway.faults import ChatFailed, ChatFault
from toolyard.gateway.protocols.chat_body import as_object, objects
from toolyard.gateway.protocols.responses.client_answer import ResponseWriter
from toolyard.gateway.protocols.responses.client_request import ResponsesRequest
from toolyard.gateway.sse import DONE, KEEP_ALIVE
from toolyard.gateway.turns.display import write_approvals
from toolyard.gateway.turns.rendering import JsonAnswer, Writer
from toolyard.gateway.turns.turn_events import Ended, Ending, ProviderRetried, TurnEvent
from toolyard.gateway.turns.turn_log import Entry, TurnLog
from toolyard.protocol.json import JsonObject, json_bytes

_USUAL: Final[JsonObject] = {
    "error": None, "incomplete_details": None, "instructions": None, "max_output_tokens": None, "max_tool_calls": None,
    "metadata": {}, "parallel_tool_calls": True, "previous_response_id": None, "prompt_cache_key": None,
    "safety_identifier": None, "service_tier": "default", "temperature": 1.0, "tool_choice": "auto", "top_logprobs": 0,
    "top_p": 1.0, "truncation": "disabled", "user": None, "presence_penalty": 0.0, "frequency_penalty": 0.0,
    "background": False, "store": True,
}  # fmt: skip
_DELTA: Final = (
    b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":%d,%b,'
    b'"delta":%b,"logprobs":[]}\n\n'
)
_COME_BACK: Final = "\nOnce it is allowed, send the same request again within 10 minutes: it goes on from here.\n"


def describe_response(id_: str, created: float, asked: ResponsesRequest) -> JsonObject:
    """Return the object of a response that has not begun."""
    sent = asked.sent
    known = {key: sent[key] for key in _USUAL if sent.get(key) is not None}
    reasoning, text = as_object(sent.get("reasoning")), as_object(sent.get("text"))
    return {
        "id": id_, "object": "response", "created_at": int(created), "completed_at": None, "status": "in_progress",
        **_USUAL, **known, "model": sent.get("model") or "",
        "conversation": {"id": asked.conversation} if asked.conversation else None,
        "reasoning": {"effort": None, "summary": None, **reasoning},
        "text": {"format": {"type": "text"}, **text},
        "tools": [_describe_tool(tool) for tool in objects(sent.get("tools"))], "output": [], "usage": None,
    }  # fmt: skip


def _describe_tool(tool: JsonObject) -> JsonObject:
    return {"description": None, "parameters": None, "strict": None, **tool} if tool.get("type") == "function" else tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesRendering:
    asked: ResponsesRequest
    previous: str  # the id of the response that it follows
    now: Callable[[], float]
    is_streamed: bool
    on_end: Callable[[float, JsonObject], None]
    """Called with when the response began and itself, before its end is sent."""
    start: int = 0  # events of the turn that earlier responses have
    number: int = 0  # of this response among those of one turn
    after: int = -1  # the last event of the stream that the client has
    keep_alive: ClassVar[bytes] = KEEP_ALIVE
    hidden_events: ClassVar[tuple[type[TurnEvent], ...]] = (ProviderRetried,)

    def open_stream(self, log: TurnLog) -> Writer:
        return _StreamWriter(self, log)

    def begin_answer(self, log: TurnLog) -> JsonAnswer:
        return ResponseAnswer(self.open_writer(log))

    def write_fault(self, fault: ChatFault) -> bytes:
        return fault.to_bytes()

    def describe(self, log: TurnLog) -> JsonObject:
        """Return the object of a response that has not begun."""
        return self._describe(response_id(log, self.number), log.record.started)

    def _describe(self, id_: str, created: float) -> JsonObject:
        return describe_response(id_, created, self.asked) | {"previous_response_id": self.previous or None}

    def open_writer(
        self,
        log: TurnLog,
        emit: Callable[[str, JsonObject], None] | None = None,
        emit_text: Callable[[int, bytes, str], None] | None = None,
    ) -> ResponseWriter:
        return ResponseWriter(
            self.describe(log),
            emit=emit,
            emit_text=emit_text,
            now=lambda: log.record.ended or self.now(),
            on_end=lambda response: self.on_end(log.record.started, response),
            namespaces=self.asked.namespaces,
            asks_approval=self.asked.asks_approval,
            compacts=self.asked.compacts,
            start=self.start,
        )

    def render_empty(self, id_: str) -> bytes:
        """Return the answer to a request for which nothing is generated."""
        pieces: list[bytes] = []
        writer = ResponseWriter(
            self._describe(id_, self.now()),
            emit=lambda kind, data: pieces.append(_write_event(kind, data)),
            now=self.now,
            on_end=lambda response: self.on_end(self.now(), response),
            namespaces={},
        )
        writer.take(Ended(Ending.DONE))
        return b"".join([*pieces, DONE]) if self.is_streamed else json_bytes(writer.response)


def response_id(log: TurnLog, number: int = 0) -> str:
    """Return the id of a response: that of its turn, and its number there but for the first."""
    return f"{first_response_id(log.record.id)}{f'_{number}' if number else ''}"


def first_response_id(chat: str) -> str:
    """Return the id of the first response of a turn."""
    return f"resp_{chat.removeprefix('chat_')}"


class _StreamWriter:
    def __init__(self, rendering: ResponsesRendering, log: TurnLog) -> None:
        self._pieces: list[bytes] = []
        self._after = rendering.after
        self._writer = rendering.open_writer(log, self._emit, self._emit_text)

    @property
    def is_over(self) -> bool:
        return self._writer.is_over

    def write(self, entry: Entry) -> bytes:
        if self._writer.is_over:
            return b""
        self._writer.take(entry.event)
        if self._writer.is_over:
            self._pieces.append(DONE)
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)

    def _emit(self, kind: str, data: JsonObject) -> None:
        if int(str(data["sequence_number"])) > self._after:
            self._pieces.append(_write_event(kind, data))

    def _emit_text(self, number: int, head: bytes, text: str) -> None:
        if number > self._after:
            self._pieces.append(_DELTA % (number, head, json_bytes(text)))


def _write_event(kind: str, data: JsonObject) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), json_bytes(data))


class ResponseAnswer:
    """The object of a response."""

    def __init__(self, writer: ResponseWriter) -> None:
        self.writer = writer

    @property
    def is_over(self) -> bool:
        return self.writer.is_over

    @property
    def body(self) -> bytes:
        return json_bytes(self.writer.response)

    def take(self, event: TurnEvent) -> None:
        self.writer.take(event)
        if self.writer.fault is not None:
            raise ChatFailed(self.writer.fault)

    def close_early(self, waiting: list[PendingApproval]) -> tuple[bytes, str]:
        note = write_approvals(waiting, "") + _COME_BACK
        self.writer.add_early_note(note)
        return self.body, self.writer.text
