"""The events of a reply: text, calls, and blocks that were meant as calls but cannot be run.

They are tuples, which are created several times faster than dataclasses: a reply may hold thousands.
"""

from collections.abc import Mapping
from typing import NamedTuple

from toolyard.protocol.json import JsonObject

Span = tuple[int, int]  # from the start marker to the end of the end marker, in code points


class Text(NamedTuple):
    """A piece of the reply that is no request; the cuts between pieces depend on the feeding."""

    text: str


class Call(NamedTuple):
    tool: str
    args: Mapping[str, str]  # in order of appearance, ``maid`` included, without the special keys
    span: Span
    timely_contact: str | None = None
    archery: str | None = None
    ink: str | None = None
    river: str | None = None
    password: str | None = None
    repaired: tuple[str, ...] = ()

    def __repr__(self) -> str:
        fields = (f"{name}={value!r}" for name, value in self._asdict().items() if name != "password")
        return f"Call({', '.join(fields)})"

    @property
    def maid(self) -> str | None:
        """The agent's signature, by ``maid`` or ``valet``: a label, never an identity."""
        return self.args.get("maid", self.args.get("valet"))

    @property
    def fire_and_forget(self) -> bool:
        return self.archery in {"true", "no_reply"}

    def to_dict(self) -> JsonObject:
        return {
            "tool": self.tool,
            "args": dict(self.args),
            "maid": self.maid,
            "timely_contact": self.timely_contact,
            "archery": self.archery,
            "ok": True,
            "problem": None,
            "repaired": list(self.repaired),
            "span": list(self.span),
        }


class Malformed(NamedTuple):
    problem: str  # the problem and the correct way to write it, for the model
    span: Span
    tool: str | None = None
    repaired: tuple[str, ...] = ()

    def to_dict(self) -> JsonObject:
        return {
            "tool": self.tool,
            "args": None,
            "maid": None,
            "timely_contact": None,
            "archery": None,
            "ok": False,
            "problem": self.problem,
            "repaired": list(self.repaired),
            "span": list(self.span),
        }


Event = Text | Call | Malformed

_PIECE = 512  # characters


def add_piece(pieces: list[str], text: str) -> None:
    """Add to the pieces of a text: short ones become one, because many of them take many times their memory."""
    if pieces and len(pieces[-1]) < _PIECE:
        pieces[-1] += text
    else:
        pieces.append(text)
