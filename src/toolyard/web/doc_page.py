"""The pages of the documentation that come with Toolyard, as HTML without scripts, so that help works offline.

Headings have the anchors that links in the pages expect, and so has each row of a table that begins with a name, such
as that of a setting.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
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
    return _render(files[found], found, frozenset(files), base) if found else None


def _render(file: Path, topic: str, topics: frozenset[str], base: str) -> DocPage:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("js-default", {"html": False})
    tokens = parser.parse(file.read_text("utf-8"))
    titles = [_name_heading(tokens, at) for at, token in enumerate(tokens) if token.type == "heading_open"]
    for at, token in enumerate(tokens):
        if token.type == "tr_open" and (name := _read_row_name(tokens, at)):
            token.attrSet("id", name)
    for token in _walk(tokens):
        if token.type == "link_open":
            token.attrSet("href", _find_target(str(token.attrGet("href") or ""), topic, topics, base))
        elif token.type == "image":  # pictures are not part of an installation
            token.type = "text"
    body = str(parser.renderer.render(tokens, parser.options, {}))
    return DocPage(titles[0] if titles else topic, body, "zh-CN" if topic.endswith(_CHINESE) else "en")


def _walk(tokens: list["Token"]) -> Iterator["Token"]:
    for token in tokens:
        yield token
        yield from token.children or ()


def _name_heading(tokens: list["Token"], at: int) -> str:
    """Set the anchor of a heading, as GitHub makes it, and return its text."""
    title = "".join(one.content for one in tokens[at + 1].children or ())
    tokens[at].attrSet("id", re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-"))
    return title


def _read_row_name(tokens: list["Token"], at: int) -> str:
    """Return the name that a row of a table begins with; empty when it begins with something else."""
    first = next((one for one in tokens[at:] if one.type == "inline"), None)
    code = first.children[0] if first and first.children and first.children[0].type == "code_inline" else None
    return code.content if code and re.fullmatch(r"\w+", code.content) else ""


def _find_target(href: str, topic: str, topics: frozenset[str], base: str) -> str:
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
