"""ReadFile: a text as it stands in the file, or what Read makes of anything else.

A range of lines is ``head:N``, ``tail:N``, ``M-N``, ``M:N`` or ``N``, counted from 1.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from toolyard.message import Message, join_sentences
from toolyard.protocol.content import SNIFF_BYTES, Text, sniff
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.result_limits import MAX_BYTES, MAX_LINES
from toolyard.protocol.tool import Result
from toolyard.tools.operations.command import Request, build_facts
from toolyard.tools.read import Read, build_window_result
from toolyard.tools.worker_thread import in_thread
from toolyard.workspace.encoding import BINARY_PROBE, find_encoding, looks_binary
from toolyard.workspace.read_history import ReadHistory
from toolyard.workspace.text_reader import TextReader, TextWindow, WindowLimits
from toolyard.workspace.workspace import OpenHandle, Workspace, read_consistently, read_exactly

_ENDINGS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
_NODE = {"utf16le": "utf-16-le", "ucs2": "utf-16-le", "ucs-2": "utf-16-le", "binary": "latin-1"}
_BEYOND = 2**40  # a line that no file has: to look for it is to count them all
_FORM = re.compile(r"(?:(head|tail)\s*:\s*)?(\d{1,12})(?:\s*[-:]\s*(\d{1,12}))?", re.IGNORECASE)


def to_python_encoding(name: str | None) -> str | None:
    """An encoding in the words of Node, in which VCP's callers speak, in those of Python."""
    return _NODE.get(name.lower(), name) if name else None


@dataclass(frozen=True, slots=True)
class LineRange:
    """Lines from ``first`` to ``last``, or the ``tail`` last ones. Without ``last``: as many as an answer holds."""

    first: int = 1
    last: int | None = None
    tail: int | None = None

    @classmethod
    def parse(cls, value: str | int | None) -> "LineRange":
        if value is None or value == "":
            return cls()
        form = _FORM.fullmatch(str(value).strip())
        if form is None or (form[1] and form[3]):
            raise _invalid_range(Message("is none of head:N, tail:N, M-N, M:N and N"))
        number, last = int(form[2]), int(form[3] or form[2])
        if number < 1:
            raise _invalid_range(Message("counts lines from 1"))
        if last < number:
            raise _invalid_range(Message("ends before it begins"))
        match (form[1] or "").lower():
            case "head":
                return cls(last=number)
            case "tail":
                return cls(tail=number)
            case _:
                return cls(number, last)

    @property
    def is_everything(self) -> bool:
        return self == LineRange()

    def resolve(self, total: int) -> "LineRange":
        """Return the range by line numbers, in a text of ``total`` lines."""
        return self if self.tail is None else LineRange(max(1, total - self.tail + 1), max(1, total))


class Reading:
    def __init__(self, workspace: Workspace, reads: ReadHistory, fallback_encodings: Sequence[str]) -> None:
        self._workspace, self._reads, self._fallbacks = workspace, reads, fallback_encodings
        self._read = Read(workspace, reads, fallback_encodings=fallback_encodings)

    async def read_file(self, request: Request) -> Result:
        return await self.read(request, request["path"])

    async def read(self, request: Request, path: str) -> Result:
        lines, encoding = LineRange.parse(request.get("lines")), to_python_encoding(request.get("encoding"))
        text = await in_thread(self._read_text, request, path, lines, encoding)
        if text is None:
            return await self._read_other(request, path, lines)
        if "hash" in text.data:
            self._reads.remember(request.call.caller, str(text.data["path"]), str(text.data["hash"]))
        return text

    def _read_text(self, request: Request, path: str, lines: LineRange, encoding: str | None) -> Result | None:
        """The result for a text; None for anything else."""
        with self._workspace.open_file(path) as file:
            head = read_exactly(file.fd, 0, min(file.stat.st_size, BINARY_PROBE))
            wide = encoding is not None and find_encoding(encoding, b"", whole=True).is_wide
            cells = file.path.endswith(".ipynb") and lines.is_everything and encoding is None
            if cells or sniff(head[:SNIFF_BYTES]) or (looks_binary(head) and not wide):
                return None
            reader = TextReader(encoding, self._fallbacks, request.checkpoint)
            return read_consistently(file, lambda now: _read_excerpt(now, reader, lines)).to_result(file)

    async def _read_other(self, request: Request, path: str, lines: LineRange) -> Result:
        if lines.tail is not None:
            total = (await self._read_page(request, path, LineRange(1, 1))).data.get("total_lines")
            lines = lines.resolve(total if isinstance(total, int) else 1)  # media other than PDF have no lines
        result = await self._read_page(request, path, lines)
        texts = [part.text for part in result.extras.parts if isinstance(part, Text)]
        unnumbered: JsonObject = {"content": texts[1]} if "content" in result.data and len(texts) > 1 else {}
        about = await in_thread(self._read_facts, path)
        return replace(result, data={**about, **result.data, **unnumbered})

    def _read_facts(self, path: str) -> JsonObject:
        with self._workspace.open_file(path) as file:
            return _select_facts(build_facts(file.path, file.stat))

    async def _read_page(self, request: Request, path: str, lines: LineRange) -> Result:
        count = MAX_LINES if lines.last is None else min(MAX_LINES, lines.last - lines.first + 1)
        arguments: JsonObject = {"path": path, "start_line": lines.first, "limit": count}
        return await self._read.run(replace(request.call, arguments=arguments), request.checkpoint)


@dataclass(frozen=True, slots=True)
class _TextExcerpt:
    """Some lines of a text file, as they stand in it."""

    lines: LineRange
    window: TextWindow
    content: str

    @property
    def last(self) -> int:
        return self.lines.first + len(self.window.lines) - 1

    @property
    def has_more(self) -> bool:
        """Return whether requested lines are missing."""
        return self.window.next_line is not None and (self.lines.last is None or self.last < self.lines.last)

    def to_result(self, file: OpenHandle) -> Result:
        window = self.window
        cut = any(line.cut for line in window.lines)
        data: JsonObject = {
            **_select_facts(build_facts(file.path, file.stat)),
            "content": self.content,
            "encoding": window.encoding.name,
            "eol": window.eol,
            "lines": f"{self.lines.first}-{self.last}" if window.lines else None,
            "truncated": self.has_more or cut,
            "next_line": window.next_line if self.has_more else None,
        }
        return build_window_result(file.path, window, data, self._write_text(data, cut=cut))

    def _write_text(self, data: JsonObject, *, cut: bool) -> str:
        return join_sentences(*self._list_sentences(data, cut=cut))

    def _list_sentences(self, data: JsonObject, *, cut: bool) -> Iterator[Message]:
        window = self.window
        yield Message("Read '{path}' ({size}).", path=data["path"], size=data["sizeFormatted"])
        if window.lines and (self.has_more or window.total_lines != len(window.lines)):
            yield (
                Message("Lines {lines}.", lines=data["lines"])
                if window.total_lines is None
                else Message("Lines {lines} of {total}.", lines=data["lines"], total=window.total_lines)
            )
        if self.has_more:
            yield Message(
                "(Truncated.) Read on with lines={first}-{last}.", first=self.last + 1, last=self.last + MAX_LINES
            )
        if cut:
            yield Message("A line is too long for an answer and was cut.")
        if not window.encoding.certain:
            yield Message(
                "The encoding is not certain: shown as {name}. Name it if you know it.", name=window.encoding.name
            )


def _read_excerpt(file: OpenHandle, reader: TextReader, lines: LineRange) -> _TextExcerpt:
    if lines.tail is not None:
        lines = lines.resolve(_count_lines(file, reader))
    count = MAX_LINES if lines.last is None else min(MAX_LINES, lines.last - lines.first + 1)
    window = reader.read_window_once(file, WindowLimits(lines.first, count, MAX_BYTES, MAX_BYTES))
    if not window.lines and lines.first > 1:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "'{path}' has {total_lines} lines: line {first} is beyond its end.",
                path=file.path,
                total_lines=window.total_lines,
                first=lines.first,
            ),
            hint=Message("Ask for lines that it has."),
            context={"path_resolved": file.path},
        )
    if lines.is_everything and window.next_line is None and not any(line.cut for line in window.lines):
        body = read_exactly(file.fd, 0, file.stat.st_size)[len(window.encoding.bom) :]
        content = window.encoding.to_utf8(body).decode()  # all of it, to the last line ending
    else:
        content = _ENDINGS.get(window.eol or "", "\n").join(line.display_text for line in window.lines)
    return _TextExcerpt(lines, window, content)


def _count_lines(file: OpenHandle, reader: TextReader) -> int:
    total = reader.read_window_once(file, WindowLimits(1, 1, MAX_BYTES, 1)).total_lines
    if total is None:
        total = reader.read_window_once(file, WindowLimits(_BEYOND, 1, MAX_BYTES, 1)).total_lines
    return total or 0


def _select_facts(about: JsonObject) -> JsonObject:
    return {"path": about["path"], "fileName": about["name"], "size": about["size"]} | {
        name: about[name] for name in ("sizeFormatted", "lastModified")
    }


def _invalid_range(why: str) -> Failure:
    return Failure(
        ErrorCode.INVALID_PARAM,
        Message("'lines' {why}.", why=why),
        hint=Message("Use a form such as head:50, tail:80 or 120-180."),
    )
