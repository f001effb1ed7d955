"""Write: a whole file."""

from collections.abc import Mapping
from typing import Any

from toolyard.message import Message
from toolyard.protocol.tool import Checkpoint, Result, Risk, ToolCall, ToolSpec
from toolyard.tools.file_changer import DRY_RUN, EXPECTED_HASH, ChangingTool
from toolyard.tools.tool_words import load_text
from toolyard.workspace.changes.file_draft import already_exists_failure
from toolyard.workspace.document import Document

SPEC = ToolSpec(
    **load_text(__file__),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "The file, relative to the root."},
            "content": {"type": "string", "description": "The whole new text."},
            "dry_run": DRY_RUN,
            "create_only": {
                "type": "boolean",
                "default": False,
                "description": "Refuse to replace a file that exists.",
            },
            "expected_hash": EXPECTED_HASH,
        },
        "required": ["path", "content"],
        "additionalProperties": False,
    },
    synonyms={"filePath": "path", "file_path": "path"},
    risk=Risk.WRITE,
    examples=({"path": "notes/plan.md", "content": "# Plan\n\n1. Read the code.\n2. Write the test."},),
    splits_batches=True,
    unlisted=("dry_run", "expected_hash"),
)


class Write(ChangingTool):
    spec = SPEC

    def change(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        arguments: Mapping[str, Any] = call.arguments
        content: str = arguments["content"]

        def compute(before: Document | None, path: str) -> bytes:
            if before is None:
                return content.encode()
            if arguments["create_only"]:
                raise already_exists_failure(path)
            text = _adopt_line_endings(content, before.text)
            if before.encoding.bom:
                text = text.removeprefix("\ufeff")  # the file has its mark already
            return before.encoding.bom + before.encode_text(text, path)

        changed = self._files.change(call, checkpoint, compute, overwrites=not arguments["create_only"])
        operation = "create" if changed.before is None else "update"
        size = len(changed.after.raw)
        if changed.before is None:
            done = Message("Created '{path}' ({size} bytes).", path=changed.path, size=size)
        elif changed.before.raw == changed.after.raw:
            done = Message("'{path}' already has exactly this content.", path=changed.path)
        else:
            done = Message("Wrote '{path}' ({size} bytes).", path=changed.path, size=size)
        return changed.build_result(done, {"operation": operation})


def _adopt_line_endings(content: str, before: str) -> str:
    """A file whose lines all end in CRLF keeps doing so: who reads it by lines never saw them."""
    crlf = before.count("\r\n")
    return content.replace("\n", "\r\n") if crlf and crlf == before.count("\n") and "\r" not in content else content
