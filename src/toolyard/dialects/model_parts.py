"""A result as a model reads it, the same in native calls, request blocks and MCP.

The text comes first and says what happened; then comes what it does not carry, each fact once: the lines of a listing,
the text that was read, the data of a plugin as compact JSON. Nothing that the model wrote itself comes back, nor what
only programs use. A failure is its code and its text, which ends with the next step. The language is that of the
conversation, where the host has the words in it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import groupby
from typing import Any, Final, NamedTuple

from toolyard.dialects.content_parts import list_findings, write_finding
from toolyard.message import Message
from toolyard.protocol.content import Media, Part, Text, is_stored_path
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.plugin_answers.plugin_content import is_repeated, is_written, to_pretty_json
from toolyard.protocol.tool import Outcome, ToolCall
from toolyard.protocol.tool_text import CHINESE, ENGLISH

WriteJson = Callable[[Json], str]


def to_compact_json(value: Json) -> str:
    return json_bytes(value).decode()


def list_parts(
    call: ToolCall, outcome: Outcome, language: str = ENGLISH, *, write_json: WriteJson = to_compact_json
) -> list[Part]:
    """Return the texts and the media of a result, in order; texts that follow each other are one."""
    parts: list[Part] = []
    for part in _list_result(call.tool, outcome, language, write_json):
        last = parts[-1] if parts else None
        if isinstance(part, Text) and isinstance(last, Text):
            parts[-1] = Text(f"{last.text}\n{part.text}")
        else:
            parts.append(part)
    return parts


def join_texts(parts: Iterable[Part]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))


class _Writer(NamedTuple):
    """The lines that follow the text of a built-in tool, which are all that a model needs of data with such keys."""

    keys: Set[str]
    write: Callable[[Envelope], Iterator[str]]


def _list_result(tool: str, outcome: Outcome, language: str, write_json: WriteJson) -> Iterator[Part]:
    if outcome.batch:
        for number, item in enumerate(outcome.batch, 1):
            yield Text(f"({number})")
            yield from _list_result(item.call.tool, item.outcome, language, write_json)
        return
    envelope, extras = outcome.envelope, outcome.extras
    text = envelope.text.chinese if language == CHINESE and isinstance(envelope.text, Message) else str(envelope.text)
    if envelope.error:
        yield Text(f"{envelope.error.code}: {text}")
        yield from (part for part in extras.parts if not isinstance(part, Text) or part.text not in envelope.text)
    elif extras.parts:
        if not any(isinstance(part, Text) for part in extras.parts):
            yield Text(text)
        kept = {reference.get("path") for reference in _objects(envelope.data.get(extras.content_key))}
        for part in extras.parts:
            yield _to_plain_part(part, envelope, extras.content_key, text, write_json)
            if isinstance(part, Media) and is_stored_path(part.source) and part.source in kept:
                yield Text(f"[{part.source}]")  # where the host keeps what a plugin made
        if extras.note:
            yield Text(extras.note.chinese if language == CHINESE and isinstance(extras.note, Message) else extras.note)
        yield from map(Text, map(write_finding, list_findings(envelope.data)))
    elif (writer := _WRITERS.get(tool)) and writer.keys & envelope.data.keys():
        yield from map(Text, (text, *writer.write(envelope)))
    else:
        yield from map(Text, _write_data(text, envelope, write_json))


def _to_plain_part(part: Part, envelope: Envelope, key: str, text: str, write_json: WriteJson) -> Part:
    """Return a part; one that repeats the text or the data has their form. ``key``: of the parts in the data."""
    if isinstance(part, Media):
        return part
    repeated = _find_repeated({name: value for name, value in envelope.data.items() if name != key}, part.text)
    if repeated is not None:
        return Text(write_json(repeated))
    return Text(text) if part.text == envelope.text else part


def _write_data(text: str, envelope: Envelope, write_json: WriteJson) -> Iterator[str]:
    """Yield the text and what it lacks of the data. A text that is nothing but the data is written as the data."""
    data, said = envelope.data, envelope.text
    repeated = _find_repeated(data, said)
    if repeated is not None:
        yield write_json(repeated)
        return
    for value in (data, data.get("result")):
        if isinstance(value, dict | list) and value and said.startswith(written := to_pretty_json(value)):
            yield write_json(value) + said[len(written) :]
            return
    yield text
    rest = _drop_said(data, said)
    content = rest.get("content")
    if isinstance(content, str):
        yield content
        del rest["content"]
    if rest:
        yield write_json(rest)


def _find_repeated(data: JsonObject, text: str) -> Json:
    """Return the data, or its ``result``, if the text is nothing but this as JSON."""
    return next(
        (value for value in (data, data.get("result")) if isinstance(value, dict | list) and is_repeated(value, text)),
        None,
    )


def _drop_said(data: JsonObject, text: str) -> JsonObject:
    """Return the data without values that are the text, and without a result that the text begins with."""
    rest = {name: value for name, value in data.items() if not is_repeated(value, text)}
    if all(str(task.get("task_id")) in text for task in _objects(rest.get("tasks"))):
        rest.pop("tasks", None)  # the placeholders of what goes on in the background
    result = rest.get("result")
    if text.startswith(result) if isinstance(result, str) else is_written(result, text):
        del rest["result"]
    return rest


def _write_entries(envelope: Envelope) -> Iterator[str]:
    """Yield the names of a folder, without the part of the path that the text says, and the size of each file."""
    where = f"{envelope.context.get('path_resolved')}/"
    for entry in _objects(envelope.data["entries"]):
        about = entry.get("size", "link" if entry["type"] == "link" else None)
        name = str(entry["path"]).removeprefix(where)
        yield name if about is None else f"{name}\t{about}"


def _write_paths(envelope: Envelope) -> Iterator[str]:
    return map(str, _list(envelope.data["paths"]))


def _write_matches(envelope: Envelope) -> Iterator[str]:
    """Yield matches as ripgrep prints them for people: each file, its lines with their numbers, an empty line."""
    data = envelope.data
    yield from map(str, _list(data.get("files")))
    yield from (f"{count['file']}:{count['count']}" for count in _objects(data.get("counts")))
    for number, (file, matches) in enumerate(groupby(_objects(data.get("matches")), key=lambda match: match["file"])):
        yield f"\n{file}" if number else str(file)
        yield from _write_lines([*matches])


def _write_lines(matches: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of one file: ``12:text`` is a match, ``11-text`` stands beside one, ``--`` is a gap."""
    lines: dict[int, str] = {}
    for match in matches:
        for beside in (*match.get("before", ()), *match.get("after", ())):
            lines.setdefault(beside["line"], f"{beside['line']}-{beside['text']}")
        lines |= {number: f"{number}:{line}" for number, line in enumerate(match["text"].split("\n"), match["line"])}
    has_gaps = any(match.keys() & {"before", "after"} for match in matches)
    last = min(lines)
    for number in sorted(lines):
        if has_gaps and number > last + 1:
            yield "--"
        yield lines[number]
        last = number


def _write_change(envelope: Envelope) -> Iterator[str]:
    """Yield what a change has beside its text: further findings of the checkers, and the patch of a dry run."""
    data = envelope.data
    yield from map(write_finding, [*list_findings(data)][1:])  # the text has the first
    if data["applied"]:
        return
    files = _objects(data.get("files"))
    for file in files or [data]:
        if len(files) > 1:
            yield str(file["path"])
        for hunk in _objects(file.get("structured_patch")):
            yield f"@@ -{hunk['oldStart']},{hunk['oldLines']} +{hunk['newStart']},{hunk['newLines']} @@"
            yield from hunk["lines"]


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _objects(value: Json) -> list[dict[str, Any]]:
    return [item for item in _list(value) if isinstance(item, dict)]


_CHANGING: Final = ("Write", "Replace", "Edit", "MultiEdit", "NotebookEdit", "NotebookEditCell", "ApplyPatch")
_WRITERS: Final[Mapping[str, _Writer]] = {
    "LS": _Writer({"entries"}, _write_entries),
    "Glob": _Writer({"paths"}, _write_paths),
    "Grep": _Writer({"matches", "files", "counts"}, _write_matches),
    "ToolSearch": _Writer({"tools"}, lambda _: iter(())),  # its text has all of them
    **dict.fromkeys((*_CHANGING, "FileOperator", "ServerFileOperator"), _Writer({"applied"}, _write_change)),
}
