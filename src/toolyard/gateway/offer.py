"""Offers of Toolyard's tools to a model: the selection of tools, and the form.

Native: as ``tools`` of the request. Text: as a listing in its system message, for models that take no ``tools``. Offers
are cached until the tools change, so that offering costs a chat next to nothing. Tokens are an estimate, rather too
high than too low, because there is no tokenizer.

Where there are many tools, only a few are offered (``Search.always``), and with them ToolSearch, which finds the
others, and CallTool, which calls what it found: providers keep the tools of a request before its messages, so a tool
more would cost the whole conversation once. A tool that is called by its own name runs, found or not. No offer has more
than ``MAX_TOOLS`` tools or ``MAX_TOKENS`` tokens; what is left out is named in the log and in the record of the chat.
"""

import logging
import math
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import orjson

from toolyard.dialects.plain_name import plain_name
from toolyard.dialects.tool_specs import to_function_tool
from toolyard.gateway.tool_calls.jobs import Bounds
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.records.assistant_record import Mode
from toolyard.protocol.requests.marks import CLOSE, END, ESCAPE_CLOSE, ESCAPE_OPEN, OPEN, START
from toolyard.protocol.tool import Risk, ToolSpec
from toolyard.protocol.tool_index import AMONG, TOOL_SEARCH
from toolyard.protocol.tool_text import CHINESE, ENGLISH, write_example_request, write_offered, write_tool
from toolyard.settings import OfferMode

MAX_TOOLS: Final = 128
MAX_TOKENS: Final = 16_000
CALL_TOOL: Final = "CallTool"
_SHARE: Final = 0.1  # of the context of a model, beyond which the tools are searched
_NEARLY_FULL: Final = MAX_TOKENS * 7 // 8  # from here on the first tool that does not fit ends the search
_MAX_KEPT: Final = 64  # offers
_MAX_NAMED: Final = 20  # tools in a warning
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The offer of one request."""

    mode: OfferMode = OfferMode.NONE  # never auto
    names: Mapping[str, str] = field(default_factory=dict)  # of the tools, by the names that the model knows
    tools: list[Json] = field(default_factory=list)  # native: their definitions; shared, not to be changed
    tools_json: bytes = b""  # the same
    listing: str = ""  # text
    tokens: int = 0  # at most
    left_out: tuple[str, ...] = ()
    found: Mapping[str, str] = field(default_factory=dict)  # what a search may find, named as ``names``
    among: frozenset[str] | None = None  # what it is limited to

    def to_json(self) -> JsonObject:
        return {
            "mode": self.mode.value,
            "tools": [*self.names.values()],
            "tokens": self.tokens,
            "left_out": [*self.left_out],
            "searchable": len(self.found),
        }

    def limit_search(self, tool: str) -> JsonObject:
        """Return the metadata of a call: a search finds nothing that this chat may not use."""
        return {AMONG: [*sorted(self.among)]} if self.among is not None and tool == TOOL_SEARCH else {}

    def resolve(self, name: str) -> str:
        """Return the name of a tool by the one that the model knows."""
        return self.names.get(name) or self.found.get(name, name)


NO_OFFER: Final = Offer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The settings of tool search."""

    beyond: int  # this many tools; 0: never
    always: tuple[str, ...]  # offered beside it


@dataclass(frozen=True, slots=True)
class Selection:
    """The tools that a chat may be offered."""

    names: frozenset[str] | None = None  # None: all but those that are offered only by name
    is_read_only: bool = False
    client_names: frozenset[str] = frozenset()  # names of the client's own tools, which ours never shadow
    always: tuple[str, ...] | None = None  # offered beside a search for the others; None: all are offered

    @classmethod
    def from_bounds(cls, bounds: Bounds, client_names: frozenset[str] = frozenset()) -> "Selection":
        return cls(bounds.tools, bounds.mode is Mode.READ_ONLY, client_names)

    def can_offer(self, spec: ToolSpec) -> bool:
        if spec.prompt_text == "":
            return False  # no model could know what it does
        if self.is_read_only and spec.risk is not Risk.READ and not spec.reading_commands:
            return False
        return not spec.on_request if self.names is None else spec.name in self.names

    @property
    def is_limited(self) -> bool:
        """Return whether the chat may not use all tools."""
        return self.names is not None or self.is_read_only


class Offers:
    """The offers of a Yard, made on demand, and cached while its tools are the same."""

    def __init__(
        self,
        specs: Callable[[], Iterable[ToolSpec]],
        version: Callable[[], Hashable],
        mask: Callable[[str], str] = str,
    ) -> None:
        """``specs``: the tools in the order in which they are offered; ``version`` changes whenever they do.

        ``mask`` hides secrets in native definitions; ``version`` changes with it too.
        """
        self._read_specs, self._read_version, self._mask = specs, version, mask
        self._version: Hashable = None
        self._specs: tuple[ToolSpec, ...] = ()
        self._all: dict[str, ToolSpec] = {}
        self._natives: dict[str, _Native] = {}  # by name
        self._offers: OrderedDict[Hashable, Offer] = OrderedDict()
        self._warned: tuple[str, ...] = ()

    def native(self, selection: Selection) -> Offer:
        """Offer the selected tools as ``tools`` of a request."""
        return self._warn(self._find_native(selection))

    def text(self, selection: Selection, language: str) -> Offer:
        """Offer the selected tools as a listing in ``language``."""
        key = (OfferMode.TEXT, selection, language)
        return self._warn(self._get_or_make(key, lambda: self._make_text(selection, language)))

    def needs_search(self, selection: Selection, search: Search, window: int | None) -> bool:
        """Return whether the selected tools are too many for each request of a conversation."""
        if not search.beyond or not selection.client_names.isdisjoint((TOOL_SEARCH, CALL_TOOL)):
            return False
        whole = self._find_native(selection)
        share = window * _SHARE if window else math.inf
        if len(whole.names) + len(whole.left_out) <= search.beyond and whole.tokens <= share and not whole.left_out:
            return False
        return self._find_native(replace(selection, always=search.always)).tokens < whole.tokens

    def _find_native(self, selection: Selection) -> Offer:
        return self._get_or_make((OfferMode.NATIVE, selection), lambda: self._make_native(selection))

    def _get_or_make(self, key: Hashable, make: Callable[[], Offer]) -> Offer:
        version = self._read_version()
        if version != self._version or not self._specs:
            self._version, self._specs = version, tuple(self._read_specs())
            self._all = {spec.name: spec for spec in self._specs}
            self._natives.clear()
            self._offers.clear()
        offer = self._offers.get(key)
        if offer is None:
            offer = self._offers[key] = make()
            if len(self._offers) > _MAX_KEPT:
                self._offers.popitem(last=False)
        return offer

    def _make_native(self, selection: Selection) -> Offer:
        specs = {
            spec.name: spec for spec in self._select(selection) if plain_name(spec.name) not in selection.client_names
        }
        room = MAX_TOOLS - len(selection.client_names)
        found = self._split_found(specs, selection)
        chosen, tokens, left_out = _choose_fitting(specs, lambda name: self._native(specs[name]).tokens, room)
        if not chosen:
            return Offer(left_out=left_out)
        natives = [self._native(specs[name]) for name in chosen]
        if found:
            natives.append(_CALL_TOOL)
            chosen, tokens = [*chosen, CALL_TOOL], tokens + _CALL_TOOL.tokens
        return Offer(
            mode=OfferMode.NATIVE,
            names={native.name: name for native, name in zip(natives, chosen, strict=True)},
            tools=[native.definition for native in natives],
            tools_json=b"[" + b",".join(native.json for native in natives) + b"]",
            tokens=tokens,
            left_out=left_out,
            found=found,
            among=frozenset(found.values()) if found and selection.is_limited else None,
        )

    def _split_found(self, specs: dict[str, ToolSpec], selection: Selection) -> dict[str, str]:
        """Leave in ``specs`` what is offered beside a search; return what that may find, by the names for models."""
        if selection.always is None or TOOL_SEARCH not in self._all:
            return {}
        found = {plain_name(name): name for name in specs}
        for name in [name for name in specs if name not in selection.always]:
            del specs[name]
        specs[TOOL_SEARCH] = self._all[TOOL_SEARCH]
        return found

    def _make_text(self, selection: Selection, language: str) -> Offer:
        specs = {spec.name: spec for spec in self._select(selection)}
        found = self._split_found(specs, selection)
        chosen, _, left_out = _choose_fitting(specs, lambda name: estimate_tokens(write_offered(specs[name], language)))
        if not chosen:
            return Offer(left_out=left_out)
        listing = write_listing([specs[name] for name in chosen], language)
        return Offer(
            mode=OfferMode.TEXT,
            names={name: name for name in chosen},
            listing=listing,
            tokens=estimate_tokens(listing),
            left_out=left_out,
            found=found,
            among=frozenset(found.values()) if found and selection.is_limited else None,
        )

    def _select(self, selection: Selection) -> Iterator[ToolSpec]:
        return (spec for spec in self._specs if selection.can_offer(spec))

    def _native(self, spec: ToolSpec) -> "_Native":
        native = self._natives.get(spec.name)
        if native is None:
            json = self._mask(orjson.dumps(to_function_tool(spec)).decode())
            native = _Native(plain_name(spec.name), orjson.loads(json), json.encode(), estimate_tokens(json))
            self._natives[spec.name] = native
        return native

    def _warn(self, offer: Offer) -> Offer:
        """Return an offer, and log what it leaves out, once."""
        if offer.left_out and offer.left_out != self._warned:
            self._warned = offer.left_out
            _log.warning("%s", left_out_warning(offer.left_out))
        return offer


def left_out_warning(names: tuple[str, ...]) -> str:
    """Say which tools are not offered, why, and what to do."""
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return (
        f"a chat is offered at most {MAX_TOOLS} tools and {MAX_TOKENS} tokens, so these are left out: "
        f"{', '.join(names[:_MAX_NAMED])}{more}. Disable plugins or MCP servers that are not needed, or name the tools "
        "of a chat in 'toolyard.tools'"
    )


@dataclass(frozen=True, slots=True)
class _Native:
    name: str
    definition: JsonObject
    json: bytes
    tokens: int


def _choose_fitting(
    names: Iterable[str], cost: Callable[[str], int], room: int = MAX_TOOLS
) -> tuple[list[str], int, tuple[str, ...]]:
    """Return the names that fit, their tokens, and the names that do not; ``cost`` is called only while there is room.

    A tool that is too large by itself makes room for the next one, until the offer is nearly full.
    """
    chosen: list[str] = []
    left_out: list[str] = []
    total, is_full = 0, room <= 0
    for name in names:
        tokens = 0 if is_full else cost(name)
        if is_full or total + tokens > MAX_TOKENS:
            left_out.append(name)
            is_full = is_full or total >= _NEARLY_FULL
            continue
        chosen.append(name)
        total += tokens
        is_full = len(chosen) == room
    return chosen, total, tuple(left_out)


_ASCII_CHARS: Final = 3.0  # of a token; English and JSON have nearly four
_OTHER_BYTES: Final = 2.5  # a Chinese character has three, and is seldom more than one token


def estimate_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text."""
    if text.isascii():
        return math.ceil(len(text) / _ASCII_CHARS)
    ascii_ = len(text.encode("ascii", "ignore"))
    return math.ceil(ascii_ / _ASCII_CHARS + (len(text.encode("utf-8", "replace")) - ascii_) / _OTHER_BYTES)


def _define_call_tool() -> _Native:
    function: JsonObject = {
        "name": CALL_TOOL,
        "description": "Calls a tool that ToolSearch has found. name: its name; arguments: its own parameters.",
        "parameters": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
            "required": ["name", "arguments"],
        },
    }
    definition: JsonObject = {"type": "function", "function": function}
    json = orjson.dumps(definition)
    return _Native(CALL_TOOL, definition, json, estimate_tokens(json.decode()))


_CALL_TOOL: Final = _define_call_tool()


MEDIA_TOKENS: Final = 1500  # of a picture or a document, whose size is not looked at
DATA: Final = re.compile(rb'"data:[^"]{100,}"|"[A-Za-z0-9+/=]{4000,}"')


def estimate_request(body: JsonObject) -> int:
    """Return an upper estimate of the tokens of a chat request: its messages and its tools."""
    raw, media = DATA.subn(b'""', json_bytes([body.get("messages"), body.get("tools")]))
    return estimate_tokens(raw.decode()) + media * MEDIA_TOKENS


BETWEEN: Final = "\n\n---\n\n"
_NO_TOOLS: Final = {ENGLISH: "No tools are available.", CHINESE: "没有可用的工具。"}
_FORM: Final = f"{START}\ntool_name:{OPEN}NAME{CLOSE},\nparameter:{OPEN}value{CLOSE}\n{END}"
_HEAD: Final = {
    ENGLISH: (
        "# Tools\n\n"
        "You can use the tools below. To call one, write a block like this in your reply, with the start marker first "
        "on its line and not inside a code fence:\n\n{example}\n\n"
        f"tool_name says which tool. Every other field is one of its parameters, with the value between {OPEN} and "
        f"{CLOSE}; leave out optional ones you do not need. Paths are relative to the "
        "project. Write lists and objects as JSON. A value that itself "
        f"contains such markers goes between {ESCAPE_OPEN} and {ESCAPE_CLOSE}. Several blocks in one reply run at the "
        "same time. End your reply after the blocks: the results come with the next message. Never invent results, and "
        "call no tool that you do not need."
    ),
    CHINESE: (
        "# 工具\n\n"
        "你可以使用下面的工具。需要调用时，在回复中写出如下的请求块，起始标记必须位于行首，不要放进代码块：\n\n"
        "{example}\n\n"
        f"tool_name 是工具名，其余每个字段是它的一个参数，值写在 {OPEN} 和 {CLOSE} 之间；不需要的可选参数可以不写。"
        f"路径相对于项目。数组和对象写成 JSON。值本身含有这些标记时，写在 {ESCAPE_OPEN} 和 {ESCAPE_CLOSE} 之间。"
        "一次回复可以写多个请求块，它们会同时执行。写完请求块就结束回复，结果会在下一条消息中给出。"
        "不要编造结果，也不要调用不需要的工具。"
    ),
}


def write_listing(specs: Sequence[ToolSpec], language: str) -> str:
    """Return instructions for calling tools and a description of each of ``specs``; every example runs as it is."""
    example = min((block for spec in specs if (block := write_example_request(spec))), key=len, default=_FORM)
    return "\n\n".join([_HEAD[language].format(example=example), *(write_offered(spec, language) for spec in specs)])


def write_tools(specs: Sequence[ToolSpec], language: str) -> str:
    """Return the text of ``{{VCPAllTools}}``."""
    texts = (write_tool(spec, language) for spec in specs)
    return BETWEEN.join(text for text in texts if text) or _NO_TOOLS[language]
