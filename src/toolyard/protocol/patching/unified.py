"""The patch language of ``diff -u`` and git.

A row of a hunk carries the file's own line ending: ``\\r`` at its end is text of the file, unless the headers end so as
well; then the patch itself came with ``\\r\\n``. The counts in ``@@ -1,3 +1,4 @@`` are verified, since a patch that was
cut off shows nowhere else; a header without numbers (``@@``) is taken as well. Refused is what text cannot carry out:
binary patches, copies, merges, links and mere changes of mode.
"""

import re
from collections.abc import Iterator, Sequence

from toolyard.message import Message
from toolyard.protocol.failure import Failure
from toolyard.protocol.patching.file_change import (
    FileChange,
    Mark,
    Operation,
    PatchHunk,
    PatchLine,
    Row,
    count_bare_rows,
    malformed_patch,
)
from toolyard.protocol.patching.unified_header import FileHeader, parse_header

_NUMBERS = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@.*")
_NO_NUMBERS = re.compile(r"@@(?: \.\.\.)?(?: @@.*)?")
_TRAILER = "--"  # a mailed patch goes on with the signature
_HOW_TO_BEGIN = Message(
    "hint.diff_header",
    "Write '--- a/path' and '+++ b/path' before the hunks of a file, /dev/null for the side that has none.",
)
_HOW_TO_NUMBER = Message(
    "hint.hunk_header",
    "Write '@@ -line,count +line,count @@' with the first line and the number of lines of either side.",
)
_HOW_TO_WRITE = Message(
    "hint.hunk_lines", "Begin each line of a hunk with a space (stays), '-' (goes) or '+' (comes), also an empty one."
)


def is_unified(rows: Sequence[Row]) -> bool:
    return any(_begins_file(rows, at) for at in range(len(rows)))


def parse_unified(rows: Sequence[Row]) -> tuple[FileChange, ...]:
    """The changes of a unified diff; text before its first file is not looked at."""
    first = next(at for at in range(len(rows)) if _begins_file(rows, at))
    if rows[first].ending == "\r\n":
        rows = [_strip_return(row) for row in rows]
    reader = _Reader(rows, first)
    changes = []
    while reader.find_file():
        changes.append(reader.read_file())
    return tuple(changes)


def _begins_file(rows: Sequence[Row], at: int) -> bool:
    text = rows[at].text
    if text.startswith("diff --git "):
        return True
    return text.startswith("--- ") and at + 1 < len(rows) and rows[at + 1].text.startswith("+++ ")


def _strip_return(row: Row) -> Row:
    if row.text.endswith("\r"):
        return row._replace(text=row.text[:-1])
    return row._replace(ending="\n")


class _Reader:
    def __init__(self, rows: Sequence[Row], at: int) -> None:
        self._rows = rows
        self._at = at

    def find_file(self) -> bool:
        """True when another file begins here, after what may stand between two files."""
        signature = False
        while self._at < len(self._rows):
            row = self._rows[self._at]
            if _begins_file(self._rows, self._at):
                return True
            signature = signature or row.text.rstrip() == _TRAILER
            if not (signature or row.is_blank or row.text.startswith(("diff ", "Index: ", "====="))):
                raise self._stray_row(row)
            self._at += 1
        return False

    @staticmethod
    def _stray_row(row: Row) -> Failure:
        if row.text.startswith("@@@"):
            return malformed_patch(
                row,
                Message("patch.merge_diff", "a diff of a merge has no single old text."),
                Message("hint.one_parent", "Give the diff against one parent."),
            )
        return malformed_patch(
            row, Message("patch.stray_line", "it belongs neither to a hunk nor to the header of a file."), _HOW_TO_BEGIN
        )

    def read_file(self) -> FileChange:
        header, self._at = parse_header(self._rows, self._at)
        hunks: list[PatchHunk] = []
        while self._find_hunk():
            if self._rows[self._at].text.startswith("@@@"):
                raise self._stray_row(self._rows[self._at])
            hunks.append(self._read_hunk())
        return _build_change(header, tuple(hunks))

    def _find_hunk(self) -> bool:
        """True when another hunk of the file begins here or after blank rows."""
        at = self._at
        while at < len(self._rows) and self._rows[at].is_blank:
            at += 1
        begins_hunk = at < len(self._rows) and self._rows[at].text.startswith("@@")
        self._at = at if begins_hunk else self._at
        return begins_hunk

    def _read_hunk(self) -> PatchHunk:
        head = self._rows[self._at]
        self._at += 1
        numbers = _NUMBERS.fullmatch(head.text.rstrip())
        if numbers is None and not _NO_NUMBERS.fullmatch(head.text.rstrip()):
            raise malformed_patch(
                head, Message("patch.not_a_hunk_header", "it is not the header of a hunk."), _HOW_TO_NUMBER
            )
        if numbers:
            old, new = (1 if numbers[at] is None else int(numbers[at]) for at in (2, 4))
            rows = self._read_counted(head, old, new)
        else:
            rows = self._read_uncounted()
        lines = tuple(_parse_lines(rows))
        if not lines:
            raise malformed_patch(head, Message("patch.hunk_empty", "the hunk has no lines."), _HOW_TO_WRITE)
        _require_final_lines(head, lines)
        return PatchHunk(
            row=head.number,
            lines=lines,
            at=max(0, int(numbers[1]) - 1) if numbers else None,
            at_end=any(not line.ending for line in lines),
            slack=0 if numbers else count_bare_rows(rows),
        )

    def _read_counted(self, head: Row, old: int, new: int) -> list[Row]:
        start = self._at
        while old or new:
            text = self._rows[self._at].text if self._at < len(self._rows) else "@@"
            mark = text[:1] or " "
            old -= mark in {Mark.KEEP, Mark.DROP}
            new -= mark in {Mark.KEEP, Mark.ADD}
            if old < 0 or new < 0 or text.startswith(("@@", "diff --git ")):
                raise self._wrong_count(head, start)
            if mark not in {*Mark, "\\"}:
                raise malformed_patch(
                    self._rows[self._at],
                    Message("patch.not_in_hunk", "it is no line of the hunk of line {number}.", number=head.number),
                    _HOW_TO_WRITE,
                )
            self._at += 1
        if self._at < len(self._rows) and self._rows[self._at].text.startswith("\\ "):
            self._at += 1
        if self._is_hunk_row(self._at) and not self._rows[self._at].is_blank:
            raise self._wrong_count(head, start)
        return list(self._rows[start : self._at])

    def _is_hunk_row(self, at: int) -> bool:
        """Return whether a row reads like one of a hunk, and not like the begin of a file or of a signature."""
        if at >= len(self._rows) or _begins_file(self._rows, at) or self._rows[at].text.rstrip() == _TRAILER:
            return False
        return self._rows[at].text[:1] in {"", *Mark, "\\"}

    def _wrong_count(self, head: Row, start: int) -> Failure:
        end = start
        while self._is_hunk_row(end):
            end += 1
        rows = self._rows[start:end]
        marks = [row.text[:1] or " " for row in rows[: len(rows) - count_bare_rows(rows)]]
        old, new = (sum(mark in {Mark.KEEP, side} for mark in marks) for side in (Mark.DROP, Mark.ADD))
        return malformed_patch(
            head,
            Message(
                "patch.hunk_miscounted",
                "the hunk below has {old} old and {new} new lines, not as many as this header says.",
                old=old,
                new=new,
            ),
            f"Write the lines that are missing, or else ',{old}' and ',{new}' as the numbers of lines.",
        )

    def _read_uncounted(self) -> list[Row]:
        start = self._at
        while self._is_hunk_row(self._at):
            self._at += 1
        return list(self._rows[start : self._at])


def _parse_lines(rows: Sequence[Row]) -> Iterator[PatchLine]:
    notes = {at for at, row in enumerate(rows) if row.text.startswith("\\")}  # "\ No newline at end of file"
    for at, row in enumerate(rows):
        mark, text = row.text[:1] or " ", row.text[1:]
        if at + 1 in notes and at not in notes:
            yield PatchLine(Mark(mark), text + row.ending.removesuffix("\n"), "")
        elif at not in notes:
            yield PatchLine(Mark(mark), text, row.ending)


def _require_final_lines(head: Row, lines: tuple[PatchLine, ...]) -> None:
    """A line that ends the file must be the last one of its side."""
    for other in (Mark.ADD, Mark.DROP):
        side = [line for line in lines if line.mark is not other]
        if any(not line.ending for line in side[:-1]):
            raise malformed_patch(
                head,
                Message("patch.lines_after_final", "a line after which the file ends is followed by more lines."),
                _HOW_TO_WRITE,
            )


def _build_change(header: FileHeader, hunks: tuple[PatchHunk, ...]) -> FileChange:
    created = header.operation is Operation.CREATE
    lines = [line for hunk in hunks for line in hunk.lines]
    only = {Operation.CREATE: Mark.ADD, Operation.DELETE: Mark.DROP}.get(header.operation)
    if only and any(line.mark is not only for line in lines):
        raise malformed_patch(
            header.row,
            Message(
                "patch.wrong_line_marks",
                "to {operation} a file all its lines must begin with '{only}'.",
                operation=header.operation,
                only=only,
            ),
            _HOW_TO_BEGIN,
        )
    if header.operation is Operation.UPDATE and not hunks:
        raise malformed_patch(
            header.row,
            Message("patch.no_change_follows", "nothing follows that changes the text of the file."),
            _HOW_TO_NUMBER,
        )
    return FileChange(
        header.operation,
        header.path,
        header.row.number,
        new_path=header.new_path,
        hunks=() if created else hunks,
        text="".join(line.text + line.ending for line in lines) if created else "",
        unified=True,
        note=header.note,
    )
