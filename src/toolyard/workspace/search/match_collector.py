"""The matches of a search: all are counted, and the first ones kept, by file and line.

Files come in any order. At most about twice as many matches are held as are wanted, whatever there is to find.

``RipgrepRecords`` are the answers of ``rg --json`` as they come through a pipe: whole lines, none longer than memory
allows. A record that is too long, such as a match in a line of 1 GB, is shortened to the beginning of its text on the
way; its place in the file is kept. Nothing inside a record can be mistaken for its structure: a quote in a text has a
backslash.
"""

import base64
import json
import re
from dataclasses import dataclass, field
from typing import Any

MAX_COUNTED = 1_000_000
_MOST_RAW = 16 * 1024  # bytes of a line that are kept, around its first match
_MATCH = b'{"type":"match"'
_PLAIN_BEGIN = b'{"type":"begin","data":{"path":{"text":"./'
_END = b'{"type":"end"'
_MOST = 1024 * 1024
_HEAD = 64 * 1024  # of a record that is too long
_KEPT_TEXT = 12 * 1024  # bytes of its text, a multiple of 4 for base64
_TAIL = 512
_START = re.compile(
    rb'\{"type":"(match|context)","data":\{"path":(\{"(?:text|bytes)":"(?:[^"\\]|\\.)*"\}),"lines":\{"(text|bytes)":"'
)
_PLACE = re.compile(rb'\},"line_number":(\d+),"absolute_offset":(\d+),"submatches":\[')
_SUBMATCH = re.compile(rb'"start":(\d+),"end":(\d+)')
_HALF_ESCAPE = re.compile(rb"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$")


class TooManyMatches(Exception):
    """There is more to find than is counted."""


@dataclass(slots=True)
class Row:
    """A line, or the lines of a match that spans several."""

    number: int
    last: int  # the number of its last line
    raw: bytes  # without its line ending; of a long line a part
    utf8: bool
    size: int | None  # in bytes, before any cut; None when it is too long to know
    lead: int  # bytes cut before ``raw``
    at: int | None  # where in the whole line the first match is, in bytes; None for a line around a match
    column: int | None
    offset: int  # of ``raw`` in the file


@dataclass(slots=True)
class FileRows:
    path: bytes  # from the start of the search
    count: int = 0
    rows: list[Row] = field(default_factory=list)
    around: list[Row] = field(default_factory=list)
    full: bool = False  # the rest is only counted


class MatchCollector:
    def __init__(self, *, limit: int, per_file: int, multiline: bool, after: int) -> None:
        """Keep the first ``limit`` rows, and at most ``per_file`` of one file, with what is around them."""
        self._limit, self._per_file, self._multiline, self._after = limit, per_file, multiline, after
        self._files: list[FileRows] = []
        self._rows = 0
        self._bar: bytes | None = None  # files after this one are not among the first
        self._current: FileRows | None = None
        self._records = RipgrepRecords()
        self.total = 0
        self.files = 0
        self.binary: set[bytes] = set()  # files that matched and then turned out to be binary
        self.complete = False  # whether the last batch came to its end
        self.begin_batch()

    def begin_batch(self) -> None:
        """Another batch."""
        self._records, self._current, self.complete = RipgrepRecords(), None, False
        self._before = (self.total, self.files, [*self._files], self._rows, self._bar, {*self.binary})

    def undo_batch(self) -> None:
        """Forget what the last batch gave."""
        self.total, self.files, self._files, self._rows, self._bar, self.binary = self._before

    def feed(self, chunk: bytes) -> None:
        lines = self._records.feed(chunk)
        at = 0
        while at < len(lines):
            if self._current is not None and self._current.full and not self._multiline:
                end = lines.find(_END, at)
                upto = end if end >= 0 else len(lines)
                self._current.count += lines.count(_MATCH, at, upto)
                at = upto
            if at < len(lines):
                newline = lines.index(b"\n", at)
                self._read_record(lines[at:newline])
                at = newline + 1
        if self.total + (self._current.count if self._current else 0) > MAX_COUNTED:
            raise TooManyMatches

    def end_early(self) -> None:
        """The search ends in the middle: what the last file gave so far counts."""
        if self._current is not None and self._current.count:
            self._close_file(self._current)

    def list_first(self) -> list[FileRows]:
        self._prune()
        return self._files

    def _read_record(self, line: bytes) -> None:
        if line.startswith(b'{"type":"begin"'):
            path = _parse_path(line)
            self._current = FileRows(path, full=self._bar is not None and path > self._bar)
        elif line.startswith(_END) and self._current is not None:
            if b'"binary_offset":null' in line:
                self._close_file(self._current)
            else:
                self.binary.add(self._current.path)
            self._current = None
        elif self._current is not None and line != b"{}":
            self._add_line(self._current, line, matches=line.startswith(_MATCH))
        else:
            self.complete = b'"summary"' in line

    def _add_line(self, file: FileRows, line: bytes, *, matches: bool) -> None:
        if file.full and not matches:
            return
        record = json.loads(line)["data"]
        rows = _parse_rows(record, split=self._multiline and matches)
        file.count += len(rows) if matches else 0
        for row in rows:
            enough = len(file.rows) >= self._per_file
            file.full = file.full or (enough and row.number > file.rows[-1].last + self._after)
            if file.full:
                return
            (file.rows if matches and not enough else file.around).append(row)

    def _close_file(self, file: FileRows) -> None:
        self.total += file.count
        self.files += 1
        if file.rows and (self._bar is None or file.path <= self._bar):
            self._files.append(file)
            self._rows += len(file.rows)
            if self._rows > self._limit:
                self._prune()
                self._bar = self._files[-1].path

    def _prune(self) -> None:
        """Keep the first files that together have enough rows."""
        self._files.sort(key=lambda file: file.path)
        self._rows = 0
        for number, file in enumerate(self._files, 1):
            self._rows += len(file.rows)
            if self._rows >= self._limit:
                del self._files[number:]
                return


def _parse_rows(record: dict[str, Any], *, split: bool) -> list[Row]:
    raw, utf8 = _decode_part(record["lines"])
    spans = [(part["start"], part["end"]) for part in record["submatches"]]
    number, offset = record["line_number"], record["absolute_offset"]
    if not split or not spans:
        return [_build_row(raw, number, offset, spans[0][0] if spans else None, utf8=utf8, cut="cut" in record)]
    return [
        _build_row(
            raw[start:end], number + raw.count(b"\n", 0, start), offset + start, at - start, utf8=utf8, cut=False
        )
        for start, end, at in _group_matches(raw, spans)
    ]


def _group_matches(raw: bytes, spans: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """The lines of each match, and where in them it is. Matches that share a line are one group, neighbours are not."""
    groups: list[tuple[int, int, int]] = []
    for at, end in spans:
        start = raw.rfind(b"\n", 0, at) + 1
        newline = raw.find(b"\n", max(at, end - 1))
        stop = len(raw) if newline < 0 else newline + 1
        if groups and start < groups[-1][1]:
            first, last, where = groups[-1]
            groups[-1] = (first, max(last, stop), where)
        else:
            groups.append((start, stop, at))
    return groups


def _build_row(raw: bytes, number: int, offset: int, at: int | None, *, utf8: bool, cut: bool) -> Row:
    text = raw.removesuffix(b"\n").removesuffix(b"\r")
    column = None if at is None or cut else len(text[:at].decode(errors="backslashreplace")) + 1
    lead = 0
    if len(text) > _MOST_RAW:
        lead = max(0, min((at or 0) - _MOST_RAW // 2, len(text) - _MOST_RAW))
        while utf8 and lead and text[lead] & 0xC0 == 0x80:  # not in the middle of a character
            lead -= 1
    excerpt = text[lead : lead + _MOST_RAW]
    size = None if cut else len(text)
    return Row(number, number + text.count(b"\n"), excerpt, utf8, size, lead, at, column, offset + lead)


def _parse_path(begin: bytes) -> bytes:
    """The file that a record announces. Most need no parser, and there may be very many."""
    if begin.startswith(_PLAIN_BEGIN) and b"\\" not in begin:
        return begin[len(_PLAIN_BEGIN) : -len(b'"}}}')]
    return _decode_part(json.loads(begin)["data"]["path"])[0].removeprefix(b"./")


def _decode_part(part: dict[str, str]) -> tuple[bytes, bool]:
    text = part.get("text")
    return (text.encode(), True) if text is not None else (base64.b64decode(part["bytes"]), False)


class RipgrepRecords:
    def __init__(self) -> None:
        self._rest = b""
        self._long: _LongRecord | None = None

    def feed(self, chunk: bytes) -> bytes:
        """The lines that ``chunk`` completes, each with its newline."""
        done = b""
        if self._long is not None:
            line, newline, chunk = chunk.partition(b"\n")
            self._long.add(line)
            if not newline:
                return b""
            done, self._long = self._long.shorten() + b"\n", None
        end = chunk.rfind(b"\n") + 1
        if end:
            done, self._rest = done + self._rest + chunk[:end], b""
        self._rest += chunk[end:]
        if len(self._rest) > _MOST:
            self._long, self._rest = _LongRecord(self._rest), b""
        return done


class _LongRecord:
    """A record of which only the beginning and the place are kept."""

    def __init__(self, start: bytes) -> None:
        self._head = start[:_HEAD]
        self._place: re.Match[bytes] | None = None
        self._after = b""  # what follows the place, where the first match in the line is
        self._carry = b""
        self.add(start)

    def add(self, chunk: bytes) -> None:
        text = self._carry + chunk
        if self._place is None:
            self._place = _PLACE.search(text)
            if self._place is not None:
                self._after = text[self._place.end() : self._place.end() + _TAIL]
        elif len(self._after) < _TAIL:
            self._after += chunk[:_TAIL]
        self._carry = b"" if self._place is not None else text[-_TAIL:]

    def shorten(self) -> bytes:
        start = _START.match(self._head)
        if start is None or self._place is None:
            return b"{}"
        kind, path, form = start.groups()
        text = self._head[start.end() : start.end() + _KEPT_TEXT]
        if form == b"text":
            text = _HALF_ESCAPE.sub(rb"\1", text.decode(errors="ignore").encode())
        number, offset = self._place.groups()
        match = _SUBMATCH.search(self._after)
        where = b'{"start":%b,"end":%b}' % match.groups() if match and kind == b"match" else b""
        return (
            b'{"type":"%b","data":{"path":%b,"lines":{"%b":"%b"},"line_number":%b,"absolute_offset":%b,'
            b'"submatches":[%b],"cut":true}}' % (kind, path, form, text, number, offset, where)
        )
