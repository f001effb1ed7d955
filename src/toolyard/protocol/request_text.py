"""Tool requests written as text, and text made unable to be one.

``format_request`` and the scanner are inverses for every value. ``neutralise`` is for text from elsewhere, such as a
tool's output: a model that repeats it word for word makes no call and fills no placeholder.
"""

import re
from collections.abc import Mapping

from toolyard.protocol.requests.block import SPECIAL, is_reserved
from toolyard.protocol.requests.marks import CLOSE, END, ESCAPE_CLOSE, ESCAPE_OPEN, NAME, OPEN, START, escape

_NOT_PLAIN = re.compile(r"[「{][始末]|TOOL_REQUEST")
_LIVE = re.compile(
    r"(?=[\[始末{])(?:"  # rejects most positions at once
    r"(?<=<)(?=\[(?:END_)?TOOL_REQUEST)"  # a block marker
    r"|(?<=[「{])(?=[始末](?i:ESCAPE)*[」}])"  # a value mark; an ordinary 「末日」 stays
    r"|(?<=\{)(?=\{))"  # a placeholder
)
_INVISIBLE = "\u200b"


def format_request(tool: str, args: Mapping[str, str], maid: str | None = None, *, nonce: str | None = None) -> str:
    """Return the block that calls ``tool``; ValueError when a name cannot be written in one. Every value can."""
    if not tool.strip():
        raise ValueError("a request needs the name of a tool")
    fields = {"tool_name": tool} if maid is None else {"maid": maid, "tool_name": tool}
    for name in args:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a name that a request can carry: use letters, digits, '_', '-' and '.'")
        if name in SPECIAL or is_reserved(name):
            raise ValueError(f"{name!r} means something else in a request")
    fields |= args
    lines = ",\n".join(f"{name}:{_value(text)}" for name, text in fields.items())
    start = START if nonce is None else START.replace("]", f":{nonce}]")
    return f"{start}\n{lines}\n{END}"


def neutralise(text: str) -> str:
    """Return text that looks the same, with no live marker, value mark or placeholder. Idempotent."""
    return _LIVE.sub(_INVISIBLE, text)


def _value(text: str) -> str:
    if text == text.strip() and not _NOT_PLAIN.search(text):
        return f"{OPEN}{text}{CLOSE}"
    last = "" if text.endswith("\r") else "\n"  # together they would be one line ending, which is removed
    return f"{ESCAPE_OPEN}\n{escape(text)}{last}{ESCAPE_CLOSE}"
