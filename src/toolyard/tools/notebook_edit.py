"""NotebookEdit: one cell of a Jupyter notebook."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from toolyard.message import Message
from toolyard.protocol.edits.notebook_cells import CellEdit, CellType, EditedNotebook, EditMode, edit_cell
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Checkpoint, Result, Risk, ToolCall, ToolSpec
from toolyard.tools.edit import require_existing
from toolyard.tools.file_changer import DRY_RUN, EXPECTED_HASH, ChangingTool
from toolyard.tools.tool_words import load_text
from toolyard.workspace.document import Document

SPEC = ToolSpec(
    **load_text(__file__),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "The notebook, relative to the root."},
            "cell_number": {"type": "integer", "minimum": 0, "description": "The cell, counted from 0."},
            "cell_id": {"type": "string", "minLength": 1, "description": "The cell's id, instead of its number."},
            "new_source": {"type": "string", "description": "The cell's new content; not needed to delete."},
            "cell_type": {
                "enum": [kind.value for kind in CellType],
                "description": "What the cell is to be.",
            },
            "edit_mode": {
                "enum": [mode.value for mode in EditMode],
                "default": EditMode.REPLACE.value,
                "description": "What to do with the cell.",
            },
            "dry_run": DRY_RUN,
            "expected_hash": EXPECTED_HASH,
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    synonyms={"notebook_path": "path", "filePath": "path", "file_path": "path"},
    risk=Risk.WRITE,
    examples=({"path": "analysis.ipynb", "cell_number": 0, "new_source": "print(1 + 1)"},),
    splits_batches=True,
    unlisted=("dry_run", "expected_hash"),
)


class NotebookEdit(ChangingTool):
    spec = SPEC

    def change(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        arguments: Mapping[str, Any] = call.arguments
        edit = CellEdit(
            mode=EditMode(arguments["edit_mode"]),
            cell_number=arguments.get("cell_number"),
            cell_id=arguments.get("cell_id"),
            new_source=arguments.get("new_source"),
            cell_type=CellType(arguments["cell_type"]) if arguments.get("cell_type") else None,
        )
        edited: list[EditedNotebook] = []

        def compute(before: Document | None, path: str) -> bytes:
            document = require_existing(before, path, Message("Check the path, or list its folder with LS."))
            edited[:] = [edit_cell(document.text, edit, uuid4().hex[:8])]
            return document.splice(edited[0].splices, path)

        changed = self._files.change(call, checkpoint, compute)
        notebook = edited[0]
        data: JsonObject = {
            "cell_number": notebook.cell_number,
            "cell_type": notebook.cell_type,
            "language": notebook.language,
            "edit_mode": edit.mode.value,
            "total_cells": notebook.total_cells,
        }
        return changed.build_result(_describe_edit(edit.mode, notebook.cell_number, changed.path), data)


def _describe_edit(mode: EditMode, number: int, path: str) -> Message:
    match mode:
        case EditMode.REPLACE:
            return Message("Replaced cell {number} of '{path}'.", number=number, path=path)
        case EditMode.INSERT:
            return Message("Inserted cell {number} of '{path}'.", number=number, path=path)
        case EditMode.DELETE:
            return Message("Deleted cell {number} of '{path}'.", number=number, path=path)
