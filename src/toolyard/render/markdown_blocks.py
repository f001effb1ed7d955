"""Attachments as Markdown: texts, formulas, tables, charts as tables, and links to media.

Text of an attachment is in a fence longer than any run of backticks in it. An image, audio or video becomes a link that
a viewer follows only on request; data in the reply itself becomes a line with its type and size. A table of more than
2,000 cells or 40 columns is shown as its source.
"""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from toolyard.protocol.json import Json
from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.replies.reply_values import Attachment, AttachmentType
from toolyard.render.formulas import make_readable
from toolyard.render.markdown_inert import escape_markdown

_TICKS = re.compile("`+")
_LANGUAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9+#._-]{0,39}")
_DELIMITERS = re.compile(r"\A\s*(?:\$\$(.*)\$\$|\$(.*)\$|\\\[(.*)\\\]|\\\((.*)\\\))\s*\Z", re.DOTALL)
_URL_SAFE = "/:?#@$&'*+,;=%~-._[]"
_MEDIA = frozenset({AttachmentType.IMAGE, AttachmentType.AUDIO, AttachmentType.VIDEO})
MAX_NAME = 200
_MAX_IN_LINE = 100  # of a formula that may be repeated in sentences
_MAX_CELLS = 2_000
_MAX_COLUMNS = 40
_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_PIPE = re.compile(r"(?<!\\)\|")
_DATA_URI = re.compile(r"data:([a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,60})?[^,]{0,200}?(;base64)?,", re.IGNORECASE)
_WEB = re.compile(r"https?://[^/?#\s]", re.IGNORECASE)


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


@dataclass(frozen=True, slots=True)
class Table:
    """Every row has as many cells as there are columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


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


@dataclass(frozen=True, slots=True)
class Media:
    """One of the three: a web address, data of ``size`` bytes, or a ``text`` that is neither."""

    url: str = ""
    mime: str = ""
    size: int = 0
    text: str = ""


def read_table(content: Json) -> Table | None:
    if isinstance(content, str):
        parsed = _parse_text(content)
        return _parse_table(content) if parsed is None else read_table(parsed)
    if isinstance(content, dict):
        rows = content.get("rows")
        columns = content.get("columns")
        return _make_table(columns if isinstance(columns, list) else [], rows) if isinstance(rows, list) else None
    return _make_table([], content) if isinstance(content, list) else None


def read_chart(content: Json) -> Table | None:
    """Return the numbers of a Chart.js configuration: a row for each label, a column for each dataset."""
    config = _parse_text(content) if isinstance(content, str) else content
    data = config.get("data") if isinstance(config, dict) else None
    labels = data.get("labels") if isinstance(data, dict) else None
    entries = data.get("datasets") if isinstance(data, dict) else None
    datasets = [item for item in entries if isinstance(item, dict)] if isinstance(entries, list) else []
    series: list[list[Json]] = [values for item in datasets if isinstance(values := item.get("data"), list)]
    if not series or len(series) != len(datasets):
        return None
    count = max(len(values) for values in series)
    names = labels if isinstance(labels, list) else list(range(1, count + 1))
    if max(count, len(names)) * (len(series) + 1) > _MAX_CELLS:
        return None
    rows: list[Json] = [
        [names[at] if at < len(names) else "", *(values[at] if at < len(values) else "" for values in series)]
        for at in range(max(count, len(names)))
    ]
    return _make_table(["", *(write_cell(item.get("label")) for item in datasets)], rows)


def read_media(content: Json) -> Media:
    text = content.strip() if isinstance(content, str) else write_cell(content)
    data = _DATA_URI.match(text)
    if data:
        body = len(text) - data.end()
        return Media(mime=(data[1] or "text/plain").lower(), size=body * 3 // 4 if data[2] else body)
    return Media(url=text) if _WEB.match(text) else Media(text=text)


def write_cell(value: Json) -> str:
    """Return a value as one line of a table."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())


def _make_table(columns: Sequence[Json], rows: list[Json]) -> Table | None:
    if not columns and rows and isinstance(rows[0], dict):
        columns = list(rows[0])
    width = max([len(columns), *(len(row) if isinstance(row, list) else 1 for row in rows)])
    if not 0 < width <= _MAX_COLUMNS or width * len(rows) > _MAX_CELLS:
        return None
    keys = [_column_name(column, ("key", "field", "name", "id", "title")) for column in columns]
    heads = [_column_name(column, ("title", "label", "name", "header", "key")) for column in columns]
    return Table(_pad_cells(heads, width), tuple(_pad_cells(list(_read_cells(row, keys)), width) for row in rows))


def _column_name(column: Json, names: Sequence[str]) -> str:
    return write_cell(
        next((column[name] for name in names if name in column), "") if isinstance(column, dict) else column
    )


def _read_cells(row: Json, keys: list[str]) -> Iterator[str]:
    if isinstance(row, dict):
        yield from (write_cell(row.get(key)) for key in keys)
    else:
        yield from map(write_cell, row if isinstance(row, list) else [row])


def _pad_cells(cells: Sequence[str], width: int) -> tuple[str, ...]:
    return (*cells, *[""] * (width - len(cells)))


def _parse_table(text: str) -> Table | None:
    lines = text.strip().splitlines(keepends=True)
    if not lines or len(lines) > _MAX_CELLS:
        return None
    if len(lines) > 1 and "|" in lines[0] and _RULE.fullmatch(lines[1].rstrip()):
        table = [_split_row(line) for line in (lines[0], *lines[2:]) if line.strip()]
    else:
        mark = max(",\t;|", key=lines[0].count)
        if mark not in lines[0]:
            return None
        try:
            table = [row for row in csv.reader(lines, delimiter=mark, skipinitialspace=True) if row]
        except csv.Error:
            return None
    return _make_table(table[0], [list[Json](row) for row in table[1:]]) if table else None


def _split_row(line: str) -> list[str]:
    body = line.strip().removeprefix("|")
    body = body[:-1] if body.endswith("|") and not body.endswith("\\|") else body
    return [part.strip().replace("\\|", "|") for part in _PIPE.split(body)]


def _parse_text(text: str) -> Json:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value
