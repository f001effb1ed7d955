"""The answers of ``rg --json`` as they come through a pipe: whole lines, and none longer than memory allows.

A record that is too long, such as a match in a line of 1 GB, is shortened to the beginning of its text on the way; its
place in the file is kept. Nothing inside a record can be mistaken for its structure: a quote in a text has a backslash.
"""

import re

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
