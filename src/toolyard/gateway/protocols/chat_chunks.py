"""The common part of the readers of answers: an answer as chat chunks, from a stream of events or one object.

A reader numbers the text, the reasoning, the calls and the native items of an answer in their order (``index`` of the
details): with that the writer of the next request puts them back in it. A stream ends with its own last event. Without
it no finish reason is passed on, so it counts as cut.
"""

from typing import Final

from toolyard.gateway.faults import no_completion
from toolyard.gateway.protocols.chat_body import NATIVE, NativeRequest, as_object, merge_details, objects, with_origin
from toolyard.gateway.providers.provider_json import MAX_UNSTREAMED_PARTS, parse_provider_json
from toolyard.gateway.reply.chunks import DETAILS
from toolyard.gateway.sse import data_of
from toolyard.protocol.json import Json, JsonObject, json_bytes

DONE: Final = b"data: [DONE]"
_GROWING = ("content", "reasoning_content", "refusal")


class AnswerReader:
    """Reads one answer: a subclass takes the events, or the whole, and writes them by the methods at the end."""

    protocol = ""

    def __init__(self, provider: str, request: NativeRequest, created: int = 0) -> None:
        """``created``: the time of the answer, if it does not tell it."""
        self._provider, self._request = provider, request
        self._chunks: list[bytes] = []
        self._identity: JsonObject = {"id": "", "object": "chat.completion.chunk", "created": created, "model": ""}
        self._has_begun = self._has_content = self.has_ended = False
        self._first_event = b""
        self._calls = 0
        self._index = 0  # of the next text, reasoning, call or native item
        self._length = 0  # characters of text
        self._has_reasoning = False

    def take_event(self, event: JsonObject) -> None:
        """Take the next event of a stream."""
        raise NotImplementedError

    def take_answer(self, answer: JsonObject) -> bool:
        """Take an answer in one piece; return whether it is one."""
        raise NotImplementedError

    # --- for those who read

    def read_events(self, events: list[bytes]) -> list[bytes]:
        """Return the chat chunks of a provider's events, as events; one that cannot be read is passed on as it is."""
        for event in events:
            data = data_of(event)
            if not data or self.has_ended or data == b"[DONE]":
                continue
            self._first_event = self._first_event or data
            try:
                value = parse_provider_json(data)
            except ValueError:
                value = None
            if not isinstance(value, dict):
                self.has_ended = True
                self._chunks.append(b"data: " + data)
            elif "error" in value and value["error"] and "response" not in value:
                self.fail(value["error"])
            else:
                self.take_event(value)
        chunks, self._chunks = self._chunks, []
        return chunks

    def finish(self) -> None:
        """Note the end of the stream. Raises ChatFailed when nothing in it was of this protocol."""
        if self._first_event and not self._has_begun and not self.has_ended:
            raise no_completion(self._provider, self._first_event)

    def read_whole(self, data: bytes) -> list[bytes]:
        """Return an answer in one piece as chunks, for a request that asked for a stream. Raises ChatFailed."""
        if not self._take_whole(data):
            raise no_completion(self._provider, data)
        chunks, self._chunks = self._chunks, []
        return chunks

    def to_completion(self, data: bytes) -> bytes:
        """Return an answer in one piece as a chat completion; what is none of this protocol is returned as it is."""
        return fold_chunks(self._chunks) if self._take_whole(data) else data

    def _take_whole(self, data: bytes) -> bool:
        try:
            value = parse_provider_json(data, most=MAX_UNSTREAMED_PARTS)
        except ValueError:
            return False
        if not isinstance(value, dict):
            return False
        if value.get("error") and "output" not in value:
            self.fail(value["error"])
            return True
        return self.take_answer(value)

    # --- for those who write

    def begin(self, id_: Json, created: Json, model: Json) -> None:
        if not self._has_begun:
            self._has_begun = True
            known = {"id": id_, "created": created, "model": model}
            self._identity |= {key: value for key, value in known.items() if value is not None}

    def add(self, delta: JsonObject, **more: Json) -> None:
        """Add a chunk; ``more`` stands beside its delta."""
        if not self._has_content:
            self._has_content = True
            delta = {"role": "assistant", **delta}  # no chunk of its own: an answer without content may be asked again
        self._write({"choices": [{"index": 0, "delta": delta, "finish_reason": None, **more}]})

    def number(self) -> int:
        """Return the number of the next part of the answer."""
        self._index += 1
        return self._index - 1

    def add_text(self, text: str, **more: Json) -> None:
        if text:
            if not self._length:
                self.number()
            self._length += len(text)
            self.add({"content": text}, **more)

    def add_detail(self, detail: JsonObject, text: str = "", *, begins: bool = False) -> None:
        """Add reasoning, and its readable text; ``begins``: it is a paragraph of its own."""
        readable: JsonObject = {}
        if text:
            readable = {"reasoning_content": f"\n\n{text}" if begins and self._has_reasoning else text}
            self._has_reasoning = True
        self.add({**readable, DETAILS: [detail]})

    def begin_call(
        self, id_: Json, name: Json, written: str = "", *, custom: bool = False, origin: JsonObject | None = None
    ) -> int:
        """Begin a call; return its index. ``origin``: what else was said of it in the protocol of this answer."""
        place, self._calls = self._calls, self._calls + 1
        self.number()
        kind, field = ("custom", "input") if custom else ("function", "arguments")
        sent = str(name or "")
        inner: JsonObject = {"name": self._request.names.get(sent, sent), field: written}
        call: JsonObject = {"index": place, "id": id_, "type": kind, kind: inner}
        self.add({"tool_calls": [with_origin(call, self.protocol, origin) if origin else call]})
        return place

    def add_written(self, place: int, text: str, *, custom: bool = False) -> None:
        """Add to the arguments of a call."""
        if text:
            inner: JsonObject = {"custom": {"input": text}} if custom else {"function": {"arguments": text}}
            self.add({"tool_calls": [{"index": place, **inner}]})

    def add_native(self, item: JsonObject) -> None:
        """Add an item that chat has no word for: a client that speaks this protocol gets it."""
        index = self.number()
        if self._request.is_client_native:
            self.add({NATIVE: [{"type": NATIVE, "protocol": self.protocol, "item": item, "index": index}]})

    def end(self, finish: str, usage: JsonObject, **more: Json) -> None:
        """End the answer; ``more`` stands beside the finish reason."""
        self.has_ended = True
        last: JsonObject = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish, **more}]}
        if usage and not self._request.wants_usage:  # clients that did not ask take no chunk without a choice
            last["usage"] = usage
        self._write(last)
        if usage and self._request.wants_usage:
            self._write({"choices": [], "usage": usage})
        self._chunks.append(DONE)

    def fail(self, error: Json) -> None:
        """End the answer with the provider's error, which may have come in place of it."""
        self.has_ended = True
        self._chunks.append(b"data: " + json_bytes({"error": error}))

    def _write(self, rest: JsonObject) -> None:
        self._chunks.append(b"data: " + json_bytes({**self._identity, **rest}))


def fold_chunks(events: list[bytes]) -> bytes:
    """Return the chunks of one whole answer as a chat completion; an error as it is."""
    completion: JsonObject = {}
    message: JsonObject = {"role": "assistant", "content": None}
    choice: JsonObject = {"index": 0, "message": message}
    calls: dict[int, JsonObject] = {}
    for event in events:
        if event == DONE:
            break
        chunk = as_object(parse_provider_json(event.removeprefix(b"data: ")))
        if chunk.get("error"):
            return json_bytes(chunk)
        completion |= {key: value for key, value in chunk.items() if key != "choices"}
        for one in objects(chunk.get("choices")):
            _fold_delta(message, calls, as_object(one.get("delta")))
            if logprobs := as_object(one.get("logprobs")):
                _extend(as_object(choice.setdefault("logprobs", {"content": []})), "content", logprobs.get("content"))
            choice |= {key: value for key, value in one.items() if key not in ("delta", "index", "logprobs")}
    if details := message.get(DETAILS):
        message[DETAILS] = [*merge_details(details)]
    if calls:
        message["tool_calls"] = [*calls.values()]
    return json_bytes({**completion, "object": "chat.completion", "choices": [choice]})


def _fold_delta(message: JsonObject, calls: dict[int, JsonObject], delta: JsonObject) -> None:
    for key, value in delta.items():
        if key in _GROWING and isinstance(value, str):
            before = message.get(key)
            if value or before:
                message[key] = f"{before or ''}{value}"
        elif key == "tool_calls":
            for piece in objects(value):
                _fold_call(calls, piece)
        elif isinstance(value, list):
            _extend(message, key, value)


def _fold_call(calls: dict[int, JsonObject], piece: JsonObject) -> None:
    index = piece.get("index")
    call = calls.setdefault(index if isinstance(index, int) else 0, {})
    for key, value in piece.items():
        inner = call.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            for name, text in value.items():
                inner[name] = f"{inner.get(name) or ''}{text}"
        elif key != "index":
            call[key] = value


def _extend(holder: JsonObject, key: str, more: Json) -> None:
    listed = holder.setdefault(key, [])
    if isinstance(listed, list) and isinstance(more, list):
        listed += more
