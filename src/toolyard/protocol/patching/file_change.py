"""The values that both patch languages are parsed into, before any file is looked at.

A patch is rows of text ended by ``\\n``. A row keeps the ending it was written with, because a unified diff of a file
with ``\\r\\n`` carries the ``\\r`` as part of the file's text, while a patch that came through Windows carries it by
accident: only the language that reads the row can tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from toolyard.message import Message
from toolyard.protocol.edits.text_edit import make_visible
from toolyard.protocol.envelope import ErrorCode, Failure


class Operation(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    MOVE = "move"  # to a new path, changed on the way or not


class Mark(StrEnum):
    KEEP = " "
    DROP = "-"
    ADD = "+"


@dataclass(frozen=True, slots=True)
class PatchLine:
    mark: Mark
    text: str
    ending: str = "\n"  # as the patch writes it; "" where the patch says that the file ends without one


@dataclass(frozen=True, slots=True)
class PatchHunk:
    """Lines that stand together in a file, some of them to be dropped or added."""

    row: int  # of the patch
    lines: tuple[PatchLine, ...]
    anchors: tuple[str, ...] = ()  # lines that stand above it in the file, the outermost first
    strict: bool = False  # the anchors must be found; else they only help to choose
    at: int | None = None  # the line where the patch says that it begins, from 0
    at_end: bool = False  # its last old line is the last line of the file
    bare: bool = False  # its context has no marks, so it may be found only exactly
    slack: int = 0  # so many rows at its end are bare: empty lines of the file, or just space in the patch

    @property
    def old(self) -> tuple[PatchLine, ...]:
        return tuple(line for line in self.lines if line.mark is not Mark.ADD)

    @property
    def new(self) -> tuple[PatchLine, ...]:
        return tuple(line for line in self.lines if line.mark is not Mark.DROP)

    @property
    def changed_reach(self) -> int:
        """The number of old lines before the end of its last change; all of them when it changes nothing."""
        last = max((at for at, line in enumerate(self.lines) if line.mark is not Mark.KEEP), default=len(self.lines))
        return sum(line.mark is not Mark.ADD for line in self.lines[: last + 1])

    @property
    def without_marks(self) -> "PatchHunk | None":
        """The hunk read as if no context had its mark, so that the space it begins with is the file's."""
        if self.bare or not any(line.mark is Mark.KEEP and line.text.strip() for line in self.lines):
            return None  # no other reading
        lines = (
            replace(line, text=f" {line.text}") if line.mark is Mark.KEEP and line.text else line for line in self.lines
        )
        return replace(self, lines=tuple(lines), bare=True)

    def without_last(self, count: int, *, at_end: bool) -> "PatchHunk":
        return replace(self, lines=self.lines[:-count], at_end=at_end, slack=0)


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change that a patch makes to one file; paths are as the patch writes them."""

    operation: Operation
    path: str
    row: int  # of the patch
    new_path: str | None = None
    hunks: tuple[PatchHunk, ...] = ()
    text: str = ""  # of a created file
    unified: bool = False  # its lines carry their endings, and a deletion shows the text it deletes
    note: str = ""  # what the patch asks for and no tool here does


class Row(NamedTuple):
    """One line of a patch, counted from 1."""

    number: int
    text: str
    ending: str = "\n"

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()


def split_rows(patch: str) -> list[Row]:
    texts = patch.removeprefix("\ufeff").split("\n")
    ended = texts[-1] == ""
    rows = [
        Row(number, text.removesuffix("\r"), "\r\n" if text.endswith("\r") else "\n")
        for number, text in enumerate(texts[:-1] if ended else texts, 1)
    ]
    if not ended and len(rows) > 1 and rows[-1].ending == "\n":
        # Its ending was cut off with the end of the patch, and most likely was that of the row before.
        rows[-1] = rows[-1]._replace(ending=rows[-2].ending)
    return rows


def malformed_patch(row: Row, problem: str, hint: str) -> Failure:
    return Failure(
        ErrorCode.INVALID_PARAM,
        Message(
            "Line {number} of the patch, «{text}»: {problem}",
            number=row.number,
            text=make_visible(row.text[:200]),
            problem=problem,
        ),
        hint=hint,
        data={"patch_line": row.number},
    )


def count_bare_rows(rows: Sequence[Row]) -> int:
    """Count the rows at the end that hold nothing at all, not even the space of an empty context line."""
    count = 0
    while count < len(rows) and not rows[-1 - count].text:
        count += 1
    return count
