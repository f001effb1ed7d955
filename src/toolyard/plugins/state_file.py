"""A small JSON file of the home folder that several processes update atomically, private to its owner.

Reading costs one ``stat`` while nothing has changed. A file that cannot be read counts as empty and says why in
``problem``; it is never written over, so that nothing in it is lost. Writers take turns by a lock file beside it, and
wait for each other no longer than a few seconds.
"""

import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from toolyard.crashpoint import crashpoint
from toolyard.errors import ConfigError, StorageUnwritable
from toolyard.message import Message
from toolyard.protocol.json import JsonObject
from toolyard.workspace.home_folder import make_private_folder

_MAX_BYTES = 64 * 2**20
_WAIT_S = 0.02
_MAX_WAITS = 250


class StateFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem = ""
        self._value: JsonObject = {}
        self._seen: tuple[int, ...] | None = None

    def read(self) -> JsonObject:
        """Return the content of the file; not to be changed."""
        seen = self.signature()
        if seen != self._seen:
            self._value, self.problem = self._load()
            self._seen = seen
        return self._value

    def update(self, edit: Callable[[JsonObject], None]) -> None:
        """Write the file as ``edit`` leaves its content; raises ConfigError and StorageUnwritable."""
        try:
            make_private_folder(self.path.parent)
            with lock_file(self.path.with_name(f".{self.path.name}.lock")):
                value, problem = self._load()
                if problem:
                    raise ConfigError(
                        Message(
                            "plugin.correct_or_start_over",
                            "{problem}: correct it, or remove it and begin anew",
                            problem=problem,
                        )
                    )
                edit(value)
                write_private_file(
                    self.path, json.dumps(value, ensure_ascii=False, indent=1).encode(errors="surrogatepass")
                )
        except OSError as error:
            raise StorageUnwritable.from_os_error(self.path, error) from error

    def _load(self) -> tuple[JsonObject, str]:
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            with os.fdopen(fd, "rb") as file:
                value = json.loads(file.read(_MAX_BYTES).decode())
        except FileNotFoundError:
            return {}, ""
        except OSError as error:
            return {}, Message(
                "settings.file_unreadable", "{path} cannot be read: {error}", path=self.path, error=error.strerror
            )
        except (ValueError, RecursionError) as error:
            return {}, Message(
                "settings.file_no_json", "{path} is not valid JSON ({error})", path=self.path, error=error
            )
        if isinstance(value, dict):
            return value, ""
        return {}, Message("settings.file_no_object", "{path} is not a JSON object", path=self.path)

    def signature(self) -> tuple[int, ...]:
        """Return a value that changes whenever the file does."""
        try:
            info = os.stat(self.path)  # half the time of the method
        except OSError as error:
            return (error.errno or 0,)
        return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def write_private_file(path: Path, content: bytes) -> None:
    """Replace a file atomically, private to its owner. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        draft.unlink()  # of a process of this number that died
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(fd)
        crashpoint("state-file.before-replace")
        draft.replace(path)
        crashpoint("state-file.after-replace")
    except BaseException:
        with suppress(FileNotFoundError):
            draft.unlink()
        raise


@contextmanager
def lock_file(lock: Path) -> Iterator[None]:
    """Hold an exclusive lock among processes. Raises ConfigError when it takes too long."""
    own = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    pause = threading.Event()
    try:
        for _ in range(_MAX_WAITS):
            try:
                fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                pause.wait(_WAIT_S)
            except OSError:
                break  # a file system without locks
        else:
            raise ConfigError(
                Message(
                    "plugin.locked_by_other_process",
                    "{lock} is held by another process: try again when it has ended",
                    lock=lock,
                )
            )
        yield
    finally:
        os.close(own)
