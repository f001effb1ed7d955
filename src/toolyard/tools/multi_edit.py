"""MultiEdit: several pieces of text in one file, all or none."""

from collections.abc import Mapping
from typing import Any

from toolyard.message import Message
from toolyard.protocol.call import ToolCall
from toolyard.protocol.edit import Edit
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.locate import locate
from toolyard.protocol.outcome import Result
from toolyard.protocol.tool import Checkpoint, Risk, ToolSpec
from toolyard.tools.counts import count_edits
from toolyard.tools.edit import NEW_STRING, OLD_STRING, REPLACE_ALL, encode_new_file, require_existing
from toolyard.tools.file_changer import DRY_RUN, EXPECTED_HASH, ChangingTool
from toolyard.tools.many_edits import EditedText
from toolyard.tools.tool_text import load_text
from toolyard.workspace.document import UTF8, Document

SPEC = ToolSpec(
    name="MultiEdit",
    **load_text("MultiEdit", __file__),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "The file, relative to the root."},
            "edits": {
                "type": "array",
                "minItems": 1,
                "description": "The edits, in the order in which they are made. "
                "Each has old_string, new_string and maybe replace_all.",
                "items": {
                    "type": "object",
                    "properties": {"old_string": OLD_STRING, "new_string": NEW_STRING, "replace_all": REPLACE_ALL},
                    "required": ["old_string", "new_string"],
                    "additionalProperties": False,
                },
            },
            "dry_run": DRY_RUN,
            "expected_hash": EXPECTED_HASH,
        },
        "required": ["path", "edits"],
        "additionalProperties": False,
    },
    synonyms={"filePath": "path", "file_path": "path"},
    risk=Risk.WRITE,
    examples=(
        {
            "path": "README.md",
            "edits": [
                {"old_string": "Hello world", "new_string": "Hello, world!"},
                {"old_string": "colour", "new_string": "color", "replace_all": True},
            ],
        },
    ),
    runs_inline=True,
    splits_batches=True,
)


class MultiEdit(ChangingTool):
    spec = SPEC

    def change(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        arguments: Mapping[str, Any] = call.arguments
        edits = [Edit(e["old_string"], e["new_string"], e.get("replace_all", False)) for e in arguments["edits"]]
        applied: list[Json] = []

        def compute(before: Document | None, path: str) -> bytes:
            applied.clear()
            if not edits[0].old:
                document = Document.from_known(
                    encode_new_file(before, edits[0].new, path), before.encoding if before else UTF8
                )
                applied.append(_build_report(1, edits[0], 1))
            else:
                document = require_existing(before, path)
            rest = edits[len(applied) :]
            edited = EditedText(document.text, rest)
            for number, edit in enumerate(rest, len(applied) + 1):
                checkpoint()
                seen = edited.text if document.encoding.guessed else ""
                put = _make_edit(edited, edit, number, len(edits))
                for text in put:
                    document.encode_text(text, path)  # refused here, before anything is written
                if seen:
                    Document.from_known(document.encode_whole(seen), document.encoding).splice(
                        locate(seen, edit).splices, path
                    )
                applied.append(_build_report(number, edit, len(put)))
            return document.encode_whole(edited.text)

        changed = self._files.change(call, checkpoint, compute)
        name = changed.path.rpartition("/")[2]
        summary = f"Successfully applied {len(edits)} edits to {name}"
        data: JsonObject = {
            "edits_applied": applied,
            "total_edits": len(edits),
            "was_new_file": changed.before is None,
            "summary": summary,
        }
        made = Message("edit.made", "Made {edits} in '{path}'.", edits=count_edits(len(edits)), path=changed.path)
        return changed.build_result(made, data)


def _make_edit(edited: EditedText, edit: Edit, number: int, total: int) -> tuple[str, ...]:
    try:
        if not edit.old:
            raise Failure(
                ErrorCode.INVALID_PARAM,
                Message("file.old_string_empty", "old_string is empty."),
                hint=Message("hint.first_edit_makes_file", "Only the first edit may make a new file."),
            )
        return edited.make_next()
    except Failure as failure:
        raise Failure(
            failure.reason or failure.code,
            Message(
                "edit.batch_failed",
                "Edit {number} of {total} failed, so none was made: {message}",
                number=number,
                total=total,
                message=failure.message,
            ),
            hint=failure.hint,
            data={"failed_edit": number, **failure.data},
        ) from failure


def _build_report(number: int, edit: Edit, occurrences: int) -> dict[str, Json]:
    return {
        "edit_index": number,
        "success": True,
        "old_string": edit.old,
        "new_string": edit.new,
        "occurrences": occurrences,
    }
