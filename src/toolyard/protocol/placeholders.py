"""Placeholders: the one tokenizer for every ``{{...}}`` language, and the language of prompts.

``Tokenizer`` finds ``{{NAME}}`` in linear time; each language gives it the pattern of its names. The language of
replies is in ``replies.placeholders``.

``fill_placeholders`` scans a prompt once. Inserted text is never scanned again, so a value that holds placeholders
stays a value. Unresolved placeholders stay unchanged. The caller decides which kinds may be filled where (in system
messages, for one caller's tasks): ``resolve`` returns None for the others.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

MAX_NAME = 256
TEXT_END = 2**63 - 1  # beyond the end of any text

_FEW = 100  # braces: jumping from one to the next is faster than a search for the pattern
_UNFINISHED = re.compile(rf"\{{(?:\{{[^{{}}\n]{{0,{MAX_NAME + 4}}})?\}}?\Z")
_ASYNC = "VCP_ASYNC_RESULT"
_CLOCK = ("Date", "Time", "Today")
_REPLY = re.compile(r"(mermaid|code|latex|image|table|chart|audio|video):([^\s:]+)")


class Tokenizer:
    """Finds the placeholders whose names match the pattern ``name``, which must match no brace and no line break.

    Of more braces than two the inner ones count. Every character is read a bounded number of times: a name ends at the
    next brace, and only ``{{`` begins one.
    """

    def __init__(self, name: str) -> None:
        # One fixed first character is searched fastest; the lookahead leaves long runs of braces at their first two.
        self._pattern = re.compile(r"\{(?=\{[^{])\{" + name + r"\}\}")

    def match(self, text: str, start: int, end: int = TEXT_END) -> re.Match[str] | None:
        """Return the placeholder that begins at ``start`` and does not go beyond ``end``."""
        return self._pattern.match(text, start, end)

    def find(self, text: str) -> Iterator[re.Match[str]]:
        """Yield every placeholder in order."""
        at = text.find("{")
        for _ in range(_FEW):
            if at < 0:
                return
            match = self._pattern.match(text, at)
            if match:
                yield match
            at = text.find("{", match.end() if match else at + 1)
        if at >= 0:
            yield from self._pattern.finditer(text, at)


_PROMPT = Tokenizer(rf"([^{{}}\n]{{1,{MAX_NAME}}}+)")


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
    """Yield every placeholder of a prompt in order."""
    for match in _PROMPT.find(text):
        kind, parts = _read_meaning(match[1])
        start, end = match.span()
        if kind is Kind.ASYNC_RESULT:
            for _ in range(2):
                if text[start - 1 : start] == "{" and text[end : end + 1] == "}":
                    start, end = start - 1, end + 1
        yield Placeholder(kind, match[1], parts, (start, end))


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


def remove_unfinished(text: str) -> str:
    """Return ``text`` without a placeholder at its end whose closing braces have not arrived."""
    return _UNFINISHED.sub("", text)


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
