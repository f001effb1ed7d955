"""UpdateHistory and CreateCanvas: files that VCP's front end knows."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolyard.message import Message
from toolyard.protocol.edits import json_text
from toolyard.protocol.edits.text_edit import Edit, Splice
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Result
from toolyard.tools.file_changer import FileChanger
from toolyard.tools.operations.command import Request, require_plain_name
from toolyard.tools.operations.writing import Writing, locate_vcp_edit
from toolyard.workspace.document import Document

CANVAS = "canvas"
_ACTION = "create_canvas"


class VcpFiles:
    def __init__(self, root: Path, files: FileChanger, writing: Writing) -> None:
        self._root, self._files, self._writing = root, files, writing

    def create_canvas(self, request: Request) -> Result:
        """A new file, and the front end is asked to open it: by its absolute path, since it has no root of its own."""
        name = require_plain_name(request["fileName"], "fileName")
        result = self._writing.create(request, f"{CANVAS}/{name}", request["content"])
        payload: JsonObject = {"filePath": str(self._root / str(result.data["path"]))}
        return replace(result, extras=replace(result.extras, action=_ACTION, payload=payload))

    def update_history(self, request: Request) -> Result:
        """Change a text in the first message of the assistant that has it; the rest of the file keeps its bytes."""
        edit = Edit(request["searchString"], request["replaceString"])
        changed_message: list[int] = []

        def compute(before: Document | None, path: str) -> bytes:
            if before is None:
                raise Failure(
                    ErrorCode.NOT_FOUND, Message("'{path}' does not exist.", path=path), hint=Message("Check the path.")
                )
            number, splices = _change_message(before.text, edit, path)
            changed_message[:] = [number]
            return before.splice(splices, path)

        arguments: JsonObject = {"path": request["path"], "dry_run": False}
        changed = self._files.change(replace(request.call, arguments=arguments), request.checkpoint, compute)
        done = Message(
            "Changed message {number} of the history '{path}'.", number=changed_message[0], path=changed.path
        )
        return changed.build_result(
            done, {"operation": "update", "path": changed.path, "message_index": changed_message[0]}
        )


def _change_message(text: str, edit: Edit, path: str) -> tuple[int, tuple[Splice, ...]]:
    """Find the message to change; return its number, counted from 0, and the splices of the file."""
    if not edit.old:
        raise Failure(
            ErrorCode.INVALID_PARAM, Message("searchString is empty."), hint=Message("Give the text to replace.")
        )
    history = _parse_history(text, path)
    missed: Failure | None = None
    for number, content in _list_assistant_messages(history):
        try:
            match = locate_vcp_edit(content, edit)
        except Failure as failure:
            if failure.reason is not Reason.NOT_FOUND_IN_FILE:
                raise
            missed = missed or failure
            continue
        return number, _to_file_splices(text, number, match.splices)
    raise missed or Failure(
        Reason.NOT_FOUND_IN_FILE,
        Message("'{path}' has no message of the assistant.", path=path),
        hint=Message("Check the file."),
    )


def _parse_history(text: str, path: str) -> list[Any]:
    try:
        history = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("'{path}' is not valid JSON ({error}).", path=path, error=str(error)[:100]),
            hint=Message("Repair the file first."),
        ) from error
    if not isinstance(history, list):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("'{path}' is no history: it holds no list.", path=path),
            hint=Message("Check the path."),
        )
    return history


def _list_assistant_messages(history: list[Any]) -> Iterator[tuple[int, str]]:
    for number, message in enumerate(history):
        if isinstance(message, Mapping) and message.get("role") == "assistant":
            content = message.get("content")
            if isinstance(content, str):
                yield number, content


def _to_file_splices(text: str, number: int, splices: tuple[Splice, ...]) -> tuple[Splice, ...]:
    """Splices of the content of one message as splices of the file, escaped as the content is."""
    message = json_text.read_container(text, json_text.read_container(text).parts[number].value)
    part = message.parts[message.numbers["content"]]
    begin, end = part.value + 1, part.end - 1  # inside the quotes
    at = [*(char.start() for char in _CHARACTER.finditer(text, begin, end)), end]
    escaped = text.find("\\u", begin, end) >= 0 and text[begin:end].isascii()
    return tuple(
        Splice(at[splice.start], at[splice.end], _escape_json(splice.text, escaped=escaped)) for splice in splices
    )


def _escape_json(text: str, *, escaped: bool) -> str:
    lone = any("\ud800" <= char <= "\udfff" for char in text)
    return json.dumps(text, ensure_ascii=escaped or lone)[1:-1]


_CHARACTER = re.compile(  # of a text in JSON: a pair of escapes may be one
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL
)
