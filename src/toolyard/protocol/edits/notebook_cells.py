"""Edits one cell of a Jupyter notebook, in the notebook's own text: replace, insert or delete.

The text is spliced: everything outside the cell stays as it is by construction, and so does the rest of the cell. New
parts are written in the notebook's style: its indentation, its order of keys, ``source`` as a list of
lines or as one string, other characters than ASCII as they are or escaped. A valid notebook stays valid for nbformat,
and a cell that was damaged (outputs in a Markdown cell, no ``execution_count`` in a code cell) comes out sound.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from toolyard.message import Message
from toolyard.protocol.edits import json_text
from toolyard.protocol.edits.json_text import Container, Layout
from toolyard.protocol.edits.text_edit import Splice, apply_splices
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.json import JsonObject

_NEVER_RUN = {"execution_count": "null", "outputs": "[]"}  # required in code cells, forbidden in others
_ESCAPED = re.compile(r"(?<!\\)(?:\\\\)*\\u(?!00[0-7])[0-9A-Fa-f]{4}")  # a character beyond ASCII
_LONE = re.compile("[\ud800-\udfff]")
_ID_LENGTH = 64  # nbformat's limit
_IDS_SHOWN = 5


class CellType(StrEnum):
    CODE = "code"
    MARKDOWN = "markdown"
    RAW = "raw"


class EditMode(StrEnum):
    REPLACE = "replace"
    INSERT = "insert"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEdit:
    """Names the cell by its number from 0, its id, or both. A new cell is put at this number; number n appends."""

    mode: EditMode = EditMode.REPLACE
    cell_number: int | None = None
    cell_id: str | None = None
    new_source: str | None = None  # a deletion needs none
    cell_type: CellType | None = None  # None: as it was; a new cell is code


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedNotebook:
    text: str
    splices: tuple[Splice, ...]
    cell_number: int
    cell_type: str  # after the edit; of a deleted cell, the one it had
    language: str
    total_cells: int  # after the edit


def edit_cell(text: str, edit: CellEdit, new_id: str) -> EditedNotebook:
    """Return the notebook after one edit. ``new_id`` is for a cell that needs one. Raises Failure when impossible."""
    if edit.new_source is None and edit.mode is not EditMode.DELETE:
        raise Failure(
            ErrorCode.INVALID_PARAM, Message("new_source is missing: edit_mode={mode} needs it.", mode=edit.mode)
        )
    notebook = NotebookText.parse(text)
    number = _find_cell(notebook, edit)
    cell_type, splices = _build_splices(notebook, number, edit, new_id)
    changed = apply_splices(text, splices)
    if changed == text:
        raise Failure(
            Reason.NO_CHANGE,
            Message("Cell {number} already is like that: nothing would change.", number=number),
            data={**notebook.facts, "cell_number": number, "cell_type": cell_type},
        )
    growth = {EditMode.REPLACE: 0, EditMode.INSERT: 1, EditMode.DELETE: -1}[edit.mode]
    return EditedNotebook(
        text=changed,
        splices=splices,
        cell_number=number,
        cell_type=cell_type,
        language=notebook.language,
        total_cells=len(notebook.cells) + growth,
    )


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
                    "{count} cells have the id '{cell_id}': {numbers}.",
                    count=len(numbers),
                    cell_id=cell_id,
                    numbers=_quote_values(numbers),
                ),
                hint=Message("Use cell_number."),
                data={**self.facts, "cell_numbers": list(numbers)},
            )
        near = self._find_nearest_ids(cell_id)
        known = (
            Message(" The nearest ids are {ids}.", ids=_quote_values(near))
            if near
            else Message(" The cells of this notebook have no ids.")
        )
        raise Failure(
            Reason.NOT_FOUND_IN_FILE,
            Message("No cell has the id '{cell_id}'.{known}", cell_id=cell_id[:_ID_LENGTH], known=known),
            hint=Message("Read the notebook, or use cell_number."),
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


def _build_splices(notebook: NotebookText, number: int, edit: CellEdit, new_id: str) -> tuple[str, tuple[Splice, ...]]:
    """The type the cell then has, and the splices."""
    if edit.mode is EditMode.INSERT:
        return _insert_cell(notebook, number, edit, new_id)
    old_type = notebook.cells[number].get("cell_type")
    if not isinstance(old_type, str):
        old_type = CellType.RAW  # a cell without a type can only be raw
    if edit.mode is EditMode.DELETE:
        return escape_surrogates(old_type), json_text.change_parts(notebook.array, notebook.shape, gone=(number,))
    cell_type = edit.cell_type or old_type
    return escape_surrogates(cell_type), _replace_cell(notebook, number, cell_type, edit.new_source or "", new_id)


def _explain_numbers(count: int) -> Message:
    return Message(
        "cell_number counts from 0; with edit_mode=insert, {count} puts the new cell at the end.", count=count
    )


def _find_cell(notebook: NotebookText, edit: CellEdit) -> int:
    count = len(notebook.cells)
    of_id = notebook.find_number(edit.cell_id) if edit.cell_id else None
    number = of_id if edit.cell_number is None else edit.cell_number
    if number is None:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("Which cell is meant? Both cell_number and cell_id are missing."),
            hint=_explain_numbers(count),
            data=notebook.facts,
        )
    if not 0 <= number < count + (edit.mode is EditMode.INSERT):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "Cell number is out of bounds. Notebook has {count} cells.", count=count
            ),  # worded as the back end's protocol requires
            hint=_explain_numbers(count),
            data=notebook.facts,
        )
    if of_id not in (None, number):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "cell_number {number} and cell_id '{cell_id}' are two cells: the id is that of cell {of_id}.",
                number=number,
                cell_id=edit.cell_id,
                of_id=of_id,
            ),
            hint=Message("Give one of the two."),
            data=notebook.facts,
        )
    return number


def _insert_cell(notebook: NotebookText, number: int, edit: CellEdit, new_id: str) -> tuple[str, tuple[Splice, ...]]:
    cell_type = edit.cell_type or CellType.CODE
    keys, shape = notebook.find_example(number, cell_type)
    members = {"cell_type": json.dumps(cell_type), "metadata": "{}"}
    members["source"] = notebook.write_source(edit.new_source or "", number, None, shape)
    if notebook.needs_ids:
        members["id"] = json.dumps(notebook.choose_id(new_id))
    if cell_type is CellType.CODE:
        members |= _NEVER_RUN
    order = [key for key in keys if key in members]
    for key in sorted(members.keys() - set(order)):
        order.insert(_choose_key_place(order, key), key)
    cell = shape.write("{}", [shape.member(key, members[key]) for key in order])
    return cell_type, json_text.change_parts(notebook.array, notebook.shape, new=[(number, cell)])


def _replace_cell(notebook: NotebookText, number: int, cell_type: str, source: str, new_id: str) -> tuple[Splice, ...]:
    cell, shape = notebook.read_layout(number)
    old = notebook.cells[number]
    updates = _changed_keys(old, cell_type)
    if join_source(old.get("source")) != source:
        updates["source"] = notebook.write_source(source, number, old.get("source"), shape)
    if notebook.needs_ids and "id" not in old:
        updates["id"] = json.dumps(notebook.choose_id(new_id))
    keys, numbers = [part.key for part in cell.parts], cell.numbers
    members = json_text.change_parts(
        cell,
        shape,
        values={numbers[key]: value for key, value in updates.items() if key in numbers and value is not None},
        gone=[at for at, key in enumerate(keys) if key in updates and updates[key] is None],
        new=[
            (_choose_key_place(keys, key), shape.member(key, value))
            for key, value in sorted(updates.items())
            if key not in numbers and value is not None
        ],
    )
    unfit = _list_unfit_metadata(old.get("metadata"), cell_type) if "cell_type" in updates else []
    inner = notebook.remove_metadata(cell, unfit) if unfit else ()
    return tuple(sorted((*members, *inner), key=lambda splice: (splice.start, splice.end)))


def _changed_keys(cell: dict[str, Any], cell_type: str) -> dict[str, str | None]:
    """Return the keys of the cell that must change, with their new values; None removes a key."""
    updates: dict[str, str | None] = {}
    if cell.get("cell_type") != cell_type:
        updates["cell_type"] = json.dumps(cell_type)
    if "metadata" not in cell:
        updates["metadata"] = "{}"
    if cell_type == CellType.CODE:
        fresh = {key: json.loads(value) for key, value in _NEVER_RUN.items()}
        updates |= {key: _NEVER_RUN[key] for key in fresh if cell.get(key, ...) != fresh[key]}
        updates |= {"attachments": None} if "attachments" in cell else {}
    elif cell_type in list(CellType):
        updates |= {key: None for key in _NEVER_RUN if key in cell}
    return updates


def _list_unfit_metadata(metadata: object, cell_type: str) -> list[str]:
    """The keys of a cell's metadata whose values cannot be what the key means in a cell of this type."""
    if not isinstance(metadata, dict):
        return []
    fits = _METADATA.get(cell_type, {})
    return [key for key, value in metadata.items() if key in fits and not fits[key](value)]


def _choose_key_place(keys: Sequence[str], key: str) -> int:
    """Choose the place of a new key: alphabetical, as nbformat sorts them; last when the keys are not sorted."""
    return bisect_left(keys, key) if list(keys) == sorted(keys) else len(keys)


_METADATA: Mapping[str, Mapping[str, Callable[[object], bool]]] = {
    CellType.CODE: {
        "collapsed": lambda value: isinstance(value, bool),
        "scrolled": lambda value: isinstance(value, bool) or value == "auto",
        "execution": lambda value: isinstance(value, dict) and all(isinstance(time, str) for time in value.values()),
    },
    CellType.RAW: {"format": lambda value: isinstance(value, str)},
}


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
        raise _not_a_notebook(Message("the file is empty"))
    try:
        content: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise _not_a_notebook(
            Message(
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
            Message("its JSON holds numbers too long, or values nested too deeply, to be read")
        ) from error
    if not isinstance(content, dict):
        raise _not_a_notebook(Message("its JSON is not an object"))
    version = content.get("nbformat", 4)  # a list of cells implies version 4
    if version != 4:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "The notebook is of format {version}; only format 4 can be edited.", version=json.dumps(version)[:20]
            ),
            hint=Message("Convert it first: jupyter nbconvert --to notebook FILE, or open and save it in Jupyter."),
        )
    if not isinstance(content.get("cells"), list):
        raise _not_a_notebook(
            Message("it has no list of cells, only worksheets as in format 3")
            if "worksheets" in content
            else Message("it has no list of cells")
        )
    for number, cell in enumerate(content["cells"]):
        if not isinstance(cell, dict):
            raise _not_a_notebook(Message("cell {number} is not an object", number=number))
    return content


def _not_a_notebook(why: str, line: int | None = None, column: int | None = None) -> Failure:
    return Failure(
        ErrorCode.INVALID_PARAM,
        Message("This is not a notebook that can be edited: {why}.", why=why),
        hint=Message("Edit, MultiEdit and Write change it as text."),
        data={} if line is None else {"line": line, "column": column},
    )


def _quote_values(values: Collection[object]) -> str:
    shown = [f"'{value}'" if isinstance(value, str) else str(value) for value in list(values)[:_IDS_SHOWN]]
    return ", ".join(shown) + (", ..." if len(values) > _IDS_SHOWN else "")
