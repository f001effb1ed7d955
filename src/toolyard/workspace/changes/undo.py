"""Undo: the files of a call as they were before it, if nobody changed them since.

All files of a call or none. Writes are undone in one transaction, a batch of them too; a batch that also moves or
deletes is undone step by step, the last one first, and what was undone is done again when a step cannot be. (Only a
crash just then can leave half of such a batch.) Whether a file is still as the call left it is judged by its content,
never by its time. An undoing can be undone itself, under the id ``undo:CALL``. What is kept, and how long: see
``undo_records``.
"""

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.tool import Checkpoint
from toolyard.workspace.changes.arranger import Arranger, transfer_entry
from toolyard.workspace.changes.file_draft import already_exists_failure
from toolyard.workspace.changes.file_versions import FileVersions, FileVersionsReader
from toolyard.workspace.changes.locks import lock_folders, lock_targets
from toolyard.workspace.changes.protected_paths import WriteAccess
from toolyard.workspace.changes.transaction import Transactions, Write
from toolyard.workspace.changes.trash import Trash
from toolyard.workspace.changes.undo_records import (
    Change,
    Deleted,
    Folder,
    Moved,
    Restored,
    UndoRecords,
    Written,
    build_written,
    checksum,
    compute_mark,
    reverse_id,
)
from toolyard.workspace.document import MAX_BYTES
from toolyard.workspace.workspace import Entry, Workspace, WriteTarget


@dataclass(frozen=True, slots=True)
class FileContent:
    """The old and the new bytes of a file; None: there is none."""

    target: WriteTarget
    old: bytes | None
    new: bytes | None
    name: bytes | None = None  # the file's own, if it is not the target's
    mode: int | None = None  # of a file that comes back
    like: WriteTarget | None = (
        None  # the file that a new one was before a move: it keeps its mode, owner and attributes
    )

    @property
    def source(self) -> str | None:
        return self.like.path if self.like else None


@dataclass(frozen=True, slots=True)
class UndoneFiles:
    """The paths that are as before the call again, and those that were removed because the call had made them."""

    restored: list[str]
    deleted: list[str]


class Undo:
    def __init__(
        self,
        folder: Path,
        workspace: Workspace,
        transactions: Transactions,
        arranger: Arranger,
        trash: Trash,
        now: Callable[[], datetime],
    ) -> None:
        self._workspace, self._transactions, self._arranger, self._trash = workspace, transactions, arranger, trash
        self._records = UndoRecords(folder, workspace.root, now)

    def commit(self, call_id: str, contents: Sequence[FileContent]) -> list[Written]:
        """Write all files or none, and keep what it takes to undo it."""
        done = self._write_contents(contents)
        self.record_changes(call_id, done)
        return done

    def record_changes(self, call_id: str, changes: Sequence[Change]) -> None:
        """Record the changes of a call; an item of a batch is recorded with the others."""
        self._records.add(call_id, changes)

    def read_file_versions(self, call_id: str, fallbacks: Sequence[str]) -> list[FileVersions]:
        """Read the files that a call wrote, before and after it, as far as they are still known."""
        return FileVersionsReader(self._records, self._workspace, fallbacks).read(call_id)

    def is_possible(self, call_id: str) -> bool:
        """Return whether a call can be undone: the files are as it left them. Only trying makes sure."""
        try:
            changes = self._records.read(call_id)
            last = {change.path: change for change in changes if isinstance(change, Written)}
            if len(last) < len({change.path for change in changes}):
                return True  # moves and deletions are looked at when they are undone
            for path, change in last.items():
                with ExitStack() as stack:
                    if _hash_or_none(self._open_target(path, stack).read(MAX_BYTES)) != change.after:
                        return False
        except Failure:
            return False
        return True

    def restore(self, call_id: str, checkpoint: Checkpoint) -> UndoneFiles:
        """Undo a call. Raises Failure, and then nothing is changed."""
        if "#" in call_id:
            raise Failure(
                ErrorCode.INVALID_PARAM,
                Message("'{call_id}' is one item of a batch, and a call is undone as a whole.", call_id=call_id),
                hint=Message("Undo '{id}'.", id=call_id.partition("#")[0]),
            )
        changes = self._records.read(call_id)
        steps, undone = _group_steps(changes), list[Change]()
        try:
            while steps:
                undone += self._undo_step(steps[-1], checkpoint)
                steps.pop()
        except BaseException:
            if undone:
                again = [
                    change for step in reversed(_group_steps(undone)) for change in self._undo_step(step, _never_stop)
                ]
                self._records.replace(call_id, [*(change for step in steps for change in step), *again])
            raise
        self._records.replace(reverse_id(call_id), undone)
        self._records.drop(call_id)
        is_there = {change.path: not _is_removal(change) for change in undone}
        return UndoneFiles(
            sorted(path for path, there in is_there.items() if there),
            sorted(path for path, there in is_there.items() if not there),
        )

    def _undo_step(self, step: Sequence[Change], checkpoint: Checkpoint) -> Sequence[Change]:
        """Undo one step; returns what that did. A step is one change, or several writes."""
        writes = [change for change in step if isinstance(change, Written)]
        if writes:
            return self._undo_writes(writes, checkpoint)
        (change,) = step
        match change:
            case Moved():
                return [self._move_back(change, checkpoint)]
            case Deleted():
                self._trash.restore(change.trash_id, checkpoint)
                with ExitStack() as stack:
                    entry = self._open_entry(change.path, stack)
                    return [Restored(change.path, compute_mark(entry.folder, entry.name))]
            case Restored():
                with ExitStack() as stack:
                    _require_same(self._open_entry(change.path, stack), change)
                return [
                    Deleted(
                        change.path, self._trash.move_to_trash(change.path, checkpoint, access=WriteAccess.FORCED).id
                    )
                ]
            case Folder(made=0):
                return [self._arranger.make_folder(change.path, access=WriteAccess.FORCED)]
            case Folder():
                return [self._remove_folder(change)]
            case _:
                raise AssertionError(change)

    def _write_contents(self, contents: Sequence[FileContent]) -> list[Written]:
        with ExitStack() as stack:
            for content in contents:
                stack.enter_context(content.target.removing_on_failure())
            writes = [_build_write(content) for content in contents]
            modes = [_read_mode(write) if write.content is None else None for write in writes]
            hashes = self._transactions.commit(writes)
        return [
            build_written(
                w.path, os.fsdecode(w.name), w.expected, w.content, after, mode, c.target.made_count, c.source
            )
            for c, w, after, mode in zip(contents, writes, hashes, modes, strict=True)
        ]

    def _undo_writes(self, changes: Sequence[Written], checkpoint: Checkpoint) -> list[Written]:
        """Undo writes that followed each other: several of one file have one outcome."""
        last = {change.path: change for change in changes}
        with ExitStack() as stack:
            targets = {path: self._open_target(path, stack) for path in last}
            stack.enter_context(lock_targets(list(targets.values()), checkpoint))
            now = {path: target.read(MAX_BYTES) for path, target in targets.items()}
            before = dict(now)
            moved = {change.source: targets[change.path] for change in changes if now[change.path] is not None}
            for change in reversed(changes):
                if _hash_or_none(before[change.path]) != change.after:
                    raise _changed_failure(change.path)
                before[change.path] = change.restore_old(before[change.path])
            contents = [
                FileContent(
                    targets[path], now[path], old, os.fsencode(last[path].name), last[path].mode, moved.get(path)
                )
                for path, old in before.items()
                if old != now[path]
            ]
            checkpoint()
            done = self._write_contents(contents) if contents else []
        for change in reversed(changes):
            self._remove_made(change.path, change.made)
        return done

    def _move_back(self, change: Moved, checkpoint: Checkpoint) -> Moved:
        with ExitStack() as stack:
            entry, target = self._open_entry(change.path, stack), self._open_target(change.source, stack)
            stack.enter_context(lock_folders([entry.folder, target.folder], checkpoint))
            _require_same(entry, change)
            if target.exists:
                raise already_exists_failure(change.source)
            checkpoint()
            stack.enter_context(target.removing_on_failure())
            folder, name = target.make_folders()[0], os.fsencode(change.name)
            try:
                transfer_entry(entry.folder, entry.name, folder, name)
            except FileExistsError as error:
                raise already_exists_failure(change.source) from error
            mark = compute_mark(folder, name)
            back = Moved(change.path, change.source, os.fsdecode(entry.name), mark, target.made_count)
        self._remove_made(change.path, change.made)
        return back

    def _remove_folder(self, change: Folder) -> Folder:
        with ExitStack() as stack:
            entry = self._open_entry(change.path, stack)
            try:
                os.rmdir(entry.name, dir_fd=entry.folder)
            except OSError as error:
                raise _changed_failure(change.path) from error
        self._remove_made(change.path, change.made - 1)
        return Folder(change.path, 0)

    def _remove_made(self, path: str, made: int) -> None:
        """Remove the folders that were made on the way to ``path``, unless something else has come to stand there."""
        for _ in range(made):
            path = path.rpartition("/")[0]
            with suppress(Failure), self._workspace.open_entry(path, follow=False) as entry:
                os.rmdir(entry.name, dir_fd=entry.folder)

    def _open_target(self, path: str, stack: ExitStack) -> WriteTarget:
        """The place of a file, if its path still leads there."""
        try:
            target = stack.enter_context(self._workspace.open_target(path))
        except Failure as failure:
            raise _changed_failure(path) from failure
        if target.path != path:
            raise _changed_failure(path)
        return target

    def _open_entry(self, path: str, stack: ExitStack) -> Entry:
        """Open the entry at a path that must exist, if the path still leads there."""
        try:
            entry = stack.enter_context(self._workspace.open_entry(path, follow=False))
        except Failure as failure:
            raise _changed_failure(path) from failure
        if entry.path != path:
            raise _changed_failure(path)
        return entry


def _never_stop() -> None:
    """The checkpoint of what must not stop half-way."""


def _group_steps(changes: Sequence[Change]) -> list[list[Change]]:
    """Group changes that are undone together: writes that follow each other; else each change by itself."""
    numbered = groupby(enumerate(changes), lambda item: -1 if isinstance(item[1], Written) else item[0])
    return [[change for _, change in step] for _, step in numbered]


def _is_removal(change: Change) -> bool:
    match change:
        case Written():
            return change.after is None
        case Folder():
            return change.made == 0
        case _:
            return isinstance(change, Deleted)


def _build_write(content: FileContent) -> Write:
    folder, name = content.target.make_folders()
    like = content.like.make_folders() if content.like else None
    return Write(folder, content.name or name, content.target.path, content.old, content.new, content.mode, like)


def _read_mode(write: Write) -> int:
    return stat.S_IMODE(os.stat(write.name, dir_fd=write.folder, follow_symlinks=False).st_mode)


def _hash_or_none(content: bytes | None) -> str | None:
    return None if content is None else checksum(content)


def _require_same(entry: Entry, change: Moved | Restored) -> None:
    if compute_mark(entry.folder, entry.name) != change.mark:
        raise _changed_failure(change.path)


def _changed_failure(path: str) -> Failure:
    return Failure(
        Reason.STALE,
        Message("'{path}' was changed since this call: nothing was undone.", path=path),
        hint=Message("Look at the file and change it by hand, or undo the later calls first."),
        context={"path_resolved": path},
    )
