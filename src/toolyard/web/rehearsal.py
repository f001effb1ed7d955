"""What a call would change, before anybody lets it: the dry run of our own file tools, for people who decide.

No tool runs: nothing is written, journalled or asked for. Of a batch nothing is said: each step would see files without
the steps before it. Bounded: ``SECONDS``, and ``MAX_BYTES`` of hunks.
"""

from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from toolyard.engine.cancel_scope import CancelScope
from toolyard.engine.clock import Clock
from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.call import ToolCall, fold_name, split_batch
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.outcome import Result
from toolyard.protocol.tool import ToolSpec
from toolyard.tools.file_changer import ChangingTool
from toolyard.tools.thread import in_thread

SECONDS: Final = 10.0
MAX_BYTES: Final = 512 * 1024
_DRY = "dry_run"
_HUNKS = "structured_patch"


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """``patch`` has an entry for each file; None: there is none, mostly for ``problem``."""

    patch: list[JsonObject] | None = None
    problem: str = ""


async def rehearse(
    tool: ChangingTool, spec: ToolSpec, arguments: JsonObject, *, caller: str, clock: Clock
) -> Rehearsed:
    own = {name: value for name, value in arguments.items() if fold_name(name) != fold_name(_DRY)}
    try:
        if spec.splits_batches and split_batch(own, (*spec.parameter_names, *spec.synonyms)) is not None:
            return Rehearsed(problem="It has several steps: what they change together is not known before they run.")
        wanted = accept_arguments(spec, {**own, _DRY: True})
        call = ToolCall(id=f"rehearsal_{uuid4().hex}", tool=spec.name, arguments=wanted, caller=caller)
        stop = CancelScope(spec.name, clock, SECONDS)
        patch = _patch(await in_thread(lambda: tool.change(call, stop)))
    except Failure as failure:
        return Rehearsed(problem=failure.message)
    if len(json_bytes([*patch])) > MAX_BYTES:
        return Rehearsed(problem=f"What it changes is more than {MAX_BYTES} bytes.")
    return Rehearsed(patch=patch)


def _patch(result: Result) -> list[JsonObject]:
    files = result.data.get("files")
    if isinstance(files, list):
        return [_entry(file) for file in files if isinstance(file, dict)]
    operation = "create" if result.extras.before is None else "update"
    path: Json = result.context.get("path_resolved")
    return [{"path": path, "operation": operation, _HUNKS: result.data.get(_HUNKS)}]


def _entry(file: JsonObject) -> JsonObject:
    return {key: file[key] for key in ("path", "operation", "from", _HUNKS) if key in file}
