"""The read history: the hash of each file's bytes when a caller last saw or wrote them.

A caller in this process is remembered in memory. A caller whose every call is a process of its own (the command line)
is remembered in a file of the home folder. Both forget the oldest when there are too many: forgetting only means that
a file must be read again before it is overwritten.
"""

import hashlib
import json
import logging
import os
import threading
from collections import OrderedDict
from pathlib import Path

from toolyard.crashpoint import crashpoint
from toolyard.workspace.home_folder import make_private_folder

_log = logging.getLogger(__name__)
MAX_REMEMBERED = 20_000
_MAX_FILE_BYTES = 2 * 1024 * 1024
LASTING_PREFIX = "cli:"  # callers that begin so outlive their process


class ReadHistory:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._memory: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._guard = threading.Lock()

    def remember(self, caller: str, path: str, checksum: str) -> None:
        with self._guard:
            self._memory[caller, path] = checksum
            self._memory.move_to_end((caller, path))
            while len(self._memory) > MAX_REMEMBERED:
                self._memory.popitem(last=False)
            if caller.startswith(LASTING_PREFIX):
                try:
                    self._append_entry(caller, path, checksum)
                except OSError as error:
                    _log.warning("what was read could not be remembered: %s: %s", self._folder, error.strerror)

    def recall(self, caller: str, path: str) -> str | None:
        with self._guard:
            known = self._memory.get((caller, path))
            return (
                self._load_entries(caller).get(path) if known is None and caller.startswith(LASTING_PREFIX) else known
            )

    def _caller_file(self, caller: str) -> Path:
        return self._folder / f"{hashlib.sha256(caller.encode()).hexdigest()[:32]}.jsonl"

    def _append_entry(self, caller: str, path: str, checksum: str) -> None:
        file = self._caller_file(caller)
        make_private_folder(file.parent)
        line = json.dumps([path, checksum]).encode() + b"\n"
        fd = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, line)  # one write to an appended file: two processes never mix their lines
            if os.fstat(fd).st_size > _MAX_FILE_BYTES:
                self._shorten_file(file, caller)
        finally:
            os.close(fd)

    def _load_entries(self, caller: str) -> dict[str, str]:
        try:
            lines = self._caller_file(caller).read_bytes().splitlines()
        except OSError:
            return {}
        return dict(entry for entry in map(_parse_entry, lines) if entry)

    def _shorten_file(self, file: Path, caller: str) -> None:
        newest = list(self._load_entries(caller).items())[-MAX_REMEMBERED // 4 :]
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text("".join(json.dumps(entry) + "\n" for entry in newest), encoding="utf-8")
        crashpoint("reads.before-replace")
        draft.replace(file)


def _parse_entry(line: bytes) -> tuple[str, str] | None:
    try:
        path, checksum = json.loads(line)
    except (ValueError, TypeError):
        return None  # cut by a crash: as good as not read
    return str(path), str(checksum)
