"""Edits one cell of a Jupyter notebook, in the notebook's own text: replace, insert or delete.

The text is spliced: everything outside the cell stays as it is by construction, and so does the rest of the cell. New
parts are written in the notebook's style: its indentation, its order of keys, ``source`` as a list of
lines or as one string, other characters than ASCII as they are or escaped. A valid notebook stays valid for nbformat,
and a cell that was damaged (outputs in a Markdown cell, no ``execution_count`` in a code cell) comes out sound.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from toolyard.message import Message
from toolyard.protocol import json_text
from toolyard.protocol.edit import Splice, apply_splices
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.notebook_text import NotebookText, escape_surrogates, join_source


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
            ErrorCode.INVALID_PARAM,
            Message(
                "notebook.new_source_missing",
                "new_source is missing: edit_mode={mode} needs it.",
                mode=edit.mode,
            ),
        )
    notebook = NotebookText.parse(text)
    number = _find_cell(notebook, edit)
    cell_type, splices = _build_splices(notebook, number, edit, new_id)
    changed = apply_splices(text, splices)
    if changed == text:
        raise Failure(
            Reason.NO_CHANGE,
            Message(
                "notebook.cell_unchanged",
                "Cell {number} already is like that: nothing would change.",
                number=number,
            ),
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
        "hint.cell_numbers",
        "cell_number counts from 0; with edit_mode=insert, {count} puts the new cell at the end.",
        count=count,
    )


def _find_cell(notebook: NotebookText, edit: CellEdit) -> int:
    count = len(notebook.cells)
    of_id = notebook.find_number(edit.cell_id) if edit.cell_id else None
    number = of_id if edit.cell_number is None else edit.cell_number
    if number is None:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("notebook.cell_not_specified", "Which cell is meant? Both cell_number and cell_id are missing."),
            hint=_explain_numbers(count),
            data=notebook.facts,
        )
    if not 0 <= number < count + (edit.mode is EditMode.INSERT):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "notebook.cell_out_of_bounds",
                "Cell number is out of bounds. Notebook has {count} cells.",
                count=count,
            ),  # worded as the back end's protocol requires
            hint=_explain_numbers(count),
            data=notebook.facts,
        )
    if of_id not in (None, number):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "notebook.cell_number_id_mismatch",
                "cell_number {number} and cell_id '{cell_id}' are two cells: the id is that of cell {of_id}.",
                number=number,
                cell_id=edit.cell_id,
                of_id=of_id,
            ),
            hint=Message("hint.give_one_of_two", "Give one of the two."),
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


_NEVER_RUN = {"execution_count": "null", "outputs": "[]"}  # required in code cells, forbidden in others

_METADATA: Mapping[str, Mapping[str, Callable[[object], bool]]] = {
    CellType.CODE: {
        "collapsed": lambda value: isinstance(value, bool),
        "scrolled": lambda value: isinstance(value, bool) or value == "auto",
        "execution": lambda value: isinstance(value, dict) and all(isinstance(time, str) for time in value.values()),
    },
    CellType.RAW: {"format": lambda value: isinstance(value, str)},
}
