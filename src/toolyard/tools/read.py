"""Read: a file's lines, its media or its cells."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolyard.message import Message, join_sentences
from toolyard.protocol.content import SNIFF_BYTES, Media, Text, sniff
from toolyard.protocol.envelope import ErrorCode, Extras, Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.result_limits import MAX_BYTES, MAX_LINE_CHARS, MAX_LINES
from toolyard.protocol.tool import Checkpoint, Result, ToolCall, ToolSpec
from toolyard.tools.readers import Page, notebook, pdf
from toolyard.tools.tool_words import load_text
from toolyard.tools.worker_thread import in_thread
from toolyard.workspace.encoding import BINARY_PROBE, looks_binary
from toolyard.workspace.read_history import ReadHistory
from toolyard.workspace.text_reader import SMALL_FILE, TextReader, TextWindow, WindowLimits
from toolyard.workspace.workspace import OpenHandle, Workspace, read_consistently, read_exactly

SPEC = ToolSpec(
    **load_text(__file__, max_lines=MAX_LINES, max_bytes=MAX_BYTES, max_line_chars=MAX_LINE_CHARS),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "The file, relative to the root."},
            "start_line": {"type": "integer", "minimum": 1, "default": 1, "description": "The first line to return."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_LINES,
                "default": MAX_LINES,
                "description": "How many lines to return.",
            },
            "encoding": {"type": "string", "minLength": 1, "description": "The encoding, when the one found is wrong."},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    synonyms={"filePath": "path", "file_path": "path", "offset": "start_line"},
    examples=({"path": "README.md"},),
    splits_batches=True,
)


class Read:
    spec = SPEC

    def __init__(self, workspace: Workspace, reads: ReadHistory, *, fallback_encodings: Sequence[str]) -> None:
        self._workspace, self._reads, self._fallbacks = workspace, reads, fallback_encodings

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        result = await in_thread(self._read, call.arguments, checkpoint)
        if "hash" in result.data:  # what the caller has seen whole, it may later replace
            self._reads.remember(call.caller, str(result.context["path_resolved"]), str(result.data["hash"]))
        return result

    def _read(self, arguments: Mapping[str, Any], checkpoint: Checkpoint) -> Result:
        page = Page(arguments["start_line"], arguments["limit"])
        encoding: str | None = arguments.get("encoding")
        with self._workspace.open_file(arguments["path"]) as file:
            size = file.stat.st_size
            head = read_exactly(file.fd, 0, min(size, BINARY_PROBE))
            mime = None if encoding else sniff(head[:SNIFF_BYTES])
            if mime is not None:
                return _read_media(file, mime, page, checkpoint)
            if looks_binary(head) and not encoding:
                raise Failure(
                    ErrorCode.BINARY_FILE,
                    Message(
                        "'{path}' is a binary file of {size} bytes that is no image, audio, video or PDF.",
                        path=file.path,
                        size=size,
                    ),
                    hint=Message("If it is text after all, name its encoding, such as encoding=utf-16-le."),
                )
            if file.path.endswith(".ipynb") and size <= SMALL_FILE and not encoding:
                cells = notebook.read(read_consistently(file, _read_whole), file.path, page)
                if cells is not None:
                    return cells
            limits = WindowLimits(page.start, page.limit, MAX_BYTES, MAX_LINE_CHARS)
            return _build_text_result(
                file, TextReader(encoding, self._fallbacks, checkpoint).read_window(file, limits), page
            )


def _build_text_result(file: OpenHandle, window: TextWindow, page: Page) -> Result:
    if not window.lines and page.start > 1:
        raise page.beyond_end_failure(file.path, window.total_lines or 0, "lines")
    cuts = len([line for line in window.lines if line.cut])
    texts = [line.display_text if line.cut else line.text for line in window.lines]
    content = "\n".join([f"{number}\t{text}" for number, text in enumerate(texts, page.start)])
    data: JsonObject = {
        "content": content,
        "truncated": window.next_line is not None or cuts > 0,
        "encoding": window.encoding.name,
        "eol": window.eol,
        "next_line": window.next_line,
    }
    return build_window_result(file.path, window, data, _write_summary(file, window, page, cuts))


def build_window_result(path: str, window: TextWindow, data: JsonObject, text: str) -> Result:
    """Build the result of a part of a text file: its content is in ``data``, and ``text`` says what was read."""
    stats: dict[str, int | float | str] = {"lines": len(window.lines), "bytes": window.size}
    if window.total_lines is not None:
        data = data | {"hash": window.hash, "total_lines": window.total_lines}
        stats["total_lines"] = window.total_lines
    return Result(
        data=data,
        text=text,
        partial=not window.encoding.certain,
        stats=stats,
        context={"path_resolved": path, "truncation_skip": True},
        extras=Extras(parts=(Text(text), Text(str(data["content"])))),
    )


def _write_summary(file: OpenHandle, window: TextWindow, page: Page, cuts: int) -> str:
    if not window.lines:
        return Message("Read '{path}': the file is empty.", path=file.path)
    return join_sentences(
        _write_range(file.path, page.start, page.start + len(window.lines) - 1, window.total_lines),
        *_list_remarks(window, page, cuts),
    )


def _write_range(path: str, first: int, last: int, total: int | None) -> Message:
    if total is None:
        return Message("Read lines {first}-{last} of '{path}'.", first=first, last=last, path=path)
    return Message("Read lines {first}-{last} of {total} of '{path}'.", first=first, last=last, total=total, path=path)


def _list_remarks(window: TextWindow, page: Page, cuts: int) -> Iterator[Message]:
    if window.next_line is not None and len(window.lines) == page.limit:
        yield Message("(Truncated.) Use start_line={line} to read on.", line=window.next_line)
    elif window.next_line is not None:
        yield Message(
            "(Truncated at {most} bytes.) Use start_line={line} to read on.", most=MAX_BYTES, line=window.next_line
        )
    if cuts:
        yield Message(
            "Lines longer than {most} characters are cut: {count}. Search inside them with Grep.",
            most=MAX_LINE_CHARS,
            count=cuts,
        )
    if not window.encoding.certain:
        yield Message(
            "The encoding is not certain: shown as {name}, and bytes that are no text in it as \\xNN. "
            "Name the encoding if you know it.",
            name=window.encoding.name,
        )


def _read_media(file: OpenHandle, mime: str, page: Page, checkpoint: Checkpoint) -> Result:
    raw = read_consistently(file, _read_whole)
    size = len(raw)
    media = Media(mime, raw, file.path.rpartition("/")[2], source=file.path)
    if mime == "application/pdf":
        return pdf.read(media, file.path, page, checkpoint)
    text = Message("Read '{path}' ({mime}, {size} bytes).", path=file.path, mime=mime, size=size)
    return Result(
        data={"mime": mime, "size": size, "hash": hashlib.sha256(raw).hexdigest(), "truncated": False},
        text=text,
        stats={"bytes": size},
        context={"path_resolved": file.path, "truncation_skip": True},
        extras=Extras(parts=(Text(text), media)),
    )


def _read_whole(file: OpenHandle) -> bytes:
    size = file.stat.st_size
    if size > SMALL_FILE:
        raise Failure(
            Reason.TOO_LARGE,
            Message(
                "'{path}' has {size} bytes; media are read whole, up to {small_file} bytes.",
                path=file.path,
                size=size,
                small_file=SMALL_FILE,
            ),
            hint=Message("Make a smaller copy of it."),
        )
    return read_exactly(file.fd, 0, size)
