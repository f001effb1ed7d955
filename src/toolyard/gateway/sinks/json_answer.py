"""The sink of an answer in one piece: the events of a turn as one JSON object.

With one round and nothing to hide the client gets the provider's bytes unchanged. Else the message has
the texts and the reasoning of all rounds, and the usage is that of all rounds.
"""

from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.reply.chunks import Head, KeptValue
from toolyard.gateway.reply.unstreamed_reply import UnstreamedReply
from toolyard.gateway.sinks.events import (
    Ending,
    Failed,
    Finished,
    Note,
    ReplyEnded,
    ReplyParsed,
    SpecialActions,
    TurnEvent,
)
from toolyard.protocol.json import Json, JsonObject, json_bytes

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
            case ReplyEnded(reply) if isinstance(reply, UnstreamedReply):
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
            case Finished(Ending.DONE, reply) if isinstance(reply, UnstreamedReply):
                same = reply.is_first and reply.is_unchanged and len(self._texts) <= 1 and not self._parsed
                self.body = reply.raw if same else self._build(reply)
            case Finished(ending, reply):
                made = self._build(reply if isinstance(reply, UnstreamedReply) else None, ending)
                self.body = made
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
