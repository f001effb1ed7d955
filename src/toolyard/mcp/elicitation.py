"""Elicitation of an approval: the question that an MCP client shows its user, and the answer.

Only an explicit "allow" is a yes. What the user declines, closes or leaves open is a no (S-98, S-99).
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from toolyard.message import Message
from toolyard.protocol.approval_record import Approval
from toolyard.protocol.json import Json
from toolyard.protocol.manifests.safe_text import escape_hidden, truncate

FIELD: Final = "answer"
DENY, ALLOW, ALWAYS = "deny", "allow", "always"
_MOST = 20_000  # characters of arguments; who wants to see more looks into the console
_LONG = 2_000  # characters of one text when all together are more than that


@dataclass(frozen=True, slots=True)
class ElicitedAnswer:
    allowed: bool
    always: bool
    reason: str = ""


def build_message(approval: Approval) -> str:
    arguments = _to_json_text(approval.arguments)
    if len(arguments) > _MOST:  # each is still named, with its beginning and its end
        arguments = _to_json_text(_shorten(approval.arguments))
    protected = "\nIt touches a protected path." if approval.protected else ""
    return (
        f"Toolyard asks: may {escape_hidden(approval.tool)} run? (risk: {approval.risk}){protected}\n"
        f"Arguments:\n{truncate(escape_hidden(arguments), _MOST)}"
    )


def build_schema(approval: Approval, *, rules: bool = True) -> dict[str, Any]:
    """A choice whose first and preset word is no; ``rules``: whether this user may make any."""
    choices = [DENY, ALLOW, *([ALWAYS] if rules and approval.always_offered else [])]
    about = "deny; allow this call; or always allow this tool and command" if len(choices) > 2 else "deny or allow"
    field = {"type": "string", "title": "Answer", "description": about, "enum": choices, "default": DENY}
    return {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}


def parse_answer(action: str, content: object) -> ElicitedAnswer:
    answer = content.get(FIELD) if action == "accept" and isinstance(content, dict) else None
    allowed = answer in (ALLOW, ALWAYS)
    refused = Message("approval.denied_in_client", "the user of the MCP client said no")
    return ElicitedAnswer(allowed, answer == ALWAYS, "" if allowed else refused)


def _to_json_text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _shorten(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _shorten(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shorten(inner) for inner in value]
    if not isinstance(value, str) or len(value) <= _LONG:
        return value
    half = _LONG // 2
    left_out = len(value) - 2 * half
    return f"{value[:half]} [… {left_out} characters are shown only in the console …] {value[-half:]}"
