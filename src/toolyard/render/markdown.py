"""A structured reply as one Markdown document that any viewer can show and none will act upon.

The thinking comes first, quoted; then the content with its attachments; then the rest: attachments that no placeholder
showed, and the problems of the reply. A placeholder on a line of its own becomes its attachment there;
one in a sentence becomes a name, and the attachment follows the paragraph, list or table. An attachment is written out
once and named after that. Placeholders are filled in one pass, and inserted text is never scanned again: placeholders
inside code, and inside attachments, are ordinary text. No line without placeholders is touched. A content of more than
256 KiB is shown as its source.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from toolyard.protocol.json import Json
from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.replies.attachment_placeholders import Placeholder, find_placeholders
from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.replies.reply_values import TYPES, Attachment, ProblemCode, Reply, ReplyError
from toolyard.render.markdown_blocks import (
    MAX_NAME,
    Style,
    attachment_name,
    write_block,
    write_code_span,
    write_fence,
    write_inline,
)
from toolyard.render.markdown_inert import Span, escape_markdown, make_inert, make_visible, read_layout
from toolyard.render.problem import build_failure_texts, write_problem

_MAX_PARSED = 256 * 1024
_MAX_NOTES = 100
_SHOWN_IN_PLACE = frozenset(
    {
        ProblemCode.MISSING_ATTACHMENT,
        ProblemCode.MISMATCHED_TYPE,
        ProblemCode.UNUSED_ATTACHMENT,
        ProblemCode.MISSING_LANGUAGE,
    }
)
_CONTAINER = compile_pattern(r"(?:[ \t]{0,20}(?:>|[-*+](?=[ \t])|[0-9]{1,9}[.)](?=[ \t])))*+[ \t]*")
_MARKER = re.compile(r"[^>\s]")
_FAULT_WORDS = {  # a placeholder without attachment, and one with another
    Language.ENGLISH: ("there is no such attachment", "the attachment is of the type {}"),
    Language.CHINESE: ("找不到该附件", "附件的类型是 {}"),
}


@dataclass(frozen=True, slots=True)
class _Words:
    think: str
    unused: str
    truncated: str


_WORDS = {
    Language.ENGLISH: _Words(
        "Thinking",
        "Attachments that the text does not use",
        "The reply is incomplete: it ended too soon.",
    ),
    Language.CHINESE: _Words("思考过程", "正文未引用的附件", "回复不完整：内容被截断。"),
}


def to_markdown(reply: Reply | ReplyError, language: Language = Language.ENGLISH) -> str:
    if isinstance(reply, ReplyError):
        return _write_failure(reply, language)
    reply = make_reply_visible(reply)
    think = f"**{_WORDS[language].think}**\n\n{reply.think}" if reply.think and reply.think.strip() else ""
    return make_inert("\n\n".join(filter(None, [_quote_lines(think), _write_document(reply, Style(language))]))) + "\n"


def write_body(reply: Reply, language: Language) -> str:
    """Return all but the thinking, of a reply that went through ``make_reply_visible``, for a terminal."""
    return make_inert(_write_document(reply, Style(language, is_for_terminal=True)))


def make_reply_visible(reply: Reply) -> Reply:
    """Return the reply with every character visible, in ids, titles and data as well."""
    items = [
        Attachment(
            make_visible(id_),
            make_visible(item.type),
            _make_value_visible(item.content),
            *(map(_make_text_visible, (item.language, item.title))),
        )
        for id_, item in reply.attachments.items()
    ]
    problems = tuple(
        replace(problem, message=make_visible(problem.message), id=_make_text_visible(problem.id))
        for problem in reply.problems
    )
    attachments = {item.id: item for item in items}
    return Reply(make_visible(reply.content), _make_text_visible(reply.think), attachments, problems, reply.repairs)


def _make_text_visible(text: str | None) -> str | None:
    return None if text is None else make_visible(text)


def _make_value_visible(value: Json) -> Json:
    if isinstance(value, str):
        return make_visible(value)
    if isinstance(value, list):
        return [_make_value_visible(item) for item in value]
    return (
        {make_visible(key): _make_value_visible(item) for key, item in value.items()}
        if isinstance(value, dict)
        else value
    )


def _write_failure(error: ReplyError, language: Language) -> str:
    texts = build_failure_texts(error, language)
    lines = [escape_markdown(make_visible(line)) for line in (texts.title, texts.error, texts.raw_label)]
    return "\n\n".join([*lines, write_fence(make_visible(texts.raw))]) + "\n"


def _quote_lines(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().split("\n")) if text else ""


def _write_document(reply: Reply, style: Style) -> str:
    words = _WORDS[style.language]
    is_large = len(reply.content) > _MAX_PARSED
    content, written = (write_fence(reply.content), frozenset[str]()) if is_large else fill_placeholders(reply, style)
    parts = [content]
    if reply.is_truncated:
        parts.append(f"⚠️ {words.truncated}")
    unused = [item for item in reply.attachments.values() if item.id not in written]
    if unused:
        parts.append(f"⚠️ {words.unused}:")
    for item in unused:
        heading = [] if item.title else [attachment_name(item)]
        parts += [*heading, write_block(item, style)]
    return "\n\n".join([*parts, *_write_notes(reply, style.language)])


def _write_notes(reply: Reply, language: Language) -> list[str]:
    """Return the problems that do not show in their place."""
    problems = [problem for problem in reply.problems if problem.code not in _SHOWN_IN_PLACE]
    unknown = {item.id for item in reply.attachments.values() if item.kind is None}
    listed = [one for one in problems if one.code is not ProblemCode.UNKNOWN_TYPE or one.id not in unknown]
    notes = [write_problem(one, language) for one in listed]
    more = [f"… (+{len(notes) - _MAX_NOTES})"] if len(notes) > _MAX_NOTES else []
    return [*(f"⚠️ {escape_markdown(note)}" for note in notes[:_MAX_NOTES]), *more]


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
        missing, mismatched = _FAULT_WORDS[self.style.language]
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
