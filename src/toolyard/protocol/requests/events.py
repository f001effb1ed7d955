"""What a reply is made of: text, calls, and blocks that were meant as calls but cannot be run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolyard.protocol.json import JsonObject

Span = tuple[int, int]  # from the start marker to behind the end marker, in code points


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the reply that is no request; how it is cut into pieces depends on how it was fed."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    tool: str
    args: Mapping[str, str]  # in order of appearance, ``maid`` included, without the special keys
    span: Span
    maid: str | None = None  # how the agent signs, by ``maid`` or ``valet``; a label, never an identity
    timely_contact: str | None = None
    archery: str | None = None
    ink: str | None = None
    river: str | None = None
    password: str | None = field(default=None, repr=False)
    repaired: tuple[str, ...] = ()

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    problem: str  # what is wrong and how to write it right, for the model
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
