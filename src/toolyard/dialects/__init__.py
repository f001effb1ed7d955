"""Outside shapes, one per file: pure functions of a call and its outcome. Names change case only here."""

from typing import Any

from toolyard.dialects import backend, mcp, openai, vcp
from toolyard.protocol.call import ToolCall
from toolyard.protocol.outcome import Outcome

DIALECTS = ("envelope", "vcp", "backend", "openai", "mcp")
SHOWN_ONLY = frozenset({"openai"})  # always carries the shown envelope: it goes straight to a model


def encode(dialect: str, call: ToolCall, outcome: Outcome, *, uuid: str) -> dict[str, Any]:
    match dialect:
        case "envelope":
            return outcome.envelope.to_dict()
        case "vcp":
            return vcp.encode(outcome)
        case "backend":
            return backend.encode(call, outcome, uuid=uuid)
        case "openai":
            return openai.encode(call, outcome)
        case "mcp":
            return mcp.encode(outcome)
        case _:
            raise ValueError(f"unknown dialect {dialect!r}: choose one of {', '.join(DIALECTS)}")
