"""The common part of the writers of requests: a chat request part by part, and names and ids that a provider takes.

Beside OpenAI's own fields a chat request may carry ``reasoning_details`` in messages, and what only another protocol
has a word for: ``native`` parts, tools and fields (``NATIVE``). Each writer takes those of its own protocol, unchanged,
and drops the others. What chat says with less than its client did has an ``origin`` beside it (``ORIGIN``): a writer of
that protocol takes it in place of the part, call, result or tool.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from toolyard.gateway.reply.chunks import DETAILS, KeptDetails
from toolyard.protocol.json import Json, JsonObject

NATIVE: Final = "native"
ORIGIN: Final = "origin"
_MARKS: Final = frozenset({"cache_control", ORIGIN})  # not for every server
EMPTY_SCHEMA: Final[JsonObject] = {"type": "object", "properties": {}}
_MAX_WORD = 64  # characters of a name or an id, which every provider takes
_NO_WORD = re.compile(r"[^A-Za-z0-9_-]")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w-]+=[^;,]*)*;base64,", re.ASCII)
_KINDS: Final = {"image_url": "picture", "input_audio": "audio", "video_url": "video", "file": "file"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeRequest:
    """A request in the protocol of a provider, and what the reader of its answer has to know of it."""

    body: JsonObject
    headers: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)  # of tools as the client has them, by those sent
    custom: frozenset[str] = frozenset()  # custom tools, which were sent as functions
    is_client_native: bool = False  # the client speaks the provider's protocol: items without a word in chat reach it
    wants_usage: bool = False  # as a chunk of its own


def wants_usage(body: JsonObject) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def as_object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def objects(value: Json) -> list[JsonObject]:
    """Return the objects of a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def merge_fields(body: JsonObject, more: JsonObject) -> JsonObject:
    """Return a body with further fields; objects are merged, and of anything else the further one counts."""
    made = dict(body)
    for key, value in more.items():
        before = made.get(key)
        made[key] = merge_fields(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return made


def native_fields(body: JsonObject, protocol: str) -> tuple[JsonObject, dict[str, str], bool]:
    """Return the fields and headers of a client that speaks ``protocol``, and whether it does."""
    native = as_object(body.get(NATIVE))
    if native.get("protocol") != protocol:
        return {}, {}, False
    headers = {name: value for name, value in as_object(native.get("headers")).items() if isinstance(value, str)}
    return as_object(native.get("fields")), headers, True


def native_item(part: JsonObject, protocol: str, key: str = "item") -> JsonObject | None:
    """Return what a native part or tool holds, if it is one of ``protocol``."""
    item = part.get(key)
    return item if part.get("protocol") == protocol and isinstance(item, dict) else None


def is_native(part: JsonObject) -> bool:
    return part.get("type") == NATIVE


def with_origin(part: JsonObject, protocol: str, item: JsonObject | None) -> JsonObject:
    """Return a part beside which stands what it was in a protocol; None: another part has all of it."""
    return part | {ORIGIN: {"protocol": protocol, "item": item, "text": text_of(part)}}


def has_origin(part: JsonObject, protocol: str) -> bool:
    """Return whether a part was said in a protocol, and its text was not changed since."""
    origin = as_object(part.get(ORIGIN))
    return origin.get("protocol") == protocol and origin.get("text") == text_of(part)


def find_origin(part: JsonObject, protocol: str) -> JsonObject:
    """Return what a part, call, result or tool was in a protocol; empty if it was not said in it."""
    return as_object(as_object(part.get(ORIGIN)).get("item")) if has_origin(part, protocol) else {}


def drop_native(body: JsonObject) -> JsonObject:
    """Return a request for a provider that speaks chat: without what only another protocol has a word for.

    Not every server takes texts as parts, or marks for a cache.
    """
    if not isinstance(body.get(NATIVE), dict):
        return body
    made = {key: value for key, value in body.items() if key != NATIVE}
    messages = [_drop_native_parts(message) for message in objects(body.get("messages"))]
    made["messages"] = [one for one in messages if one.get("content") or one.get("role") != "system"]
    if tools := [_unmark(tool) for tool in objects(body.get("tools")) if not is_native(tool)]:
        return made if tools == body["tools"] else {**made, "tools": [*tools]}
    for key in ("tools", "tool_choice", "parallel_tool_calls"):
        made.pop(key, None)
    return made


def _drop_native_parts(message: JsonObject) -> JsonObject:
    made = {key: value for key, value in _unmark(message).items() if key not in (NATIVE, DETAILS)}
    if calls := objects(message.get("tool_calls")):
        made["tool_calls"] = [_unmark(call) for call in calls]
    if isinstance(message.get("content"), list):
        parts = [_unmark(part) for part in objects(message["content"]) if not is_native(part)]
        is_text = all(part.keys() == {"type", "text"} for part in parts)
        between = "" if message.get("role") == "assistant" else "\n\n"
        made["content"] = between.join([str(part["text"]) for part in parts]) if is_text else [*parts]
    return made


def _unmark(value: JsonObject) -> JsonObject:
    if value.keys().isdisjoint(_MARKS):
        return value
    return {key: inner for key, inner in value.items() if key not in _MARKS}


def content_parts(content: Json) -> list[JsonObject]:
    """Return the content of a message as parts."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return objects(content)


def text_of(part: JsonObject) -> str:
    """Return the text of a part; a marker such as ``[audio]`` for media without a word."""
    kind = part.get("type")
    if kind in ("text", "refusal"):
        text = part.get(str(kind))
        return text if isinstance(text, str) else ""
    return f"[{_KINDS[kind]}]" if isinstance(kind, str) and kind in _KINDS else ""


def split_data_url(url: str) -> tuple[str, str] | None:
    """Return the type and the Base64 of an address that holds its data; None for any other."""
    head = _DATA_URL.match(url)
    return (head[1] or "", url[head.end() :]) if head else None


def list_functions(body: JsonObject) -> list[JsonObject]:
    """Return the tools of a request; those in the old field ``functions`` as well."""
    old: list[JsonObject] = [{"type": "function", "function": one} for one in objects(body.get("functions"))]
    return [*objects(body.get("tools")), *old]


def tool_choice(body: JsonObject) -> Json:
    """Return the choice of a request; that of the old field ``function_call`` as well."""
    choice, old = body.get("tool_choice"), body.get("function_call")
    if choice is None and isinstance(old, dict):
        return {"type": "function", "function": old}
    return old if choice is None else choice


def parallel_calls(message: JsonObject) -> list[JsonObject]:
    """Return the calls of an assistant; one in the old field ``function_call`` as well."""
    old = message.get("function_call")
    calls = objects(message.get("tool_calls"))
    if not calls and isinstance(old, dict):
        return [{"id": f"call_{old.get('name')}", "type": "function", "function": old}]
    return calls


def answered_call(message: JsonObject) -> str:
    """Return the id of the call that a message with a result answers."""
    return str(message.get("tool_call_id") or f"call_{message.get('name')}")


def split_call(call: JsonObject) -> tuple[str, str, bool]:
    """Return the name of a call, what is written for it, and whether it is one of a custom tool."""
    custom = call.get("custom")
    if isinstance(custom, dict):
        return str(custom.get("name") or ""), str(custom.get("input") or ""), True
    function = as_object(call.get("function"))
    written = function.get("arguments")
    return str(function.get("name") or ""), written if isinstance(written, str) else "", False


def merge_details(details: Json) -> list[JsonObject]:
    """Return reasoning whose pieces are joined."""
    kept = KeptDetails()
    kept.add(details)
    return kept.to_list()


def place_details(message: JsonObject, others: list[JsonObject]) -> Iterator[JsonObject]:
    """Yield the reasoning and the native items of an assistant, and its text and calls at the places left between.

    The reader of an answer numbers all of them, so the gaps in the numbers are the places of the others.
    """
    rest, at = deque(others), 0
    details = [*merge_details(message.get(DETAILS)), *objects(message.get(NATIVE))]
    for detail in sorted(details, key=_index_of):
        while rest and at < _index_of(detail):
            yield rest.popleft()
            at += 1
        yield detail
        at = max(at, _index_of(detail)) + 1
    yield from rest


def _index_of(detail: JsonObject) -> int:
    index = detail.get("index")
    return index if isinstance(index, int) else -1


class ToolNames:
    """Names of tools that every provider takes, and back."""

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}
        self._taken: dict[str, int] = {}
        self.originals: dict[str, str] = {}  # of the changed ones

    def to_native(self, name: str) -> str:
        sent = self._sent.get(name)
        if sent is None:
            sent = self._sent[name] = _make_word(name, self._taken)
            if sent != name:
                self.originals[sent] = name
        return sent


class CallIds:
    """Ids of calls that every provider takes: no two calls of a conversation have the same."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        self._unanswered: dict[str, deque[str]] = {}
        self._newest: dict[str, str] = {}

    def begin_round(self) -> None:
        """Forget the calls that were not answered: some providers give every first call the same id."""
        self._unanswered.clear()

    def add_call(self, id_: str) -> str:
        sent = self._newest[id_] = _make_word(id_, self._taken)
        self._unanswered.setdefault(id_, deque()).append(sent)
        return sent

    def find_answered(self, id_: str) -> str:
        """Return the id for the result of a call."""
        waiting = self._unanswered.get(id_)
        return waiting.popleft() if waiting else self._newest.get(id_) or _NO_WORD.sub("_", id_)[:_MAX_WORD]


def _make_word(text: str, taken: dict[str, int]) -> str:
    """Return a word of letters, digits, ``_`` and ``-`` that is not taken yet, and take it."""
    word = base = _NO_WORD.sub("_", text)[:_MAX_WORD] or "_"
    while word in taken:
        taken[base] = taken.get(base, 1) + 1  # so that many calls with one id take no longer than others
        end = f"_{taken[base]}"
        word = base[: _MAX_WORD - len(end)] + end
    taken.setdefault(word, 1)
    return word
