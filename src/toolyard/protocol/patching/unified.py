"""The patch language of ``diff -u`` and git.

A row of a hunk carries the file's own line ending: ``\\r`` at its end is text of the file, unless the headers end so as
well; then the patch itself came with ``\\r\\n``. The counts in ``@@ -1,3 +1,4 @@`` are verified, since a patch that was
cut off shows nowhere else; a header without numbers (``@@``) is taken as well. Refused is what text cannot carry out:
binary patches, copies, merges, links and mere changes of mode.

A path is what both sides of a header agree on: ``a/x`` and ``b/x`` are ``x``, and so are a few other pairs of prefixes;
a path that both sides write alike is kept whole, because then there is no prefix. Two different paths are a move only
where git says ``rename``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolyard.message import Message
from toolyard.protocol.envelope import Failure
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

_NUMBERS = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@.*")
_NO_NUMBERS = re.compile(r"@@(?: \.\.\.)?(?: @@.*)?")
_TRAILER = "--"  # a mailed patch goes on with the signature
_HOW_TO_BEGIN = Message(
    "Write '--- a/path' and '+++ b/path' before the hunks of a file, /dev/null for the side that has none."
)
_HOW_TO_NUMBER = Message(
    "Write '@@ -line,count +line,count @@' with the first line and the number of lines of either side."
)
_HOW_TO_WRITE = Message("Begin each line of a hunk with a space (stays), '-' (goes) or '+' (comes), also an empty one.")
_KNOWN = re.compile(
    r"(rename from|rename to|copy from|copy to|old mode|new mode|new file mode|deleted file mode|index"
    r"|similarity index|dissimilarity index) (.*)"
)
_BINARY = ("GIT binary patch", "Binary files ")
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_TWO_QUOTED = re.compile(rf"({_QUOTED}) ({_QUOTED})")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_NO_TEXT = re.compile("[\udc80-\udcff]")
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_PREFIXES = (("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/"), ("old/", "new/"), ("orig/", "new/"))
_NOWHERE = "/dev/null"
_USUAL_MODE = "100644"
_TEXT_MODES = {_USUAL_MODE, "100755", "100664", "100600"}
_HOW_TO_NAME = Message("Write '--- a/path' and '+++ b/path' with the same path, or say 'rename from' and 'rename to'.")


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
                row, Message("a diff of a merge has no single old text."), Message("Give the diff against one parent.")
            )
        return malformed_patch(row, Message("it belongs neither to a hunk nor to the header of a file."), _HOW_TO_BEGIN)

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
            raise malformed_patch(head, Message("it is not the header of a hunk."), _HOW_TO_NUMBER)
        if numbers:
            old, new = (1 if numbers[at] is None else int(numbers[at]) for at in (2, 4))
            rows = self._read_counted(head, old, new)
        else:
            rows = self._read_uncounted()
        lines = tuple(_parse_lines(rows))
        if not lines:
            raise malformed_patch(head, Message("the hunk has no lines."), _HOW_TO_WRITE)
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
                    Message("it is no line of the hunk of line {number}.", number=head.number),
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
                "the hunk below has {old} old and {new} new lines, not as many as this header says.", old=old, new=new
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
                head, Message("a line after which the file ends is followed by more lines."), _HOW_TO_WRITE
            )


@dataclass(frozen=True, slots=True)
class FileHeader:
    row: Row
    operation: Operation
    path: str
    new_path: str | None
    note: str


def _build_change(header: FileHeader, hunks: tuple[PatchHunk, ...]) -> FileChange:
    created = header.operation is Operation.CREATE
    lines = [line for hunk in hunks for line in hunk.lines]
    only = {Operation.CREATE: Mark.ADD, Operation.DELETE: Mark.DROP}.get(header.operation)
    if only and any(line.mark is not only for line in lines):
        raise malformed_patch(
            header.row,
            Message(
                "to {operation} a file all its lines must begin with '{only}'.", operation=header.operation, only=only
            ),
            _HOW_TO_BEGIN,
        )
    if header.operation is Operation.UPDATE and not hunks:
        raise malformed_patch(header.row, Message("nothing follows that changes the text of the file."), _HOW_TO_NUMBER)
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


def parse_header(rows: Sequence[Row], at: int) -> tuple[FileHeader, int]:
    """The header that begins at ``at``, and where its hunks begin."""
    row = rows[at]
    fields: dict[str, str] = {}
    git = row.text.startswith("diff --git ")
    at += git
    while git and at < len(rows):
        if rows[at].text.startswith(_BINARY):
            raise malformed_patch(
                rows[at],
                Message("a binary patch cannot be applied to text."),
                Message("Write the file by other means."),
            )
        known = _KNOWN.fullmatch(rows[at].text)
        if known is None:
            break
        fields[known[1]] = known[2] if known[1].startswith("rename") else known[2].rstrip()
        at += 1
    sides = None
    if at + 1 < len(rows) and rows[at].text.startswith("--- ") and rows[at + 1].text.startswith("+++ "):
        sides = _parse_name(rows[at].text[4:]), _parse_name(rows[at + 1].text[4:])
        at += 2
    _require_supported(row, fields)
    path = _renamed_path(fields, "rename from") or _choose_path(row, sides, _parse_git_line(row.text) if git else None)
    operation, new_path = _choose_operation(fields, sides), _renamed_path(fields, "rename to")
    _require_utf8(row, new_path or (path if operation is Operation.CREATE else ""))
    return FileHeader(row, operation, _escape_bytes(path), new_path, _mode_note(fields)), at


def _require_supported(row: Row, fields: dict[str, str]) -> None:
    if "copy from" in fields:
        raise malformed_patch(
            row, Message("a copy cannot be applied."), Message("Create the new file with all its lines.")
        )
    if ("rename from" in fields) != ("rename to" in fields):
        raise malformed_patch(
            row, Message("a move needs both paths."), Message("Write 'rename from path' and 'rename to path'.")
        )
    for mode in (fields.get("new file mode"), fields.get("new mode"), fields.get("deleted file mode")):
        if mode is not None and mode not in _TEXT_MODES:
            raise malformed_patch(
                row,
                Message("mode {mode} is not that of a file with text.", mode=mode),
                Message("Make links by other means."),
            )


def _require_utf8(row: Row, name: str) -> None:
    if _escape_bytes(name) != name:
        raise malformed_patch(
            row, Message("the new name is not UTF-8."), Message("Choose a name that is, and change the header.")
        )


def _choose_operation(fields: dict[str, str], sides: tuple[str, str] | None) -> Operation:
    old, new = sides or ("", "")
    if "new file mode" in fields or old == _NOWHERE:
        return Operation.CREATE
    if "deleted file mode" in fields or new == _NOWHERE:
        return Operation.DELETE
    return Operation.MOVE if "rename to" in fields else Operation.UPDATE


def _renamed_path(fields: dict[str, str], which: str) -> str | None:
    return _unquote(fields[which]) if which in fields else None


def _mode_note(fields: dict[str, str]) -> str:
    mode = fields.get("new mode") or fields.get("new file mode") or _USUAL_MODE
    if mode == _USUAL_MODE:
        return ""
    return Message("The patch asks for file mode {mode}, which is not set.", mode=mode)


def _choose_path(row: Row, sides: tuple[str, str] | None, git: str | None) -> str:
    old, new = sides or (_NOWHERE, _NOWHERE)
    if old == new == _NOWHERE:
        path = git
    elif _NOWHERE in {old, new}:
        named = new if old == _NOWHERE else old
        prefix = "b/" if old == _NOWHERE else "a/"
        path = git if git and named.endswith(git) else named.removeprefix(prefix)
    else:
        path = _common_path(old, new)
    if not path:
        raise malformed_patch(row, Message("it does not say which one file is meant."), _HOW_TO_NAME)
    return path


def _common_path(old: str, new: str) -> str | None:
    if old == new or old.removesuffix(".orig") == new:
        return new
    for before, after in (*_PREFIXES, *((after, before) for before, after in _PREFIXES)):  # a reversed diff swaps them
        if old.startswith(before) and new.startswith(after) and old[len(before) :] == new[len(after) :]:
            return new[len(after) :]
    return None


def _parse_git_line(text: str) -> str | None:
    """The path of ``diff --git a/x b/x``: two names of the same length, so the blank between them is in the middle."""
    names = text.removeprefix("diff --git ")
    if quoted := _TWO_QUOTED.fullmatch(names.rstrip()):
        return _common_path(_unquote(quoted[1]), _unquote(quoted[2]))
    return _split_in_half(names) or _split_in_half(names.rstrip())  # a blank at the end may be part of the name


def _split_in_half(names: str) -> str | None:
    middle = len(names) // 2
    return _common_path(names[:middle], names[middle + 1 :]) if names[middle : middle + 1] == " " else None


def _parse_name(written: str) -> str:
    """A path without the time that may follow a tab; git writes the tab alone when there are blanks in the name."""
    quoted = re.match(_QUOTED, written)
    if quoted:
        return _unquote(quoted[0])
    name, tab, _ = written.partition("\t")
    return name if tab else name.rstrip()


def _unquote(name: str) -> str:
    """A name as git quotes it, with lone surrogates for bytes that are no text."""
    if not re.fullmatch(_QUOTED, name):
        return name
    raw = _ESCAPE.sub(lambda match: _unescape_byte(match[1]), name[1:-1].encode(errors="surrogatepass"))
    return raw.decode(errors="surrogateescape")


def _escape_bytes(name: str) -> str:
    """With such bytes written ``\\xe9``, as everywhere."""
    return _NO_TEXT.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", name)


def _unescape_byte(escape: bytes) -> bytes:
    if len(escape) == 3:
        return bytes([int(escape, 8) & 0xFF])
    return _ESCAPES.get(escape, escape)
