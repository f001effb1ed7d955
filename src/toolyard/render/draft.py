"""Drawing of a model's text when it is not known beforehand whether it is a structured reply or plain Markdown.

A text is a structured reply when its first character, after blanks, a byte order mark and thinking in tags, is a ``{``,
or a fence with an object whose first key is one of a reply. Anything else is Markdown. Thinking in tags is removed from
Markdown where the tag begins a line outside code. Text that is still being written is shown as far as it is known,
without a note about missing parts. Linear time.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from toolyard.protocol.placeholders import remove_unfinished
from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.replies.reply_values import Attachment, Reply, ReplyError
from toolyard.protocol.reply import ReplyStream, parse_reply
from toolyard.render.html import markdown_to_html, to_html

_BLANK = "\ufeff \t\r\n"
_OPENING = r"<think(?:ing)?>"
_CLOSING = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_LEADING = re.compile(rf"[\ufeff\s]*{_OPENING}", re.IGNORECASE)
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*(?:json[5c]?)?[ \t]*\r?\n?", re.IGNORECASE)
_UNDECIDED = re.compile(r"`{1,3}|`{3,}(?:j|js|jso)", re.IGNORECASE)
_MARK = re.compile(rf"^[ ]{{0,3}}(?:(?P<fence>`{{3,}}|~{{3,}})|(?P<open>{_OPENING})|(?P<close></think(?:ing)?>))",
                   re.IGNORECASE | re.MULTILINE)  # fmt: skip
_CUT_OPENING = re.compile(r"^<[a-z]{0,8}\Z", re.IGNORECASE | re.MULTILINE)
_CUT_CLOSING = re.compile(r"<(?:/[a-z]{0,8})?\Z", re.IGNORECASE)
_ITEM = r"[ \t>]*(?:[-*+][ \t]+|\d{1,9}[.)][ \t]+)?"
_FENCE_LINE = re.compile(rf"^{_ITEM}(?:`{{3,}}|~{{3,}})", re.MULTILINE)
_CUT_FENCE = re.compile(rf"^(?P<item>{_ITEM})(?P<fence>`+|~+)(?P<named>[^\n`]*)\Z", re.MULTILINE)
_KEYS = ('{"content"', '{"think"', '{"attachments"')
_LOOKED_AT = 200  # characters after a fence


class Kind(StrEnum):
    REPLY = "reply"
    MARKDOWN = "markdown"


@dataclass(frozen=True, slots=True)
class Drawing:
    """``think`` is the thinking as text; ``html`` has it too unless it was to be left out."""

    kind: Kind
    html: str
    think: str = ""
    error: ReplyError | None = None


def draw(
    text: str, kind: Kind | None = None, language: Language = Language.ENGLISH, *, partial: bool = False
) -> Drawing:
    """Draw a text. ``kind`` None: detected, and the thinking is left out of the HTML, to be drawn separately."""
    apart = kind is None
    if (kind or detect_kind(text, partial=partial)) is Kind.REPLY:
        return _draw_reply(text, language, apart=apart, partial=partial)
    content, think = split_thinking(text, partial=partial)
    if partial:
        content = _cut_unknown_end(content)
    html = markdown_to_html(content, None if apart else think, language, partial=partial)
    return Drawing(Kind.MARKDOWN, html, think)


def detect_kind(text: str, *, partial: bool = False) -> Kind:
    rest = _skip_thinking(text)
    fence = _FENCE.match(rest)
    if partial and _UNDECIDED.fullmatch(rest):
        return Kind.REPLY
    if fence is None:
        return Kind.REPLY if rest.startswith("{") and not rest.startswith("{{") else Kind.MARKDOWN
    begun = re.sub(r"\s", "", rest[fence.end() : fence.end() + _LOOKED_AT]).lower().replace("'", '"')
    if partial and len(begun) < len(max(_KEYS, key=len)):
        return Kind.REPLY if any(key.startswith(begun) for key in _KEYS) else _find_key(begun)
    return _find_key(begun)


def split_thinking(text: str, *, partial: bool = False) -> tuple[str, str]:
    """Return Markdown without the text in think tags; and that text."""
    pieces: list[str] = []
    thoughts: list[str] = []
    text, at, fence, searched = text.removeprefix("\ufeff"), 0, "", 0
    while mark := _MARK.search(text, searched):
        searched = mark.end()
        if mark["fence"]:
            fence = _find_open_fence(fence, mark["fence"])
        elif fence:
            continue
        elif mark["open"]:
            pieces.append(text[at : mark.start()])
            end = _CLOSING.search(text, searched)
            thoughts.append(text[searched : end.start() if end else len(text)])
            at = searched = end.end() if end else len(text)
        elif not thoughts:  # the tag that opened it was part of the prompt: all before was thinking
            thoughts.append(text[at : mark.start()])
            at = searched
    pieces.append(text[at:])
    content, think = "".join(pieces), "\n\n".join(filter(None, (thought.strip() for thought in thoughts)))
    return (_CUT_OPENING.sub("", content), _CUT_CLOSING.sub("", think)) if partial else (content, think)


def _draw_reply(text: str, language: Language, *, apart: bool, partial: bool) -> Drawing:
    reply = parse_reply(text)
    writing = ""
    if partial and (isinstance(reply, ReplyError) or reply.is_truncated):
        reply, writing = _read_partial(text, {} if isinstance(reply, ReplyError) else reply.attachments)
    if isinstance(reply, ReplyError):
        return Drawing(Kind.REPLY, to_html(reply, language), error=reply)
    visible = reply._replace(think=None) if apart else reply
    return Drawing(Kind.REPLY, to_html(visible, language, partial=partial, writing=writing), reply.think or "")


def _read_partial(text: str, read: Mapping[str, Attachment]) -> tuple[Reply, str]:
    """Return the reply so far, and the id of the attachment that may be incomplete. Attachments that are no text (a
    chart, a table) are unknown to the stream: they come from ``read``, the attachments of the complete parse."""
    stream = ReplyStream()
    stream.feed(text)
    so_far = stream.so_far
    attachments = {
        id_: read[id_] if id_ in read and not isinstance(read[id_].content, str) else one
        for id_, one in so_far.attachments.items()
    }
    reply = so_far._replace(content=_cut_unknown_end(so_far.content), attachments=attachments, repairs=())
    return reply, next(reversed([*attachments]), "")


def _cut_unknown_end(content: str) -> str:
    """Return ``content`` without a placeholder, or the first line of a fence, that is not complete yet."""
    content = remove_unfinished(content)
    cut = _CUT_FENCE.search(content, content.rfind("\n") + 1)
    if cut is None or (len(cut["fence"]) < 3 and cut["named"]):
        return content
    begins = bool(cut["named"]) or len(_FENCE_LINE.findall(content, 0, cut.start())) % 2 == 0
    return content[: cut.start("fence")] if begins or len(cut["fence"]) < 3 else content


def _skip_thinking(text: str) -> str:
    at = 0
    while opening := _LEADING.match(text, at):
        end = _CLOSING.search(text, opening.end())
        if end is None:
            return ""
        at = end.end()
    return text[at:].lstrip(_BLANK)


def _find_key(begun: str) -> Kind:
    return Kind.REPLY if begun.startswith(_KEYS) else Kind.MARKDOWN


def _find_open_fence(fence: str, mark: str) -> str:
    """Return the fence that is open after ``mark``."""
    if not fence:
        return mark
    return "" if mark[0] == fence[0] and len(mark) >= len(fence) else fence
