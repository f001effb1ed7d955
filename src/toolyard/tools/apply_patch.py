"""ApplyPatch: several files at once, or none."""

from collections.abc import Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from toolyard.message import Message, join_list, join_sentences
from toolyard.protocol.edits.diff import Patch, build_patch
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.patching.file_change import FileChange, Operation
from toolyard.protocol.patching.patch_plan import PlannedFile, parse_patch, plan_files
from toolyard.protocol.tool import Checkpoint, Result, Risk, ToolCall, ToolSpec
from toolyard.tools.file_changer import DRY_RUN, ChangingTool, describe_findings, patch_context, require_no_new_mask
from toolyard.tools.tool_words import load_text
from toolyard.tools.validation import Finding, validate
from toolyard.workspace.changes.locks import lock_targets
from toolyard.workspace.changes.undo import FileContent
from toolyard.workspace.document import Document
from toolyard.workspace.path_walk import to_printable
from toolyard.workspace.workspace import WriteTarget

SPEC = ToolSpec(
    **load_text(__file__),
    parameters={
        "type": "object",
        "properties": {
            "patch": {"type": "string", "minLength": 1, "description": "The patch, in one of the two forms."},
            "dry_run": DRY_RUN,
        },
        "required": ["patch"],
        "additionalProperties": False,
    },
    risk=Risk.WRITE,
    unlisted=("dry_run",),
    examples=(
        {
            "patch": "*** Begin Patch\n*** Update File: README.md\n@@\n-Hello world\n+Hello, world!\n"
            "*** Add File: notes.txt\n+first line\n*** End Patch"
        },
    ),
)


_NAMED = 8  # files that the text names; the others are in the data


@dataclass(frozen=True, slots=True)
class _CurrentFile:
    """A file that the patch names, as it is on disk."""

    target: WriteTarget
    document: Document | None


class ApplyPatch(ChangingTool):
    spec = SPEC

    def change(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        arguments: Mapping[str, Any] = call.arguments
        changes = parse_patch(arguments["patch"])
        with ExitStack() as stack:
            targets = {path: stack.enter_context(self._files.open_target(call, path)) for path in _list_paths(changes)}
            self._files.require_no_links([c.path for c in changes if c.operation in (Operation.DELETE, Operation.MOVE)])
            _require_distinct(targets, {(change.new_path, change.path) for change in changes})
            stack.enter_context(lock_targets(list(targets.values()), checkpoint))
            current = {
                path: _CurrentFile(target, self._files.read_document(target)) for path, target in targets.items()
            }
            for now in current.values():
                self._files.require_unchanged(call, now.target.path, now.document.raw if now.document else None)
            planned = self._plan_files(call, changes, current)
            for file in planned:
                require_no_new_mask(call, file.new_path or file.path, file.before or "", file.after or "")
            writes = [write for file in planned for write in _build_contents(file, current)]
            patches = {file.path: _build_patch(file, checkpoint) for file in planned}
            checkpoint()
            if not arguments["dry_run"]:
                for path, hash_ in self._files.commit(call, writes).items():
                    self._files.remember(call, path, hash_)
        findings = {file.path: _validate_file(file, current, checkpoint) for file in planned}
        return _build_result(planned, current, patches, findings, applied=not arguments["dry_run"])

    def _plan_files(
        self, call: ToolCall, changes: Sequence[FileChange], current: Mapping[str, _CurrentFile]
    ) -> tuple[PlannedFile, ...]:
        def read(path: str) -> str | None:
            document = current[path].document
            return document.text if document else None

        try:
            return plan_files(changes, read)
        except Failure as failure:
            misfits = [file for path, file in current.items() if path == failure.data.get("path")]
            known = {file.target.path: file.document.raw if file.document else None for file in misfits}
            raise self._files.explain_failure(failure, call, known) from failure


def _list_paths(changes: Sequence[FileChange]) -> list[str]:
    named = [path for change in changes for path in (change.path, change.new_path) if path]
    return list(dict.fromkeys(named))


def _require_distinct(targets: Mapping[str, WriteTarget], moves: Set[tuple[str | None, str]]) -> None:
    """Two names of one file (a link, ``./a`` and ``a``) would make two changes that do not see each other."""
    seen: dict[str, str] = {}
    for written, target in targets.items():
        other = seen.setdefault(target.path, written)
        if other != written and (written, other) not in moves:  # a file moved onto itself stays where it is
            raise Failure(
                ErrorCode.INVALID_PARAM,
                Message("'{other}' and '{written}' are the same file.", other=other, written=written),
                hint=Message("Put all its changes under one name."),
            )
    for folder, inside in pairwise(sorted(f"{path}/" for path in seen)):
        if inside.startswith(folder):
            raise Failure(
                ErrorCode.INVALID_PARAM,
                Message(
                    "'{folder}' would be a file and the folder of '{inside}'.", folder=folder[:-1], inside=inside[:-1]
                ),
                hint=Message("Choose another path for one of them."),
            )


def _build_contents(file: PlannedFile, current: Mapping[str, _CurrentFile]) -> list[FileContent]:
    """The bytes each file is to have: a move writes the new one, like the old one, and removes that."""
    here = current[file.path]
    old = here.document.raw if here.document else None
    if file.after is None:
        return [FileContent(here.target, old, None)]
    if here.document is None:
        return [FileContent(here.target, None, file.text.encode())]
    content = here.document.splice(file.splices, here.target.path)
    if file.new_path is None or current[file.new_path].target.path == here.target.path:
        return [FileContent(here.target, old, content)]
    moved = FileContent(current[file.new_path].target, None, content, like=here.target)
    return [moved, FileContent(here.target, old, None)]


def _build_patch(file: PlannedFile, checkpoint: Checkpoint) -> Patch:
    checkpoint()
    return build_patch(to_printable(file.before or ""), to_printable(file.after or ""))


def _build_result(
    planned: Sequence[PlannedFile],
    current: Mapping[str, _CurrentFile],
    patches: Mapping[str, Patch],
    findings: Mapping[str, Sequence[Finding]],
    *,
    applied: bool,
) -> Result:
    files: list[Json] = [_build_report(file, current, patches[file.path], findings[file.path]) for file in planned]
    what = join_list([*map(_describe_change, planned[:_NAMED]), *(["..."] if len(planned) > _NAMED else [])])
    first_checked = next((file for file in planned if findings[file.path]), planned[0])
    text = join_sentences(
        Message("Applied the patch: {what}.", what=what)
        if applied
        else Message("Dry run: the patch fits, nothing was written. It would be: {what}.", what=what),
        *(Message("'{path}': {note}", path=file.path, note=file.note) for file in planned if file.note),
        describe_findings(
            [finding for each in findings.values() for finding in each],
            _written_path(first_checked, current) if len(planned) > 1 else "",
        ),
    )
    first = _written_path(planned[0], current)
    return Result(
        data={"applied": applied, "files": files},
        text=text,
        stats={"files": len(files)},
        context={**({"path_resolved": first} if len(files) == 1 else {}), **patch_context(*patches.values())},
    )


def _describe_change(file: PlannedFile) -> str:
    match file.operation:
        case Operation.CREATE:
            return Message("created '{path}'", path=file.path)
        case Operation.UPDATE:
            return Message("updated '{path}'", path=file.path)
        case Operation.DELETE:
            return Message("deleted '{path}'", path=file.path)
        case Operation.MOVE:
            return Message("moved '{path}' to '{target}'", path=file.path, target=file.new_path)


def _validate_file(
    file: PlannedFile, current: Mapping[str, _CurrentFile], checkpoint: Checkpoint
) -> tuple[Finding, ...]:
    if file.after is None:
        return ()
    return validate(_written_path(file, current), to_printable(file.after), checkpoint).findings


def _written_path(file: PlannedFile, current: Mapping[str, _CurrentFile]) -> str:
    return current[file.new_path or file.path].target.path


def _build_report(
    file: PlannedFile, current: Mapping[str, _CurrentFile], patch: Patch, findings: Sequence[Finding]
) -> dict[str, Json]:
    report: JsonObject = {
        "path": _written_path(file, current),
        "operation": file.operation.value,
    }
    if file.new_path:
        report["from"] = current[file.path].target.path
    report["structured_patch"] = patch.to_json()
    if file.strategy != "exact":
        report["strategy"] = file.strategy.value
    if findings:
        report["validation"] = [finding.to_json(_written_path(file, current)) for finding in findings]
    return report
