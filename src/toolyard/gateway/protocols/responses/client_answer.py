"""What a Responses client gets of a turn: events in the order that the protocol documents, or the object of them.

``ResponseWriter`` takes the events of a log in their order and writes items one after the other:

    event of the log                what it does
    any, the first of all           ``response.created``, ``response.in_progress``
    Delta with reasoning            goes on with the open reasoning item, or closes what is open and adds one
    Delta with text, refusal        the same with a message; another kind of part ends the part before
    Delta with a client's call      the same with its call: the calls of a reply come one after the other
    Delta with a native item        closes what is open; the item is added and done
    CallBegun                       closes what is open; adds an ``mcp_call``, which runs beside what follows
    CallEnded                       the ``mcp_call`` is done
    ApprovalAsked                   a line of text, in a stream; see below
    Note                            text in a message
    Ended                           closes what is open, and the response: completed, incomplete or cancelled
    Failed, Gap                     closes what is open as incomplete; an error, ``response.failed``

Every item is added at the next index, gets its parts, and is done. Only calls of ours may be open beside another item.

A client that wants to be asked (``asks_approval``) gets no ``mcp_call`` before it has ended: once every call that runs
waits for a person, each of them is an ``mcp_approval_request``, and the response is completed while the turn waits. Its
next request reads on from there (``start``).

Ids are made from that of the response, so that all who read a log get the same ones.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from toolyard.gateway.faults import OVERFLOW, ChatFault
from toolyard.gateway.protocols.chat_body import as_list, as_object, objects
from toolyard.gateway.protocols.responses.input_items import FORMAT, LABEL, PROTOCOL, seal_details
from toolyard.gateway.reply.chunks import Chunk, add_usage, read_text
from toolyard.gateway.sse import data_of
from toolyard.gateway.turns.display import write_approvals
from toolyard.gateway.turns.turn_events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallBegun,
    CallEnded,
    Delta,
    Ended,
    Ending,
    Failed,
    Gap,
    Note,
    TurnEvent,
    Usage,
)
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_value

Emit = Callable[[str, JsonObject], None]
_INCOMPLETE: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
_WRITTEN: Final = {"function": "arguments", "custom": "input"}
_CALL_EVENTS: Final = {"function": "function_call_arguments", "custom": "custom_tool_call_input"}


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


class ResponseWriter:
    def __init__(
        self,
        response: JsonObject,
        *,
        emit: Emit | None = None,
        now: Callable[[], float],
        namespaces: Mapping[str, tuple[str, str]],
        asks_approval: bool = False,
        start: int = 0,
    ) -> None:
        """``response``: its object without output. ``emit`` gets each event; ``start``: events that others have."""
        self.response = response
        self.is_over = False  # nothing more comes, though the turn may go on
        self.fault: ChatFault | None = None
        self._emit_event, self._now, self._namespaces = emit, now, namespaces
        self._asks_approval, self._skipped = asks_approval, start
        self._output: list[Json] = []
        self._id = str(response["id"]).removeprefix("resp_")
        self._sequence = 0
        self._has_begun = False
        self._open: _Open | None = None
        self._calls: dict[Json, _ClientCall] = {}  # the newest of each index in the chunks
        self._waiting: list[_ClientCall] = []  # their items begin when the one before is done
        self._running: dict[str, JsonObject] = {}  # calls of ours: what is known of them, by their ids
        self._placed: dict[str, int] = {}  # where their items are
        self._asked: dict[str, str] = {}  # their approvals
        self._usage: JsonObject = {}
        self._finish = ""

    @property
    def text(self) -> str:
        """The text of its messages so far."""
        parts = [part for item in self._output for part in objects(as_object(item).get("content"))]
        texts = [part["text"] for part in parts if part.get("type") == "output_text"]
        opened = self._open.part if self._open is not None else None
        return "".join(map(str, [*texts, *(opened.texts if opened and opened.kind == "output_text" else [])]))

    # --- events of the log

    def take(self, event: TurnEvent) -> None:  # noqa: C901, PLR0912 one branch for each event
        if self.is_over:
            return
        if self._skipped > 0:
            self._skipped -= 1
            self._skip(event)
            return
        self._begin()
        match event:
            case Delta(chunks):
                for chunk in chunks:
                    self._take_chunk(chunk)
            case Usage(usage):
                self._usage = add_usage(self._usage, usage)
            case CallBegun(data):
                self._begin_call(data)
            case CallEnded(data, output):
                self._end_call(data, output)
            case ApprovalAsked(approval):
                self._asked[approval.call_id] = approval.approval
                if self._asks_approval:
                    self._ask_when_all_wait()
                elif self._emit_event is not None:
                    self._add_text(write_approvals([approval], ""))
                    self._close()
            case ApprovalAnswered(call_id):
                self._asked.pop(call_id, None)
            case Note(text):
                self._add_note(text)
            case Ended(ending):
                self._end(ending)
            case Failed(fault):
                self.fail(fault)
            case Gap():
                self.fail(beginning_gone())
            case _:
                pass

    def add_early_note(self, text: str) -> None:
        """End the response for a client that cannot wait."""
        self._begin()
        self._add_note(text)
        self._complete("completed")

    def fail(self, fault: ChatFault) -> None:
        self._begin()
        self._close("incomplete")
        self._cut_calls()
        self.fault = fault
        error = as_object(fault.to_json()["error"])
        message, code = str(error.get("message") or fault.message), str(error.get("code") or fault.code)
        described: JsonObject = {"type": error.get("type") or fault.type, "code": code, "message": message}
        described["param"] = error.get("param")
        # The message at the top is as OpenAI documents it, the object is what its SDKs and Open Responses read.
        self._emit("error", {"code": code, "message": message, "param": error.get("param"), "error": described})
        self.response["error"] = {"code": _find_code(fault), "message": message}
        self._complete("failed")

    def _skip(self, event: TurnEvent) -> None:
        """Note which calls run when this response begins."""
        match event:
            case CallBegun(data):
                self._running[str(data["id"])] = data
            case CallEnded(data):
                self._running.pop(str(data["id"]), None)
            case ApprovalAsked(approval):
                self._asked[approval.call_id] = approval.approval
            case _:
                pass

    # --- the response as a whole

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self.response["status"] = "in_progress"
            self._emit("response.created", {"response": self.response})
            self._emit("response.in_progress", {"response": self.response})

    def _end(self, ending: Ending) -> None:
        reason = _INCOMPLETE.get(self._finish) if ending is Ending.DONE else None
        is_whole = ending is not Ending.INTERRUPTED and reason is None
        self._close("completed" if is_whole else "incomplete")
        self._cut_calls()
        if reason is not None:
            self.response["incomplete_details"] = {"reason": reason}
        self._complete("completed" if is_whole else "incomplete" if reason else "cancelled")

    def _complete(self, status: str) -> None:
        self._close()
        self.is_over = True
        usage = to_usage(self._usage) if self._usage else None
        self.response |= {"status": status, "output": self._output, "usage": usage}
        if status == "completed":
            self.response["completed_at"] = int(self._now())
        kind = status if status in ("completed", "failed") else "incomplete"
        self._emit(f"response.{kind}", {"response": self.response})

    def _emit(self, kind: str, data: JsonObject) -> None:
        if self._emit_event is not None:
            self._emit_event(kind, {"type": kind, "sequence_number": self._sequence, **data})
            self._sequence += 1

    # --- items

    def _make_id(self, prefix: str) -> str:
        return f"{prefix}_{self._id}{len(self._output):02x}"

    def _add_item(self, item: JsonObject) -> int:
        self._output.append(item)
        at = len(self._output) - 1
        self._emit("response.output_item.added", {"output_index": at, "item": item})
        return at

    def _finish_item(self, at: int, item: JsonObject) -> None:
        self._output[at] = item
        self._emit("response.output_item.done", {"output_index": at, "item": item})

    def _open_item(self, item: JsonObject) -> _Open:
        self._open = _Open(item, self._add_item(item))
        return self._open

    def _close(self, status: str = "completed") -> None:
        """End the open item, and those that wait for its end."""
        while self._open is not None:
            opened, self._open = self._open, None
            self._close_part(opened)
            if opened.call is not None:
                self._close_call(opened, opened.call, status)
            elif opened.item["type"] == "reasoning":
                self._close_reasoning(opened)
            else:
                self._finish_item(opened.at, {**opened.item, "status": status})
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

    def _take_chunk(self, chunk: Chunk) -> None:
        data = chunk.data or json_value(data_of(chunk.raw) or b"{}")
        for choice in objects(data.get("choices"))[:1]:
            delta = as_object(choice.get("delta"))
            self._take_reasoning(delta)
            if text := read_text(delta.get("content")):
                self._add_text(text, objects(as_object(choice.get("logprobs")).get("content")))
            if isinstance(refusal := delta.get("refusal"), str) and refusal:
                self._add_piece(self._open_message(), "refusal", refusal, "response.refusal.delta")
            self._add_annotations(objects(delta.get("annotations")))
            for native in objects(delta.get("native")):
                self._add_native(native)
            for position, piece in enumerate(objects(delta.get("tool_calls"))):
                self._take_call(piece, position)
            self._finish = str(choice.get("finish_reason") or self._finish)

    def _open_message(self) -> _Open:
        if self._open is not None and self._open.item["type"] == "message":
            return self._open
        self._close()
        item: JsonObject = {"id": self._make_id("msg"), "type": "message", "status": "in_progress"}
        return self._open_item({**item, "role": "assistant", "content": []})

    def _add_text(self, text: str, logprobs: list[JsonObject] | None = None) -> None:
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

    def _add_note(self, text: str) -> None:
        """Add a text of ours; what only separates two texts of an answer does not separate two items."""
        is_open = self._open is not None and self._open.item["type"] == "message"
        text = text if is_open else text.lstrip("\n")
        if text.strip():
            self._add_text(text)

    def _add_native(self, native: JsonObject) -> None:
        item = native.get("item")
        if native.get("protocol") == PROTOCOL and isinstance(item, dict):
            self._close()
            item = item if isinstance(item.get("id"), str) else {**item, "id": self._make_id("item")}
            self._finish_item(self._add_item(item), item)

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
        self._close()
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
        self._finish_item(opened.at, item)

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
        return f"call_{self._id}{len(self._output) + len(self._waiting):02x}"

    def _begin_client_call(self, call: _ClientCall) -> None:
        opened = self._open
        if opened is not None and opened.call is not None and (self._waiting or not _is_whole(opened.call)):
            self._waiting.append(call)
        else:
            self._close()
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
        self._open = _Open(item, self._add_item(item), call=call)
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
        self._finish_item(opened.at, {**opened.item, key: text, "status": status})

    # --- calls of our tools

    def _begin_call(self, data: JsonObject) -> None:
        self._close()
        id_ = str(data["id"])
        self._running[id_] = data
        if not self._asks_approval:
            self._show_call(id_)

    def _show_call(self, id_: str) -> None:
        item = self._to_item(id_)
        at = self._placed[id_] = self._add_item({**item, "arguments": ""})
        where: JsonObject = {"item_id": item["id"], "output_index": at}
        self._emit("response.mcp_call.in_progress", where)
        self._emit("response.mcp_call_arguments.delta", {**where, "delta": item["arguments"]})
        self._emit("response.mcp_call_arguments.done", {**where, "arguments": item["arguments"]})

    def _to_item(self, id_: str) -> JsonObject:
        data = self._running[id_]
        asked: JsonObject = {"approval_request_id": _request_id(self._asked[id_])} if id_ in self._asked else {}
        return {
            "id": _item_id(id_), "type": "mcp_call", "status": "in_progress", "server_label": LABEL,
            "name": data["tool"], "arguments": _arguments(data), "output": None, **asked,
        }  # fmt: skip

    def _end_call(self, data: JsonObject, output: str) -> None:
        id_ = str(data["id"])
        self._running.setdefault(id_, data)
        if id_ not in self._placed:
            self._close()
            self._show_call(id_)
        at = self._placed.pop(id_)
        item = self._to_item(id_)
        is_failure = data.get("state") == "error"
        if is_failure:
            content: list[Json] = [{"type": "text", "text": output}]
            item |= {"status": "failed", "error": {"type": "mcp_tool_execution_error", "content": content}}
        else:
            item |= {"status": "completed", "output": output}
        name = "failed" if is_failure else "completed"
        self._emit(f"response.mcp_call.{name}", {"item_id": item["id"], "output_index": at})
        self._finish_item(at, item)
        del self._running[id_]
        self._asked.pop(id_, None)
        if self._asks_approval:
            self._ask_when_all_wait()

    def _ask_when_all_wait(self) -> None:
        """Ask the client, once nothing runs any more that does not wait for a person."""
        if not self._running or not self._running.keys() <= self._asked.keys():
            return
        self._close()
        for id_, data in self._running.items():
            item: JsonObject = {"id": _request_id(self._asked[id_]), "type": "mcp_approval_request"}
            item |= {"server_label": LABEL, "name": data["tool"], "arguments": _arguments(data)}
            self._finish_item(self._add_item(item), item)
        self._complete("completed")

    def _cut_calls(self) -> None:
        """End the items of calls whose results did not come."""
        for id_, at in self._placed.items():
            self._finish_item(at, {**self._to_item(id_), "status": "incomplete"})
        self._placed.clear()


def to_usage(usage: JsonObject) -> JsonObject:
    sent, written = _number(usage.get("prompt_tokens")), _number(usage.get("completion_tokens"))
    prompt, completion = (
        as_object(usage.get("prompt_tokens_details")),
        as_object(usage.get("completion_tokens_details")),
    )
    return {
        "input_tokens": sent,
        "input_tokens_details": {
            "cached_tokens": _number(prompt.get("cached_tokens")),
            "cache_write_tokens": _number(prompt.get("cache_write_tokens")),
        },
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": _number(completion.get("reasoning_tokens"))},
        "total_tokens": _number(usage.get("total_tokens")) or sent + written,
    }


def beginning_gone() -> ChatFault:
    message = Message("The beginning of this answer is no longer kept: send a new request.")
    return ChatFault(
        status=HTTPStatus.BAD_REQUEST,
        message=message,
        code="response_not_kept",
        type="invalid_request_error",
        is_final=True,
    )


def _find_code(fault: ChatFault) -> str:
    """Return the code of a response that failed: one of the few that clients of the protocol know."""
    if fault.is_overflow:
        return OVERFLOW
    return "rate_limit_exceeded" if fault.status == HTTPStatus.TOO_MANY_REQUESTS else "server_error"


def _number(value: Json) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _item_id(call: str) -> str:
    return f"mcp_{call.removeprefix('call_')}"


def _request_id(approval: str) -> str:
    return f"mcpr_{approval.removeprefix('approval_')}"


def approval_of(request: str) -> str:
    """Return the id of the approval that an item asks for."""
    return f"approval_{request.removeprefix('mcpr_')}"


def _arguments(data: JsonObject) -> str:
    return json_bytes(as_object(data.get("arguments"))).decode()


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
