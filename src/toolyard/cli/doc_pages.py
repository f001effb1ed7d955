"""The pages of the documentation, as topics of ``toolyard help``."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolyard.errors import ToolyardError
from toolyard.shipped_files import find_shipped_folder

_FOLDER = "docs"
_INDEX = "README"
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DocPage:
    """A page; its topic is its path without the ending, or the folder that it introduces."""

    topic: str
    title: str
    text: str


def list_pages() -> tuple[DocPage, ...]:
    """Return all pages but the index, those of the top folder first. Raises ToolyardError when there are none."""
    folder = find_shipped_folder(_FOLDER)
    if folder is None:
        raise ToolyardError("the documentation is not part of this installation: install the package again")
    files = sorted(folder.rglob("*.md"), key=lambda file: (file.parent != folder, file))
    return tuple(_read_page(folder, file) for file in files if file != folder / f"{_INDEX}.md")


def _read_page(folder: Path, file: Path) -> DocPage:
    text = file.read_text("utf-8")
    topic = file.relative_to(folder).with_suffix("").as_posix().removesuffix(f"/{_INDEX}")
    title = _TITLE.search(text)
    return DocPage(topic, title[1] if title else topic, text)


def find_page(pages: Sequence[DocPage], name: str) -> DocPage | None:
    """Return the page of a topic; the last part of a topic is enough if no other page has it."""
    name = name.removesuffix(".md").casefold()
    exact = [page for page in pages if page.topic.casefold() == name]
    last = [page for page in pages if page.topic.casefold().rpartition("/")[2] == name]
    return exact[0] if exact else last[0] if len(last) == 1 else None
