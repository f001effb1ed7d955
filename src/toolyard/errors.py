"""Host faults, for operators and programmers: Toolyard itself cannot continue.

A tool that fails is not a host fault: the model gets an Envelope (see ``protocol.envelope``). The whole tree:

    ToolyardError            anything Toolyard raises on purpose; ``exit_code`` is what the command line exits with
    ├── UsageError           the request makes no sense: a flag, an argument, a file that cannot be read      (2)
    ├── ConfigError          a setting is wrong: says where it stands and how to write it right              (1)
    ├── InvalidEnvelope      a value that claims to be an envelope breaks its rules                          (1)
    ├── DuplicateTool        two tools want one name                                                         (1)
    ├── AlreadyOwned         another Toolyard runs on this home                                               (3)
    ├── ServerUnreachable    a server runs on this home, but cannot be asked                                  (4)
    └── StorageError         the state cannot be read or written: says where it is and how to mend it        (1)
        ├── StorageInDoubt       a change was asked for, and whether it was kept is not known                 (1)
        ├── StorageUnwritable    it is as good as it was, but nothing can be added: a full disk, a missing right  (1)
        ├── StorageKeyMissing    a record is encrypted, and its key is not here: says which, and how to get it      (1)
        ├── StorageBusy          another process holds it for now                                                  (1)
        └── StorageIndexDamaged  its records are whole, but an index is not: 'doctor --repair' rebuilds it          (1)
"""

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final, Self

from toolyard.message import Message

FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (*FULL, errno.EROFS)


class ToolyardError(Exception):
    """Toolyard cannot do this."""

    exit_code: ClassVar[int] = 1


class UsageError(ToolyardError):
    """The request makes no sense as written."""

    exit_code = 2


class ConfigError(ToolyardError):
    """One or several settings are wrong; ``problems`` has one message for each."""

    def __init__(self, *problems: str) -> None:
        super().__init__(problems[0] if len(problems) == 1 else "\n".join(problems))
        self.problems = problems


class InvalidEnvelope(ToolyardError):
    """A value breaks the rules of the envelope; ``problems`` lists all of them."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("not a valid envelope: " + "; ".join(problems))


class DuplicateTool(ToolyardError):
    """Two tools want one name."""


class AlreadyOwned(ToolyardError):
    """Another Toolyard runs on this home."""

    exit_code = 3


class ServerUnreachable(ToolyardError):
    """A server runs on this home, but cannot be asked."""

    exit_code = 4


class StorageError(ToolyardError):
    """The state cannot be read or written."""


class StorageInDoubt(StorageError):
    """A change was asked for, and whether it was kept is not known."""


class StorageUnwritable(StorageError):
    """The state is as good as it was, but nothing can be added to it."""

    @classmethod
    def from_os_error(cls, file: Path, error: OSError) -> Self:
        """Say why a file cannot be written: the disk, the file system, or a missing right."""
        folder = next(one for one in file.absolute().parents if one.exists())
        if error.errno in FULL:
            return cls(
                Message(
                    "the disk is full: {file} cannot be written; free some space and try again",
                    file=file if file.exists() else folder,
                )
            )
        for place in (folder, file):
            if _is_mounted_read_only(place):
                return cls(
                    Message(
                        "{place} is on a file system that is mounted read-only: remount it writable, or use another "
                        "--home",
                        place=place,
                    )
                )
            if place.exists() and not os.access(place, os.W_OK):
                return cls(
                    Message("{place} is read-only for this user: make it writable, or use another --home", place=place)
                )
        return cls(
            Message(
                "{file} cannot be written ({reason}): make the file and its folder writable",
                file=file,
                reason=error.strerror or str(error),
            )
        )


def is_disk_refusal(error: OSError) -> bool:
    """Return whether the system refused to write because the disk is full or read-only."""
    return error.errno in _REFUSED


def _is_mounted_read_only(place: Path) -> bool:
    try:
        return bool(os.statvfs(place).f_flag & os.ST_RDONLY)
    except OSError:
        return False


class StorageBusy(StorageError):
    """Another process uses the state; nothing is wrong with it."""


class StorageKeyMissing(StorageError):
    """A record is encrypted, and the key that was used is missing or another one."""


class StorageIndexDamaged(StorageError):
    """The records of the state are whole, but an index that they are found by is not."""
