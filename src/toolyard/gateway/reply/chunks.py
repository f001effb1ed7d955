"""Chunks of a streamed answer: their common head, what is kept of them, and a complete answer as chunks."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeGuard

from toolyard.gateway.faults import no_completion
from toolyard.gateway.providers.provider_json import parse_provider_json
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_value

_ENTRY_BYTES = 200
_MAX_NAME = 1000  # characters of an id or a model's name: each chunk of the answer repeats them


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
    draws_work: bool = False  # the client draws tool work itself, from events

    def learn(self, chunk: JsonObject) -> None:
        id_, created, model = chunk.get("id"), chunk.get("created"), chunk.get("model")
        self.id = id_ if _is_name(id_) else self.id
        self.created = created if isinstance(created, int) else self.created
        self.model = model if _is_name(model) else self.model
        self.is_known = True

    def chunk(self, delta: JsonObject, finish: str | None = None) -> JsonObject:
        return self.stamp({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def stamp(self, rest: JsonObject) -> JsonObject:
        own: JsonObject = {"id": self.id, "object": "chat.completion.chunk", "created": self.created}
        return own | {"model": self.model} | rest


def _is_name(value: Json) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= _MAX_NAME


def entry_bytes(key: str = "") -> int:
    """Return an estimate of the memory of an entry beside its content, rather too high than too low."""
    return _ENTRY_BYTES + 4 * len(key)


class KeptValue:
    """A value that comes in pieces: texts and lists grow, of anything else the last piece counts.

    Kept as UTF-8, because a list of short texts, or of small objects, takes many times the memory of its content.
    """

    __slots__ = ("_data", "_kind")

    def __init__(self) -> None:
        self._kind: type = str
        self._data = bytearray()

    def __len__(self) -> int:
        """Return its size in bytes."""
        return len(self._data)

    def add(self, piece: Json) -> int:
        """Add the next piece; return by how many bytes the value has grown."""
        before, kind = len(self._data), type(piece)
        if kind is not self._kind or kind not in (str, list):
            self._kind = kind
            self._data.clear()
        if isinstance(piece, str):
            self._data += piece.encode("utf-8", "surrogatepass")
        elif isinstance(piece, list):
            self._data += (b"," if self._data and piece else b"") + json_bytes(piece)[1:-1]
        else:
            self._data += json_bytes(piece)
        return len(self._data) - before

    def replace(self, value: Json) -> int:
        """Put another value in its place; return by how many bytes it has grown."""
        before = len(self._data)
        self._data.clear()
        self.add(value)
        return len(self._data) - before

    @property
    def text(self) -> str:
        return self._data.decode("utf-8", "surrogatepass")

    def to_json(self) -> Json:
        if self._kind is str:
            return self.text
        value: Json = json_value(b"[" + self._data + b"]" if self._kind is list else bytes(self._data))
        return value


DETAILS: Final = "reasoning_details"  # of a message or delta
_TEXTS: Final = {"reasoning.text": "text", "reasoning.summary": "summary"}  # kinds of reasoning, and their text


class KeptDetails:
    """Reasoning that comes in pieces: those of one text have one index, and a signature ends it."""

    __slots__ = ("_details", "_open", "_size")

    def __init__(self) -> None:
        self._details: list[tuple[JsonObject, str, bytearray]] = []  # without their text, its key, and the text
        self._open: dict[tuple[str, int, str], int] = {}  # places of those whose text may go on
        self._size = 0

    def __len__(self) -> int:
        """Return its size in bytes."""
        return self._size

    def add(self, pieces: Json) -> int:
        """Add the next pieces; return by how many bytes the value has grown."""
        before = self._size
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, dict):
                self._add_piece(piece)
        return self._size - before

    def _add_piece(self, piece: JsonObject) -> None:
        kind, index = str(piece.get("type")), piece.get("index")
        key = _TEXTS.get(kind, "")
        text = piece.get(key) if key else None
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else b""
        rest = {name: value for name, value in piece.items() if name != key}
        place = (kind, index if isinstance(index, int) else -1, str(piece.get("id")))
        at = self._open.get(place)
        if at is None:
            at = len(self._details)
            self._details.append((rest, key, bytearray()))
            self._size += entry_bytes() + len(json_bytes(rest))
            if key and place[1] >= 0:
                self._open[place] = at
        elif news := {name: value for name, value in rest.items() if self._details[at][0].get(name) != value}:
            self._details[at][0].update(news)
            self._size += len(json_bytes(news))
        self._details[at][2].extend(data)
        self._size += len(data)
        if piece.get("signature"):
            self._open.pop(place, None)

    def to_list(self) -> list[JsonObject]:
        return [
            {**rest, key: text.decode("utf-8", "surrogatepass")} if key else rest for rest, key, text in self._details
        ]

    def to_json(self) -> Json:
        return [*self.to_list()]


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


def only_text(chunk: JsonObject) -> str | None:
    """Return the text of a chunk that holds nothing else."""
    choices = chunk.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or chunk.get("usage"):
        return None
    choice = choices[0]
    delta = choice.get("delta") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(delta, dict) or len(delta) != 1 or choice.get("finish_reason"):
        return None
    content = delta.get("content")
    return content if isinstance(content, str) else None


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
