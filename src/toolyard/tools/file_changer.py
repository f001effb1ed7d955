"""The change of one file: the steps that Write, Edit, MultiEdit and NotebookEdit share.

Find the file, keep other writers out, read it, refuse what is stale, compute the new bytes and the patch, write them in
one step, remember them for the caller, look at what was written. A dry run does everything but the writing. What takes
time comes before the write or ends at the deadline, so that a write that has happened is reported as done.
"""

import posixpath
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from toolyard.message import Message, join_sentences
from toolyard.protocol.edits.diff import Patch, build_patch
from toolyard.protocol.envelope import ErrorCode, Extras, Failure, Reason
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.mask import MASK, count_masks
from toolyard.protocol.tool import Checkpoint, Result, ToolCall
from toolyard.tools.validation import Finding, validate
from toolyard.tools.worker_thread import in_thread
from toolyard.workspace.changes.locks import lock_targets
from toolyard.workspace.changes.protected_paths import WriteAccess, require_writable
from toolyard.workspace.changes.undo import FileContent, Undo
from toolyard.workspace.changes.undo_records import checksum
from toolyard.workspace.document import MAX_BYTES, UTF8, Document
from toolyard.workspace.path_walk import to_printable
from toolyard.workspace.read_history import ReadHistory
from toolyard.workspace.workspace import Workspace, WriteTarget

DRY_RUN: JsonObject = {"type": "boolean", "default": False, "description": "Show what would change; write nothing."}
EXPECTED_HASH: JsonObject = {
    "type": "string",
    "minLength": 1,
    "description": "Write only if the file still has this sha256, as Read reported it.",
}

Compute = Callable[[Document | None, str], bytes]
"""From the file as it is (None: there is none) and its path to its new bytes. Raises Failure."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    path: str
    before: Document | None
    after: Document
    hash: str  # of the new bytes
    applied: bool
    patch: Patch | None  # None: not worth sending back
    checkpoint: Checkpoint  # ends what looks at the new file

    def build_result(self, done: str, data: JsonObject) -> Result:
        """The result of a tool that changed this file: its own data, the hash, the hunks, what the checkers say."""
        before = to_printable(self.before.text) if self.before else None
        after = to_printable(self.after.text)
        validation = validate(self.path, after, self.checkpoint)
        findings: list[Json] = [finding.to_json(self.path) for finding in validation.findings]
        if not self.applied:
            done = Message("Dry run: nothing was written. Without dry_run: {done}", done=done)
        text = join_sentences(done, describe_findings(validation.findings))
        return Result(
            data={
                "applied": self.applied,
                **data,
                "hash": self.hash,
                **({"structured_patch": self.patch.to_json()} if self.patch else {}),
                **({"validation": findings} if findings else {}),
            },
            text=text,
            stats={"bytes": len(self.after.raw)},
            context={"path_resolved": self.path, **patch_context(self.patch)},
            extras=Extras(before=before, after=after),
        )


def patch_context(*patches: Patch | None) -> JsonObject:
    """The part of ``context`` that says that a patch is coarser than npm's."""
    return {} if all(patch is None or patch.exact for patch in patches) else {"patch": "coarse"}


def describe_findings(findings: Sequence[Finding], file: str = "") -> str:
    """Describe the findings for the end of a text: their number and the first one, with its ``file`` if given."""
    if not findings:
        return ""
    first = findings[0]
    place = (
        Message("line {line} of '{path}'", line=first.line, path=file)
        if file
        else Message("line {line}", line=first.line)
    )
    if len(findings) == 1:
        return Message("The checker found a problem in {place}: {message}.", place=place, message=first.message)
    return Message(
        "The checker found {count} problems, the first in {place}: {message}.",
        count=len(findings),
        place=place,
        message=first.message,
    )


class FileChanger:
    """One for all writing tools of a Yard."""

    def __init__(
        self,
        workspace: Workspace,
        undo: Undo,
        reads: ReadHistory,
        fallback_encodings: Sequence[str],
        *,
        strict: bool = False,
    ) -> None:
        """``strict``: refuse an edit of a file that has changed since its caller read it, also where it would fit."""
        self._workspace, self._undo, self._reads, self._strict = workspace, undo, reads, strict
        self._fallbacks = tuple(fallback_encodings)

    def change(
        self, call: ToolCall, checkpoint: Checkpoint, compute: Compute, *, overwrites: bool = False
    ) -> ChangedFile:
        """Change the file that ``call`` names; ``overwrites``: all of it, so the caller must know what it was."""
        arguments: Mapping[str, Any] = call.arguments
        with self.open_target(call, arguments["path"]) as target, lock_targets([target], checkpoint):
            before = self.read_document(target)
            raw = before.raw if before else None
            self._require_fresh(call, target.path, raw, overwrites=overwrites)
            try:
                content = compute(before, target.path)
            except Failure as failure:
                raise self.explain_failure(failure, call, {target.path: raw}) from failure
            after = Document.from_known(content, before.encoding if before else UTF8)
            require_no_new_mask(call, target.path, before.text if before else "", after.text)
            patch = build_patch(to_printable(before.text) if before else "", to_printable(after.text))
            applied = not arguments["dry_run"]
            checkpoint()
            if applied and content != raw:
                hash_ = self.commit(call, [FileContent(target, raw, content)])[target.path]
            else:
                hash_ = checksum(content)
            if applied:
                self.remember(call, target.path, hash_)
            return ChangedFile(target.path, before, after, hash_, applied, patch, checkpoint)

    @contextmanager
    def open_target(self, call: ToolCall, path: str) -> Iterator[WriteTarget]:
        require_file_name(path)
        with self._workspace.open_target(path) as target:
            require_writable(target.path, WriteAccess.from_call(call))
            yield target

    def require_no_links(self, paths: Iterable[str]) -> None:
        """Refuse links among files that are removed: deleting the target of a link would leave a link to nothing."""
        for path in paths:
            if self._workspace.is_link(path):
                raise Failure(
                    ErrorCode.INVALID_PARAM,
                    Message("'{path}' is a link.", path=path),
                    hint=Message("Name the file that it leads to."),
                )

    def read_document(self, target: WriteTarget) -> Document | None:
        raw = target.read(MAX_BYTES)
        return Document.from_bytes(raw, target.path, self._fallbacks) if raw is not None else None

    def commit(self, call: ToolCall, contents: Sequence[FileContent]) -> dict[str, str]:
        """All or none, in a way that can be undone; the hashes of the files that were written, by path."""
        return {change.path: change.after for change in self._undo.commit(call.id, contents) if change.after}

    def remember(self, call: ToolCall, path: str, checksum: str) -> None:
        """Remember a written file as read: a caller knows what it wrote."""
        self._reads.remember(call.caller, path, checksum)

    def _require_fresh(self, call: ToolCall, path: str, raw: bytes | None, *, overwrites: bool) -> None:
        expected = call.arguments.get("expected_hash")
        if expected is not None:
            if raw is None or checksum(raw) != str(expected).lower():
                raise _stale_failure(
                    path,
                    Message("is not the file with expected_hash any more")
                    if raw is not None
                    else Message("does not exist"),
                    raw,
                )
            return
        if not overwrites:
            self.require_unchanged(call, path, raw)
        elif raw is not None and not call.force and not call.arguments["dry_run"]:
            self._require_known(call, path, raw)

    def require_unchanged(self, call: ToolCall, path: str, raw: bytes | None) -> None:
        """Refuse an edit, where edits are strict, of a file that has changed since its caller read it."""
        if self._strict and raw is not None and not call.force and self._reads.recall(call.caller, path) is not None:
            self._require_known(call, path, raw)

    def _require_known(self, call: ToolCall, path: str, raw: bytes) -> None:
        """Refuse a file that its caller has not read, or not as it is."""
        known = self._reads.recall(call.caller, path)
        if known is None:
            raise _stale_failure(path, Message("exists, and you have not read it"), raw)
        if known != checksum(raw):
            raise _stale_failure(path, Message("was changed since you read it"), raw)

    def explain_failure(self, failure: Failure, call: ToolCall, files: Mapping[str, bytes | None]) -> Failure:
        """A text that is not there because a file changed since the caller read it is a conflict, not a mistake."""
        if len(files) == 1:
            failure.context.setdefault("path_resolved", next(iter(files)))
        if failure.reason is not Reason.NOT_FOUND_IN_FILE:
            return failure
        for path, raw in files.items():
            known = self._reads.recall(call.caller, path)
            if raw is not None and known is not None and known != checksum(raw):
                return Failure(
                    Reason.STALE,
                    Message("'{path}' was changed since you read it: {message}", path=path, message=failure.message),
                    hint=Message("Read it again and repeat the call."),
                    data=failure.data,
                    context={"path_resolved": path, "hash": checksum(raw)},
                )
        return failure


def require_no_new_mask(call: ToolCall, path: str, before: str, after: str) -> None:
    """Refuse a text that has the sign for a hidden secret where the file had none: the secret itself would be lost."""
    if not call.force and count_masks(after) > count_masks(before):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "The new text of '{path}' has {mask} in it, which stands for a secret that you were not shown: "
                "nothing was written.",
                path=path,
                mask=MASK,
            ),
            hint=Message(
                "Leave out the lines with secrets, or change only the lines around them; a person may say --force."
            ),
            context={"path_resolved": path},
        )


def require_file_name(path: str) -> None:
    if path.endswith("/"):
        where = posixpath.normpath(path)
        inside = not where.startswith(("/", ".."))
        raise Failure(
            ErrorCode.IS_DIRECTORY,
            Message("'{path}' names a folder, not a file.", path=path),
            hint=Message("Name a file in it."),
            context={"path_resolved": where} if inside else {},
        )


class ChangingTool(ABC):
    """A tool that changes files by a FileChanger, in a thread."""

    def __init__(self, files: FileChanger) -> None:
        self._files = files

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        return await in_thread(self.change, call, checkpoint)

    @abstractmethod
    def change(self, call: ToolCall, checkpoint: Checkpoint) -> Result: ...


def _stale_failure(path: str, why: str, raw: bytes | None) -> Failure:
    context: JsonObject = {"path_resolved": path}
    if raw is not None:
        context["hash"] = checksum(raw)
    return Failure(
        Reason.STALE,
        Message("'{path}' {why}: nothing was written.", path=path, why=why),
        hint=Message("Read it first, then repeat the call; a person may say --force."),
        context=context,
    )
