"""Edit: one piece of text in a file."""

from collections.abc import Mapping
from typing import Any

from toolyard.message import Message
from toolyard.protocol.call import ToolCall
from toolyard.protocol.edit import Edit as TextEdit
from toolyard.protocol.edit import Match
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.locate import locate
from toolyard.protocol.outcome import Result
from toolyard.protocol.tool import Checkpoint, Risk, ToolSpec
from toolyard.tools.file_changer import DRY_RUN, EXPECTED_HASH, ChangingTool
from toolyard.tools.tool_text import load_text
from toolyard.workspace.document import Document

OLD_STRING: JsonObject = {"type": "string", "description": "The text to replace, exactly as it stands in the file."}
NEW_STRING: JsonObject = {"type": "string", "description": "The text to put in its place."}
REPLACE_ALL: JsonObject = {"type": "boolean", "default": False, "description": "Replace every place, not just one."}

SPEC = ToolSpec(
    name="Edit",
    **load_text("Edit", __file__),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "The file, relative to the root."},
            "old_string": OLD_STRING,
            "new_string": NEW_STRING,
            "replace_all": REPLACE_ALL,
            "dry_run": DRY_RUN,
            "expected_hash": EXPECTED_HASH,
        },
        "required": ["path", "old_string", "new_string"],
        "additionalProperties": False,
    },
    synonyms={"filePath": "path", "file_path": "path"},
    risk=Risk.WRITE,
    examples=({"path": "README.md", "old_string": "Hello world", "new_string": "Hello, world!"},),
    runs_inline=True,
    splits_batches=True,
)


class Edit(ChangingTool):
    spec = SPEC

    def change(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        arguments: Mapping[str, Any] = call.arguments
        edit = TextEdit(arguments["old_string"], arguments["new_string"], arguments["replace_all"])
        match: Match | None = None

        def compute(before: Document | None, path: str) -> bytes:
            nonlocal match
            if not edit.old:
                return encode_new_file(before, edit.new, path)
            document = require_existing(before, path)
            match = locate(document.text, edit)
            return document.splice(match.splices, path)

        changed = self._files.change(call, checkpoint, compute)
        if match is None:
            return changed.build_result(f"Created '{changed.path}'.", {"occurrences": 0, "strategy": "create"})
        count = len(match.splices)
        done = f"Edited '{changed.path}': replaced {count} place{'s' if count > 1 else ''}."
        if match.strategy != "exact":
            done += f" The text was found only by forgiving a difference ({match.strategy})."
        if match.left:
            done += f" Not replaced: {match.left} more, where old_string stands with other line endings."
        return changed.build_result(done, {"occurrences": count, "strategy": match.strategy.value})


_MISSING_FILE_HINT = "Check the path, list its folder with LS, or make the file with an empty old_string."


def encode_new_file(before: Document | None, text: str, path: str) -> bytes:
    """Encode the file that an empty old_string creates; an existing but empty file counts as new."""
    if before is not None and before.text:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "edit.new_file_has_content",
                "old_string is empty, which makes a new file, but '{path}' has content.",
                path=path,
            ),
            hint="Give the text to replace, or use Write to replace the whole file.",
        )
    return before.encoding.bom + before.encode_text(text, path) if before else text.encode()


def require_existing(before: Document | None, path: str, hint: str = _MISSING_FILE_HINT) -> Document:
    if before is None:
        raise Failure(ErrorCode.NOT_FOUND, Message("file.not_found", "'{path}' does not exist.", path=path), hint=hint)
    return before
