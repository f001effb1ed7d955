"""The output of a response, item by item: what the model writes, in the events that the protocol documents.

At most one item is being written (``close`` ends it); calls of ours, which may run beside it, are added and finished by
whoever runs them. Of the calls of the client's tools one comes after the other, however their pieces are mixed: those
that begin before the one that is being written is whole wait for its end.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from toolyard.gateway.protocols.chat_body import as_list, as_object, objects
from toolyard.gateway.protocols.responses.input_items import FORMAT, PROTOCOL, seal_details
from toolyard.gateway.reply.chunks import Chunk, read_text
from toolyard.gateway.sse import data_of
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_value

Emit = Callable[[str, JsonObject], None]
_WRITTEN: Final = {"function": "arguments", "custom": "input"}
_CALL_EVENTS: Final = {"function": "function_call_arguments", "custom": "custom_tool_call_input"}


def response_of_item(id_: str) -> str:
    """Return the id of the response that made an item, from the id of the item; of calls of ours it says nothing."""
    return f"resp_{id_.partition('_')[2][:-2]}"


@dataclass(slots=True)
class _Part:
    """A part of an open item: its text comes in pieces."""

    kind: str  # output_text, refusal, summary_text or reasoning_text
    index: int
    texts: list[str] = field(default_factory=list)
    logprobs: list[Json] = field(default_factory=list)
    annotations: list[Json] = field(default_factory=list)
    place: Json = None  # of the detail that it was begun with

    def to_json(self) -> JsonObject:
        text = "".join(self.texts)
        match self.kind:
            case "output_text":
                return {
                    "type": self.kind, "text": text, "annotations": [*self.annotations], "logprobs": [*self.logprobs],
                }  # fmt: skip
            case "refusal":
                return {"type": self.kind, "refusal": text}
            case _:
                return {"type": self.kind, "text": text}


@dataclass(slots=True, eq=False)
class _ClientCall:
    """A call of one of the client's tools, as far as it has come."""

    id: str
    kind: str  # function or custom
    name: str
    written: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Open:
    """The item that is being written."""

    item: JsonObject
    at: int
    part: _Part | None = None
    details: list[JsonObject] = field(default_factory=list)  # of reasoning
    call: _ClientCall | None = None


class OutputWriter:
    def __init__(self, response: str, emit: Emit, namespaces: Mapping[str, tuple[str, str]]) -> None:
        """``response``: the end of its id; those of its items are made from it, so that all readers get the same."""
        self.items: list[Json] = []
        self.finish = ""  # the model's finish reason
        self._id, self._emit, self._namespaces = response, emit, namespaces
        self._open: _Open | None = None
        self._calls: dict[Json, _ClientCall] = {}  # the newest of each index in the chunks
        self._waiting: list[_ClientCall] = []  # their items begin when the one before is done

    @property
    def text(self) -> str:
        """The text of its messages so far."""
        parts = [part for item in self.items for part in objects(as_object(item).get("content"))]
        texts = [part["text"] for part in parts if part.get("type") == "output_text"]
        opened = self._open.part if self._open is not None else None
        return "".join(map(str, [*texts, *(opened.texts if opened and opened.kind == "output_text" else [])]))

    @property
    def is_in_message(self) -> bool:
        return self._open is not None and self._open.item["type"] == "message"

    def _make_id(self, prefix: str) -> str:
        return f"{prefix}_{self._id}{len(self.items):02x}"  # ``response_of_item`` reads it

    def add_item(self, item: JsonObject) -> int:
        self.items.append(item)
        at = len(self.items) - 1
        self._emit("response.output_item.added", {"output_index": at, "item": item})
        return at

    def finish_item(self, at: int, item: JsonObject) -> None:
        self.items[at] = item
        self._emit("response.output_item.done", {"output_index": at, "item": item})

    def _open_item(self, item: JsonObject) -> _Open:
        self._open = _Open(item, self.add_item(item))
        return self._open

    def close(self, status: str = "completed") -> None:
        """End the open item, and those that wait for its end."""
        while self._open is not None:
            opened, self._open = self._open, None
            self._close_part(opened)
            if opened.call is not None:
                self._close_call(opened, opened.call, status)
            elif opened.item["type"] == "reasoning":
                self._close_reasoning(opened)
            else:
                self.finish_item(opened.at, {**opened.item, "status": status})
            if self._waiting:
                self._open_call(self._waiting.pop(0))

    def _begin_part(self, opened: _Open, kind: str, place: Json = None) -> _Part:
        self._close_part(opened)
        is_summary = kind == "summary_text"
        parts = as_list(opened.item["summary"] if is_summary else opened.item.setdefault("content", []))
        part = opened.part = _Part(kind, len(parts), place=place)
        name = "reasoning_summary_part" if is_summary else "content_part"
        self._emit(f"response.{name}.added", {**self._locate(opened, part), "part": part.to_json()})
        return part

    def _locate(self, opened: _Open, part: _Part) -> JsonObject:
        index = "summary_index" if part.kind == "summary_text" else "content_index"
        return {"item_id": opened.item["id"], "output_index": opened.at, index: part.index}

    def _close_part(self, opened: _Open) -> None:
        part, opened.part = opened.part, None
        if part is None:
            return
        whole, where = part.to_json(), self._locate(opened, part)
        match part.kind:
            case "output_text":
                self._emit("response.output_text.done", {**where, "text": whole["text"], "logprobs": whole["logprobs"]})
            case "refusal":
                self._emit("response.refusal.done", {**where, "refusal": whole["refusal"]})
            case "summary_text":
                self._emit("response.reasoning_summary_text.done", {**where, "text": whole["text"]})
            case _:
                self._emit("response.reasoning_text.done", {**where, "text": whole["text"]})
        is_summary = part.kind == "summary_text"
        # A new list: the item that was added has been sent without it, and readers keep what they got.
        key = "summary" if is_summary else "content"
        opened.item[key] = [*as_list(opened.item[key]), whole]
        name = "reasoning_summary_part" if is_summary else "content_part"
        self._emit(f"response.{name}.done", {**where, "part": whole})

    # --- what the model writes

    def take_chunk(self, chunk: Chunk) -> None:
        data = chunk.data or json_value(data_of(chunk.raw) or b"{}")
        for choice in objects(data.get("choices"))[:1]:
            delta = as_object(choice.get("delta"))
            self._take_reasoning(delta)
            if text := read_text(delta.get("content")):
                self.add_text(text, objects(as_object(choice.get("logprobs")).get("content")))
            if isinstance(refusal := delta.get("refusal"), str) and refusal:
                self._add_piece(self._open_message(), "refusal", refusal, "response.refusal.delta")
            self._add_annotations(objects(delta.get("annotations")))
            for native in objects(delta.get("native")):
                self._add_native(native)
            for position, piece in enumerate(objects(delta.get("tool_calls"))):
                self._take_call(piece, position)
            self.finish = str(choice.get("finish_reason") or self.finish)

    def _open_message(self) -> _Open:
        if self._open is not None and self._open.item["type"] == "message":
            return self._open
        self.close()
        item: JsonObject = {"id": self._make_id("msg"), "type": "message", "status": "in_progress"}
        return self._open_item({**item, "role": "assistant", "content": []})

    def add_text(self, text: str, logprobs: list[JsonObject] | None = None) -> None:
        self._add_piece(self._open_message(), "output_text", text, "response.output_text.delta", logprobs or [])

    def _add_piece(
        self,
        opened: _Open,
        kind: str,
        text: str,
        event: str,
        logprobs: list[JsonObject] | None = None,
        place: Json = None,
    ) -> None:
        part = opened.part
        if part is None or part.kind != kind or (place is not None and part.place != place):
            part = self._begin_part(opened, kind, place)
        part.texts.append(text)
        data: JsonObject = {**self._locate(opened, part), "delta": text}
        if logprobs is not None:
            part.logprobs += logprobs
            data["logprobs"] = [*logprobs]
        self._emit(event, data)

    def _add_annotations(self, annotations: list[JsonObject]) -> None:
        for one in annotations:
            if one.get("type") == "url_citation":
                made: JsonObject = {"type": "url_citation", **as_object(one.get("url_citation"))}
            elif one.get("type") == "native" and one.get("protocol") == PROTOCOL:
                made = as_object(one.get("item"))
            else:
                continue
            opened = self._open_message()
            part = opened.part
            if part is None or part.kind != "output_text":
                part = self._begin_part(opened, "output_text")
            part.annotations.append(made)
            where = {**self._locate(opened, part), "annotation_index": len(part.annotations) - 1}
            self._emit("response.output_text.annotation.added", {**where, "annotation": made})

    def _add_native(self, native: JsonObject) -> None:
        item = native.get("item")
        if native.get("protocol") == PROTOCOL and isinstance(item, dict):
            self.close()
            item = item if isinstance(item.get("id"), str) else {**item, "id": self._make_id("item")}
            self.finish_item(self.add_item(item), item)

    # --- reasoning

    def _take_reasoning(self, delta: JsonObject) -> None:
        details = objects(delta.get("reasoning_details"))
        for detail in details:
            self._take_detail(detail)
        text = delta.get("reasoning_content") or delta.get("reasoning")
        if not details and isinstance(text, str) and text:
            self._add_piece(self._open_reasoning(None), "reasoning_text", text, "response.reasoning_text.delta")

    def _take_detail(self, detail: JsonObject) -> None:
        opened = self._open_reasoning(detail.get("id"))
        opened.details.append(detail)
        text, place = detail.get("text"), detail.get("index")
        if detail.get("type") == "reasoning.summary":
            event = "response.reasoning_summary_text.delta"
            if isinstance(summary := detail.get("summary"), str) and summary:
                self._add_piece(opened, "summary_text", summary, event, place=place)
        elif isinstance(text, str) and text:
            self._add_piece(opened, "reasoning_text", text, "response.reasoning_text.delta", place=place)

    def _open_reasoning(self, id_: Json) -> _Open:
        """Return the open reasoning item; a provider's own id begins another one, and is kept."""
        opened = self._open
        is_named = isinstance(id_, str) and bool(id_)
        if opened is not None and opened.item["type"] == "reasoning" and (not is_named or opened.item["id"] == id_):
            return opened
        self.close()
        item: JsonObject = {"id": id_ if is_named else self._make_id("rs"), "type": "reasoning", "summary": []}
        return self._open_item(item)

    def _close_reasoning(self, opened: _Open) -> None:
        item = opened.item
        sealed = [one.get("data") for one in opened.details if one.get("type") == "reasoning.encrypted"]
        if opened.details and all(one.get("format") == FORMAT for one in opened.details):
            if sealed and isinstance(sealed[-1], str):
                item = {**item, "encrypted_content": sealed[-1]}
        elif opened.details:
            item = {**item, "encrypted_content": seal_details(_merge_details(opened.details))}
        self.finish_item(opened.at, item)

    # --- calls of the client's tools

    def _take_call(self, piece: JsonObject, position: int) -> None:
        """Take a piece of a call. One that begins while another is being written waits, unless that is whole."""
        kind = "custom" if isinstance(piece.get("custom"), dict) else "function"
        inner = as_object(piece.get(kind))
        written = inner.get(_WRITTEN[kind])
        text = written if isinstance(written, str) else "" if written is None else json_bytes(written).decode()
        index = piece.get("index", position)
        known, id_ = self._calls.get(index), str(piece.get("id") or "")
        if known is None or (id_ and id_ != known.id):  # some providers give every call the same index
            known = self._calls[index] = _ClientCall(id_ or self._make_call_id(), kind, str(inner.get("name") or ""))
            self._begin_client_call(known)
        opened = self._open
        if opened is not None and opened.call is known:
            self._write_call(opened, text)
        elif text:
            known.written.append(text)

    def _make_call_id(self) -> str:
        return f"call_{self._id}{len(self.items) + len(self._waiting):02x}"

    def _begin_client_call(self, call: _ClientCall) -> None:
        opened = self._open
        if opened is not None and opened.call is not None and (self._waiting or not _is_whole(opened.call)):
            self._waiting.append(call)
        else:
            self.close()
            self._open_call(call)

    def _open_call(self, call: _ClientCall) -> None:
        namespace, name = self._namespaces.get(call.name, ("", call.name))
        is_custom = call.kind == "custom"
        item: JsonObject = {
            "id": self._make_id("ctc" if is_custom else "fc"),
            "type": "custom_tool_call" if is_custom else "function_call",
            "status": "in_progress", "call_id": call.id, "name": name,
        }  # fmt: skip
        item |= ({"namespace": namespace} if namespace else {}) | {_WRITTEN[call.kind]: ""}
        texts, call.written = call.written, []
        self._open = _Open(item, self.add_item(item), call=call)
        self._write_call(self._open, "".join(texts))

    def _write_call(self, opened: _Open, text: str) -> None:
        if text and opened.call is not None:
            opened.call.written.append(text)
            where: JsonObject = {"item_id": opened.item["id"], "output_index": opened.at}
            self._emit(f"response.{_CALL_EVENTS[opened.call.kind]}.delta", {**where, "delta": text})

    def _close_call(self, opened: _Open, call: _ClientCall, status: str) -> None:
        text, key = "".join(call.written), _WRITTEN[call.kind]
        done: JsonObject = {"item_id": opened.item["id"], "output_index": opened.at, key: text}
        done |= {"name": opened.item["name"]} if call.kind == "function" else {}
        self._emit(f"response.{_CALL_EVENTS[call.kind]}.done", done)
        self.finish_item(opened.at, {**opened.item, key: text, "status": status})


def _is_whole(call: _ClientCall) -> bool:
    """Return whether a call needs no more: its arguments are a JSON object."""
    try:
        return call.kind == "function" and isinstance(json_value("".join(call.written)), dict)
    except ValueError:
        return False


def _merge_details(details: list[JsonObject]) -> list[JsonObject]:
    """Return reasoning whose pieces are joined by their index."""
    made: list[JsonObject] = []
    for piece in details:
        last = made[-1] if made else {}
        if last and (last.get("type"), last.get("index")) == (piece.get("type"), piece.get("index")):
            for key, value in piece.items():
                before = last.get(key)
                grows = key in ("text", "summary", "data") and isinstance(before, str) and isinstance(value, str)
                last[key] = f"{before}{value}" if grows else value if value is not None else before
        else:
            made.append(dict(piece))
    return made
