"""New files, copies, moves and folders in the project: never over anything, never outside.

Both ends are known by the open folders that hold them, so nothing that is swapped meanwhile leads elsewhere. What is
taken is never replaced: the next free name, ``name(1).ext``, is taken in the same step that finds it free, or the call
is refused. A link is moved as the link it is; one that leads outside is not touched. What may be written is for
``WriteAccess`` to say.
"""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from secrets import token_hex

from toolyard.crashpoint import crashpoint
from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.tool import Checkpoint
from toolyard.workspace.changes.file_draft import already_exists_failure, copy_attributes
from toolyard.workspace.changes.locks import lock_folders
from toolyard.workspace.changes.protected_paths import WriteAccess, require_writable
from toolyard.workspace.changes.transaction import Transactions, Write
from toolyard.workspace.changes.undo_records import Change, Folder, Moved, build_written, compute_mark
from toolyard.workspace.document import MAX_BYTES
from toolyard.workspace.path_walk import to_text
from toolyard.workspace.workspace import Entry, OpenHandle, Workspace, read_consistently, read_exactly

MAX_COPY_BYTES = MAX_BYTES
_MAX_NAMES = 1000  # a folder with so many of one name does not want another
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Placement:
    """The place of a new entry, and the requested one: another when that name was taken."""

    path: str
    requested: str
    change: Change

    @property
    def is_renamed(self) -> bool:
        return self.path != self.requested


@dataclass(frozen=True, slots=True)
class _Destination:
    """A place for something new: ``folder`` is open, and ``make_folders`` gives the final one and the name in it."""

    folder: int
    path: str
    make_folders: Callable[[], tuple[int, bytes]]
    removing_on_failure: Callable[
        [], AbstractContextManager[None]
    ]  # in which it is made, and taken back when that fails
    count_made: Callable[[], int]  # how many folders were made for it

    def path_of(self, name: bytes) -> str:
        return _join_path(self.path.rpartition("/")[0], to_text(name))


class Arranger:
    def __init__(self, workspace: Workspace, transactions: Transactions) -> None:
        self._workspace, self._transactions = workspace, transactions

    def create(
        self, path: str, content: bytes, checkpoint: Checkpoint, *, access: WriteAccess = WriteAccess.USUAL
    ) -> Placement:
        """A new file, with the folders on the way to it; complete on disk when this returns."""
        with (
            self._open_destination(path, access=access) as landing,
            lock_folders([landing.folder], checkpoint),
            landing.removing_on_failure(),
        ):
            checkpoint()
            return self._write_new(landing, content)

    def copy(
        self, source: str, destination: str, checkpoint: Checkpoint, *, access: WriteAccess = WriteAccess.USUAL
    ) -> Placement:
        """A copy of a file with its mode; into ``destination`` if that is a folder."""
        with self._workspace.open_file(source) as file, self._workspace.open_entry(source, follow=True) as entry:
            content = read_consistently(file, _read_whole)
            into = self._open_destination(destination, entry.name, access=access)
            with into as landing, lock_folders([landing.folder], checkpoint), landing.removing_on_failure():
                checkpoint()
                return self._write_new(landing, content, stat.S_IMODE(file.stat.st_mode) & 0o777)

    def move(
        self,
        source: str,
        destination: str,
        checkpoint: Checkpoint,
        *,
        exactly: bool = False,
        access: WriteAccess = WriteAccess.USUAL,
    ) -> Placement:
        """A file, folder or link to another place; ``exactly``: to this name and no other, which must be free."""
        with self._workspace.open_entry(source, follow=False) as entry:
            self.require_movable(entry, source, access=access)
            if exactly and self._is_folder(destination):
                raise already_exists_failure(destination)
            into = self._open_destination(destination, None if exactly else entry.name, access=access)
            with (
                into as landing,
                lock_folders([entry.folder, landing.folder], checkpoint),
                landing.removing_on_failure(),
            ):
                _require_elsewhere(entry, landing.path)
                checkpoint()
                folder, name = landing.make_folders()
                for number, free in enumerate(list_free_names(name, is_folder=stat.S_ISDIR(entry.stat.st_mode))):
                    if exactly and number:
                        raise already_exists_failure(landing.path)
                    with suppress(FileExistsError):
                        transfer_entry(entry.folder, entry.name, folder, free)
                        where, mark = landing.path_of(free), compute_mark(folder, free)
                        moved = Moved(entry.path, where, os.fsdecode(entry.name), mark, landing.count_made())
                        return Placement(where, landing.path, moved)
                raise already_exists_failure(landing.path)

    def make_folder(self, path: str, *, access: WriteAccess = WriteAccess.USUAL) -> Folder:
        """A folder with those on the way to it, as far as they are new."""
        if self._is_folder(path):
            with self._workspace.open_folder(path) as there:
                return Folder(there.path, 0)
        with self._workspace.open_target(path) as target, target.removing_on_failure():
            require_writable(target.path, access)
            if target.exists:
                raise already_exists_failure(target.path)
            folder, name = target.make_folders()
            made = target.made_count
            with suppress(FileExistsError):  # somebody else was as quick
                os.mkdir(name, 0o777, dir_fd=folder)
                made += 1
            os.fsync(folder)
            return Folder(target.path, made)

    def require_movable(self, entry: Entry, path: str, *, access: WriteAccess) -> None:
        """Refuse to move the project itself, protected places, and links that lead outside (S-12)."""
        require_writable(entry.path, access)
        if entry.path == ".":
            raise Failure(
                ErrorCode.ACCESS_DENIED,
                Message("The project's root cannot be moved or deleted."),
                hint=Message("Name something in it."),
            )
        if stat.S_ISLNK(entry.stat.st_mode):
            try:
                with self._workspace.open_entry(path, follow=True):
                    pass
            except Failure as failure:
                if failure.code is ErrorCode.ACCESS_DENIED:
                    raise  # a link to nowhere or to itself harms nobody

    def _write_new(self, landing: _Destination, content: bytes, mode: int | None = None) -> Placement:
        folder, name = landing.make_folders()
        for free in list_free_names(name):
            path = landing.path_of(free)
            if _exists(folder, free):
                continue
            try:
                (hash_,) = self._transactions.commit([Write(folder, free, path, None, content, mode)])
            except Failure as failure:
                if failure.code is not ErrorCode.CONFLICT:
                    raise
                continue  # somebody was quicker
            change = build_written(path, os.fsdecode(free), None, content, hash_, None, landing.count_made())
            return Placement(path, landing.path, change)
        raise already_exists_failure(landing.path)

    @contextmanager
    def _open_destination(self, path: str, own: bytes | None = None, *, access: WriteAccess) -> Iterator[_Destination]:
        """The place that ``path`` means; a folder means the place in it for something with the name ``own``."""
        if own is not None and self._is_folder(path):
            with self._workspace.open_folder(path) as folder:
                inside, where = (folder.fd, own), _join_path(folder.path, to_text(own))
                require_writable(where, access)
                yield _Destination(folder.fd, where, lambda: inside, nullcontext, lambda: 0)
        else:
            with self._workspace.open_target(path) as target:
                if own is not None and path.endswith("/"):
                    if target.exists:
                        raise already_exists_failure(target.path)
                    target.append_name(own)
                require_writable(target.path, access)
                yield _Destination(
                    target.folder,
                    target.path,
                    target.make_folders,
                    target.removing_on_failure,
                    lambda: target.made_count,
                )

    def _is_folder(self, path: str) -> bool:
        try:
            with self._workspace.open_entry(path, follow=True) as entry:
                return stat.S_ISDIR(entry.stat.st_mode)
        except Failure:
            return False  # whoever uses the path next says what is wrong with it


def list_free_names(name: bytes, *, is_folder: bool = False) -> Iterator[bytes]:
    """The name itself, then ``name(1).ext``, ``name(2).ext``, ...; a folder has no ending to keep."""
    stem, dot, ending = name.rpartition(b".")
    if is_folder or not stem:
        stem, dot, ending = name, b"", b""
    yield name
    yield from (b"%s(%d)%s%s" % (stem, number, dot, ending) for number in range(1, _MAX_NAMES))


def transfer_entry(source: int, name: bytes, folder: int, new: bytes) -> None:
    """Give what stands at ``name`` the place ``new``, which must be free: raises FileExistsError when it is not."""
    try:
        _rename_to_free(source, name, folder, new)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        draft = f".toolyard-{token_hex(16)}-0".encode()  # complete before it has its name
        try:
            copy_tree(source, name, folder, draft)
            _rename_to_free(folder, draft, folder, new)
        finally:
            remove_tree(folder, draft)
        remove_tree(source, name)
    os.fsync(folder)
    os.fsync(source)


def _rename_to_free(source: int, name: bytes, folder: int, new: bytes) -> None:
    """A rename replaces what it finds; so the new name is taken first, in a step that fails when there is one."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=source, follow_symlinks=False).st_mode):
        os.link(name, new, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        crashpoint("move.linked")
        os.unlink(name, dir_fd=source)
        return
    os.mkdir(new, 0o700, dir_fd=folder)
    crashpoint("move.folder-made")
    try:
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=folder)  # over the empty folder just made
    except OSError:
        with suppress(OSError):
            os.rmdir(new, dir_fd=folder)
        raise


def _require_elsewhere(entry: Entry, destination: str) -> None:
    if destination == entry.path:
        raise Failure(
            Reason.NO_CHANGE,
            Message("'{path}' is there already.", path=entry.path),
            hint=Message("Name another place."),
        )
    if destination.startswith(f"{entry.path}/"):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("'{path}' cannot be moved into itself.", path=entry.path),
            hint=Message("Name a place outside of it."),
        )


def _read_whole(file: OpenHandle) -> bytes:
    size = file.stat.st_size
    if size > MAX_COPY_BYTES:
        raise Failure(
            Reason.TOO_LARGE,
            Message(
                "'{path}' has {size} bytes; files are copied up to {max_copy_bytes}.",
                path=file.path,
                size=size,
                max_copy_bytes=MAX_COPY_BYTES,
            ),
            hint=Message("Move it, or copy it with a program made for large files."),
        )
    return read_exactly(file.fd, 0, size)


def _exists(folder: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _join_path(folder: str, name: str) -> str:
    return name if folder in ("", ".") else f"{folder}/{name}"


def copy_tree(source: int, name: bytes, folder: int, new: bytes) -> None:
    """Copy what stands at ``name`` in one open folder to ``new``, which must be free, in another."""
    info = os.stat(name, dir_fd=source, follow_symlinks=False)
    if stat.S_ISLNK(info.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), new, dir_fd=folder)
        with suppress(PermissionError):
            os.chown(new, info.st_uid, info.st_gid, dir_fd=folder, follow_symlinks=False)
        return
    if stat.S_ISDIR(info.st_mode):
        _copy_folder(source, name, folder, new)
    elif stat.S_ISREG(info.st_mode):
        _copy_file(source, name, folder, new)
    else:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("'{name}' is no regular file and cannot be taken to another file system.", name=to_text(name)),
            hint=Message("Remove it with a program made for such files."),
        )


def remove_tree(folder: int, name: bytes) -> None:
    """Remove what stands at ``name``, if anything does."""
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=folder)  # by descriptors itself
        else:
            os.unlink(name, dir_fd=folder)


def _copy_folder(source: int, name: bytes, folder: int, new: bytes) -> None:
    os.mkdir(new, 0o700, dir_fd=folder)
    old = os.open(name, _FOLDER, dir_fd=source)
    try:
        own = os.open(new, _FOLDER, dir_fd=folder)
        try:
            for entry in os.listdir(old):
                copy_tree(old, os.fsencode(entry), own, os.fsencode(entry))
            _copy_metadata(own, old)
        finally:
            os.close(own)
    finally:
        os.close(old)


def _copy_file(source: int, name: bytes, folder: int, new: bytes) -> None:
    with (
        os.fdopen(os.open(name, _READ, dir_fd=source), "rb") as old,
        os.fdopen(os.open(new, _NEW, 0o600, dir_fd=folder), "wb") as own,
    ):
        shutil.copyfileobj(old, own)
        own.flush()
        _copy_metadata(own.fileno(), old.fileno())


def _copy_metadata(fd: int, old: int) -> None:
    info, mode = os.fstat(old), stat.S_IMODE(os.fstat(old).st_mode)
    try:
        os.fchown(fd, info.st_uid, info.st_gid)
    except PermissionError:
        mode &= 0o1777  # what ran with the rights of its owner must not run with ours
    with suppress(OSError):  # a file system that has no such attributes
        copy_attributes(old, fd)
    os.fchmod(fd, mode)
    os.utime(fd, ns=(info.st_atime_ns, info.st_mtime_ns))
    os.fsync(fd)
