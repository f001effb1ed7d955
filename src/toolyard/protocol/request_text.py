"""Tool requests written as text, and text made unable to be one.

``format_request`` and the scanner are inverses for every value. ``neutralise`` is for text from elsewhere, such as a
tool's output: a model that repeats it word for word gives no call and fills no placeholder.
"""

import re
from collections.abc import Mapping

from toolyard.protocol.requests.block import SPECIAL, is_reserved
from toolyard.protocol.requests.marks import CLOSE, END, ESCAPE_CLOSE, ESCAPE_OPEN, NAME, OPEN, START, escape

_NOT_PLAIN = re.compile(r"[「{][始末]|TOOL_REQUEST")
_LIVE = re.compile(
    r"(?=[\[始末{])(?:"  # most places are none of these, and one look tells
    r"(?<=<)(?=\[(?:END_)?TOOL_REQUEST)"  # a block marker
    r"|(?<=[「{])(?=[始末](?i:ESCAPE)*[」}])"  # a value mark; an ordinary 「末日」 stays
    r"|(?<=\{)(?=\{))"  # a placeholder
)
_INVISIBLE = "\u200b"


def format_request(tool: str, args: Mapping[str, str], maid: str | None = None, *, nonce: str | None = None) -> str:
    """The block that calls ``tool``; ValueError when a name cannot stand in one. Every value can."""
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
    """The same to the eye, but no marker, value mark or placeholder in it is live. Doing it twice changes nothing."""
    return _LIVE.sub(_INVISIBLE, text)


def _value(text: str) -> str:
    if text == text.strip() and not _NOT_PLAIN.search(text):
        return f"{OPEN}{text}{CLOSE}"
    last = "" if text.endswith("\r") else "\n"  # together they would be one line end, and taken away
    return f"{ESCAPE_OPEN}\n{escape(text)}{last}{ESCAPE_CLOSE}"
