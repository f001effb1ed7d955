"""The answer of a turn to a client that speaks Messages: an automaton from the events of its log to those of a stream.

The rules (``MessageEvents.take``): what each event writes, and the block that it is written into. One block is open at
a time; another one ends it.

    event of the log                 block               written
    the first of any but a round's   (none)              message_start, with an estimate of the tokens that were sent
    Delta: text, refusal; Note       text                text_delta
    Delta: citation                  text                citations_delta
    Delta: reasoning                 thinking, by index  thinking_delta; signature_delta, after which it ends
    Delta: encrypted reasoning       redacted_thinking   the block alone
    Delta: item of this protocol     as its type says    the block as it came
    Delta: call of the client        tool_use            input_json_delta; further calls wait for the one that is open,
                                                         and whatever else comes until their arguments are complete
    CallBegun                        mcp_tool_use        the block alone, after a text block, which may be empty
    CallEnded                        mcp_tool_result     the block alone
    ApprovalAsked                    text                text_delta, for a client that gets CallBegun
    Ended                            (none)              message_delta, message_stop
    Failed, Gap                      (stays open)        error

CallBegun and its like are in the log only for a client that lists our server; any other reads the lines about calls,
which are Notes. ``mcp_tool_use`` is streamed with an empty input and no deltas: with them Claude Code gives up the
stream and sends its request again.

An answer in one piece is the same events put together.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

import orjson

from toolyard.gateway.chat_ports import PendingApproval
from toolyard.gateway.faults import ChatFailed, ChatFault
from toolyard.gateway.protocols.chat import COME_BACK, beginning_gone
from toolyard.gateway.protocols.chat_body import NATIVE, find_origin, native_item
from toolyard.gateway.protocols.messages.conversation import SERVER
from toolyard.gateway.protocols.messages.errors import error_object
from toolyard.gateway.protocols.messages.provider_request import FORMAT, PROTOCOL
from toolyard.gateway.reply.chunks import Chunk, Head, only_text, read_text
from toolyard.gateway.sse import data_of
from toolyard.gateway.turns.display import approvals_extension, write_approvals
from toolyard.gateway.turns.rendering import JsonAnswer, Writer
from toolyard.gateway.turns.turn_events import (
    ApprovalAsked,
    CallBegun,
    CallEnded,
    Delta,
    Ended,
    Failed,
    Gap,
    Note,
    ProviderRetried,
    TurnEvent,
)
from toolyard.gateway.turns.turn_log import Entry, TurnLog
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_value
from toolyard.protocol.tool import parse_arguments

_TEXT_DELTA: Final = (
    b"event: content_block_delta\n"
    b'data: {"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%b}}\n\n'
)
PING: Final = b'event: ping\ndata: {"type": "ping"}\n\n'
_STOPS: Final = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}  # by the finish reason of chat
_TOO_LONG: Final = "prompt is too long"  # by which clients know to shorten a conversation
_BESIDE_DELTA: Final = ("context_management",)  # what message_delta has beside its delta
_NATIVE_STOPS: Final = ("stop_sequence", "pause_turn", "refusal", "model_context_window_exceeded")


def _fault_object(fault: ChatFault, request_id: str) -> JsonObject:
    message = fault.message
    if fault.is_overflow and _TOO_LONG not in message.lower():
        message = f"{_TOO_LONG}: {message}"
    return error_object(fault.status, message, fault.code, request_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesRendering:
    is_streamed: bool
    input_tokens: int  # an estimate of what the client sent
    request_id: str = ""
    hides_thinking: bool = False
    keep_alive: ClassVar[bytes] = PING
    hidden_events: ClassVar[tuple[type[TurnEvent], ...]] = (ProviderRetried,)

    def open_stream(self, log: TurnLog) -> Writer:
        return MessagesWriter(MessageEvents(self, log.record.id))

    def begin_answer(self, log: TurnLog) -> JsonAnswer:
        return MessagesAnswer(MessageEvents(self, log.record.id), log.head)

    def write_fault(self, fault: ChatFault) -> bytes:
        return json_bytes(_fault_object(fault, self.request_id))


class MessagesWriter:
    is_over = False

    def __init__(self, events: "MessageEvents") -> None:
        self._events = events

    def write(self, entry: Entry) -> bytes:
        if isinstance(entry.event, Delta) and (text := self._events.find_text(entry.event.chunks)) is not None:
            return _TEXT_DELTA % (self._events.index, json_bytes(text))  # most chunks are no more than this
        return b"".join([write_event(event) for event in self._events.take(entry.head, entry.event)])


def write_event(event: JsonObject) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), json_bytes(event))


class MessagesAnswer:
    """One JSON object: the events of the stream put together."""

    is_over = False

    def __init__(self, events: "MessageEvents", head: Head) -> None:
        self._events, self._head = events, head
        self._message: JsonObject = {}
        self._content: list[JsonObject] = []
        self._written: list[str] = []  # of the block that is open

    @property
    def body(self) -> bytes:
        return json_bytes(self._message)

    @property
    def text(self) -> str:
        texts = [str(block["text"]) for block in self._content if block["type"] == "text"]
        return "".join([*texts, *(self._written if self._content and self._content[-1]["type"] == "text" else ())])

    def take(self, event: TurnEvent) -> None:
        """Take the next event. Raises ChatFailed."""
        match event:
            case Failed(fault):
                raise ChatFailed(fault)
            case Gap():
                raise ChatFailed(beginning_gone())
            case _:
                for one in self._events.take(self._head, event):
                    self._add(one)

    def close_early(self, waiting: list[PendingApproval]) -> tuple[bytes, str]:
        untold = [approval for approval in waiting if approval.command not in self.text]
        note = Note((write_approvals(untold, self.text) if untold else "") + COME_BACK)
        for event in (*self._events.take(self._head, note), *self._events.end()):
            self._add(event)
        self._message["toolyard"] = approvals_extension(waiting)
        return self.body, self.text

    def _add(self, event: JsonObject) -> None:
        match event["type"]:
            case "message_start":
                self._message = _as_object(event["message"]) | {"content": [*self._content]}
            case "content_block_start":
                self._content.append(dict(_as_object(event["content_block"])))
            case "content_block_delta":
                self._add_delta(_as_object(event["delta"]))
            case "content_block_stop":
                self._end_block()
            case "message_delta":
                usage = _as_object(self._message["usage"]) | _as_object(event["usage"])
                beside = {key: event[key] for key in _BESIDE_DELTA if key in event}
                self._message |= beside | _as_object(event["delta"]) | {"content": [*self._content], "usage": usage}

    def _add_delta(self, delta: JsonObject) -> None:
        match delta["type"]:
            case "text_delta" | "thinking_delta" | "input_json_delta":
                self._written.append(str(delta.get("text") or delta.get("thinking") or delta.get("partial_json") or ""))
            case "signature_delta":
                self._content[-1]["signature"] = delta["signature"]
            case "citations_delta":
                cited = self._content[-1].get("citations")
                self._content[-1]["citations"] = [*(cited if isinstance(cited, list) else []), delta["citation"]]

    def _end_block(self) -> None:
        block, written = self._content[-1], "".join(self._written)
        if block["type"] in ("text", "thinking"):
            block[str(block["type"])] = written
        elif written:
            block["input"] = parse_arguments(written)[0]
        self._written = []


class MessageEvents:
    """Turns the events of a log into those of a message."""

    def __init__(self, rendering: MessagesRendering, chat: str) -> None:
        self._rendering, self._chat = rendering, chat
        self._events: list[JsonObject] = []
        self._has_started = self._has_ended = False
        self.index = -1  # of the newest block
        self._open = ""  # the type of the block that is open; empty: none is
        self._thought: Json = None  # the index of the reasoning in it
        self._has_text = False  # some block was a text
        self._calls: list[_ClientCall] = []  # of the client, in their order
        self._late: list[JsonObject] = []  # deltas that came before the calls were complete
        self._ours: list[tuple[str, str]] = []  # calls of ours that have begun: their ids, and those of their blocks
        self._shown = 0  # calls of ours
        self._finish = ""
        self._is_refused = False
        self._stop: JsonObject = {}  # the finish reason of this protocol, and the sequence
        self._more: JsonObject = {}  # what else a provider of this protocol says of its answer
        self._usage: JsonObject = {}
        self._length = 0  # characters that were written

    def find_text(self, chunks: list[Chunk]) -> str | None:
        """Return the text of these chunks if all they do is add it to the block that is open."""
        if self._open != "text" or self._calls or len(chunks) != 1:
            return None
        text = only_text(chunks[0].data or orjson.loads(data_of(chunks[0].raw) or b"{}"))
        self._length += len(text or "")
        return text or None

    def take(self, head: Head, event: TurnEvent) -> list[JsonObject]:
        """Return what this event writes."""
        match event:
            case Delta(chunks):
                for chunk in chunks:
                    self._take_chunk(head, chunk)
            case Note(text):
                self._start(head)
                self._add_text(text)
            case CallBegun(data):
                self._start(head)
                self._begin_ours(data)
            case CallEnded(data, output):
                self._start(head)
                self._end_ours(data, output)
            case ApprovalAsked(approval) if head.draws_work:
                self._start(head)
                self._add_text(write_approvals([approval], ""))
            case Ended():
                self._start(head)
                self._end()
            case Failed(fault):
                self._events.append(_fault_object(fault, self._rendering.request_id))
            case Gap():
                self._events.append(_fault_object(beginning_gone(), self._rendering.request_id))
            case _:
                pass
        return self._take_events()

    def end(self) -> list[JsonObject]:
        """Return the end of an answer whose turn continues."""
        self._end()
        return self._take_events()

    def _take_events(self) -> list[JsonObject]:
        events, self._events = self._events, []
        return events

    # --- chunks of the model

    def _take_chunk(self, head: Head, chunk: Chunk) -> None:
        data = chunk.data or json_value(data_of(chunk.raw) or b"{}")
        if isinstance(usage := data.get("usage"), dict):
            self._usage = usage
        if not self._has_started:
            self._start(head)
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        if isinstance(delta := choice.get("delta"), dict):
            self._take_delta(delta)
        if finish := choice.get("finish_reason"):
            self._finish = str(finish)
            self._stop = {key: choice[key] for key in ("native_finish_reason", "stop_sequence") if key in choice}
            self._more = native_item(_as_object(choice.get(NATIVE)), PROTOCOL) or {}

    def _take_delta(self, delta: JsonObject) -> None:
        if delta.get("tool_calls"):
            delta = self._take_calls(delta)
        if self._calls and delta and not all(call.is_complete for call in self._calls):
            self._late.append(delta)
            return
        if details := _objects(delta.get("reasoning_details")):
            for detail in details:
                self._take_detail(detail)
        elif isinstance(thought := delta.get("reasoning_content") or delta.get("reasoning"), str):
            self._think(thought, None)
        if text := read_text(delta.get("content")):
            self._add_text(text)
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._add_text(refusal)
            self._is_refused = True
        for annotation in _objects(delta.get("annotations")):
            self._cite(annotation)
        for part in _objects(delta.get("native")):
            self._add_native(part)

    # --- the message

    def _start(self, head: Head) -> None:
        if self._has_started:
            return
        self._has_started = True
        usage = _to_usage(self._usage)
        if not self._usage.get("prompt_tokens"):  # the provider has not said yet
            usage["input_tokens"] = self._rendering.input_tokens
        message: JsonObject = {
            "id": f"msg_{self._chat.removeprefix('chat_')}",
            "type": "message",
            "role": "assistant",
            "model": head.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage | {"output_tokens": 1},
        }
        self._events.append({"type": "message_start", "message": message})

    def _end(self) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        self._close_calls()
        late, self._late = self._late, []
        for delta in late:
            self._take_delta(delta)
        if self.index < 0:
            self._open_block({"type": "text", "text": ""})
        self._close_block()
        reason = _STOPS.get(self._finish, "end_turn")
        if reason == "tool_use" or (reason == "end_turn" and self._calls):
            reason = "tool_use" if self._calls else "end_turn"
        if (native := self._stop.get("native_finish_reason")) in _NATIVE_STOPS:
            reason = str(native)
        elif self._is_refused:
            reason = "refusal"
        stop: JsonObject = {"stop_reason": reason, "stop_sequence": self._stop.get("stop_sequence")}
        usage = _to_usage(self._usage)
        if not self._usage:  # the provider never said
            usage |= {"input_tokens": self._rendering.input_tokens, "output_tokens": self._length // 4 + 1}
        beside = {key: self._more.pop(key) for key in _BESIDE_DELTA if key in self._more}
        self._events.append({"type": "message_delta", "delta": stop | self._more, "usage": usage, **beside})
        self._events.append({"type": "message_stop"})

    # --- blocks

    def _open_block(self, block: JsonObject) -> None:
        self._close_block()
        self.index += 1
        self._open = str(block["type"])
        self._has_text = self._has_text or self._open == "text"
        self._events.append({"type": "content_block_start", "index": self.index, "content_block": block})

    def _close_block(self) -> None:
        if self._open:
            self._open, self._thought = "", None
            self._events.append({"type": "content_block_stop", "index": self.index})

    def _add_delta(self, kind: str, key: str, value: Json) -> None:
        delta: JsonObject = {"type": kind, key: value}
        self._length += len(value) if isinstance(value, str) else 0
        self._events.append({"type": "content_block_delta", "index": self.index, "delta": delta})

    def _add_text(self, text: str) -> None:
        self._require_text()
        self._add_delta("text_delta", "text", text)

    def _require_text(self) -> None:
        if self._open != "text":
            self._close_calls()
            self._open_block({"type": "text", "text": ""})

    def _cite(self, annotation: JsonObject) -> None:
        citation: Json = annotation.get("item") if annotation.get("protocol") == PROTOCOL else None
        if isinstance(page := annotation.get("url_citation"), dict):
            place: JsonObject = {"url": page.get("url"), "title": page.get("title")}
            rest: JsonObject = {"encrypted_index": "", "cited_text": str(page.get("content") or "")}
            citation = {"type": "web_search_result_location", **place, **rest}
        if isinstance(citation, dict):
            self._require_text()
            self._add_delta("citations_delta", "citation", citation)

    def _add_native(self, part: JsonObject) -> None:
        """Add a block of this protocol; its input is streamed, as Anthropic does."""
        item = part.get("item")
        if part.get("protocol") != PROTOCOL or not isinstance(item, dict):
            return
        self._close_calls()
        given = item.get("input")
        if not isinstance(given, dict) or not self._rendering.is_streamed:
            self._open_block(item)
        else:
            self._open_block({**item, "input": {}})
            self._add_delta("input_json_delta", "partial_json", json_bytes(given).decode())
        self._close_block()

    # --- reasoning

    def _take_detail(self, detail: JsonObject) -> None:
        match detail.get("type"):
            case "reasoning.text" | "reasoning.summary":
                text, index = detail.get("text") or detail.get("summary"), detail.get("index", 0)
                signature = detail.get("signature") if detail.get("format") == FORMAT else None
                is_native = detail.get("format") == FORMAT
                if isinstance(text, str):
                    self._think(text, index, is_native=is_native)
                if isinstance(signature, str) and signature:
                    self._sign(signature, index)
            case "reasoning.encrypted" if detail.get("format") == FORMAT and detail.get("data"):
                self._close_calls()
                self._open_block({"type": "redacted_thinking", "data": detail["data"]})
                self._close_block()

    def _think(self, text: str, index: Json, *, is_native: bool = False) -> None:
        if text and (is_native or not self._rendering.hides_thinking):
            self._require_thought(index)
            self._add_delta("thinking_delta", "thinking", text)

    def _sign(self, signature: str, index: Json) -> None:
        self._require_thought(index)
        self._add_delta("signature_delta", "signature", signature)
        self._close_block()

    def _require_thought(self, index: Json) -> None:
        if self._open != "thinking" or self._thought != index:
            self._close_calls()
            self._open_block({"type": "thinking", "thinking": "", "signature": ""})
            self._thought = index

    # --- calls of the client

    def _take_calls(self, delta: JsonObject) -> JsonObject:
        """Take the pieces of calls in a delta; return what else it has."""
        for at, piece in enumerate(_objects(delta.get("tool_calls"))):
            index = piece.get("index")
            place = index if isinstance(index, int) else at
            call = next((one for one in reversed(self._calls) if one.place == place), None)
            if call is None or call.is_other_than(piece):
                self._calls.append(call := _ClientCall(place, f"toolu_{self._chat[-20:]}_{len(self._calls)}"))
            call.merge(piece)
        self._advance_calls()
        return {key: value for key, value in delta.items() if key not in ("tool_calls", "role") and value}

    def _advance_calls(self) -> None:
        """Write what there is of the call that is open, or of the next one where none is."""
        call = next((one for one in self._calls if not one.is_closed), None)
        if call is not None and call.name:
            self._write_call(call)

    def _write_call(self, call: "_ClientCall") -> None:
        if not call.is_begun:
            call.is_begun = True
            self._open_block({"type": "tool_use", "id": call.id, "name": call.name, "input": {}, **call.more})
        if text := "".join(call.pieces[call.written :]):
            call.written = len(call.pieces)
            self._add_delta("input_json_delta", "partial_json", text)

    def _close_calls(self) -> None:
        for call in self._calls:
            if not call.is_closed:
                call.is_closed = True
                self._write_call(call)
                self._close_block()

    # --- calls of ours

    def _begin_ours(self, data: JsonObject) -> None:
        self._close_calls()
        if not self._has_text:
            self._open_block({"type": "text", "text": ""})
        self._shown += 1
        named = str(data.get("id") or "")
        id_ = f"mcptoolu_{named[-24:] or f'{self._chat[-20:]}_{self._shown}'}"
        self._ours.append((named, id_))
        given: Json = {} if self._rendering.is_streamed else data.get("arguments") or {}
        block: JsonObject = {"type": "mcp_tool_use", "id": id_, "name": data.get("tool"), "server_name": SERVER}
        self._open_block({**block, "input": given})
        self._close_block()

    def _end_ours(self, data: JsonObject, output: str) -> None:
        begun = next((one for one in self._ours if one[0] == str(data.get("id") or "")), None)
        if begun is None:
            return
        self._ours.remove(begun)
        self._close_calls()
        text: JsonObject = {"type": "text", "text": output or str(data.get("text") or "")}
        block: JsonObject = {"type": "mcp_tool_result", "tool_use_id": begun[1], "is_error": data["state"] == "error"}
        self._open_block({**block, "content": [text]})
        self._close_block()


class _ClientCall:
    """One call of a tool of the client, as far as it has come."""

    def __init__(self, place: int, usual_id: str) -> None:
        self.place, self.id, self.name = place, usual_id, ""
        self.more: JsonObject = {}  # what else a provider of this protocol says of it
        self.pieces: list[str] = []  # of its arguments
        self.written = 0  # pieces
        self.is_begun = self.is_closed = self._has_id = False

    def is_other_than(self, piece: JsonObject) -> bool:
        """Return whether a piece belongs to another call: some providers give all the same index."""
        id_ = piece.get("id")
        return self._has_id and isinstance(id_, str) and bool(id_) and id_ != self.id

    def merge(self, piece: JsonObject) -> None:
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        if isinstance(id_ := piece.get("id"), str) and id_ and not self._has_id:
            self.id, self._has_id = id_, True
        self.name = self.name or str(function.get("name") or "")
        self.more = self.more or find_origin(piece, PROTOCOL)
        written = function.get("arguments")
        if isinstance(written, dict):  # as some providers send them
            self.pieces.append(json_bytes(written).decode())
        elif isinstance(written, str) and written:
            self.pieces.append(written)

    @property
    def is_complete(self) -> bool:
        return self.is_closed or not self.pieces or not parse_arguments("".join(self.pieces))[1]


def _to_usage(usage: JsonObject) -> JsonObject:
    """Return the usage of chat, whose prompt includes what was read from a cache or written to it."""
    prompt, completion = (_as_object(usage.get(f"{name}_tokens_details")) for name in ("prompt", "completion"))
    read, written = _count(prompt, "cached_tokens"), _count(prompt, "cache_write_tokens")
    made: JsonObject = {
        "input_tokens": max(0, _count(usage, "prompt_tokens") - read - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": _count(usage, "completion_tokens"),
    }
    if thought := _count(completion, "reasoning_tokens"):
        made["output_tokens_details"] = {"thinking_tokens": thought}
    return made | _as_object(usage.get(NATIVE))


def _count(usage: JsonObject, key: str) -> int:
    value = usage.get(key)
    return value if isinstance(value, int) else 0


def _objects(value: Json) -> list[JsonObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _as_object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
