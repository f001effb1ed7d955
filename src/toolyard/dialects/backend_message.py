"""The back-end dialect (seed 004): one ``backend_only`` message per finished call, failures included."""

from collections.abc import Callable, Mapping
from typing import Any

from toolyard.protocol.envelope import Fault
from toolyard.protocol.json import Json
from toolyard.protocol.tool import Outcome, ToolCall

_STRING_LIMIT = 100  # old_string and new_string of an EditResult
_ERROR_LIMIT = 50  # the text that a failed MultiEdit could not find

_CAUSES = {
    "NOT_FOUND_IN_FILE": "String not found",
    "STALE": "String not found",  # because the file was changed meanwhile
    "NOT_UNIQUE": "String not unique",
    "NO_CHANGE": "No change",
}


def encode(call: ToolCall, outcome: Outcome, *, uuid: str) -> dict[str, Any]:
    name, describe = _SHAPES.get(call.tool, (call.tool, None))
    data = _describe_outcome(outcome, describe) if describe else _describe_any(outcome)
    return {
        "type": "backend_only",
        "tool_name": name,
        "tool_use_id": call.use_id or call.id,
        "uuid": uuid,
        "data": data,
        **outcome.extras.summarize_action(),
    }


def _describe_any(outcome: Outcome) -> Any:
    error = outcome.envelope.error
    return _describe_failure(error) if error else outcome.envelope.data


def _describe_outcome(outcome: Outcome, describe: Callable[[Outcome], Any]) -> Any:
    """Return the outcome in the tool's shape; a batch is the list of its calls, each in that shape."""
    if outcome.batch:
        return [_describe_outcome(item.outcome, describe) for item in outcome.batch]
    envelope = outcome.envelope
    if envelope.error:
        return describe(outcome)
    if envelope.data.get("truncated") is True:  # the shown result: what the shape needs is in the preview
        return envelope.data
    if envelope.data.get("applied") is False:  # or a back end would believe that the file has changed
        return {**describe(outcome), "dryRun": True}
    return describe(outcome)


def _describe_write(outcome: Outcome) -> Any:
    envelope = outcome.envelope
    if envelope.error:
        return _describe_failure(envelope.error)
    created = envelope.data.get("operation") == "create"
    return {
        "type": "create" if created else "update",
        "filePath": _absolute_path(outcome),
        "content": outcome.extras.after,
        "structuredPatch": [] if created else envelope.data["structured_patch"],
    }


def _describe_edit(outcome: Outcome) -> Any:
    envelope = outcome.envelope
    if envelope.error:
        return _describe_failure(envelope.error)
    return {
        "filePath": _absolute_path(outcome),
        "oldString": outcome.arguments["old_string"],
        "newString": outcome.arguments["new_string"],
        "originalFile": outcome.extras.before or "",
        "structuredPatch": _patch(outcome),
    }


def _describe_multi_edit(outcome: Outcome) -> Any:
    envelope = outcome.envelope
    if envelope.error:
        return _describe_multi_edit_failure(outcome, envelope.error)
    path, data = _absolute_path(outcome), envelope.data
    return {
        "filePath": path,
        "wasNewFile": data["was_new_file"],
        "editsApplied": [_describe_edit_result(result) for result in _objects(data["edits_applied"])],
        "totalEdits": data["total_edits"],
        "summary": f"Successfully applied {data['total_edits']} edits to {path.rpartition('/')[2]}",
        "structuredPatch": _patch(outcome),
    }


def _describe_edit_result(result: Mapping[str, Json]) -> dict[str, Any]:
    return {
        "editIndex": result["edit_index"],
        "success": result["success"],
        "old_string": str(result["old_string"])[:_STRING_LIMIT],
        "new_string": str(result["new_string"])[:_STRING_LIMIT],
        "occurrences": result["occurrences"],
    }


def _describe_multi_edit_failure(outcome: Outcome, error: Fault) -> str:
    """Return the failure text; ``data.failed_edit`` is the number, from 1, of the edit that stopped the call."""
    failed = outcome.envelope.data.get("failed_edit")
    if not isinstance(failed, int):
        return _describe_failure(error)
    cause = _CAUSES.get(str(outcome.envelope.context.get("reason")))
    edits = _objects(outcome.arguments.get("edits"))
    old = edits[failed - 1].get("old_string") if 0 < failed <= len(edits) else None
    if cause is None or not isinstance(old, str):
        return f"Error in edit {failed}: {error.message}"
    return f"Error in edit {failed}: {cause}: {old[:_ERROR_LIMIT]}..."


def _describe_notebook(outcome: Outcome) -> Any:
    data, arguments = outcome.envelope.data, outcome.arguments
    error = outcome.envelope.error
    return {
        "cell_number": data.get("cell_number", arguments.get("cell_number")),
        "new_source": arguments.get("new_source") or "",
        "cell_type": data.get("cell_type", arguments.get("cell_type") or "code"),
        "language": data.get("language", "python"),
        "edit_mode": arguments.get("edit_mode") or "replace",
    } | ({"error": error.message} if error else {})


def _describe_failure(error: Fault) -> str:
    return f"Error: {error.code}: {error.message}"


def _absolute_path(outcome: Outcome) -> str:
    return f"{outcome.root.rstrip('/')}/{outcome.envelope.context['path_resolved']}"


def _patch(outcome: Outcome) -> Json:
    """A created file has no patch: there was nothing to differ from."""
    return [] if outcome.extras.before is None else outcome.envelope.data["structured_patch"]


def _objects(value: Json) -> list[dict[str, Json]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


_SHAPES: Mapping[str, tuple[str, Callable[[Outcome], Any]]] = {
    name: shape
    for names, shape in {
        ("Write", "Replace"): ("Replace", _describe_write),
        ("Edit",): ("Edit", _describe_edit),
        ("MultiEdit",): ("MultiEdit", _describe_multi_edit),
        ("NotebookEdit", "NotebookEditCell"): ("NotebookEditCell", _describe_notebook),
    }.items()
    for name in names
}
