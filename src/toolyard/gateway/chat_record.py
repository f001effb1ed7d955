"""The record of a chat: the requests sent to the model in each round, and the work of the tools."""

from dataclasses import dataclass, field
from typing import Final

import orjson

from toolyard.gateway.offers.offer import NO_OFFER
from toolyard.protocol.json import Json, JsonObject

MAX_SENT: Final = 256 * 1024  # bytes of one round that are kept
_MAX_WORK = 400


@dataclass(slots=True, kw_only=True)
class ChatRecord:
    id: str
    caller: str
    model: str
    started: float
    state: str = "running"
    error: str = ""
    offer: JsonObject = field(default_factory=NO_OFFER.to_json)  # the tools that were offered to the model
    rounds: list[bytes] = field(default_factory=list)  # secrets are masked already
    work: list[JsonObject] = field(default_factory=list)

    def add_round(self, body: bytes) -> None:
        self.rounds.append(body if len(body) <= MAX_SENT else body[:MAX_SENT])

    def add_work(self, tool: str, state: str, text: str) -> None:
        if len(self.work) < _MAX_WORK:
            self.work.append({"round": len(self.rounds), "tool": tool, "state": state, "text": text[:500]})

    def mark_failed(self, why: str) -> None:
        self.state, self.error = "failed", why

    @property
    def size(self) -> int:
        return sum(map(len, self.rounds)) + 600 * len(self.work)

    def to_dict(self) -> JsonObject:
        return {
            "id": self.id,
            "model": self.model,
            "started": self.started,
            "state": self.state,
            "error": self.error or None,
            "offer": self.offer,
            "rounds": [{"sent": _parse_round(body)} for body in self.rounds],
            "work": list(self.work),
        }


def _parse_round(body: bytes) -> Json:
    """Return the request of a round; as a text when it was cut for its length."""
    try:
        value: Json = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace") + "…"
    return value
