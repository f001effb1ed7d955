"""Edit: one piece of text in a file."""

from collections.abc import Mapping
from typing import Any

from toolyard.message import Message, join_sentences
from toolyard.protocol.edits.text_edit import Edit as TextEdit
from toolyard.protocol.edits.text_edit import Match, locate
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Checkpoint, Result, Risk, ToolCall, ToolSpec
from toolyard.tools.counts import count_places
from toolyard.tools.file_changer import DRY_RUN, EXPECTED_HASH, ChangingTool
from toolyard.tools.tool_words import load_text
from toolyard.workspace.document import Document

OLD_STRING: JsonObject = {"type": "string", "description": "The text to replace, exactly as it stands in the file."}
NEW_STRING: JsonObject = {"type": "string", "description": "The text to put in its place."}
REPLACE_ALL: JsonObject = {"type": "boolean", "default": False, "description": "Replace every place, not just one."}

SPEC = ToolSpec(
    **load_text(__file__),
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
    splits_batches=True,
    unlisted=("dry_run", "expected_hash"),
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
            created = Message("Created '{path}'.", path=changed.path)
            return changed.build_result(created, {"occurrences": 0, "strategy": "create"})
        count = len(match.splices)
        done = join_sentences(
            describe_edit(changed.path, count),
            describe_forgiveness(match.strategy) if match.strategy != "exact" else "",
            Message("Not replaced: {count} more, where old_string stands with other line endings.", count=match.left)
            if match.left
            else "",
        )
        return changed.build_result(done, {"occurrences": count, "strategy": match.strategy.value})


def describe_edit(path: str, count: int) -> Message:
    return Message("Edited '{path}': replaced {places}.", path=path, places=count_places(count))


def describe_forgiveness(strategies: str) -> Message:
    """Describe how a text was found that does not stand in the file exactly."""
    return Message("The text was found only by forgiving a difference ({strategies}).", strategies=strategies)


_MISSING_FILE_HINT = Message("Check the path, list its folder with LS, or make the file with an empty old_string.")


def encode_new_file(before: Document | None, text: str, path: str) -> bytes:
    """Encode the file that an empty old_string creates; an existing but empty file counts as new."""
    if before is not None and before.text:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("old_string is empty, which makes a new file, but '{path}' has content.", path=path),
            hint=Message("Give the text to replace, or use Write to replace the whole file."),
        )
    return before.encoding.bom + before.encode_text(text, path) if before else text.encode()


def require_existing(before: Document | None, path: str, hint: str = _MISSING_FILE_HINT) -> Document:
    if before is None:
        raise Failure(ErrorCode.NOT_FOUND, Message("'{path}' does not exist.", path=path), hint=hint)
    return before
