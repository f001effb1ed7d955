"""Native tool calls of a reply: gathered from the pieces of a stream, and as work.

A call of one of the client's own tools is the client's. Any other is ours, also one that nobody knows: the model is
told so. A tool that the client gave a name of ours is the client's.
"""

from collections.abc import Iterable

import orjson

from toolyard.gateway.host import Tools
from toolyard.gateway.work import Job
from toolyard.protocol.json import Json, JsonObject

MAX_CALLS = 32


def client_tools(body: JsonObject) -> frozenset[str]:
    """The names of the tools that the client brought along."""
    names = []
    for listed, key in (("tools", "function"), ("tools", "custom"), ("functions", "")):
        for tool in _list(body.get(listed)):
            inner = tool.get(key) if key and isinstance(tool, dict) else tool
            if isinstance(inner, dict) and isinstance(inner.get("name"), str):
                names.append(str(inner["name"]))
    return frozenset(names)


def name_of(call: JsonObject) -> str:
    function = call.get("function")
    return str(function.get("name") or "") if isinstance(function, dict) else ""


class NativeCalls:
    """The calls of one reply, put together from its deltas by their index; fields nobody knows are kept."""

    def __init__(self) -> None:
        self._calls: dict[int, JsonObject] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def merge(self, deltas: Json) -> None:
        for position, delta in enumerate(_list(deltas)):
            if isinstance(delta, dict):
                index = delta.get("index")
                place = index if isinstance(index, int) else position
                if place in self._calls or len(self._calls) < 2 * MAX_CALLS:
                    _merge(self._calls.setdefault(place, {}), delta)

    def all(self) -> list[JsonObject]:
        return [self._calls[index] for index in sorted(self._calls)]


def jobs_of(calls: Iterable[JsonObject], tools: Tools, caller: str) -> list[Job]:
    made = []
    for number, call in enumerate(calls):
        name, id_ = name_of(call), str(call.get("id") or f"call_{number}")
        if number >= MAX_CALLS:
            problem = f"Only the first {MAX_CALLS} calls of a reply are run: send it again."
            made.append(Job(tool=name, problem=problem, native_id=id_))
            continue
        arguments, problem = _arguments(call)
        request = None if problem else tools.request(name, arguments, caller=caller, maid=None, metadata={})
        made.append(Job(tool=name, call=request, problem=problem, native_id=id_))
    return made


def _arguments(call: JsonObject) -> tuple[JsonObject, str]:
    function = call.get("function")
    written = function.get("arguments") if isinstance(function, dict) else None
    if isinstance(written, dict):
        return written, ""
    try:
        value = orjson.loads(written) if isinstance(written, str) and written.strip() else {}
    except orjson.JSONDecodeError as error:
        return {}, f"The arguments of this call are not JSON, so it was not run: {error}. Send the whole call again."
    return (value, "") if isinstance(value, dict) else ({}, "The arguments of a call must be a JSON object.")


def _merge(call: JsonObject, delta: JsonObject) -> None:
    for key, value in delta.items():
        before = call.get(key)
        if key == "index":
            continue
        if key == "function" and isinstance(value, dict):
            call[key] = _function(before if isinstance(before, dict) else {}, value)
        elif value is not None and not (key in ("id", "type") and before):
            call[key] = value


def _function(before: JsonObject, delta: JsonObject) -> JsonObject:
    made = {**before, **{key: value for key, value in delta.items() if key not in ("name", "arguments")}}
    made["name"] = before.get("name") or delta.get("name") or ""
    arguments = delta.get("arguments")
    if isinstance(arguments, dict):
        made["arguments"] = orjson.dumps(arguments).decode()
    else:
        made["arguments"] = str(before.get("arguments") or "") + (arguments if isinstance(arguments, str) else "")
    return made


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
