"""The results of the tolerant reader, and the containers it fills on the way."""

from dataclasses import dataclass

from toolyard.message import Message
from toolyard.protocol.json import MAX_DEPTH, Json, JsonObject
from toolyard.protocol.replies.values import Repair


@dataclass(frozen=True, slots=True)
class Reading:
    """``value`` spans the text from ``start`` to ``end``; not ``complete`` when the text ended before it did."""

    value: JsonObject
    start: int
    end: int
    complete: bool
    repairs: tuple[Repair, ...]


class TooDeep(Exception):
    def __init__(self, position: int) -> None:
        super().__init__(Message("reply.too_deep", "The JSON is nested deeper than {most} levels.", most=MAX_DEPTH))
        self.position = position


class Frame:
    """A container that is being filled. ``key`` waits for its value; ``comma``: one has just been read."""

    __slots__ = ("comma", "container", "key")

    def __init__(self, container: "JsonObject | list[Json]") -> None:
        self.container = container
        self.key: str | None = None
        self.comma = False

    def put(self, value: Json) -> None:
        if isinstance(self.container, list):
            self.container.append(value)
        elif self.key is not None:
            self.container[self.key] = value
        self.key = None
        self.comma = False
