"""Chunks of a streamed answer: their common head, the sum of their usages, and a complete answer as chunks."""

from dataclasses import dataclass, field
from typing import NamedTuple

from toolyard.gateway.faults import no_completion
from toolyard.gateway.providers.provider_json import parse_provider_json
from toolyard.protocol.json import Json, JsonObject, json_bytes


class Chunk(NamedTuple):
    """A chunk on its way to the client."""

    data: JsonObject
    raw: bytes = b""  # the event as received; empty when the chunk was changed


@dataclass(slots=True)
class Head:
    """The fields that all chunks of one answer to the client share; the first round decides."""

    id: str
    created: int
    model: str
    is_known: bool = False
    usage: JsonObject = field(default_factory=dict)  # of the rounds before

    def learn(self, chunk: JsonObject) -> None:
        id_, created, model = chunk.get("id"), chunk.get("created"), chunk.get("model")
        self.id = id_ if isinstance(id_, str) and id_ else self.id
        self.created = created if isinstance(created, int) else self.created
        self.model = model if isinstance(model, str) and model else self.model
        self.is_known = True

    def chunk(self, delta: JsonObject, finish: str | None = None) -> JsonObject:
        return self.stamp({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def stamp(self, rest: JsonObject) -> JsonObject:
        own: JsonObject = {"id": self.id, "object": "chat.completion.chunk", "created": self.created}
        return own | {"model": self.model} | rest


def add_usage(one: JsonObject, other: JsonObject) -> JsonObject:
    """Add two usages: numbers are added, of anything else the later one counts."""
    made = dict(one)
    for key, value in other.items():
        before = made.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            made[key] = add_usage(before, value)
        elif _is_number(before) and _is_number(value):
            made[key] = before + value  # type: ignore[operator]
        elif value is not None or key not in made:
            made[key] = value
    return made


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_text(content: Json) -> str:
    """Return the text of a message or delta; some providers send it as parts."""
    if isinstance(content, list):
        parts = (part for part in content if isinstance(part, dict) and part.get("type") == "text")
        return "".join(text for part in parts if isinstance(text := part.get("text"), str))
    return content if isinstance(content, str) else ""


def to_events(name: str, body: bytes) -> list[bytes]:
    """Return a complete answer as the events of a stream, for a request that asked for one."""
    try:
        answer = parse_provider_json(body)
    except ValueError:
        answer = None
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if isinstance(answer, dict) and answer.get("error"):
        return [b"data: " + json_bytes(answer)]
    if not isinstance(answer, dict) or not isinstance(choices, list):
        raise no_completion(name, body)
    made: list[Json] = [
        {"index": 0, **{key: value for key, value in choice.items() if key != "message"}}
        | {"delta": _to_delta(choice.get("message")), "finish_reason": choice.get("finish_reason")}
        for choice in choices
        if isinstance(choice, dict)
    ]
    chunk = answer | {"object": "chat.completion.chunk", "choices": made}
    return [b"data: " + json_bytes(chunk), b"data: [DONE]"]


def _to_delta(message: Json) -> Json:
    """Return a message as a delta, its calls numbered by index."""
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(calls, list):
        return message
    indexed: list[Json] = [
        {"index": index, **call} if isinstance(call, dict) else call for index, call in enumerate(calls)
    ]
    return {**message, "tool_calls": indexed}
