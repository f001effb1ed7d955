"""A streamed reply: decides, chunk by chunk, what the client gets now and what has to wait.

Text is passed on at once, as the bytes received if nothing in them changes. Reasoning is passed on unread. Two small
automata decide the rest: ``_Stage``, the progress of the reply, and ``_CallOwner``, the owner of its native calls.

Of all replies of one answer ``MAX_KEPT`` bytes are kept at most. One reply has ``MAX_TEXT`` bytes of text and
``MAX_EVENTS`` events at most. Whatever is beyond that fails it.
"""

from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

from toolyard.gateway.faults import ChatFailed, ChatFault, describe_provider, unreadable_answer
from toolyard.gateway.reply.chunks import (
    DETAILS,
    Chunk,
    KeptDetails,
    KeptValue,
    add_usage,
    entry_bytes,
    only_text,
    read_text,
)
from toolyard.gateway.reply.model_reply import ReplyContext, is_client_first, parse_object
from toolyard.gateway.sse import data_of
from toolyard.gateway.tool_calls.native_calls import NativeCalls
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject, json_bytes

MAX_TEXT: Final = 4 * 1024 * 1024  # no model writes a quarter of it
MAX_KEPT: Final = 16 * 1024 * 1024  # with reasoning, arguments, pictures and further fields
MAX_EVENTS: Final = 500_000
_WHAT = Message("an event")
_SEPARATE = ("role", "content", "tool_calls")
_MAX_INDEX = 20  # characters
_MAX_HELD = 64  # chunks at the end of a reply; most have one or two
_STEP = 64 * 1024  # characters that are filtered at once, and bytes of an event that is large


class _Stage(Enum):
    """States of the reply as a whole.

    | stage     | a chunk is                     | finish reason | [DONE]   | the stream breaks                       |
    |-----------|--------------------------------|---------------|----------|-----------------------------------------|
    | STREAMING | passed on                      | FINISHING     | COMPLETE | BROKEN                                  |
    | FINISHING | held until the turn is decided | stays         | COMPLETE | COMPLETE: the finish reason had come    |
    | COMPLETE  | ignored                        |               |          |                                         |
    | BROKEN    | ignored                        |               |          |                                         |

    A reply with several choices is only passed on; it is STREAMING again when another choice begins.
    """

    STREAMING = auto()
    FINISHING = auto()
    COMPLETE = auto()
    BROKEN = auto()


class _CallOwner(Enum):
    """The owner of this reply's native calls, who acts next. The first call decides, and the decision stays.

    | owner  | decided by                                              | calls                                     |
    |--------|---------------------------------------------------------|-------------------------------------------|
    | NOBODY | no call has come                                        |                                           |
    | CLIENT | it is one of the client's, and no text request precedes | the client's are passed on, ours dropped  |
    | HOST   | anything else                                           | held; passed on only if the turn ends here|
    """

    NOBODY = auto()
    CLIENT = auto()
    HOST = auto()


class StreamedReply:
    def __init__(self, context: ReplyContext) -> None:
        self._head, self.request_filter = context.head, context.request_filter
        self._name, self._looks, self._owners = context.provider, context.looks, context.owners
        self._is_first = context.round == 1
        self._stage = _Stage.STREAMING
        self._call_owner = _CallOwner.NOBODY
        self._held: list[tuple[bytes, bool]] = []  # the end of the reply: events, and whether each is as it came
        self.usage: JsonObject = {}
        self._text, self._visible_text = KeptValue(), KeptValue()
        self._calls = NativeCalls()
        self._more: dict[str, KeptValue | KeptDetails] = {}  # further fields of the message, such as reasoning
        self._kept = context.kept  # bytes, but for those of the text and the calls
        self._events = 0
        self.finish: str | None = None
        self._ends: dict[str, Json] = {}  # of a reply that is only passed on: the finish reason of each choice
        self.is_passed = False  # the client has received part of it
        self.failure: ChatFault | None = None  # the reason why it broke off, if it did
        self._visible = ""  # of the newest text
        self.visible_tail = ""

    @property
    def is_complete(self) -> bool:
        """Return whether nothing more can come."""
        return self._stage in (_Stage.COMPLETE, _Stage.BROKEN)

    @property
    def text(self) -> str:
        return self._text.text

    @property
    def visible_text(self) -> str:
        return self._visible_text.text

    @property
    def kept_bytes(self) -> int:
        """The bytes that this reply and those before it have kept."""
        return self._kept + len(self._text) + self._calls.size

    @property
    def calls(self) -> list[JsonObject]:
        return self._calls.to_list()

    @property
    def is_handed_over(self) -> bool:
        return not self._looks or self._call_owner is _CallOwner.CLIENT

    def message(self) -> JsonObject:
        more = {key: value.to_json() for key, value in self._more.items()} if self._calls else {}
        return {"role": "assistant", "content": self.text} | more

    def take(self, events: list[bytes]) -> list[Chunk]:
        """Return the chunks of these events that the client may see; what is unreadable or too much ends it."""
        self._events += len(events)
        out: list[Chunk] = []
        texts: list[str] = []  # of neighbouring chunks that have only text, which nearly all are
        plain: list[tuple[JsonObject, bytes]] = []
        for event in events:
            data = event[6:] if event.startswith(b"data: {") and b"\n" not in event else data_of(event)
            if data is None or self.is_complete:
                continue
            if data == b"[DONE]":
                self._stage = _Stage.COMPLETE
                continue
            if len(data) > _STEP and self.kept_bytes + len(data) > MAX_KEPT:
                self._kept += len(data)  # too much already: reading it would take several times its size
                break
            try:
                chunk = parse_object(self._name, data, _WHAT)
            except ChatFailed as failed:
                self.fail(failed.fault)
                break
            if not self._head.is_known:
                self._head.learn(chunk)
            content = only_text(chunk) if self._looks else None
            if content is not None:
                texts.append(content)
                plain.append((chunk, event))
                continue
            out += self._pass_texts(texts, plain)
            texts, plain = [], []
            out += self._pass_chunk(chunk, event)
        out += self._pass_texts(texts, plain)
        self.is_passed = self.is_passed or bool(out)
        if problem := self._find_excess():
            self.fail(unreadable_answer(problem).fault)
        return out

    def _find_excess(self) -> Message | None:
        """Return which limit the reply exceeds."""
        if len(self._text) > MAX_TEXT:
            return Message(
                "{provider} sent more than {limit} MiB of text in one reply, so it was stopped here",
                provider=describe_provider(self._name),
                limit=MAX_TEXT // 2**20,
            )
        if self.kept_bytes > MAX_KEPT:
            return Message(
                "{provider} sent more than {limit} MiB of reasoning, arguments and text in one answer, so it was "
                "stopped here",
                provider=describe_provider(self._name),
                limit=MAX_KEPT // 2**20,
            )
        if self._events > MAX_EVENTS:
            return Message(
                "{provider} sent more than {limit:,} events in one reply, so it was stopped here",
                provider=describe_provider(self._name),
                limit=MAX_EVENTS,
            )
        return None

    def fail(self, fault: ChatFault) -> None:
        """End the reply where its stream broke: a failure, unless a finish reason had come before."""
        if self._stage is _Stage.STREAMING:
            self._stage, self.failure = _Stage.BROKEN, fault
        else:
            self._stage = _Stage.COMPLETE

    def end(self) -> list[Chunk]:
        """Return the text that was held back because it might have been a request."""
        text = self.request_filter.finish() if self._looks else ""
        self._note_visible(text)
        return self._text_chunks(text)

    def take_held(self) -> list[Chunk]:
        """Return the chunks that were held back, now that this reply is the last."""
        calls = self._all_calls() if self._call_owner is _CallOwner.HOST else []
        return [*calls, *(self._release(event, is_unchanged=same) for event, same in self._held)]

    def _release(self, event: bytes, *, is_unchanged: bool) -> Chunk:
        chunk = parse_object(self._name, data_of(event) or b"", _WHAT)
        return self._stamp(chunk, event if is_unchanged else b"", usage=True)

    def total_usage(self) -> JsonObject:
        return add_usage(self._head.usage, self.usage)

    def _text_chunks(self, text: str) -> list[Chunk]:
        return [Chunk(self._head.chunk({"content": text}))] if text else []

    def _note_visible(self, text: str) -> None:
        if text:
            self._visible_text.add(text)
            self.visible_tail = text[-2:] if len(text) > 1 else self.visible_tail[-1:] + text

    def _pass_chunk(self, chunk: JsonObject, event: bytes) -> list[Chunk]:
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if isinstance(usage := chunk.get("usage"), dict):
            self.usage = usage
        if not self._looks:
            self._note_ends(choices if isinstance(choices, list) else [])
            return [Chunk(chunk, event)]
        if not isinstance(choice, dict):
            is_end = self._stage is _Stage.FINISHING or bool(usage)
            return self._hold(chunk, event) if is_end else [self._stamp(chunk, event)]
        delta = choice.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        return self._pass_delta(chunk, event, choice, delta, choice.get("finish_reason"))

    def _note_ends(self, choices: list[Json]) -> None:
        """Note which choices of a reply that is only passed on have ended: it ends with the last of them."""
        for choice in choices:
            if isinstance(choice, dict):
                if not choice.get("index") and isinstance(delta := choice.get("delta"), dict):
                    self._text.add(text := read_text(delta.get("content")))
                    self._note_visible(text)
                index = str(choice.get("index") or 0)[:_MAX_INDEX]  # not every provider repeats it in its last chunk
                self._kept += 0 if index in self._ends else entry_bytes()
                self._ends[index] = self._ends.get(index) or choice.get("finish_reason")
        reasons = list(self._ends.values())
        self._note_finish(str(reasons[-1]) if reasons and all(reasons) else None)

    def _note_finish(self, reason: str | None) -> None:
        self.finish, self._stage = reason, _Stage.FINISHING if reason else _Stage.STREAMING

    def _pass_texts(self, texts: list[str], chunks: list[tuple[JsonObject, bytes]]) -> list[Chunk]:
        """Return chunks of text: as they came when all of it may be seen, else the visible text as one chunk."""
        if not texts:
            return []
        text = texts[0] if len(texts) == 1 else "".join(texts)
        if self._feed(text) == text:
            return [self._stamp(chunk, event) for chunk, event in chunks]
        return self._text_chunks(self._visible)

    def _feed(self, text: str) -> str:
        """Return the text that may be seen by now."""
        self._text.add(text)
        if len(self._text) > MAX_TEXT:
            self._visible = ""  # the reply ends here
        elif len(text) <= _STEP:
            self._visible = self.request_filter.feed(text)
        else:
            steps = (text[at : at + _STEP] for at in range(0, len(text), _STEP))
            self._visible = _join(map(self.request_filter.feed, steps), text)
        self._note_visible(self._visible)
        return self._visible

    def _pass_delta(
        self, chunk: JsonObject, event: bytes, choice: JsonObject, delta: JsonObject, finish: Json
    ) -> list[Chunk]:
        content = delta.get("content")
        text = read_text(content)
        self._note_more(delta)
        visible = self._feed(text) if text else ""
        calls = delta.get("tool_calls")
        if finish is None and not calls:
            if visible == text and (self._is_first or "role" not in delta):
                return [self._stamp(chunk, event)]
            return self._pass_changed(chunk, choice, delta, visible)
        changes: JsonObject = {"content": None} if text else {}
        if isinstance(calls, list):
            theirs = self._take_calls(calls)
            if len(theirs) < len(calls):
                changes["tool_calls"] = theirs or None
        passed: JsonObject = {"content": content if visible == text else visible} if visible else {}  # may be parts
        if finish is not None or "tool_calls" in changes:  # the rest of the chunk may never be passed on
            more = {key: value for key, value in delta.items() if key not in _SEPARATE and value}
            passed |= more
            changes |= dict.fromkeys(more)
        before = [Chunk(self._head.chunk(passed))] if passed else []
        if changes:
            remaining = {key: value for key, value in (delta | changes).items() if key not in changes or value}
            chunk, event = {**chunk, "choices": [{**choice, "delta": remaining}]}, b""
        if finish is not None:
            self._note_finish(str(finish))
            return before + self._hold(chunk, event)
        return before + ([self._stamp(chunk, event)] if "tool_calls" not in changes or changes["tool_calls"] else [])

    def _take_calls(self, deltas: list[Json]) -> list[Json]:
        """Return those of these pieces of native calls that the client gets now."""
        names = self._calls.merge_deltas(deltas)
        if self._call_owner is _CallOwner.NOBODY:
            is_client = is_client_first(names, self.request_filter, self._owners)
            self._call_owner = _CallOwner.CLIENT if is_client else _CallOwner.HOST
        if self._call_owner is _CallOwner.HOST:
            return []
        return [delta for delta, name in zip(deltas, names, strict=True) if self._owners.is_client(name)]

    def _all_calls(self) -> list[Chunk]:
        indexed: list[Json] = [{"index": index, **call} for index, call in enumerate(self.calls)]
        return [Chunk(self._head.chunk({"tool_calls": indexed}))]

    def _note_more(self, delta: JsonObject) -> None:
        for key, value in delta.items():
            if key not in _SEPARATE and value is not None:
                if key not in self._more:
                    self._more[key] = KeptDetails() if key == DETAILS and isinstance(value, list) else KeptValue()
                    self._kept += entry_bytes(key)
                self._kept += self._more[key].add(value)

    def _pass_changed(self, chunk: JsonObject, choice: JsonObject, delta: JsonObject, visible: str) -> list[Chunk]:
        made: JsonObject = {key: value for key, value in delta.items() if self._is_first or key != "role"}
        if visible != read_text(delta.get("content")):
            made["content"] = visible
        if not any(made.values()) and not (self._is_first and "role" in made):
            return []
        return [self._stamp({**chunk, "choices": [{**choice, "delta": made}]}, b"")]

    def _hold(self, chunk: JsonObject, event: bytes) -> list[Chunk]:
        held = event or b"data: " + json_bytes(chunk)
        self._held.append((held, bool(event)))
        self._kept += len(held) + entry_bytes()
        if self._stage is _Stage.FINISHING and len(self._held) >= _MAX_HELD:
            self._stage = _Stage.COMPLETE  # nothing is missing
        return []

    def _stamp(self, chunk: JsonObject, event: bytes, *, usage: bool = False) -> Chunk:
        """Return the chunk as it came; else as one of this answer, with the usage of all rounds."""
        if self._is_first and event:
            return Chunk(chunk, event)
        made = chunk | {"id": self._head.id, "created": self._head.created, "model": self._head.model}
        if usage and isinstance(chunk.get("usage"), dict):
            made["usage"] = self.total_usage()
        return Chunk(made)


def _join(pieces: Iterable[str], usual: str) -> str:
    """Return the pieces as one text: ``usual`` itself if that is what they are, which takes no more memory."""
    at, rest = 0, iter(pieces)
    for piece in rest:
        if not usual.startswith(piece, at):
            return "".join([usual[:at], piece, *rest])
        at += len(piece)
    return usual if at == len(usual) else usual[:at]
