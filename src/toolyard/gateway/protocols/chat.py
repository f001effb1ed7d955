"""Chat completions: what clients that speak OpenAI's chat protocol get of a turn.

With one round and nothing to hide the client gets the provider's bytes unchanged. Else the message of a JSON answer has
the texts and the reasoning of all rounds, and the usage is that of all rounds.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import ClassVar, Final

from toolyard.gateway.chat_ports import PendingApproval
from toolyard.gateway.faults import ChatFailed, ChatFault
from toolyard.gateway.reply.chunks import Chunk, Head, KeptValue, read_text
from toolyard.gateway.reply.model_reply import UnstreamedReply
from toolyard.gateway.sse import DONE, END, KEEP_ALIVE, data_of, event_of
from toolyard.gateway.tool_calls.native_calls import NativeCalls
from toolyard.gateway.turns.display import approval_event, approvals_extension, write_approvals
from toolyard.gateway.turns.rendering import JsonAnswer, Writer
from toolyard.gateway.turns.turn_events import (
    ApprovalAsked,
    CallBegun,
    CallEnded,
    Delta,
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
from toolyard.gateway.turns.turn_log import Entry, TurnLog
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_value

COME_BACK: Final = "\nOnce it is allowed, send the same request again within 10 minutes: it goes on from here.\n"


@dataclass(frozen=True, slots=True)
class ChatRendering:
    is_streamed: bool
    keep_alive: ClassVar[bytes] = KEEP_ALIVE
    hidden_events: ClassVar[tuple[type[TurnEvent], ...]] = ()

    def open_stream(self, log: TurnLog) -> Writer:
        return ChatWriter(is_streamed=log.is_streamed)

    def begin_answer(self, log: TurnLog) -> JsonAnswer:
        return ChatAnswer(log.head)

    def write_fault(self, fault: ChatFault) -> bytes:
        return fault.to_bytes()


CHAT: Final = ChatRendering(is_streamed=False)


class ChatWriter:
    """Writes chunks. Those of the provider keep the bytes in which they came."""

    is_over = False

    def __init__(self, *, is_streamed: bool) -> None:
        """``is_streamed``: the replies in the log came in chunks."""
        self._is_streamed = is_streamed

    def write(self, entry: Entry) -> bytes:
        head, event = entry.head, entry.event
        match event:
            case Delta(chunks):
                pieces = ((chunk.raw, END) if chunk.raw else (event_of(chunk.data),) for chunk in chunks)
                return b"".join([piece for pair in pieces for piece in pair])  # large events are copied once
            case ReplyEnded(reply):
                delta = {key: value for key, value in reply.message().items() if key not in _SEPARATE}
                return event_of(head.chunk({"role": "assistant", "content": reply.visible_text, **delta}))
            case Note(text):
                return event_of(head.chunk({"content": text}))
            case SpecialActions(actions):
                return event_of(head.chunk({}) | {"special_actions": [*actions]})
            case ReplyParsed(reply):
                return _write_drawn(head, {"type": "reply", "reply": reply})
            case Gap(after, to):
                return event_of({"toolyard": {"type": "gap", "from": after, "to": to}, "choices": []})
            case Ended(ending, reply):
                return DONE if self._is_streamed else _write_end(head, ending, reply) + DONE
            case Failed(fault):
                return fault.to_event()
            case _:
                return _draw_work(head, event) if head.draws_work else b""


def _write_end(head: Head, ending: Ending, reply: UnstreamedReply | None) -> bytes:
    """Return the last chunk of an answer whose replies came in one piece."""
    if reply is None or ending is not Ending.DONE:
        return event_of(head.chunk({}, "stop") | {"toolyard": {"type": ending.value}})
    calls = reply.message_for_client().get("tool_calls")
    indexed: list[Json] = [{"index": at, **call} for at, call in enumerate(calls if isinstance(calls, list) else [])
                           if isinstance(call, dict)]  # fmt: skip
    chunk = head.chunk({"tool_calls": indexed} if indexed else {}, reply.finish or "stop")
    return event_of(chunk | ({"usage": spent} if (spent := reply.total_usage()) else {}))


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


class ChatAnswer:
    """One JSON object, of replies that came in one piece or in chunks."""

    is_over = False

    def __init__(self, head: Head) -> None:
        self._head = head
        self._first: JsonObject = {}
        self._texts: list[str] = []
        self._actions: list[Json] = []
        self._more: dict[str, KeptValue] = {}  # further fields of the messages, such as reasoning
        self._parsed: JsonObject = {}
        self._calls = NativeCalls()  # of the client's tools, and what else chunks bring
        self._usage: JsonObject = {}
        self._finish = "stop"
        self.body = b""  # once the turn has finished

    @property
    def text(self) -> str:
        return "".join(self._texts)

    def take(self, event: TurnEvent) -> None:
        """Take the next event. Raises ChatFailed."""
        match event:
            case Delta(chunks):
                for chunk in chunks:
                    self._take_chunk(chunk)
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
            case Gap():
                raise ChatFailed(beginning_gone())
            case Failed(fault):
                raise ChatFailed(fault)
            case _:
                pass

    def close_early(self, waiting: list[PendingApproval]) -> tuple[bytes, str]:
        note = write_approvals(waiting, self.text) + COME_BACK
        message = self._join_more() | {"content": self.text + note}
        body = self._object(message, "stop") | {"toolyard": approvals_extension(waiting)}
        return json_bytes(body), self.text + note

    def _take_chunk(self, chunk: Chunk) -> None:
        data = chunk.data or json_value(data_of(chunk.raw) or b"{}")
        if isinstance(usage := data.get("usage"), dict):
            self._usage = usage
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        if not self._first:
            self._first = self._head.stamp({}) | {"object": "chat.completion"}
        delta = choice.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        if text := read_text(delta.get("content")):
            self._texts.append(text)
        self._calls.merge_deltas(delta.get("tool_calls"))
        self._keep_more(delta, is_piece=True)
        self._finish = str(choice.get("finish_reason") or self._finish)

    def _keep_more(self, message: JsonObject, *, is_piece: bool = False) -> None:
        for key, value in message.items():
            if key not in _SEPARATE and value is not None:
                kept = self._more.setdefault(key, KeptValue())
                if isinstance(value, str) and len(kept) and not is_piece:
                    kept.add("\n\n")
                kept.add(value)

    def _join_more(self) -> JsonObject:
        return {key: kept.to_json() for key, kept in self._more.items()}

    def _build(self, reply: UnstreamedReply | None, ending: Ending = Ending.DONE) -> bytes:
        if reply is None:
            return self._build_of_chunks(ending)
        identity = {key: self._first[key] for key in ("id", "created", "model") if key in self._first}
        is_done = ending is Ending.DONE
        message: JsonObject = reply.message_for_client() if is_done else {"role": "assistant"}
        message |= self._join_more()
        content: Json = self.text or ("" if message.get("content") is not None else None)
        finish = reply.finish if is_done else "stop"
        usage: JsonObject = {"usage": spent} if (spent := reply.total_usage()) else {}
        choice = reply.choice | {"message": message | {"content": content}, "finish_reason": finish}
        body = reply.body | identity | {"choices": [choice]} | usage | self._extension(ending) | self._list_actions()
        return json_bytes(body)

    def _build_of_chunks(self, ending: Ending) -> bytes:
        calls: list[Json] = [*self._calls.to_list()]
        message = self._join_more() | {"content": self.text or (None if calls else "")}
        message |= {"tool_calls": calls} if calls else {}
        usage: JsonObject = {"usage": self._usage} if self._usage else {}
        return json_bytes(self._object(message, self._finish) | usage | self._extension(ending) | self._list_actions())

    def _extension(self, ending: Ending) -> JsonObject:
        is_done = ending is Ending.DONE
        return (
            {"toolyard": {"type": "reply" if is_done else ending.value, **self._parsed}}
            if self._parsed or not is_done
            else {}
        )

    def _list_actions(self) -> JsonObject:
        return {"special_actions": self._actions} if self._actions else {}

    def _object(self, message: JsonObject, finish: str) -> JsonObject:
        base = self._first or (self._head.stamp({}) | {"object": "chat.completion"})
        choice: JsonObject = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
        return base | {"choices": [choice]}


def beginning_gone() -> ChatFault:
    message = Message(
        "The beginning of this answer is no longer kept, so it cannot be given in one piece: ask for it streamed."
    )
    return ChatFault(status=HTTPStatus.BAD_REQUEST, message=message, code="response_not_kept", is_final=True)
