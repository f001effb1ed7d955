"""Outside shapes, one per file: pure functions of a call and its outcome. Names change case only here."""

from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from toolyard.errors import UsageError
from toolyard.message import Message

if TYPE_CHECKING:
    from toolyard.protocol.tool import Outcome, ToolCall

Dialect = Literal["envelope", "vcp", "backend", "openai", "anthropic", "mcp"]
DIALECTS: Final[tuple[str, ...]] = get_args(Dialect)
SHOWN_ONLY = frozenset({"openai", "anthropic"})  # always carry the shown result: they go straight to a model
NAMES_CALL = ("backend", "openai", "anthropic")  # carry the id of the call that they answer


def require_dialect(dialect: str, tool_call_id: str | None = None) -> None:
    """Raise UsageError for an unknown dialect, or one that has no place for the id of a call."""
    if tool_call_id and dialect in DIALECTS and dialect not in NAMES_CALL:
        raise UsageError(
            Message(
                "a result in the dialect '{dialect}' names no call: pass tool_call_id with one of {names}",
                dialect=dialect,
                names=", ".join(NAMES_CALL),
            )
        )
    if dialect not in DIALECTS:
        raise UsageError(
            Message("unknown dialect '{dialect}': choose one of {names}", dialect=dialect, names=", ".join(DIALECTS))
        )


def encode(dialect: str, call: "ToolCall", outcome: "Outcome", *, uuid: str, language: str = "en") -> dict[str, Any]:
    """Encode an outcome in a dialect, whose module is loaded by the first call that uses it.

    ``language``: of the conversation with the model that reads it.
    """
    match dialect:
        case "envelope":
            return outcome.envelope.to_dict()
        case "vcp":
            from toolyard.dialects import vcp_messages

            return vcp_messages.encode(outcome)
        case "backend":
            from toolyard.dialects import backend_message

            return backend_message.encode(call, outcome, uuid=uuid)
        case "openai":
            from toolyard.dialects import openai

            return openai.encode(call, outcome, language)
        case "anthropic":
            from toolyard.dialects import anthropic

            return anthropic.encode(call, outcome, language)
        case "mcp":
            from toolyard.dialects import mcp_messages

            return mcp_messages.encode(call, outcome)
        case _:
            raise ValueError(f"unknown dialect {dialect!r}: choose one of {', '.join(DIALECTS)}")


def find_envelope(dialect: str, encoded: dict[str, Any]) -> dict[str, Any] | None:
    """Return the envelope in an encoded outcome; None where there is none."""
    if dialect == "mcp":
        from toolyard.dialects.mcp_messages import ENVELOPE

        envelope: dict[str, Any] = encoded["_meta"][ENVELOPE]
        return envelope
    return encoded if dialect == "envelope" else None
