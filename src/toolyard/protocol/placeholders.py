"""Placeholders: one tokenizer for every ``{{...}}`` language.

``fill_placeholders`` scans a text once, in linear time. Inserted text is never scanned again, so a value that holds
placeholders stays a value. Unresolved placeholders stay unchanged. The caller decides which kinds may be filled where
(in system messages, for one caller's tasks): ``resolve`` returns None for the others.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

MAX_NAME = 256

_PLACEHOLDER = re.compile(rf"(?<!\{{)(\{{{{2,}}+)([^{{}}\n]{{1,{MAX_NAME}}})(\}}{{2,}}+)")
_ASYNC = "VCP_ASYNC_RESULT"
_CLOCK = ("Date", "Time", "Today")
_REPLY = re.compile(r"(mermaid|code|latex|image|table|chart|audio|video):([^\s:]+)")


class Kind(StrEnum):
    ASYNC_RESULT = "async_result"  # {{VCP_ASYNC_RESULT::Plugin::id}}, with 2, 3 or 4 braces; parts: plugin, id
    ALL_TOOLS = "all_tools"  # {{VCPAllTools}}
    TOOL = "tool"  # {{VCPName}}; parts: name of the plugin
    CLOCK = "clock"  # {{Date}}, {{Time}}, {{Today}}
    REPLY = "reply"  # {{mermaid:id}}: an attachment of a structured reply; parts: type, id
    OTHER = "other"  # any other name, such as a static plugin's


@dataclass(frozen=True, slots=True)
class Placeholder:
    kind: Kind
    name: str  # the text between the braces
    parts: tuple[str, ...]
    span: tuple[int, int]  # braces included, in code points


def find_placeholders(text: str) -> Iterator[Placeholder]:
    """Yield every placeholder in order."""
    for match in _PLACEHOLDER.finditer(text):
        kind, parts = _read_meaning(match[2])
        braces = min(len(match[1]), len(match[3]), 4 if kind is Kind.ASYNC_RESULT else 2)
        yield Placeholder(kind, match[2], parts, (match.end(1) - braces, match.start(3) + braces))


def fill_placeholders(text: str, resolve: Callable[[Placeholder], str | None]) -> str:
    """Return the text with each placeholder replaced by ``resolve(placeholder)``, or left alone for None."""
    pieces, at = [], 0
    for placeholder in find_placeholders(text):
        value = resolve(placeholder)
        if value is not None:
            start, end = placeholder.span
            pieces += [text[at:start], value]
            at = end
    return "".join([*pieces, text[at:]])


def _read_meaning(name: str) -> tuple[Kind, tuple[str, ...]]:
    words = name.split("::")
    if words[0] == _ASYNC and len(words) == 3 and all(words):
        return Kind.ASYNC_RESULT, (words[1], words[2])
    if name == "VCPAllTools":
        return Kind.ALL_TOOLS, ()
    if name in _CLOCK:
        return Kind.CLOCK, ()
    if name.startswith("VCP") and len(name) > len("VCP") and name[3] != "_":
        return Kind.TOOL, (name.removeprefix("VCP"),)
    reply = _REPLY.fullmatch(name)
    return (Kind.REPLY, (reply[1], reply[2])) if reply else (Kind.OTHER, ())
