"""One reply of a model while it passes through: what the client may see now, and what must wait.

Text goes on at once, as the very bytes that came when nothing in them changes. The end of the reply (its finish
reason, its usage, what follows them) is held back until it is known whether the turn goes on. Reasoning is passed on
and never looked at. Native calls of the client's own tools are passed on; once the reply has asked for work of ours,
they are held back, because the model will be asked again.
"""

import orjson

from toolyard.gateway.chunks import Head, added, text_of
from toolyard.gateway.faults import ChatFailed, ChatFault, unreadable
from toolyard.gateway.native import NativeCalls
from toolyard.gateway.sse import data_of, event_of
from toolyard.gateway.view import View
from toolyard.protocol.json import Json, JsonObject

_SEPARATE = ("role", "content", "tool_calls")


class Reply:
    """``round`` counts from 1. Without ``looks`` the reply is only passed on, whatever it asks for."""

    def __init__(self, head: Head, view: View, *, name: str, number: int, clients: frozenset[str], looks: bool) -> None:
        self._head, self.view, self._name, self._looks = head, view, name, looks
        self._first = number == 1
        self._clients = clients
        self._held: list[tuple[JsonObject, bytes]] = []  # the end of the reply
        self._holds_calls = False
        self._usage: JsonObject = {}
        self.text: list[str] = []
        self.calls = NativeCalls()
        self._more: dict[str, list[Json]] = {}  # further fields of the message, each in pieces
        self.finish: str | None = None
        self._ends: dict[str, Json] = {}  # of a reply that is only passed on: why each of its answers ended
        self.done = False
        self.passed_calls = False  # the client has seen calls of its own tools
        self.seen = ""  # the last two characters that the client saw

    @property
    def ended(self) -> bool:
        """Whether the provider said that this is all."""
        return self.done or self.finish is not None

    def more(self) -> JsonObject:
        """The further fields of the message, such as its reasoning."""
        return {key: _joined(pieces) for key, pieces in self._more.items()}

    def take(self, events: list[bytes]) -> bytes:
        """What of these events the client may see. Raises ChatFailed."""
        out: list[bytes] = []
        said: list[str] = []  # of neighbouring chunks that have only text, which nearly all are
        plain: list[tuple[JsonObject, bytes]] = []
        for event in events:
            data = event[6:] if event.startswith(b"data: {") and b"\n" not in event else data_of(event)
            if data is None or self.done:
                continue
            if data == b"[DONE]":
                self.done = True
                continue
            chunk = self._chunk(data)
            if not self._head.known:
                self._head.learn(chunk)
            content = _only_text(chunk) if self._looks else None
            if content is not None:
                said.append(content)
                plain.append((chunk, event))
                continue
            out.append(self._texts(said, plain))
            said, plain = [], []
            out.append(self._shown(chunk, event))
        out.append(self._texts(said, plain))
        return b"".join(out)

    def end(self) -> bytes:
        """The text that was held back because it might have been a request."""
        return self.says(self.view.finish()) if self._looks else b""

    def closing(self) -> bytes:
        """What was held back, now that this reply is the last."""
        calls = self._told_calls() if self._holds_calls and not self.passed_calls else b""
        return b"".join([calls, *(self._written(chunk, event, usage=True) for chunk, event in self._held)])

    def spent(self) -> JsonObject:
        """The usage of all rounds up to this one."""
        return added(self._head.usage, self._usage)

    def says(self, text: str) -> bytes:
        """A text as a chunk of this answer."""
        if not text:
            return b""
        self._note(text)
        return event_of(self._head.chunk({"content": text}))

    def _note(self, shown: str) -> None:
        if shown:
            self.seen = shown[-2:] if len(shown) > 1 else self.seen[-1:] + shown

    def _chunk(self, data: bytes) -> JsonObject:
        try:
            chunk = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise unreadable(self._name, "sent an event that is not JSON", data) from error
        if not isinstance(chunk, dict):
            raise unreadable(self._name, "sent an event that is not an object", data)
        if fault := chunk.get("error"):
            own = fault if isinstance(fault, dict) else {}
            said = own.get("message") or fault
            raise ChatFailed(ChatFault(status=502, message=str(said)[:2000], code="upstream_error", own=own))
        return chunk

    def _shown(self, chunk: JsonObject, event: bytes) -> bytes:
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = usage
        if not self._looks:
            self._finished(choices if isinstance(choices, list) else [])
            return event + b"\n\n"
        if not isinstance(choice, dict):
            return self._hold(chunk, event) if self.finish or usage else self._written(chunk, event)
        delta = choice.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        return self._other(chunk, event, choice, delta, choice.get("finish_reason"))

    def _finished(self, choices: list[Json]) -> None:
        """Several answers in one end with the last of them."""
        for choice in choices:
            if isinstance(choice, dict):
                index = str(choice.get("index") or 0)  # not every provider says it in its last chunk
                self._ends[index] = self._ends.get(index) or choice.get("finish_reason")
        reasons = list(self._ends.values())
        self.finish = str(reasons[-1]) if reasons and all(reasons) else None

    def _texts(self, said: list[str], chunks: list[tuple[JsonObject, bytes]]) -> bytes:
        """Chunks of text: as they came when all of it may be seen, else what may be seen as one."""
        if not said:
            return b""
        text = said[0] if len(said) == 1 else "".join(said)
        self.text.append(text)
        shown = self.view.feed(text)
        self._note(shown)
        if shown == text:
            return b"".join([self._written(chunk, event) for chunk, event in chunks])
        return event_of(self._head.chunk({"content": shown})) if shown else b""

    def _other(self, chunk: JsonObject, event: bytes, choice: JsonObject, delta: JsonObject, finish: Json) -> bytes:
        said = text_of(delta.get("content"))
        self._note_more(delta)
        shown = ""
        if said:
            self.text.append(said)
            shown = self.view.feed(said)
            self._note(shown)
        calls = delta.get("tool_calls")
        if finish is None and not calls:
            if shown == said and (self._first or "role" not in delta):
                return self._written(chunk, event)
            return self._changed(chunk, choice, delta, shown)
        if calls:
            self.calls.merge(calls)
        passed = delta.get("content") if shown == said else shown  # as it is, it may hold more than text
        before = event_of(self._head.chunk({"content": passed})) if shown else b""
        told = ["content"] * bool(said) + ["tool_calls"] * bool(finish is not None and calls and self._holds_calls)
        if told:
            choice = {**choice, "delta": {key: value for key, value in delta.items() if key not in told}}
            chunk, event = {**chunk, "choices": [choice]}, b""
        if finish is not None:
            self.finish = str(finish)
            return before + self._hold(chunk, event)
        return before + self._native(chunk, event)

    def _native(self, chunk: JsonObject, event: bytes) -> bytes:
        """Calls of the client's tools go on, unless this reply has work for us: then they wait."""
        theirs = self._clients.issuperset(self.calls.names())
        if theirs and (self.passed_calls or not (self._holds_calls or self.view.expects)):
            self.passed_calls = True
            return self._written(chunk, event)
        self._holds_calls = True
        return b""

    def _told_calls(self) -> bytes:
        indexed: list[Json] = [{"index": index, **call} for index, call in enumerate(self.calls.all())]
        return event_of(self._head.chunk({"tool_calls": indexed}))

    def _note_more(self, delta: JsonObject) -> None:
        for key, value in delta.items():
            if key not in _SEPARATE and value is not None:
                before = self._more.setdefault(key, [])
                if before and not (isinstance(value, str | list) and type(before[0]) is type(value)):
                    before.clear()
                before.append(value)

    def _changed(self, chunk: JsonObject, choice: JsonObject, delta: JsonObject, shown: str) -> bytes:
        made: JsonObject = {key: value for key, value in delta.items() if self._first or key != "role"}
        if shown != text_of(delta.get("content")):
            made["content"] = shown
        if not any(made.values()) and not (self._first and "role" in made):
            return b""
        return self._written({**chunk, "choices": [{**choice, "delta": made}]}, b"")

    def _hold(self, chunk: JsonObject, event: bytes) -> bytes:
        self._held.append((chunk, event))
        return b""

    def _written(self, chunk: JsonObject, event: bytes, *, usage: bool = False) -> bytes:
        """The bytes as they came; else the chunk as one of this answer, with the usage of all rounds."""
        if self._first and event:
            return event + b"\n\n"
        made = chunk | {"id": self._head.id, "created": self._head.created, "model": self._head.model}
        if usage and isinstance(chunk.get("usage"), dict):
            made["usage"] = self.spent()
        return event_of(made)


def _joined(pieces: list[Json]) -> Json:
    texts = [piece for piece in pieces if isinstance(piece, str)]
    lists = [piece for piece in pieces if isinstance(piece, list)]
    return "".join(texts) if texts else [one for piece in lists for one in piece] if lists else pieces[-1]


def _only_text(chunk: JsonObject) -> str | None:
    """The text of a chunk that has nothing else to say."""
    choices = chunk.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or chunk.get("usage"):
        return None
    choice = choices[0]
    delta = choice.get("delta") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(delta, dict) or len(delta) != 1 or choice.get("finish_reason"):
        return None
    content = delta.get("content")
    return content if isinstance(content, str) else None
