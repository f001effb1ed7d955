"""Old bytes or new bytes, never half: how a file of the project is written.

The new content is written and synced under a draft name in the same folder, gets the mode, owner and extended
attributes of the file it replaces, and takes its place in one rename. What stood there is compared once more right
before, so that a write by somebody else in between is never lost (R93). A file with several hard links becomes one of
its own: the other names keep the old content (S-14).
"""

import errno
import hashlib
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from toolyard.crashpoint import crashpoint
from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure, Reason

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_PIECE = 64 * 1024  # bytes compared at once
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LARGE = 128 * 1024  # bytes that are worth a thread, to hash them while the disk is at work
_hash_thread = ThreadPoolExecutor(1, thread_name_prefix="toolyard-hash")


@dataclass(frozen=True, slots=True)
class FileDraft:
    """New content waiting under its draft name for the rename that makes it real."""

    folder: int
    name: bytes
    draft: bytes
    expected: bytes | None  # what stands there now; None: nothing does
    path: str
    hash: str | None  # of the new content

    def put_in_place(self, *, compare: bool) -> None:
        """Make the draft the file; with ``compare``, unless something else stands there than what was expected."""
        if compare:
            self.require_unchanged()
        if self.expected is None:
            try:
                os.link(self.draft, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder, follow_symlinks=False)
            except FileExistsError as error:
                raise already_exists_failure(self.path) from error
            crashpoint("file.linked")
            os.unlink(self.draft, dir_fd=self.folder)
        else:
            crashpoint("file.before-replace")
            os.replace(self.draft, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        crashpoint("file.in-place")
        os.fsync(self.folder)

    def require_unchanged(self) -> None:
        if not has_content(self.folder, self.name, self.expected):
            raise changed_meanwhile_failure(self.path)

    def discard(self) -> None:
        _remove_draft(self.folder, self.draft)


def _remove_draft(folder: int, draft: bytes) -> None:
    with suppress(FileNotFoundError):
        os.unlink(draft, dir_fd=folder)


def write_draft(
    folder: int,
    name: bytes,
    draft: bytes,
    content: bytes,
    expected: bytes | None,
    path: str,
    *,
    mode: int | None = None,
    like: tuple[int, bytes] | None = None,
) -> FileDraft:
    """Write and sync ``content`` under ``draft``; nothing is visible under ``name`` yet.

    A new file gets ``mode``, or all that the file ``like`` (an open folder, and the name in it) has.
    """
    model = like if expected is None else (folder, name)
    given = mode if model is None else 0o600
    try:
        fd = os.open(draft, _NEW, 0o666 if given is None else given, dir_fd=folder)
        try:
            if model is None and mode is not None:
                os.fchmod(fd, mode)  # what the umask took
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
            if model is not None:
                _copy_metadata(fd, *model, path)
            hashing = _hash_thread.submit(hashlib.sha256, content) if len(content) >= _LARGE else None
            os.fsync(fd)
            hash_ = (hashing.result() if hashing else hashlib.sha256(content)).hexdigest()
        finally:
            os.close(fd)
    except BaseException:
        _remove_draft(folder, draft)
        raise
    crashpoint("file.draft-written")
    return FileDraft(folder, name, draft, expected, path, hash_)


def read_or_none(folder: int, name: bytes) -> bytes | None:
    """The bytes that stand under ``name``, or None when nothing does."""
    try:
        fd = os.open(name, _READ, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as file:
        return file.read()


def has_content(folder: int, name: bytes, expected: bytes | None) -> bool:
    """Return whether just these bytes stand under ``name``; None: nothing does."""
    try:
        fd = os.open(name, _READ, dir_fd=folder)
    except FileNotFoundError:
        return expected is None
    if expected is None:
        os.close(fd)
        return False
    try:
        at = 0
        while piece := os.read(fd, _PIECE):
            if not expected.startswith(piece, at):
                return False
            at += len(piece)
        return at == len(expected)
    finally:
        os.close(fd)


def already_exists_failure(path: str) -> Failure:
    return Failure(
        Reason.ALREADY_EXISTS,
        Message("'{path}' exists already and was not changed.", path=path),
        hint=Message("Choose another name."),
    )


def changed_meanwhile_failure(path: str) -> Failure:
    return Failure(
        Reason.STALE,
        Message("'{path}' was changed by somebody else while this call was at work; nothing was written.", path=path),
        hint=Message("Read it again and repeat the call."),
    )


def _copy_metadata(fd: int, folder: int, name: bytes, path: str) -> None:
    """Give the draft the owner, mode and extended attributes of a file: the one that it replaces, or was."""
    old = os.open(name, _READ, dir_fd=folder)
    try:
        info, own = os.fstat(old), os.fstat(fd)
        if (info.st_uid, info.st_gid) != (own.st_uid, own.st_gid):
            try:
                os.fchown(fd, info.st_uid, info.st_gid)
            except PermissionError as error:
                raise Failure(
                    ErrorCode.PERMISSION_DENIED,
                    Message("'{path}' belongs to another user or group, and this user may not keep it so.", path=path),
                    hint=Message("Run Toolyard as the file's owner."),
                ) from error
        os.fchmod(fd, stat.S_IMODE(info.st_mode))
        copy_attributes(old, fd)
    finally:
        os.close(old)


def copy_attributes(old: int, fd: int) -> None:
    if not hasattr(os, "listxattr"):
        return  # not Linux
    try:
        names = os.listxattr(old)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return
        raise
    for name in names:
        try:
            os.setxattr(fd, name, os.getxattr(old, name))
        except OSError:
            if name.startswith("user."):
                raise  # the system keeps its own (security.*) as it sees fit
