"""The question behind an approval, as an MCP client shows it to its user, and what the reply means.

Only an explicit "allow" is a yes. What the user declines, closes or leaves open is a no (S-98, S-99).
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from toolyard.protocol.manifests.safe_text import bounded, visible
from toolyard.protocol.store import Record

FIELD: Final = "answer"
DENY, ALLOW, ALWAYS = "deny", "allow", "always"
_MOST = 20_000  # characters of arguments; who wants to see more looks into the console


@dataclass(frozen=True, slots=True)
class Reply:
    allowed: bool
    always: bool
    reason: str = ""


def message(approval: Record) -> str:
    arguments = json.dumps(approval.body.get("arguments"), ensure_ascii=False, indent=2)
    protected = "\nIt touches a protected path." if approval.body.get("protected") else ""
    return (
        f"Toolyard asks: may {plainly(approval.tool)} run? (risk: {approval.body.get('risk')}){protected}\n"
        f"Arguments:\n{bounded(plainly(arguments), _MOST)}"
    )


def schema(approval: Record, *, rules: bool = True) -> dict[str, Any]:
    """A choice whose first and preset word is no; ``rules``: whether this user may make any."""
    choices = [DENY, ALLOW, *([ALWAYS] if rules and approval.body.get("always_offered") else [])]
    about = "deny; allow this call; or always allow this tool and command" if len(choices) > 2 else "deny or allow"
    field = {"type": "string", "title": "Answer", "description": about, "enum": choices, "default": DENY}
    return {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}


def reply(action: str, content: object) -> Reply:
    said = content.get(FIELD) if action == "accept" and isinstance(content, dict) else None
    allowed = said in (ALLOW, ALWAYS)
    return Reply(allowed, said == ALWAYS, "" if allowed else "the user of the MCP client said no")


def plainly(text: str) -> str:
    """``text`` with what nobody would see written out."""
    return "".join(char if visible(char) else f"\\u{ord(char):04x}" for char in text)
