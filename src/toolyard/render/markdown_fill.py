"""The content of a reply as Markdown with its placeholders filled, in one pass.

Inserted text is never scanned again. Fences of the content are not touched; nor is any line without placeholders.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.replies.placeholders import Placeholder, find_placeholders
from toolyard.protocol.replies.prompt import Language
from toolyard.protocol.replies.values import TYPES
from toolyard.protocol.reply import Attachment, Reply
from toolyard.render.markdown_blocks import MAX_NAME, Style, attachment_name, write_block, write_code_span, write_inline
from toolyard.render.markdown_inert import Span, escape_markdown, read_layout

_CONTAINER = compile_pattern(r"(?:[ \t]{0,20}(?:>|[-*+](?=[ \t])|[0-9]{1,9}[.)](?=[ \t])))*+[ \t]*")
_MARKER = re.compile(r"[^>\s]")
_WORDS = {  # a placeholder without attachment, and one with another
    Language.ENGLISH: ("there is no such attachment", "the attachment is of the type {}"),
    Language.CHINESE: ("找不到该附件", "附件的类型是 {}"),
}


def fill_placeholders(reply: Reply, style: Style) -> tuple[str, frozenset[str]]:
    """Return the content, and the ids of the attachments in it."""
    choice, page = _Choice(reply, style), _Page()
    layout = read_layout(reply.content)
    ends = {end for _, end in layout.blocks}
    fenced, indented = _line_numbers(layout.fences), _line_numbers(layout.indented)
    places = list(find_placeholders(reply.content))
    waiting: list[str] = []
    at = number = 0
    for line_number, line in enumerate(reply.content.split("\n")):
        if waiting and line_number in ends:
            page.add_apart(waiting)
            waiting = []
        here: list[Placeholder] = []
        while number < len(places) and places[number].start < at + len(line):
            here += [places[number]] if line_number not in fenced else []
            number += 1
        if _is_line_of_placeholders(line, at, here):
            lead = "" if line_number in indented else _read_lead(line)
            page.add_apart([part for place in here for part in choice.choose_block(place)], lead)
        else:
            page.add("".join(_fill_line(choice, line, at, here, waiting)))
        at += len(line) + 1
    page.add_apart(waiting)
    return "\n".join(page.lines).strip("\n"), frozenset(choice.written)


@dataclass(slots=True)
class _Page:
    """Lines, with one blank line around separate blocks."""

    lines: list[str] = field(default_factory=list)
    gap: str | None = None  # the blank line to come before the next one that is not blank

    def add(self, line: str) -> None:
        if self.gap is not None and line.strip("> \t"):
            self.lines.append(self.gap)
        self.gap = None
        self.lines.append(line)

    def add_apart(self, parts: Sequence[str], lead: str = "") -> None:
        """Add ``parts`` inside the list items and quotes that ``lead`` begins or continues."""
        if not parts:
            return
        rest = _MARKER.sub(" ", lead)
        if self.gap is None and self.lines and self.lines[-1].strip("> \t") and lead == rest:
            self.gap = rest.rstrip()
        for number, text in enumerate("\n\n".join(parts).split("\n")):
            self.add((lead if number == 0 else rest) + text if text else rest.rstrip())
        self.gap = rest.rstrip()


@dataclass(frozen=True, slots=True)
class _Choice:
    """The replacement of a placeholder: each attachment is written once, and named after that."""

    reply: Reply
    style: Style
    written: set[str] = field(default_factory=set)
    short: dict[str, str | None] = field(default_factory=dict)  # the inline form, by id

    def choose_inline(self, placeholder: Placeholder, later: list[str]) -> str:
        """Return the form in a sentence; a block form is added to ``later``."""
        item = self.reply.attachments.get(placeholder.id)
        if item is None:
            return self._write_fault(placeholder, None)
        if item.id not in self.short:
            self.short[item.id] = write_inline(item, self.style)
        short = self.short[item.id]
        if short is None or (item.id in self.written and len(short) > MAX_NAME):
            later += self._write_once(item)
            short = attachment_name(item)
        self.written.add(item.id)
        return short + (f" ({self._write_fault(placeholder, item)})" if item.type != placeholder.type else "")

    def choose_block(self, placeholder: Placeholder) -> Iterator[str]:
        item = self.reply.attachments.get(placeholder.id)
        if item is None or item.type != placeholder.type:
            yield self._write_fault(placeholder, item)
        if item is not None:
            yield from self._write_once(item) or [attachment_name(item)]

    def _write_once(self, item: Attachment) -> list[str]:
        if item.id in self.written:
            return []
        self.written.add(item.id)
        return [write_block(item, self.style)]

    def _write_fault(self, placeholder: Placeholder, item: Attachment | None) -> str:
        missing, mismatched = _WORDS[self.style.language]
        source = f"{{{{{placeholder.type}:{placeholder.id}}}}}"
        if item is None:
            return f"⚠️ {write_code_span(source)}: {missing}" if placeholder.type in TYPES else escape_markdown(source)
        return f"⚠️ {write_code_span(source)}: {mismatched.format(escape_markdown(item.type[:MAX_NAME]))}"


def _is_line_of_placeholders(line: str, at: int, here: Sequence[Placeholder]) -> bool:
    """Return whether the line, which begins ``at``, holds nothing but placeholders."""
    texts, end = [], len(_read_lead(line))
    for place in here:
        texts.append(line[end : place.start - at])
        end = place.end - at
    return bool(here) and not "".join([*texts, line[end:]]).strip()


def _fill_line(choice: _Choice, line: str, at: int, here: Sequence[Placeholder], later: list[str]) -> Iterator[str]:
    end = 0
    for place in here:
        yield line[end : place.start - at]
        yield choice.choose_inline(place, later)
        end = place.end - at
    yield line[end:]


def _read_lead(line: str) -> str:
    """Return the marks of quotes and list items that a line begins with, and its indentation."""
    match = _CONTAINER.match(line)
    return match[0] if match else ""


def _line_numbers(spans: Sequence[Span]) -> set[int]:
    return {number for start, end in spans for number in range(start, end)}
