"""Dry runs of the built-in file tools, which show what a call would change before it is approved.

Nothing is written, journalled or asked for. Batches have no dry run: each step would see the files without the steps
before it. Bounded: ``TIMEOUT_S``, and ``MAX_BYTES`` of hunks.
"""

from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from toolyard.engine.cancel_scope import CancelScope
from toolyard.engine.clock import Clock
from toolyard.message import Message
from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.call import ToolCall, fold_name, split_batch
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.outcome import Result
from toolyard.protocol.tool import ToolSpec
from toolyard.tools.file_changer import ChangingTool
from toolyard.tools.thread import in_thread

TIMEOUT_S: Final = 10.0
MAX_BYTES: Final = 512 * 1024
_DRY = "dry_run"
_HUNKS = "structured_patch"


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """The result of a dry run: ``patch`` has an entry per file; None without one, mostly because of ``problem``."""

    patch: list[JsonObject] | None = None
    problem: str = ""


async def dry_run(
    tool: ChangingTool, spec: ToolSpec, arguments: JsonObject, *, caller: str, clock: Clock
) -> DryRunResult:
    own = {name: value for name, value in arguments.items() if fold_name(name) != fold_name(_DRY)}
    try:
        if spec.splits_batches and split_batch(own, (*spec.parameter_names, *spec.synonyms)) is not None:
            several = Message(
                "approval.several_steps",
                "It has several steps: their combined changes are not known before they run.",
            )
            return DryRunResult(problem=several)
        accepted = accept_arguments(spec, {**own, _DRY: True})
        call = ToolCall(id=f"rehearsal_{uuid4().hex}", tool=spec.name, arguments=accepted, caller=caller)
        stop = CancelScope(spec.name, clock, TIMEOUT_S)
        patch = _read_patch(await in_thread(lambda: tool.change(call, stop)))
    except Failure as failure:
        return DryRunResult(problem=failure.message)
    if len(json_bytes([*patch])) > MAX_BYTES:
        return DryRunResult(
            problem=Message("approval.changes_too_large", "The changes exceed {most} bytes.", most=MAX_BYTES)
        )
    return DryRunResult(patch=patch)


def _read_patch(result: Result) -> list[JsonObject]:
    files = result.data.get("files")
    if isinstance(files, list):
        return [_patch_entry(file) for file in files if isinstance(file, dict)]
    operation = "create" if result.extras.before is None else "update"
    path: Json = result.context.get("path_resolved")
    return [{"path": path, "operation": operation, _HUNKS: result.data.get(_HUNKS)}]


def _patch_entry(file: JsonObject) -> JsonObject:
    return {key: file[key] for key in ("path", "operation", "from", _HUNKS) if key in file}
