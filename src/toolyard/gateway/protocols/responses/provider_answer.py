"""An answer of a provider that speaks Responses, as chat chunks.

Texts, reasoning and arguments come in pieces. What an item holds beyond its pieces is taken when it is done, and kinds
of items that never began are taken from the last event, because not every server sends all events.
"""

from typing import Final

from toolyard.gateway.protocols.chat_body import NATIVE, NativeRequest, as_object, objects
from toolyard.gateway.protocols.chat_chunks import AnswerReader
from toolyard.gateway.protocols.responses.provider_request import FORMAT, PROTOCOL
from toolyard.protocol.json import Json, JsonObject

_BEGINNINGS: Final = ("response.created", "response.queued", "response.in_progress")
_ENDS: Final = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_WRITTEN: Final = {"function_call": "arguments", "custom_tool_call": "input"}  # kinds of calls, and their text
_TEXTS: Final = {"message", "reasoning", *_WRITTEN}  # kinds of items with a word in chat
# Events with a piece of a text, and those with all of it; the kind of their item, and what in it the text is.
_PIECES: Final = {
    "response.output_text": ("message", "output_text", "text"),
    "response.refusal": ("message", "refusal", "refusal"),
    "response.reasoning_summary_text": ("reasoning", "summary", "text"),
    "response.reasoning_text": ("reasoning", "text", "text"),
    "response.function_call_arguments": ("function_call", "written", "arguments"),
    "response.custom_tool_call_input": ("custom_tool_call", "written", "input"),
}


class _Item:
    """An output item, and what of it has come."""

    def __init__(self, kind: str, id_: Json) -> None:
        self.kind, self.id = kind, id_
        self.call: int | None = None  # the index of the call that it is
        self.lengths: dict[tuple[str, int], int] = {}  # characters of each of its texts
        self.numbers: dict[tuple[str, int], int] = {}  # of its texts of reasoning
        self.annotations = 0
        self.is_done = False


class ResponsesReader(AnswerReader):
    protocol = PROTOCOL

    def __init__(self, provider: str, request: NativeRequest, created: int = 0) -> None:
        super().__init__(provider, request, created)
        self._items: dict[Json, _Item] = {}  # by their index in the output

    def take_event(self, event: JsonObject) -> None:
        kind = str(event.get("type"))
        if kind in _BEGINNINGS:
            self._begin(as_object(event.get("response")))
        elif kind in _ENDS:
            self.take_answer({**as_object(event.get("response")), "status": kind.removeprefix("response.")})
        elif kind == "error":
            told = {key: value for key, value in event.items() if key not in ("type", "sequence_number")}
            self.fail({key: value for key, value in told.items() if value is not None})
        elif kind == "response.output_item.added":
            self._open(event)
        elif kind == "response.output_item.done":
            self._complete(self._open(event), as_object(event.get("item")))
        elif kind == "response.output_text.annotation.added":
            self._begin({})
            self._add_annotation(self._find(event, "message"), as_object(event.get("annotation")))
        else:
            self._take_piece(kind, event)

    def take_answer(self, answer: JsonObject) -> bool:
        status = answer.get("status")
        if answer.get("object") != "response" and "response." + str(status) not in _ENDS:
            return False
        self._begin(answer)
        if status in ("failed", "cancelled") or answer.get("error"):
            self.fail(answer.get("error") or {"message": f"The response is {status}.", "code": str(status)})
            return True
        begun = {item.kind for item in self._items.values()}
        for place, item in enumerate(objects(answer.get("output"))):
            if item.get("type") not in begun:
                self._complete(self._open({"output_index": f"late {place}", "item": item}), item)
        finish, reason = ("tool_calls" if self._calls else "stop"), None
        if status == "incomplete":
            reason = as_object(answer.get("incomplete_details")).get("reason")
            finish = "content_filter" if reason == "content_filter" else "length"
        more = {"native_finish_reason": reason} if reason not in (None, "content_filter", "max_output_tokens") else {}
        self.end(finish, _to_usage(as_object(answer.get("usage"))), **more)
        return True

    def _begin(self, response: JsonObject) -> None:
        created = response.get("created_at")
        self.begin(
            response.get("id"), int(created) if isinstance(created, int | float) else None, response.get("model")
        )

    # --- items

    def _open(self, event: JsonObject) -> _Item:
        """Return the item of an event that holds it, begun if it is new."""
        self._begin({})
        item = as_object(event.get("item"))
        opened = self._find(event, str(item.get("type")))
        if opened.kind in _WRITTEN and opened.call is None:
            id_ = item.get("call_id") or item.get("id")
            opened.call = self.begin_call(id_, item.get("name"), custom=opened.kind == "custom_tool_call")
        opened.id = opened.id or item.get("id")
        return opened

    def _find(self, event: JsonObject, kind: str) -> _Item:
        place = event.get("output_index", event.get("item_id"))
        found = self._items.get(place)
        if found is None or found.kind != kind:
            found = self._items[place] = _Item(kind, event.get("item_id"))
        return found

    def _complete(self, item: _Item, whole: JsonObject) -> None:
        """Add what of an item has not come yet."""
        if item.is_done:
            return
        item.is_done = True
        if item.kind in _WRITTEN:
            self._add_rest(item, "written", 0, whole.get(_WRITTEN[item.kind]))
        elif item.kind == "message":
            for place, part in enumerate(objects(whole.get("content"))):
                what = str(part.get("type"))
                self._add_rest(item, what, place, part.get("refusal" if what == "refusal" else "text"), part)
                for annotation in objects(part.get("annotations"))[item.annotations :]:
                    self._add_annotation(item, annotation)
        elif item.kind == "reasoning":
            for what, key in (("summary", "summary"), ("text", "content")):
                for place, part in enumerate(objects(whole.get(key))):
                    self._add_rest(item, what, place, part.get("text"))
            if data := whole.get("encrypted_content"):
                detail: JsonObject = {"type": "reasoning.encrypted", "data": data, "id": whole.get("id")}
                self.add_detail({**detail, "format": FORMAT, "index": self.number()})
        elif item.kind not in _TEXTS:
            self.add_native(whole)

    # --- pieces

    def _take_piece(self, kind: str, event: JsonObject) -> None:
        name, _, step = kind.rpartition(".")
        if name not in _PIECES or step not in ("delta", "done"):
            return  # of the provider's own tools, or a part that only begins or ends
        of, what, key = _PIECES[name]
        self._begin({})
        item = self._find(event, of)
        index = event.get("content_index", event.get("summary_index"))
        place = index if isinstance(index, int) else 0
        if step == "done":
            self._add_rest(item, what, place, event.get(key))
        elif isinstance(delta := event.get("delta"), str):
            self._add_piece(item, what, place, delta, event)

    def _add_rest(self, item: _Item, what: str, place: int, text: Json, part: JsonObject | None = None) -> None:
        """Add a text that has not come in pieces, or its end."""
        if isinstance(text, str):
            self._add_piece(item, what, place, text[item.lengths.get((what, place), 0) :], part or {})

    def _add_piece(self, item: _Item, what: str, place: int, text: str, event: JsonObject) -> None:
        before = item.lengths.get((what, place), 0)
        if what == "written" and item.call is None:
            return  # nobody has said whose call it is: all of it comes when it is done
        if not text:
            return
        item.lengths[what, place] = before + len(text)
        match what:
            case "output_text":
                logprobs = objects(event.get("logprobs"))
                more: JsonObject = {"logprobs": {"content": [*map(_to_logprob, logprobs)]}} if logprobs else {}
                self.add_text(text, **more)
            case "refusal":
                self.add({"refusal": text})
            case "written" if item.call is not None:
                self.add_written(item.call, text, custom=item.kind == "custom_tool_call")
            case "summary" | "text":
                self._add_reasoning(item, what, place, text)

    def _add_reasoning(self, item: _Item, what: str, place: int, text: str) -> None:
        begins = (what, place) not in item.numbers
        if begins:
            item.numbers[what, place] = self.number()
        named: JsonObject = {"id": item.id} if item.id else {}
        detail: JsonObject = {"type": f"reasoning.{what}", what: text, **named, "format": FORMAT}
        self.add_detail({**detail, "index": item.numbers[what, place]}, text, begins=begins)

    def _add_annotation(self, item: _Item, annotation: JsonObject) -> None:
        item.annotations += 1
        if annotation.get("type") == "url_citation":
            citation = {key: value for key, value in annotation.items() if key != "type"}
            self.add({"annotations": [{"type": "url_citation", "url_citation": citation}]})
        elif self._request.is_client_native:
            self.add({"annotations": [{"type": NATIVE, "protocol": PROTOCOL, "item": annotation}]})


def _to_logprob(one: JsonObject) -> JsonObject:
    """Return the log probability of a token as chat has it: ``bytes`` is always there."""
    inner = [{"bytes": None, **top} for top in objects(one.get("top_logprobs"))]
    return {"bytes": None, **one, "top_logprobs": [*inner]}


def _to_usage(usage: JsonObject) -> JsonObject:
    if not usage:
        return {}
    sent, written = usage.get("input_tokens") or 0, usage.get("output_tokens") or 0
    made: JsonObject = {"prompt_tokens": sent, "completion_tokens": written, "total_tokens": usage.get("total_tokens")}
    if isinstance(sent, int) and isinstance(written, int) and not made["total_tokens"]:
        made["total_tokens"] = sent + written
    for key, details in (
        ("prompt_tokens_details", "input_tokens_details"),
        ("completion_tokens_details", "output_tokens_details"),
    ):
        if inner := as_object(usage.get(details)):
            made[key] = inner
    return made
