"""The pages of the documentation that come with Toolyard, as HTML without scripts, so that help works offline.

Headings have the anchors that links in the pages expect, and so has each row of a table that begins with a name, such
as that of a setting. The headings of a translation have those of the original too, so that a link needs no translation.
"""

import html
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolyard.shipped_files import find_shipped_folder

if TYPE_CHECKING:
    from markdown_it.token import Token

_INDEX: Final = "README"
_CHINESE: Final = ".zh-CN"
_PAGE: Final = re.compile(r"(?P<path>[\w./-]+)\.md(?P<anchor>#.*)?")


@dataclass(frozen=True, slots=True)
class DocPage:
    title: str
    body: str  # HTML
    language: str


@lru_cache(maxsize=64)
def render_doc_page(topic: str, base: str, *, chinese: bool = False) -> DocPage | None:
    """Return a page by its path without the ending; None when there is none. ``base``: where the server's ``/`` is.

    ``chinese``: its translation, if it has one. Reads files.
    """
    folder = find_shipped_folder("docs")
    files = (
        {file.relative_to(folder).with_suffix("").as_posix(): file for file in folder.rglob("*.md")} if folder else {}
    )
    topic = topic or _INDEX
    found = next((name for name in (f"{topic}{_CHINESE}" if chinese else topic, topic) if name in files), None)
    return _render(files, found, base) if found else None


def _render(files: Mapping[str, Path], topic: str, base: str) -> DocPage:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("js-default", {"html": False})
    tokens = parser.parse(files[topic].read_text("utf-8"))
    titles = _name_headings(tokens)
    if topic.endswith(_CHINESE):
        original = parser.parse(files[topic.removesuffix(_CHINESE)].read_text("utf-8"))
        _name_headings(original)
        _add_anchors(tokens, original)
    for at, token in enumerate(tokens):
        if token.type == "tr_open" and (name := _read_row_name(tokens, at)):
            token.attrSet("id", name)
    for token in _walk(tokens):
        if token.type == "link_open":
            token.attrSet("href", _find_target(str(token.attrGet("href") or ""), topic, files, base))
        elif token.type == "image":  # pictures are not part of an installation
            token.type = "text"
    body = str(parser.renderer.render(tokens, parser.options, {}))
    return DocPage(titles[0] if titles else topic, body, "zh-CN" if topic.endswith(_CHINESE) else "en")


def _walk(tokens: list["Token"]) -> Iterator["Token"]:
    for token in tokens:
        yield token
        yield from token.children or ()


def _name_headings(tokens: list["Token"]) -> list[str]:
    """Set the anchor of each heading, as GitHub makes it, and return their texts."""
    titles = []
    for heading, text in pairwise(tokens):
        if heading.type == "heading_open":
            title = "".join(one.content for one in text.children or ())
            heading.attrSet("id", re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-"))
            titles.append(title)
    return titles


def _add_anchors(tokens: list["Token"], original: list["Token"]) -> None:
    """Give each heading the anchor of the heading in its place in the original, in addition to its own."""
    from markdown_it.token import Token

    there = [token for token in original if token.type == "heading_open"]
    here = [(heading, text) for heading, text in pairwise(tokens) if heading.type == "heading_open"]
    for (heading, text), other in zip(here, there, strict=False):
        anchor = str(other.attrGet("id"))
        if text.children is not None and anchor != heading.attrGet("id"):
            text.children.insert(0, Token("html_inline", "", 0, content=f'<span id="{html.escape(anchor)}"></span>'))


def _read_row_name(tokens: list["Token"], at: int) -> str:
    """Return the name that a row of a table begins with; empty when it begins with something else."""
    first = next((one for one in tokens[at:] if one.type == "inline"), None)
    code = first.children[0] if first and first.children and first.children[0].type == "code_inline" else None
    return code.content if code and re.fullmatch(r"\w+", code.content) else ""


def _find_target(href: str, topic: str, topics: Container[str], base: str) -> str:
    """Return the address of a link: of another page here, of an anchor, or of somewhere else."""
    if href.startswith(("#", "http://", "https://")):
        return href
    match = _PAGE.fullmatch(href)
    if match is None:
        return f"{base}docs/{_INDEX}"
    parts: list[str] = topic.split("/")[:-1]
    for part in match["path"].split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    place = "/".join(parts)
    return f"{base}docs/{html.escape(place if place in topics else _INDEX)}{match['anchor'] or ''}"
