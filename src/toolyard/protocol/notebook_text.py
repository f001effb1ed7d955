"""A Jupyter notebook as text: the positions of its cells, and the style in which it is written."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from toolyard.message import Message
from toolyard.protocol import json_text
from toolyard.protocol.edit import Splice
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.json_text import Container, Layout

_ESCAPED = re.compile(r"(?<!\\)(?:\\\\)*\\u(?!00[0-7])[0-9A-Fa-f]{4}")  # a character beyond ASCII
_LONE = re.compile("[\ud800-\udfff]")
_ID_LENGTH = 64  # nbformat's limit
_IDS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class NotebookText:
    text: str
    content: dict[str, Any]
    array: Container  # the list of cells
    shape: Layout  # its layout
    escapes: bool  # characters beyond ASCII are written \\uXXXX

    @classmethod
    def parse(cls, text: str) -> "NotebookText":
        content = _parse_notebook(text)
        root = json_text.read_container(text)
        array = json_text.read_container(text, root.parts[root.numbers["cells"]].value)
        shape = json_text.read_layout(text, array, json_text.read_layout(text, root, Layout()))
        escapes = text.isascii() and _ESCAPED.search(text) is not None
        return cls(text, content, array, shape, escapes)

    @property
    def cells(self) -> list[dict[str, Any]]:
        cells: list[dict[str, Any]] = self.content["cells"]
        return cells

    @property
    def language(self) -> str:
        return read_language(self.content)

    @property
    def facts(self) -> JsonObject:
        """Facts about the notebook that hold even when an edit fails."""
        return {"language": self.language, "total_cells": len(self.cells)}

    @property
    def needs_ids(self) -> bool:
        minor = self.content.get("nbformat_minor")
        return isinstance(minor, int) and minor >= 5

    def choose_id(self, new_id: str) -> str:
        """``new_id``, or one like it when a cell already has it."""
        taken, number, fresh = set(self._list_ids()), 1, new_id
        while fresh in taken:
            number += 1
            fresh = f"{new_id[: _ID_LENGTH - 12]}-{number}"
        return fresh

    def find_number(self, cell_id: str) -> int:
        numbers = [number for number, cell in enumerate(self.cells) if cell.get("id") == cell_id]
        if len(numbers) == 1:
            return numbers[0]
        if numbers:
            raise Failure(
                Reason.NOT_UNIQUE,
                Message(
                    "notebook.duplicate_cell_id",
                    "{count} cells have the id '{cell_id}': {numbers}.",
                    count=len(numbers),
                    cell_id=cell_id,
                    numbers=_quote_values(numbers),
                ),
                hint=Message("hint.use_cell_number", "Use cell_number."),
                data={**self.facts, "cell_numbers": list(numbers)},
            )
        near = self._find_nearest_ids(cell_id)
        known = (
            Message("notebook.nearest_ids", " The nearest ids are {ids}.", ids=_quote_values(near))
            if near
            else Message("notebook.no_ids", " The cells of this notebook have no ids.")
        )
        raise Failure(
            Reason.NOT_FOUND_IN_FILE,
            Message(
                "notebook.no_cell_id",
                "No cell has the id '{cell_id}'.{known}",
                cell_id=cell_id[:_ID_LENGTH],
                known=known,
            ),
            hint=Message("hint.read_notebook", "Read the notebook, or use cell_number."),
            data={**self.facts, "nearest": list(near)},
        )

    def read_layout(self, number: int) -> tuple[Container, Layout]:
        cell = json_text.read_container(self.text, self.array.parts[number].start)
        return cell, json_text.read_layout(self.text, cell, self.shape)

    def find_example(self, number: int, cell_type: str) -> tuple[list[str], Layout]:
        """The keys and the layout that a new cell here should have: those of the nearest, if it can be of its type."""
        near = self._find_nearest(number, lambda cell: cell.get("cell_type") == cell_type)
        if near is None:
            if not self.cells:
                return [], self.shape.inner
            near = min(number, len(self.cells) - 1)
        cell, shape = self.read_layout(near)
        return list(cell.numbers), shape

    def write_source(self, source: str, number: int, old: object, shape: Layout) -> str:
        """A source for the cell with this number and layout, in the style of its ``old`` one or of the notebook."""
        as_list = isinstance(old, list) if old else self._lists_sources()
        if not as_list:
            return self._write_string(source)
        near = self._find_nearest(number, lambda cell: isinstance(cell.get("source"), list) and bool(cell["source"]))
        inner = shape.inner
        if near is not None:
            cell, around = self.read_layout(near)
            lines = json_text.read_container(self.text, cell.parts[cell.numbers["source"]].value)
            inner = json_text.read_layout(self.text, lines, around)
        return inner.write(
            "[]", [self._write_string(line) for line in source.splitlines(keepends=True)]
        )  # as nbformat does

    def remove_metadata(self, cell: Container, keys: Collection[str]) -> tuple[Splice, ...]:
        metadata = json_text.read_container(self.text, cell.parts[cell.numbers["metadata"]].value)
        gone = [number for number, part in enumerate(metadata.parts) if part.key in keys]
        return json_text.change_parts(metadata, self.shape, gone=gone)

    def _write_string(self, value: str) -> str:
        if self.escapes:
            return json.dumps(value)
        return _LONE.sub(lambda lone: f"\\u{ord(lone[0]):04x}", json.dumps(value, ensure_ascii=False))

    def _lists_sources(self) -> bool:
        sources = [cell.get("source") for cell in self.cells]
        lists = sum(isinstance(source, list) for source in sources)
        return lists >= sum(isinstance(source, str) and bool(source) for source in sources)

    def _find_nearest(self, number: int, fits: Callable[[dict[str, Any]], bool]) -> int | None:
        fitting = (other for other, cell in enumerate(self.cells) if fits(cell))
        return min(fitting, key=lambda other: abs(other - number), default=None)

    def _list_ids(self) -> list[str]:
        return [cell["id"] for cell in self.cells if isinstance(cell.get("id"), str)]

    def _find_nearest_ids(self, cell_id: str) -> list[str]:
        from rapidfuzz import fuzz, process  # only a miss needs it

        matches = process.extract(cell_id[:_ID_LENGTH], self._list_ids(), scorer=fuzz.ratio, limit=_IDS_SHOWN)
        return [escape_surrogates(found_id[:_ID_LENGTH]) for found_id, _, _ in matches]


def read_language(notebook: Mapping[str, Any]) -> str:
    metadata = notebook.get("metadata")
    for key, field in (("language_info", "name"), ("kernelspec", "language")):
        info = metadata.get(key) if isinstance(metadata, dict) else None
        if isinstance(info, dict) and isinstance(info.get(field), str):
            return escape_surrogates(info[field])
    return "python"


def escape_surrogates(text: str) -> str:
    """JSON can write half characters, which UTF-8 cannot carry."""
    return text.encode(errors="backslashreplace").decode()


def join_source(source: object) -> str | None:
    """Join a source into one text; None when it is not a source."""
    if isinstance(source, str):
        return source
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        return "".join(source)
    return None


def _parse_notebook(text: str) -> dict[str, Any]:
    if not text.strip():
        raise _not_a_notebook(Message("notebook.empty", "the file is empty"))
    try:
        content: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise _not_a_notebook(
            Message(
                "notebook.invalid_json",
                "it is not valid JSON: {reason} (line {line}, column {column})",
                reason=error.msg,
                line=error.lineno,
                column=error.colno,
            ),
            error.lineno,
            error.colno,
        ) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; brackets a thousand deep
        raise _not_a_notebook(
            Message(
                "notebook.unreadable_json", "its JSON holds numbers too long, or values nested too deeply, to be read"
            )
        ) from error
    if not isinstance(content, dict):
        raise _not_a_notebook(Message("notebook.not_an_object", "its JSON is not an object"))
    version = content.get("nbformat", 4)  # a list of cells implies version 4
    if version != 4:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "notebook.unsupported_format",
                "The notebook is of format {version}; only format 4 can be edited.",
                version=json.dumps(version)[:20],
            ),
            hint=Message(
                "hint.convert_notebook",
                "Convert it first: jupyter nbconvert --to notebook FILE, or open and save it in Jupyter.",
            ),
        )
    if not isinstance(content.get("cells"), list):
        raise _not_a_notebook(
            Message("notebook.only_worksheets", "it has no list of cells, only worksheets as in format 3")
            if "worksheets" in content
            else Message("notebook.no_cells", "it has no list of cells")
        )
    for number, cell in enumerate(content["cells"]):
        if not isinstance(cell, dict):
            raise _not_a_notebook(Message("notebook.invalid_cell", "cell {number} is not an object", number=number))
    return content


def _not_a_notebook(why: str, line: int | None = None, column: int | None = None) -> Failure:
    return Failure(
        ErrorCode.INVALID_PARAM,
        Message("notebook.not_editable", "This is not a notebook that can be edited: {why}.", why=why),
        hint=Message("hint.edit_as_text", "Edit, MultiEdit and Write change it as text."),
        data={} if line is None else {"line": line, "column": column},
    )


def _quote_values(values: Collection[object]) -> str:
    shown = [f"'{value}'" if isinstance(value, str) else str(value) for value in list(values)[:_IDS_SHOWN]]
    return ", ".join(shown) + (", ..." if len(values) > _IDS_SHOWN else "")
