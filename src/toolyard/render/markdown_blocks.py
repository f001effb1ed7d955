"""Attachments as Markdown.

Text of an attachment is in a fence longer than any run of backticks in it. An image, audio or video becomes a link that
a viewer follows only on request; data in the reply itself becomes a line with its type and size.
"""

import json
import re
from dataclasses import dataclass
from urllib.parse import quote

from toolyard.protocol.json import Json
from toolyard.protocol.replies.prompt import Language
from toolyard.protocol.reply import Attachment, AttachmentType
from toolyard.render.markdown_data import Table, read_chart, read_media, read_table
from toolyard.render.markdown_inert import escape_markdown
from toolyard.render.terminal_formula import make_readable

_TICKS = re.compile("`+")
_LANGUAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9+#._-]{0,39}")
_DELIMITERS = re.compile(r"\A\s*(?:\$\$(.*)\$\$|\$(.*)\$|\\\[(.*)\\\]|\\\((.*)\\\))\s*\Z", re.DOTALL)
_URL_SAFE = "/:?#@$&'*+,;=%~-._[]"
_MEDIA = frozenset({AttachmentType.IMAGE, AttachmentType.AUDIO, AttachmentType.VIDEO})
MAX_NAME = 200
_MAX_IN_LINE = 100  # of a formula that may be repeated in sentences


@dataclass(frozen=True, slots=True)
class Words:
    image: str
    audio: str
    video: str
    unknown: str
    embedded: str
    no_link: str


_WORDS = {
    Language.ENGLISH: Words("Image", "Audio", "Video", "type {} is not known", "{}, {} bytes, in the reply", "no link"),
    Language.CHINESE: Words("图片", "音频", "视频", "未知类型 {}", "{}，{} 字节，内嵌数据", "不是链接"),
}


@dataclass(frozen=True, slots=True)
class Style:
    """``is_for_terminal``: formulas in fences, and no source below a chart that is a table."""

    language: Language
    is_for_terminal: bool = False

    @property
    def words(self) -> Words:
        return _WORDS[self.language]


def write_fence(text: str, language: str = "") -> str:
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    body = text if not text or text.endswith("\n") else text + "\n"
    return f"{ticks}{language}\n{body}{ticks}"


def write_code_span(text: str) -> str:
    text = " ".join(text.split())
    ticks = "`" * (1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    return f"{ticks} {text} {ticks}" if "`" in text else f"{ticks}{text or ' '}{ticks}"


def attachment_name(attachment: Attachment) -> str:
    name = (attachment.title or "").strip() or attachment.id.strip() or attachment.type
    return f"**{escape_markdown(name[:MAX_NAME])}**"


def write_block(attachment: Attachment, style: Style) -> str:
    """Return the attachment on lines of its own, with its title."""
    in_line = write_inline(attachment, style) if attachment.kind in _MEDIA else None
    if in_line is not None:
        return in_line
    title = f"{attachment_name(attachment)}\n\n" if attachment.title and attachment.title.strip() else ""
    return title + _write_body(attachment, style)


def write_inline(attachment: Attachment, style: Style) -> str | None:
    """Return the attachment inside a sentence, or None for one that needs lines of its own."""
    if attachment.kind in _MEDIA:
        return _write_media(attachment, style)
    formula = strip_formula(attachment.content)
    simple = len(formula) <= _MAX_IN_LINE and not re.search(r"[$`<\n]", formula)
    if attachment.kind is AttachmentType.LATEX and simple and formula:
        return escape_markdown(make_readable(formula)) if style.is_for_terminal else f"${formula}$"
    return None


def strip_formula(content: Json) -> str:
    """Return TeX without the delimiters around it."""
    text = _content_text(content)
    match = _DELIMITERS.match(text)
    return (next((inner for inner in match.groups() if inner is not None), "") if match else text).strip()


def _write_body(attachment: Attachment, style: Style) -> str:
    content = attachment.content
    match attachment.kind:
        case AttachmentType.MERMAID:
            return write_fence(_content_text(content), "mermaid")
        case AttachmentType.CODE:
            return write_fence(_content_text(content), _clean_language(attachment.language))
        case AttachmentType.LATEX:
            return _write_formula(strip_formula(content), style)
        case AttachmentType.TABLE:
            table = read_table(content)
            return _write_table(table) if table else _write_source(content)
        case AttachmentType.CHART:
            numbers = read_chart(content)
            parts = [
                *([_write_table(numbers)] if numbers else []),
                *([] if numbers and style.is_for_terminal else [""]),
            ]
            return "\n\n".join(part or _write_source(content) for part in parts)
        case _:
            warning = style.words.unknown.format(escape_markdown(attachment.type))
            return f"⚠️ {warning}\n\n{write_fence(_content_text(content))}"


def _write_media(attachment: Attachment, style: Style) -> str:
    words = style.words
    kinds = {AttachmentType.IMAGE: words.image, AttachmentType.AUDIO: words.audio, AttachmentType.VIDEO: words.video}
    kind = kinds[AttachmentType(attachment.type)]
    media, title = read_media(attachment.content), escape_markdown(attachment.title or "")
    if media.url:
        return f"{kind}: [{title or escape_markdown(media.url)}]({quote(media.url, safe=_URL_SAFE)})"
    name = title or escape_markdown(attachment.id)
    if media.mime:
        return f"{kind}: {name} ({words.embedded.format(escape_markdown(media.mime), media.size)})"
    return f"{kind}: {name} ({words.no_link}: {write_code_span(media.text[:MAX_NAME])})"


def _write_formula(formula: str, style: Style) -> str:
    is_plain = formula and not re.search(r"\$|`|<|\n\s*\n|^\s*(?:[-+*>#=]|\d+[.)])", formula, re.MULTILINE)
    if style.is_for_terminal or not is_plain:
        return write_fence(formula, "latex")
    return f"$$\n{formula}\n$$"


def _write_table(table: Table) -> str:
    rows = [table.columns, ("---",) * len(table.columns)]
    lines = [f"| {' | '.join(map(escape_markdown, rows[0]))} |", f"| {' | '.join(rows[1])} |"]
    return "\n".join([*lines, *(f"| {' | '.join(map(escape_markdown, row))} |" for row in table.rows)])


def _write_source(content: Json) -> str:
    is_json = not isinstance(content, str) or content.lstrip().startswith(("{", "["))
    return write_fence(_content_text(content), "json" if is_json else "")


def _clean_language(name: str | None) -> str:
    word = (name or "").strip()
    return word if _LANGUAGE.fullmatch(word) else ""


def _content_text(content: Json) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2)
