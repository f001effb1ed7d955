"""Inert Markdown, which only displays, and text in which every character is visible.

``make_inert`` changes a document as little as it can: outside code a tag becomes text, a picture becomes a link to it,
and a link that leads elsewhere than http, https, mailto or the document itself becomes text. It holds for every viewer
that follows CommonMark or GFM, with or without HTML: code is found with a parser, and where viewers may differ
(indented code, tables, deep nesting) nothing is treated as code. Linear time.
"""

import html
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_MAX_PASSES = 4
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
                      r"|[\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]")  # fmt: skip
_ACTIVE = re.compile(r"\\[\s\S]|`+|<(?=[A-Za-z/!?])|!++|\](?=[(:])|&#?[0-9A-Za-z]{1,40};")
_AUTOLINK = re.compile(r"<(?:https?://|mailto:)[^\s<>`\"']{1,2000}+>", re.IGNORECASE)
_PICTURE = re.compile(r"!\[([^\[\]`<!\\]{0,500}+)(?=\]\()")
_SHORT_CODE = re.compile(r"(?<!`)`([^`|\n]{1,500}+)`(?!`)")
_LINE_WITH_TAG = re.compile(r"(\n[ \t>]*+)<")  # a block of HTML, even in the middle of code between backticks
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):")
_SAFE_SCHEMES = frozenset({"http", "https", "mailto"})
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~$&!])")


Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Layout:
    """Line ranges of a document: fences, indented code, each paragraph of text, and the outermost blocks."""

    fences: tuple[Span, ...]
    indented: tuple[Span, ...]
    texts: tuple[Span, ...]
    blocks: tuple[Span, ...]


def make_visible(text: str) -> str:
    """Return ``text`` with only LF line endings, and each control or direction character by its name or sign."""
    return _CONTROL.sub(_name_character, text.replace("\r\n", "\n").replace("\r", "\n"))


def escape_markdown(text: str) -> str:
    """Return ``text`` as one line of Markdown that displays as itself."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def make_inert(document: str) -> str:
    for _ in range(_MAX_PASSES):
        layout = read_layout(document)
        once = _make_inert_once(document, layout)
        if once == document:
            return document
        document = once
    return _guard_text(document, is_code_known=False)  # a document whose layout changes with every pass is all text


def read_layout(document: str) -> Layout:
    spans: dict[str, list[Span]] = {"fence": [], "code_block": [], "inline": []}
    blocks: list[Span] = []
    tables = 0
    for token in _make_parser().parse(document):
        tables += {"table_open": 1, "table_close": -1}.get(token.type, 0)
        if token.map is None:
            continue
        span = (token.map[0], token.map[1])
        if token.type in spans and not tables:
            spans[token.type].append(span)
        if token.level == 0:
            blocks.append(span)
    return Layout(tuple(spans["fence"]), tuple(spans["code_block"]), tuple(spans["inline"]), tuple(blocks))


@cache
def _make_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])  # inline syntax is handled here
    return parser


def _make_inert_once(document: str, layout: Layout) -> str:
    lines = document.split("\n")
    pieces: list[str] = []
    at = 0
    for start, end, is_text in _list_regions(layout):
        pieces += [_guard_text("\n".join(lines[at:start]), is_code_known=False)] if start > at else []
        region = "\n".join(lines[start:end])
        pieces += [_guard_text(region, is_code_known=True) if is_text else region] if end > start else []
        at = max(at, end)
    return "\n".join([*pieces, *([_guard_text("\n".join(lines[at:]), is_code_known=False)] if at < len(lines) else [])])


def _list_regions(layout: Layout) -> Iterator[tuple[int, int, bool]]:
    """Yield code and running text in order; nothing twice."""
    last = 0
    spans = [(*span, False) for span in layout.fences] + [(*span, True) for span in layout.texts]
    for start, end, is_text in sorted(spans):
        if start >= last:
            yield start, end, is_text
            last = end


def _guard_text(text: str, *, is_code_known: bool) -> str:
    """Return ``text`` without anything active; when it is one paragraph, code in it stays as it is."""
    if not is_code_known:
        text = _SHORT_CODE.sub(lambda match: escape_markdown(match[1]) if "<" in match[1] else match[0], text)
    ticks = _find_backticks(text) if is_code_known else {}
    pieces: list[str] = []
    at = 0
    while match := _ACTIVE.search(text, at):
        pieces.append(text[at : match.start()])
        sign, at = match[0], match.end()
        if sign[0] == "`":
            end = _find_closing(ticks, match) if is_code_known else None
            at = end or at
            pieces.append(_LINE_WITH_TAG.sub(r"\1&lt;", text[match.start() : at]))
        elif sign == "<" and (link := _AUTOLINK.match(text, match.start())):
            pieces.append(link[0])
            at = link.end()
        elif sign[0] == "!" and not text.startswith("[", at):
            pieces.append(sign)
        elif sign == "!" and (picture := _PICTURE.match(text, match.start())):
            pieces.append("[" + (picture[1] if picture[1].strip() else "image"))
            at = picture.end()
        else:
            pieces.append(_make_harmless(text, match))
    return "".join([*pieces, text[at:]])


def _make_harmless(text: str, match: re.Match[str]) -> str:
    sign = match[0]
    if sign in {"<", "\\<"}:
        return "&lt;"
    if sign[0] == "&":
        return "&amp;" + sign[1:] if _CONTROL.search(html.unescape(sign)) else sign
    if sign[0] == "!":
        return sign[:-1] + "\\!"
    if sign == "]" and _leads_elsewhere(text[match.end() + 1 : match.end() + 300]):
        return "]\\"
    return sign


def _leads_elsewhere(destination: str) -> bool:
    word = destination.lstrip(" \t\n><").split(maxsplit=1)[:1]
    plain = html.unescape("".join(word)).replace("\\", "")
    scheme = _SCHEME.match("".join(char for char in plain if char > " ").lower())
    return scheme is not None and scheme[1] not in _SAFE_SCHEMES


def _find_backticks(text: str) -> dict[int, list[int]]:
    """Return the starts of the runs of backticks, by their length."""
    runs: dict[int, list[int]] = {}
    for match in re.finditer("`+", text):
        runs.setdefault(len(match[0]), []).append(match.start())
    return runs


def _find_closing(ticks: dict[int, list[int]], opening: re.Match[str]) -> int | None:
    """Return the end of the code that these backticks begin."""
    length = len(opening[0])
    same = ticks.get(length, [])
    number = bisect_left(same, opening.end())
    return same[number] + length if number < len(same) else None


def _name_character(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"⟨U+{code:04X}⟩"
