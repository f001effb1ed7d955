"""A stand-in for ripgrep where there is none: a program of its own, so that a pattern that never ends can be killed.

Its arguments are a query as JSON and ``batch`` or ``file``; stdin is the list of files or the one file to search. The
answers have the form of ``rg --json``, and so have its complaints. It needs nothing but the standard library.

Patterns are ripgrep's. What remains of the difference: ``\\p{...}`` and flags in the middle of a pattern are refused
here, ``.`` also matches a byte that is not UTF-8, and a letter with marks of its own counts as several characters of a
word.
"""

import base64
import json
import os
import re
import stat
import sys
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PROBE = 64 * 1024  # where ripgrep looks for a NUL when it searches over lines
_TOKEN = re.compile(r"\\x\{([0-9A-Fa-f]{1,6})\}|(\\.)|(\(\?<)(?=[A-Za-z_])|\[:(\w+):\]|.", re.DOTALL)
_NEEDLE_TOKEN = re.compile(r"(\\[dDwWsSbBntr<>])|\\(\W)|([.^$+])|([*?])|([\[({\\])|(.)", re.DOTALL)
_ESCAPES = {r"\z": r"\Z", r"\<": r"\b(?=\w)", r"\>": r"\b(?<=\w)"}
_POSIX = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "word": r"\w",
    "xdigit": "0-9A-Fa-f",
}


class MatchBlock:
    """Lines that belong together in an answer, and where in them the matches are."""

    def __init__(self, first: int, last: int, start: int, end: int) -> None:
        self.first, self.last = first, last  # line numbers from 0
        self.spans = [(start, end)]  # in bytes from the beginning of the file


class PythonSearch:
    def __init__(self, query: dict[str, Any]) -> None:
        """Raises re.error or ValueError when the pattern is none."""
        self._multiline: bool = query["multiline"]
        self._before: int = query["before"]
        self._after: int = query["after"]
        pattern: str = query["pattern"]
        source = to_python_pattern(pattern, literal=query["literal"], multiline=self._multiline)
        flags = re.MULTILINE | (re.DOTALL if self._multiline else 0) | (re.IGNORECASE if query["ignore_case"] else 0)
        self._regex = re.compile(source, flags)
        certain = "" if query["ignore_case"] else pattern if query["literal"] else find_needle(pattern)
        self._needle = certain.encode()

    def search_folder(self, below: str, files: list[str], *, whole: bool) -> None:
        try:
            folder = _open_folder(below)
        except OSError as error:
            _report_error(below, error)
            return
        try:
            for name in files:
                self._search_file(below + name, name, folder, whole=whole)
        finally:
            os.close(folder)

    def _search_file(self, path: str, name: str, folder: int, *, whole: bool) -> None:
        try:
            data = _read_file(name, folder)
            if data is None:
                return
            nul = data.find(b"\0", 0, _PROBE if self._multiline else None)
            if nul >= 0 and whole:
                _write_error(f"DEBUG|slow_search: ignoring ./{path}: found binary data at offset {nul}")
            else:
                self.write_matches(
                    f"./{path}", data if nul < 0 else data.replace(b"\0", b"\n"), nul if nul >= 0 else None
                )
        except OSError as error:
            _report_error(path, error)
        except MemoryError:
            _report_error(path, OSError(12, "Cannot allocate memory"))

    def write_matches(self, path: str, data: bytes, binary_at: int | None) -> None:
        blocks = list(self._search_over_lines(data) if self._multiline else self._search_lines(data))
        if not blocks:
            return
        name = _to_json_text(os.fsencode(path))
        _write_record({"type": "begin", "data": {"path": name}})
        starts = [*accumulate((len(line) + 1 for line in data.split(b"\n")), initial=0)]
        count = len(starts) - 1 - (data.endswith(b"\n"))
        shown = 0  # lines before this one are written or not asked for
        for at, block in enumerate(blocks):
            following = blocks[at + 1].first if at + 1 < len(blocks) else count
            for line in range(max(shown, block.first - self._before), block.first):
                _write_record(_build_record("context", name, data, starts, MatchBlock(line, line, 0, 0)))
            _write_record(_build_record("match", name, data, starts, block))
            shown = min(block.last + 1 + self._after, following)
            for line in range(block.last + 1, shown):
                _write_record(_build_record("context", name, data, starts, MatchBlock(line, line, 0, 0)))
        _write_record({"type": "end", "data": {"path": name, "binary_offset": binary_at}})
        sys.stdout.buffer.flush()

    def _search_lines(self, data: bytes) -> Iterator[MatchBlock]:
        if self._needle:
            yield from self._search_around_needle(data)
            return
        search = self._regex.search
        lines = data.decode(errors="surrogateescape").removesuffix("\n").split("\n") if data else []
        numbers = [number for number, line in enumerate(lines) if search(line)]
        start = last = 0
        for number in numbers:
            start += sum(len(_encode(line)) + 1 for line in lines[last:number])
            last = number
            yield _build_block(number, start, lines[number], search(lines[number]))

    def _search_around_needle(self, data: bytes) -> Iterator[MatchBlock]:
        number = counted = 0
        at = data.find(self._needle)
        while at >= 0:
            start = data.rfind(b"\n", 0, at) + 1
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            line = data[start:end].decode(errors="surrogateescape")
            match = self._regex.search(line)
            if match:
                number += data.count(b"\n", counted, start)
                counted = start
                yield _build_block(number, start, line, match)
            at = data.find(self._needle, end)

    def _search_over_lines(self, data: bytes) -> Iterator[MatchBlock]:
        if self._needle and self._needle not in data:
            return
        text = data.decode(errors="surrogateescape")
        starts = [*accumulate((len(line) + 1 for line in data.split(b"\n")), initial=0)]
        block: MatchBlock | None = None
        seen = at = 0
        for match in self._regex.finditer(text):
            at += len(_encode(text[seen : match.start()]))
            seen = match.start()
            end = at + len(_encode(match[0]))
            first, last = bisect_right(starts, at) - 1, bisect_right(starts, max(at, end - 1)) - 1
            if at >= len(data):
                break  # after the last line there is none
            if block is not None and first <= block.last:
                block.last = max(last, block.last)
                block.spans.append((at, end))
                continue
            if block is not None:
                yield block
            block = MatchBlock(first, last, at, end)
        if block is not None:
            yield block


def _build_block(number: int, start: int, line: str, match: re.Match[str] | None) -> MatchBlock:
    begin, end = match.span() if match else (0, 0)
    return MatchBlock(number, number, start + len(_encode(line[:begin])), start + len(_encode(line[:end])))


def _build_record(kind: str, name: Any, data: bytes, starts: list[int], block: MatchBlock) -> Any:
    offset = starts[block.first]
    spans = [{"start": start - offset, "end": end - offset} for start, end in block.spans] if kind == "match" else []
    lines = _to_json_text(data[offset : starts[block.last + 1]])
    return {
        "type": kind,
        "data": {
            "path": name,
            "lines": lines,
            "line_number": block.first + 1,
            "absolute_offset": offset,
            "submatches": spans,
        },
    }


def _open_folder(below: str) -> int:
    """Step by step, and never through a link: the way may have changed since it was walked."""
    folder = os.open(".", _FOLDER)
    for step in below.split("/")[:-1]:
        try:
            inner = os.open(step, _FOLDER, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


def _read_file(name: str, folder: int) -> bytes | None:
    """Read a file; None when it is no regular file any more."""
    fd = os.open(name, _FILE, dir_fd=folder)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            return None
        data = os.read(fd, info.st_size)
        while len(data) < info.st_size and (more := os.read(fd, info.st_size - len(data))):
            data += more
        return _to_utf8(data)
    finally:
        os.close(fd)


def _to_utf8(data: bytes) -> bytes:
    """Decode as ripgrep does: drop a byte-order mark, and turn marked UTF-16 into UTF-8."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace").encode(errors="replace")
    return data.removeprefix(b"\xef\xbb\xbf")


def _encode(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _to_json_text(raw: bytes) -> dict[str, str]:
    try:
        return {"text": raw.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(raw).decode()}


def _write_record(record: Any) -> None:
    sys.stdout.buffer.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")


def _write_error(line: str) -> None:
    sys.stderr.buffer.write(_encode(line) + b"\n")
    sys.stderr.buffer.flush()


def _report_error(path: str, error: OSError) -> None:
    _write_error(f"rg: ./{path}: {error.strerror} (os error {error.errno})")


def main() -> None:
    warnings.simplefilter("ignore")  # of Python's about a pattern that it may once understand differently
    try:
        search = PythonSearch(json.loads(sys.argv[1]))
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        _write_error(f"regex parse error: {error}")
        sys.exit(2)  # as ripgrep does
    if sys.argv[2] == "file":
        search.write_matches("<stdin>", _to_utf8(sys.stdin.buffer.read()), binary_at=None)
    else:
        for below, files, whole in json.load(sys.stdin):
            search.search_folder(below, files, whole=whole)
    _write_record({"type": "summary"})


def to_python_pattern(pattern: str, *, literal: bool, multiline: bool) -> str:
    """The pattern as Python writes it. Raises ValueError for what Python cannot do."""
    tokens = list(_TOKEN.finditer(pattern))
    if not multiline and any(token[0] == "\n" or (token[0] == r"\n" and not literal) for token in tokens):
        raise ValueError("a newline in a pattern needs multiline")
    return re.escape(pattern) if literal else "".join(map(_translate, tokens))


def find_needle(pattern: str) -> str:
    """A text that stands in every match; empty when none is certain. Only what comes before any group is looked at."""
    runs = [""]
    for token in _NEEDLE_TOKEN.finditer(pattern) if "|" not in pattern else ():
        symbol, escaped, wild, optional, stop, plain = token.groups()
        if stop:
            runs[-1] = runs[-1][: -1 if stop == "{" else None]
            break
        if symbol or wild:
            runs.append("")
        elif optional:
            runs[-1] = runs[-1][:-1]
            runs.append("")
        else:
            runs[-1] += escaped or plain
    return max(runs, key=len)


def _translate(token: re.Match[str]) -> str:
    code, escape, name, posix = token.groups()
    if code:
        return re.escape(chr(int(code, 16)))
    if escape and escape[1] in "pP":
        raise ValueError("classes such as \\p{...} are known to ripgrep only, which is not installed")
    if name:
        return "(?P<"
    return _POSIX.get(posix) or _ESCAPES.get(escape) or token[0]
