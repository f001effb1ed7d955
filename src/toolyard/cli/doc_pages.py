"""The pages of the documentation, as topics of ``toolyard help``.

The tables of the index, ``docs/README.md``, give the groups and the order. ``NAME.zh-CN.md`` is the Chinese page of the
topic ``NAME``; without one, the page is English.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolyard.errors import ToolyardError
from toolyard.shipped_files import find_shipped_folder

CHINESE_ENDING = ".zh-cn"  # of a topic, when case does not matter
_FOLDER = "docs"
_INDEX = "README.md"
_CHINESE = ".zh-CN.md"
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^## (.+)$|^\| \[[^\]]+\]\(([^)#:]+\.md)\)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DocPage:
    """A page; its topic is its path without the ending, or the folder that it introduces."""

    topic: str
    title: str
    text: str
    group: str


def list_pages(*, in_chinese: bool = False) -> tuple[DocPage, ...]:
    """Return all pages but the index, in its order. Raises ToolyardError when there are none."""
    folder = find_shipped_folder(_FOLDER)
    if folder is None:
        raise ToolyardError("the documentation is not part of this installation: install the package again")
    entries = _list_entries(folder / _INDEX, in_chinese=in_chinese)
    return tuple(_read_page(folder, file, group, in_chinese=in_chinese) for group, file in entries)


def _list_entries(index: Path, own_group: str = "", *, in_chinese: bool) -> Iterator[tuple[str, Path]]:
    """Yield the English file of each page that an index lists, with its group; those of a folder follow its own."""
    group = own_group
    for heading, target in _ENTRY.findall(_find_translation(index, in_chinese=in_chinese).read_text("utf-8")):
        if heading:
            group = own_group or heading
        if target:
            file = index.parent / target.replace(_CHINESE, ".md")
            yield group, file
            if file.name == _INDEX:
                yield from _list_entries(file, group, in_chinese=in_chinese)


def _find_translation(file: Path, *, in_chinese: bool) -> Path:
    chinese = file.with_name(file.name.removesuffix(".md") + _CHINESE)
    return chinese if in_chinese and chinese.exists() else file


def _read_page(folder: Path, file: Path, group: str, *, in_chinese: bool) -> DocPage:
    text = _find_translation(file, in_chinese=in_chinese).read_text("utf-8")
    topic = file.relative_to(folder).as_posix().removesuffix(f"/{_INDEX}").removesuffix(".md")
    title = _TITLE.search(text)
    return DocPage(topic, title[1] if title else topic, text, group)


def find_page(pages: Sequence[DocPage], name: str) -> DocPage | None:
    """Return the page of a topic; the last part of a topic is enough if no other page has it."""
    name = name.casefold().removesuffix(".md").removesuffix(CHINESE_ENDING)
    exact = [page for page in pages if page.topic.casefold() == name]
    last = [page for page in pages if page.topic.casefold().rpartition("/")[2] == name]
    return exact[0] if exact else last[0] if len(last) == 1 else None
