"""The files of the system that every program may read, and the devices that it may use."""

import functools
import os
from collections.abc import Iterator

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
_READABLE_BY_ALL = 0o004


@functools.cache
def list_system_trees() -> tuple[str, ...]:
    """Return the paths that every program may read. For root they leave out what only root may read in /etc."""
    settings = tuple(_list_settings()) if os.geteuid() == 0 else (_SETTINGS,)
    return (*_TREES, *settings, os.path.realpath(_NAME_SERVERS))


def _list_settings() -> Iterator[str]:
    """Yield each file and folder of /etc that everybody may read."""
    with os.scandir(_SETTINGS) as entries:
        for entry in entries:
            if _is_public(entry.path):
                yield entry.path


def _is_public(path: str) -> bool:
    try:
        return bool(os.stat(path).st_mode & _READABLE_BY_ALL)
    except OSError:
        return False
