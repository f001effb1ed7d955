"""The files of the system that every program may read, and the devices that it may use.

For root they leave out what only root may read in /etc, at any depth. What is added there later counts at the next
start; a file that is closed to others without being replaced counts when Toolyard starts again.
"""

import functools
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

# /proc shows the memory and environment of a process only to processes of the same confinement
_TREES = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/snap", "/home/linuxbrew",
    "/proc", "/sys", "/var/lib/dbus/machine-id", "/var/lib/ca-certificates", "/var/cache/fontconfig",
    "/run/systemd/resolve", "/run/resolvconf", "/run/current-system",
)  # fmt: skip
# no terminals: whoever may open its own may open those of the user too
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_SETTINGS = "/etc"
_NAME_SERVERS = "/etc/resolv.conf"  # on many systems a link to a file of the program that keeps it
_READABLE_BY_ALL, _ENTERED_BY_ALL = 0o004, 0o001
_MAX_ENTRIES = 50_000  # what is beyond them is not readable


@functools.cache
def list_system_trees() -> tuple[str, ...]:
    """Return the folders of the system, without links: only root can change those that stand on the way."""
    return tuple(_list_outermost(map(os.path.realpath, (*_TREES, _SETTINGS, _NAME_SERVERS))))


def list_readable_trees() -> tuple[str, ...]:
    """Return the paths of the system that every program may read, without links."""
    if os.geteuid() != 0:
        return list_system_trees()
    settings = os.path.realpath(_SETTINGS)
    return (*(tree for tree in list_system_trees() if tree != settings), *_read_public(settings).paths)


@dataclass
class _PublicFiles:
    """The outermost paths below a folder of which everybody may read everything."""

    paths: list[str] = field(default_factory=list)
    folders: dict[str, int] = field(default_factory=dict)  # that were looked at, and when they last changed
    count: int = 0

    def is_current(self) -> bool:
        try:
            return all(os.lstat(folder).st_ctime_ns == changed for folder, changed in self.folders.items())
        except OSError:
            return False

    def read(self, folder: str, *, is_listed: bool = True) -> bool:
        """Add what everybody may read below ``folder``. Return whether that is all there is, and it can be listed."""
        first, is_public = len(self.paths), is_listed
        self.folders[folder] = os.lstat(folder).st_ctime_ns
        with os.scandir(folder) as entries:
            for entry in entries:
                is_public = self._read_entry(entry) and is_public
        if is_public:
            self.paths[first:] = [folder]
        return is_public

    def _read_entry(self, entry: "os.DirEntry[str]") -> bool:
        self.count += 1
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):  # it gives nothing but what it leads to, if that can be read
            return True
        if self.count > _MAX_ENTRIES or not mode & (_ENTERED_BY_ALL if stat.S_ISDIR(mode) else _READABLE_BY_ALL):
            return False
        if not stat.S_ISDIR(mode):
            self.paths.append(entry.path)
            return True
        return self.read(entry.path, is_listed=bool(mode & _READABLE_BY_ALL))


_known: dict[str, _PublicFiles] = {}


def _read_public(folder: str) -> _PublicFiles:
    known = _known.get(folder)
    if known is None or not known.is_current():
        known = _known[folder] = _PublicFiles()
        try:
            known.read(folder)
        except OSError:  # it changes right now: the next start looks again
            known.folders[folder] = 0
    return known


def _list_outermost(paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths that exist, without those inside of others."""
    outer = ""
    for path in sorted(filter(os.path.exists, paths), key=lambda path: path.split("/")):
        if not outer or (path != outer and not path.startswith(f"{outer}/")):
            outer = path
            yield path
