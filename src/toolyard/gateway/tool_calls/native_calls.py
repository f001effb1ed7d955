"""Native tool calls of a reply: merged from stream deltas, and turned into jobs.

A call that cannot be run, such as one whose arguments are not JSON, fails like any other: it is reported and recorded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final
from uuid import uuid4

import orjson

from toolyard.gateway.ports import ToolPort
from toolyard.gateway.tool_calls.jobs import Job
from toolyard.message import Message
from toolyard.protocol.call import parse_arguments
from toolyard.protocol.json import Json, JsonObject

MAX_CALLS: Final = 32
_NONE: frozenset[str] = frozenset()  # of most requests, so they share it
_WRITTEN = {"function": "arguments", "custom": "input"}  # the kinds of call, and what each calls its text
CUT: Final = "length"  # the finish reason of a reply that was not allowed to go on


def list_client_tools(body: JsonObject) -> frozenset[str]:
    """Return the names of the client's own tools."""
    names = []
    for listed, key in (("tools", "function"), ("tools", "custom"), ("functions", "")):
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
                    if len(self._calls) >= 2 * MAX_CALLS:
                        names.append("")
                        continue
                    call = self._at[place] = _CallBuilder()
                    self._calls.append((place, call))
                call.merge_delta(delta)
                names.append(call_name(call.fields))
            else:
                names.append("")
        return names

    def to_list(self) -> list[JsonObject]:
        return [call.to_json() for _, call in sorted(self._calls, key=itemgetter(0))]


class _CallBuilder:
    """One call; its text is joined when it is read."""

    def __init__(self) -> None:
        self.fields: JsonObject = {}  # all but the text
        self._pieces: dict[str, list[str]] = {}  # of the text of each kind

    def is_other_than(self, delta: JsonObject) -> bool:
        before, now = self.fields.get("id"), delta.get("id")
        return bool(before and now) and before != now

    def merge_delta(self, delta: JsonObject) -> None:
        for key, value in delta.items():
            if key in _WRITTEN and isinstance(value, dict):
                self._merge_text(key, value)
            elif key != "index" and value is not None and not (key in ("id", "type") and self.fields.get(key)):
                self.fields[key] = value

    def _merge_text(self, kind: str, delta: JsonObject) -> None:
        before = self.fields.get(kind)
        before = before if isinstance(before, dict) else {}
        text, pieces = delta.get(_WRITTEN[kind]), self._pieces.setdefault(kind, [])
        self.fields[kind] = {**before, **delta, "name": before.get("name") or delta.get("name") or ""}
        if isinstance(text, dict):
            pieces[:] = [orjson.dumps(text).decode()]
        elif isinstance(text, str):
            pieces.append(text)

    def to_json(self) -> JsonObject:
        made = dict(self.fields)
        for kind, pieces in self._pieces.items():
            inner = made[kind]
            if isinstance(inner, dict):
                made[kind] = {**inner, _WRITTEN[kind]: "".join(pieces)}
        return made


def make_jobs(
    calls: list[JsonObject], tools: ToolPort, caller: str, *, names: Mapping[str, str], cut: bool = False
) -> list[Job]:
    """Return the jobs of these calls; the last call of a reply that was ``cut`` does not run unless it is complete.

    ``names``: our tools, by the names under which they were offered.
    """
    made = []
    for number, call in enumerate(calls, 1):
        name, use_id = names.get(call_name(call), call_name(call)), str(call.get("id") or "")
        id_ = use_id or f"call_{uuid4().hex}"  # not every provider gives one, and the result has to name it
        arguments, problem = _parse_arguments(call, cut=cut and number == len(calls))
        if number > MAX_CALLS:
            problem = Message(
                "chat.too_many_calls", "Only the first {most} calls of a reply are run: send it again.", most=MAX_CALLS
            )
        request = tools.request(name, arguments, caller=caller, maid=None, metadata={})
        made.append(Job(tool=name, call=replace(request, use_id=use_id, unreadable=problem), native_id=id_))
    return made


def _parse_arguments(call: JsonObject, *, cut: bool) -> tuple[JsonObject, str]:
    """Return the arguments; or an excerpt of the text that cannot be read, and the reason."""
    function = call.get("function")
    written = function.get("arguments") if isinstance(function, dict) else None
    if cut and not written:
        return {}, Message(
            "chat.call_cut",
            "The reply was cut before the arguments of this call, so it was not run. Send the whole call again.",
        )
    if isinstance(written, dict):
        return written, ""
    return parse_arguments(written if isinstance(written, str) else "")


def _as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
