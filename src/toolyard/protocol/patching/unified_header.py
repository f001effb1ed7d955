"""The header of one file in a unified diff: which file it is, and what becomes of it.

A path is what both sides agree on: ``a/x`` and ``b/x`` are ``x``, and so are a few other pairs of prefixes; a path that
both sides write alike is kept whole, because then there is no prefix. Two different paths are a move only where git
says ``rename``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolyard.message import Message
from toolyard.protocol.patching.file_change import Operation, Row, malformed_patch

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
_HOW_TO_NAME = Message(
    "hint.same_path_or_rename",
    "Write '--- a/path' and '+++ b/path' with the same path, or say 'rename from' and 'rename to'.",
)


@dataclass(frozen=True, slots=True)
class FileHeader:
    row: Row
    operation: Operation
    path: str
    new_path: str | None
    note: str


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
                Message("patch.binary", "a binary patch cannot be applied to text."),
                Message("hint.write_by_other_means", "Write the file by other means."),
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
            row,
            Message("patch.copy", "a copy cannot be applied."),
            Message("hint.create_with_lines", "Create the new file with all its lines."),
        )
    if ("rename from" in fields) != ("rename to" in fields):
        raise malformed_patch(
            row,
            Message("patch.move_needs_both_paths", "a move needs both paths."),
            Message("hint.write_rename", "Write 'rename from path' and 'rename to path'."),
        )
    for mode in (fields.get("new file mode"), fields.get("new mode"), fields.get("deleted file mode")):
        if mode is not None and mode not in _TEXT_MODES:
            raise malformed_patch(
                row,
                Message("patch.not_a_text_mode", "mode {mode} is not that of a file with text.", mode=mode),
                Message("hint.make_links_by_other_means", "Make links by other means."),
            )


def _require_utf8(row: Row, name: str) -> None:
    if _escape_bytes(name) != name:
        raise malformed_patch(
            row,
            Message("patch.name_not_utf8", "the new name is not UTF-8."),
            Message("hint.choose_valid_name", "Choose a name that is, and change the header."),
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
    return Message("patch.file_mode", "The patch asks for file mode {mode}, which is not set.", mode=mode)


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
        raise malformed_patch(
            row, Message("patch.ambiguous_file", "it does not say which one file is meant."), _HOW_TO_NAME
        )
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
