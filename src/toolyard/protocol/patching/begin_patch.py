"""The patch language of ``*** Begin Patch``.

    *** Begin Patch
    *** Add File: new.txt
    +every line begins with a plus
    *** Delete File: old.txt
    *** Update File: src/a.py
    *** Move to: src/b.py
    @@ class A
    @@     def f(self):
     a line that stays
    -a line that goes
    +a line that comes
    *** End of File
    *** End Patch

Forgiven: blanks around a marker, a missing ``@@`` before the first hunk, a blank row between two parts, and a missing
end where nothing can have been cut off unseen. A row without its mark could be context, or an added line that lost its
plus: it is read as context, with all other context of its hunk as it stands, and then the file must prove it to the
letter. Context that is indented may lack its mark and not show it: so where it does not fit as marked, it is tried as
it stands (see ``target_text``).
"""

import re
from collections.abc import Sequence

from toolyard.message import Message, join_sentences
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

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_END_OF_FILE = "*** End of File"
_FILE = re.compile(r"\*\*\* (Add|Delete|Update) File:(.*)")
_MOVE = re.compile(r"\*\*\* Move to:(.*)")
_NUMBERS = re.compile(r"-(\d{1,9})(?:,\d+)? \+\d+(?:,\d+)?(?: @@.*)?")
_HOW_TO_BEGIN = Message(
    "Begin each file with '*** Add File: path', '*** Delete File: path' or '*** Update File: path'."
)
_HOW_TO_WRITE = Message("Begin each line of a hunk with a space (stays), '-' (goes) or '+' (comes), also an empty one.")
_HOW_TO_END = Message("End the patch with a line '*** End Patch', and write nothing after it.")


def parse_begin_patch(rows: Sequence[Row]) -> tuple[FileChange, ...]:
    """The changes of a patch whose first row is ``*** Begin Patch``."""
    body, ended = _split_body(rows)
    reader = _Reader(body)
    changes = []
    while reader.skip_blank():
        changes.append(reader.read_file())
    if not changes:
        raise malformed_patch(rows[0], Message("the patch changes no file."), _HOW_TO_BEGIN)
    if not ended:
        _require_complete(changes[-1], rows[-1])
    return tuple(changes)


def _split_body(rows: Sequence[Row]) -> tuple[list[Row], bool]:
    """The rows between the first and the last marker, and whether there is a last one."""
    used = list(rows[1 : len(rows) - _count_trailing_blanks(rows)])
    ends = [at for at, row in enumerate(used) if row.text.rstrip() == _END]
    if ends and ends[0] < len(used) - 1:
        raise malformed_patch(used[ends[0] + 1], Message("it stands after the end of the patch."), _HOW_TO_END)
    ended = bool(used) and used[-1].text.strip() == _END
    return (used[:-1] if ended else used), ended


def _count_trailing_blanks(rows: Sequence[Row]) -> int:
    count = 0
    while count < len(rows) and rows[-1 - count].is_blank:
        count += 1
    return count


def _require_complete(last: FileChange, row: Row) -> None:
    """Without an end the text may have been cut off: only what then still is one whole change is taken."""
    cut = last.operation is Operation.CREATE
    if last.hunks:
        written = [line for line in last.hunks[-1].lines if line.text or line.mark is not Mark.KEEP]
        cut = not written or written[-1].mark is Mark.DROP
    if cut:
        raise malformed_patch(
            row, Message("the patch stops here without '*** End Patch', so it may be incomplete."), _HOW_TO_END
        )


class _Reader:
    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._at = 0

    @property
    def _row(self) -> Row | None:
        return self._rows[self._at] if self._at < len(self._rows) else None

    def skip_blank(self) -> bool:
        """True when something is left after blank rows."""
        while (row := self._row) is not None and row.is_blank:
            self._at += 1
        return self._row is not None

    def read_file(self) -> FileChange:
        row = self._rows[self._at]
        header = _FILE.fullmatch(row.text.strip())
        if header is None:
            raise malformed_patch(row, Message("here a file must begin."), _HOW_TO_BEGIN)
        path = _parse_path(row, header[2])
        self._at += 1
        match header[1]:
            case "Add":
                return FileChange(Operation.CREATE, path, row.number, text=self._read_new_text())
            case "Delete":
                return FileChange(Operation.DELETE, path, row.number)
            case _:
                return self._read_update(row, path)

    def _read_new_text(self) -> str:
        rows: list[Row] = []
        while self._find_next_part(indented=True) is None and (row := self._row) is not None:
            if not row.text.startswith("+"):
                raise malformed_patch(
                    row, Message("every line of a new file must begin with '+'."), Message("Write '+' before the line.")
                )
            rows.append(row)
            self._at += 1
        return _join_new_text(rows)

    def _read_update(self, header: Row, path: str) -> FileChange:
        new_path = None
        if (row := self._row) is not None and (move := _MOVE.fullmatch(row.text.strip())):
            new_path = _parse_path(row, move[1])
            self._at += 1
        hunks: list[PatchHunk] = []
        while self._find_next_part() != "file":
            hunks.append(self._read_hunk(first=not hunks))
        if not hunks and new_path is None:
            raise malformed_patch(header, Message("the file is neither changed nor moved."), _HOW_TO_WRITE)
        operation = Operation.UPDATE if new_path is None else Operation.MOVE
        return FileChange(operation, path, header.number, new_path=new_path, hunks=tuple(hunks))

    def _find_next_part(self, *, indented: bool = False) -> str | None:
        """Find what begins here or after blank rows, which are skipped: a file (or the end), a hunk, or neither."""
        at = self._at
        while at < len(self._rows) and (self._rows[at].is_blank if indented else not self._rows[at].text):
            at += 1
        text = self._rows[at].text if at < len(self._rows) else None
        # In an update a marker after a space is a context line: only the end of the whole patch may stand so.
        if text is None or _FILE.fullmatch(text.strip() if indented else text.rstrip()):
            begins = "file"
        elif text.startswith("@@"):
            begins = "hunk"
        else:
            return None
        self._at = at
        return begins

    def _read_hunk(self, *, first: bool) -> PatchHunk:
        start = self._rows[self._at]
        anchors: list[str] = []
        headers, at = 0, None
        while self._find_next_part() == "hunk":
            anchor, number = _parse_hunk_header(self._rows[self._at].text)
            anchors += [anchor] if anchor else []
            at = at if number is None else number
            headers += 1
            self._at += 1
        if not headers and not first:
            raise malformed_patch(
                start, Message("after the end of the file a new hunk or a new file must begin."), Message("Write '@@'.")
            )
        rows = self._read_hunk_rows()
        if not rows:
            raise malformed_patch(start, Message("the hunk has no lines."), _HOW_TO_WRITE)
        bare = any(row.text[:1] not in {"", *Mark} for row in rows)
        at_end = (row := self._row) is not None and row.text.rstrip() == _END_OF_FILE
        if at_end:
            self._at += 1
            self.skip_blank()
        return PatchHunk(
            row=start.number,
            lines=tuple(_parse_line(row, bare=bare) for row in rows),
            bare=bare,
            anchors=tuple(anchors),
            strict=headers > 1,
            at=at,
            at_end=at_end,
            slack=count_bare_rows(rows),
        )

    def _read_hunk_rows(self) -> list[Row]:
        """The rows up to the next part; blank ones before it belong to the hunk, as its slack."""
        start = self._at
        while (row := self._row) is not None and not row.text.startswith("@@"):
            if row.text.rstrip() == _END_OF_FILE or _FILE.fullmatch(row.text.rstrip()):
                break
            if row.text.startswith("***"):
                raise malformed_patch(
                    row,
                    Message("there is no such marker, or not in this place."),
                    join_sentences(_HOW_TO_BEGIN, _HOW_TO_WRITE),
                )
            self._at += 1
        return list(self._rows[start : self._at])


def _parse_line(row: Row, *, bare: bool) -> PatchLine:
    """A row of a hunk; in a bare one also a space at the beginning is text of the file."""
    if bare and row.text[:1] not in {Mark.DROP, Mark.ADD}:
        return PatchLine(Mark.KEEP, row.text, row.ending)
    return PatchLine(Mark(row.text[:1] or " "), row.text[1:], row.ending)


def _parse_hunk_header(text: str) -> tuple[str, int | None]:
    """The anchor and the line number of ``@@ anchor`` or ``@@ -1,2 +1,2 @@``."""
    inner = text[2:].rstrip().removesuffix(" @@")
    if numbers := _NUMBERS.fullmatch(inner.strip()):
        return "", max(0, int(numbers[1]) - 1)
    return inner.removeprefix(" "), None


def _parse_path(row: Row, written: str) -> str:
    if not written.strip():
        raise malformed_patch(row, Message("the path is missing."), _HOW_TO_BEGIN)
    return written.strip()


def _join_new_text(rows: Sequence[Row]) -> str:
    """The lines as they are written, ended; a lone ``+`` at the end is the last line's ending and no empty line."""
    lines = [row.text[1:] + row.ending for row in rows]
    if len(rows) > 1:
        if rows[-1].text == "+":
            return "".join(lines[:-1])
        lines[-1] = rows[-1].text[1:] + rows[-2].ending  # what follows it is the patch's, not the file's
    return "".join(lines)
