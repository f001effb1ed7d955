"""Native tool calls of a reply: merged from stream deltas, and turned into jobs.

A call that cannot be run, such as one whose arguments are not JSON, fails like any other: it is reported and recorded.
"""

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final
from uuid import uuid4

import orjson

from toolyard.gateway.chat_ports import ToolPort
from toolyard.gateway.offer import CALL_TOOL, Offer
from toolyard.gateway.reply.chunks import KeptValue, entry_bytes
from toolyard.gateway.tool_calls.jobs import Job
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import parse_arguments

MAX_CALLS: Final = 32
MAX_REPORTED: Final = 2 * MAX_CALLS  # calls of a reply: those that do not run are reported
_NONE: frozenset[str] = frozenset()  # of most requests, so they share it
_WRITTEN = {"function": "arguments", "custom": "input"}  # the kinds of call, and what each calls its text
CUT: Final = "length"  # the finish reason of a reply that was not allowed to go on


def list_client_tools(body: JsonObject) -> frozenset[str]:
    """Return the names of the client's own tools; those that only its protocol knows stand in ``tool``."""
    names = []
    for listed, key in (("tools", "function"), ("tools", "custom"), ("tools", "tool"), ("functions", "")):
        for tool in _as_list(body.get(listed)):
            inner = tool.get(key) if key and isinstance(tool, dict) else tool
            if isinstance(inner, dict) and isinstance(inner.get("name"), str):
                names.append(str(inner["name"]))
    return frozenset(names) if names else _NONE


@dataclass(frozen=True, slots=True)
class Ownership:
    """The owner of each native tool name. A name that both have is the client's.

    When the client brought tools and ours were not offered, every name is the client's; else an unknown name is
    ours, and the model gets an error.
    """

    client: frozenset[str] = _NONE  # the names of the client's tools
    brings_tools: bool = False  # some tools have no name
    is_offered: bool = False  # ours were offered natively

    @classmethod
    def from_body(cls, body: JsonObject) -> "Ownership":
        """Return the ownership of the tools in a request as received."""
        return cls(list_client_tools(body), bool(body.get("tools") or body.get("functions")))

    def is_client(self, name: str) -> bool:
        return name in self.client or (self.brings_tools and not self.is_offered)


def call_name(call: JsonObject) -> str:
    named = next((inner for key in _WRITTEN if isinstance(inner := call.get(key), dict)), {})
    return str(named.get("name") or "")


class NativeCalls:
    """The calls of one reply, merged from its deltas by their index; unknown fields are kept.

    Some providers give every call the same index, or none: another id begins another call.
    """

    def __init__(self) -> None:
        self._calls: list[tuple[int, _CallBuilder]] = []
        self._at: dict[int, _CallBuilder] = {}  # the newest call of each index
        self.size = 0  # bytes

    def __bool__(self) -> bool:
        return bool(self._calls)

    def merge_deltas(self, deltas: Json) -> list[str]:
        """Add the next pieces; return the name of the call to which each of them belongs."""
        names = []
        for position, delta in enumerate(_as_list(deltas)):
            if isinstance(delta, dict):
                index = delta.get("index")
                place = index if isinstance(index, int) else position
                call = self._at.get(place)
                if call is None or call.is_other_than(delta):
                    if len(self._calls) >= MAX_REPORTED:
                        names.append("")
                        continue
                    call = self._at[place] = _CallBuilder()
                    self._calls.append((place, call))
                self.size += call.merge_delta(delta)
                names.append(call.name)
            else:
                names.append("")
        return names

    def to_list(self) -> list[JsonObject]:
        return [call.to_json() for _, call in sorted(self._calls, key=itemgetter(0))]


class _CallBuilder:
    """One call; its fields are put together when it is read."""

    def __init__(self) -> None:
        self.name = ""
        self._id: Json = None
        self._fields: dict[tuple[str, str], KeptValue] = {}  # by the kind whose object they stand in, and their key

    def is_other_than(self, delta: JsonObject) -> bool:
        now = delta.get("id")
        return bool(self._id and now) and self._id != now

    def merge_delta(self, delta: JsonObject) -> int:
        """Add the next piece; return by how many bytes the call has grown."""
        grown = 0
        for key, value in delta.items():
            if key in _WRITTEN and isinstance(value, dict):
                grown += sum(self._merge(key, inner, piece) for inner, piece in value.items())
                self.name = self.name or str(value.get("name") or "")
            elif key != "index" and value is not None:
                grown += self._merge("", key, value)
                self._id = self._id or (value if key == "id" else None)
        return grown

    def _merge(self, kind: str, key: str, value: Json) -> int:
        kept, grown = self._fields.get((kind, key)), 0
        if kept is None:
            kept = self._fields[kind, key] = KeptValue()
            grown = entry_bytes(key)
        if key == _WRITTEN.get(kind):
            if isinstance(value, dict):  # as some providers send arguments
                return grown + kept.replace(orjson.dumps(value).decode())
            return grown + (kept.add(value) if isinstance(value, str) else 0)
        if key in ("id", "type", "name") and len(kept):  # some providers repeat them, some send other ones later
            return 0
        return grown + kept.replace(value)

    def to_json(self) -> JsonObject:
        made: JsonObject = {}
        for (kind, key), value in self._fields.items():
            if not kind:
                made[key] = value.to_json()
                continue
            inner = made.setdefault(kind, {"name": self.name, _WRITTEN[kind]: ""})
            if isinstance(inner, dict) and key != "name":
                inner[key] = value.to_json()
        return made


def make_jobs(calls: list[JsonObject], tools: ToolPort, caller: str, *, offer: Offer, cut: bool = False) -> list[Job]:
    """Return the jobs of these calls; the last call of a reply that was ``cut`` does not run unless it is complete."""
    made = []
    for number, call in enumerate(calls, 1):
        name, use_id = offer.resolve(call_name(call)), str(call.get("id") or "")
        id_ = use_id or f"call_{uuid4().hex}"  # not every provider gives one, and the result has to name it
        arguments, problem = _parse_arguments(call, cut=cut and number == len(calls))
        if name == CALL_TOOL and CALL_TOOL in offer.names and not problem:
            name, arguments, problem = _unwrap(arguments, offer)
        if number > MAX_CALLS:
            problem = Message("Only the first {most} calls of a reply are run: send it again.", most=MAX_CALLS)
        request = tools.request(name, arguments, caller=caller, maid=None, metadata=offer.limit_search(name))
        made.append(Job(tool=name, call=replace(request, use_id=use_id, unreadable=problem), native_id=id_))
    return made


def _unwrap(arguments: JsonObject, offer: Offer) -> tuple[str, JsonObject, str]:
    """Return the tool that a call of CallTool is for, and its arguments; or why they cannot be read."""
    name, inner = arguments.get("name"), arguments.get("arguments", {})
    if not isinstance(name, str) or not name:
        return CALL_TOOL, arguments, Message("'name' is missing: the name of a tool that ToolSearch has found.")
    name = offer.resolve(name)
    if isinstance(inner, str):
        inner, problem = parse_arguments(inner)
        return name, inner, problem
    if not isinstance(inner, dict):
        return name, arguments, Message("'arguments' is an object with the parameters of {tool}.", tool=name)
    return name, inner, ""


def _parse_arguments(call: JsonObject, *, cut: bool) -> tuple[JsonObject, str]:
    """Return the arguments; or an excerpt of the text that cannot be read, and the reason."""
    function = call.get("function")
    written = function.get("arguments") if isinstance(function, dict) else None
    if cut and not written:
        return {}, Message(
            "The reply was cut before the arguments of this call, so it was not run. Send the whole call again."
        )
    if isinstance(written, dict):
        return written, ""
    return parse_arguments(written if isinstance(written, str) else "")


def _as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
