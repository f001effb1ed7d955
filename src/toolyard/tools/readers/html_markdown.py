"""An HTML page as Markdown: its title, its text with headings, lists, tables, code and absolute links.

Scripts, styles, hidden elements and navigation are left out. Tags that are never closed, or closed in another order, do
no harm: as in browsers, the text is there. Elements deeper than ``MAX_DEPTH`` become part of the one around them.

No library does this as well. On 20,000 open ``<div>``, markdownify 1.2 ends with RecursionError and html-to-markdown
3.19 (21 MB, compiled) returns nothing; html2text 2025.4 makes 4 MB of 2,000 nested lists. None can be stopped at a
checkpoint.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin

from toolyard.protocol.tool import Checkpoint

MAX_DEPTH: Final = 100
_PIECE = 64 * 1024  # characters between two checkpoints
_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "param", "source", "track",
     "wbr"]
)  # fmt: skip
_LEFT_OUT = frozenset(
    ["script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "nav", "select", "button",
     "datalist", "head"]
)  # fmt: skip
_BLOCKS = frozenset(
    ["address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "div", "dl", "dt",
     "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html",
     "li", "main", "ol", "p", "pre", "section", "summary", "table", "ul"]
)  # fmt: skip
_CLOSES = {  # the start of one ends an open one of these, up to the element around it
    "li": (frozenset(["li"]), frozenset(["ul", "ol"])),
    "dt": (frozenset(["dt", "dd"]), frozenset(["dl"])),
    "dd": (frozenset(["dt", "dd"]), frozenset(["dl"])),
    "tr": (frozenset(["tr", "td", "th"]), frozenset(["table"])),
    "td": (frozenset(["td", "th"]), frozenset(["tr", "table"])),
    "th": (frozenset(["td", "th"]), frozenset(["tr", "table"])),
}
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}
_SPACE = re.compile(r"\s+")
_BLANK_LINES = re.compile(r"\n{3,}")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight-source)-([\w+#.-]+)")


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    title: str
    markdown: str


def convert_page(html: str, url: str, checkpoint: Checkpoint) -> MarkdownPage:
    """Convert a page that was fetched from ``url``."""
    tree = _TreeBuilder()
    for start in range(0, len(html), _PIECE):
        checkpoint()
        tree.feed(html[start : start + _PIECE])
    tree.close()
    checkpoint()
    markdown = "\n\n".join(_Writer(tree.base or url).write_blocks(tree.root))
    return MarkdownPage(_squeeze(tree.title), _BLANK_LINES.sub("\n\n", markdown).strip())


@dataclass(slots=True)
class _Element:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: "list[_Element | str]" = field(default_factory=list)

    @property
    def is_left_out(self) -> bool:
        return self.tag in _LEFT_OUT or "hidden" in self.attributes


class _TreeBuilder(HTMLParser):
    """Builds the elements of a page, however its tags are closed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = _Element("")
        self.title = self.base = ""
        self._open = [self.root]
        self._names: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "base" and not self.base and attributes.get("href", "").startswith(("http://", "https://")):
            self.base = attributes["href"]
        if tag in _BLOCKS and self._open[-1].tag == "p":
            self.handle_endtag("p")
        if tag in _CLOSES:
            self._close_siblings(*_CLOSES[tag])
        if tag == "body" and self._names["head"]:
            self.handle_endtag("head")
        element = _Element(tag, attributes)
        if len(self._open) > MAX_DEPTH:
            return
        self._open[-1].children.append(element)
        if tag not in _VOID:
            self._open.append(element)
            self._names[tag] += 1

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)  # in HTML the slash closes nothing

    def handle_endtag(self, tag: str) -> None:
        if self._names[tag]:
            while self._pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._open[-1].tag == "title" and self._names["title"] == 1 and not self._names["svg"]:
            self.title += data
        else:
            self._open[-1].children.append(data)

    def _close_siblings(self, siblings: frozenset[str], around: frozenset[str]) -> None:
        inner = next((one.tag for one in reversed(self._open) if one.tag in siblings or one.tag in around), "")
        if inner in siblings:
            self.handle_endtag(inner)
            self._close_siblings(siblings, around)

    def _pop(self) -> str:
        tag = self._open.pop().tag
        self._names[tag] -= 1
        return tag


class _Writer:
    """Writes elements as Markdown."""

    def __init__(self, base: str) -> None:
        self._base = base

    def write_blocks(self, element: _Element) -> list[str]:
        """Return the paragraphs, lists and other blocks inside an element."""
        blocks: list[str] = []
        inline: list[str] = []

        def end_paragraph() -> None:
            text = _tidy("".join(inline))
            inline.clear()
            if text:
                blocks.append(text)

        for child in element.children:
            if isinstance(child, str):
                inline.append(_SPACE.sub(" ", child))
            elif child.is_left_out:
                continue
            elif child.tag in _BLOCKS or self._has_blocks(child):
                end_paragraph()
                blocks.extend(self._write_block(child))
            else:
                inline.append(self._write_inline(child))
        end_paragraph()
        return blocks

    def _has_blocks(self, element: _Element) -> bool:
        return element.tag not in ("pre", "table") and any(
            isinstance(child, _Element) and (child.tag in _BLOCKS or self._has_blocks(child))
            for child in element.children
        )

    def _write_block(self, element: _Element) -> Iterator[str]:
        match element.tag:
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                text = _squeeze(" ".join(self.write_blocks(element)))
                if text:
                    yield f"{'#' * int(element.tag[1])} {text}"
            case "hr":
                yield "---"
            case "pre":
                yield _write_code_block(element)
            case "blockquote":
                quoted = "\n\n".join(self.write_blocks(element))
                if quoted:
                    yield "\n".join(f"> {line}".rstrip() for line in quoted.split("\n"))
            case "ul" | "ol":
                items = "\n".join(self._write_items(element))
                if items:
                    yield items
            case "table":
                yield from self._write_table(element)
            case "a":
                text = _squeeze(" ".join(block.lstrip("# ") for block in self.write_blocks(element)))
                yield from filter(None, [self._write_link(element, text)])
            case _:
                yield from self.write_blocks(element)

    def _write_items(self, listing: _Element) -> Iterator[str]:
        number = int(listing.attributes["start"]) if listing.attributes.get("start", "").isdecimal() else 1
        for child in listing.children:
            if isinstance(child, str) or child.is_left_out:
                continue
            marker = f"{number}. " if listing.tag == "ol" else "- "
            blocks = self.write_blocks(child) if child.tag == "li" else list(self._write_block(child))
            if blocks:
                number += 1
                text = "\n".join(blocks)  # items stay together, as most lists have one line each
                yield marker + text.replace("\n", "\n" + " " * len(marker))

    def _write_table(self, table: _Element) -> Iterator[str]:
        rows = [[self._write_cell(cell) for cell in cells] for cells in _list_rows(table)]
        rows = [row for row in rows if any(row)]
        width = max(map(len, rows), default=0)
        if width == 0:
            return
        if width == 1:  # a table for the layout
            yield from (row[0] for row in rows if row[0])
            return
        lines = ["| " + " | ".join(row + [""] * (width - len(row))) + " |" for row in rows]
        yield "\n".join([lines[0], "|" + "---|" * width, *lines[1:]])

    def _write_cell(self, cell: _Element) -> str:
        return _squeeze(" ".join(self.write_blocks(cell))).replace("|", "\\|")

    def _write_inline(self, element: _Element) -> str:
        if element.is_left_out:
            return ""
        match element.tag:
            case "br":
                return "\n"
            case "img":
                return self._write_image(element)
            case "code" | "kbd" | "samp" | "tt":
                text = _squeeze(_text_of(element))
                fence = _fence(text, "`")
                return f"{fence}{text}{fence}" if text else ""
            case "input" | "textarea":
                return ""
        text = "".join(
            _SPACE.sub(" ", child) if isinstance(child, str) else self._write_inline(child)
            for child in element.children
        )
        if element.tag == "a":
            return self._write_link(element, text)
        mark = _MARKS.get(element.tag, "")
        inner = text.strip()
        if not mark or not inner:
            return text
        before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        return f"{before}{mark}{inner}{mark}{after}"

    def _write_link(self, element: _Element, text: str) -> str:
        target = self._resolve(element.attributes.get("href", ""))
        inner = _squeeze(text)
        if not inner or not target:
            return text
        return f"[{inner}]({target})"

    def _write_image(self, element: _Element) -> str:
        target = self._resolve(element.attributes.get("src", ""))
        text = _squeeze(element.attributes.get("alt", ""))
        return f"![{text}]({target})" if target and text else ""

    def _resolve(self, target: str) -> str:
        """Return an absolute link; empty for one that leads nowhere outside the page."""
        target = target.strip()
        if not target or target.startswith("#"):
            return ""
        try:
            whole = urljoin(self._base, target)
        except ValueError:
            return ""
        if not whole.startswith(("http://", "https://", "mailto:")):
            return ""
        return whole.replace(" ", "%20").replace("(", "%28").replace(")", "%29")


def _list_rows(element: _Element) -> Iterator[list[_Element]]:
    for child in element.children:
        if isinstance(child, str) or child.is_left_out:
            continue
        if child.tag == "tr":
            yield [
                cell
                for cell in child.children
                if isinstance(cell, _Element) and cell.tag in ("td", "th") and not cell.is_left_out
            ]
        elif child.tag == "caption":
            yield [child]
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from _list_rows(child)


def _write_code_block(element: _Element) -> str:
    inner = [child for child in element.children if isinstance(child, _Element)]
    classes = [element.attributes.get("class", ""), *(child.attributes.get("class", "") for child in inner[:1])]
    language = next((found[1] for text in classes if (found := _LANGUAGE.search(text))), "")
    text = _text_of(element).strip("\n")
    fence = _fence(text, "```")
    return f"{fence}{language}\n{text}\n{fence}"


def _text_of(element: _Element) -> str:
    return "".join(
        child if isinstance(child, str) else "\n" if child.tag == "br" else "" if child.is_left_out else _text_of(child)
        for child in element.children
    )


def _fence(text: str, least: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(len(least), longest + 1 if longest >= len(least) else 0)


def _squeeze(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def _tidy(text: str) -> str:
    """Return inline text without blanks at the ends of its lines, and without double ones."""
    return "\n".join(re.sub(r" {2,}", " ", line).strip() for line in text.split("\n")).strip()
