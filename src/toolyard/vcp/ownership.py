"""The one server that runs an installation of VCPToolBox: its timers, watchers and services must not run twice.

Of several servers of Toolyard one owns a tree, by a lock on its folder, which leaves no file there and ends with the
process. VCPToolBox itself knows no lock: its process is found by its working folder. Where it runs, Toolyard starts
only when its owner says that it is *beside* it, and then leaves all timers of the tree to VCPToolBox.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from toolyard.errors import UsageError
from toolyard.message import Message

_SERVERS = ("server.js", "adminServer.js")


@contextmanager
def own_installation(root: Path, *, is_shared: bool) -> Iterator[None]:
    """Own an installation, or with ``is_shared`` use it beside VCPToolBox. Raises UsageError when another runs it."""
    if is_shared:
        yield
        return
    if pid := find_vcptoolbox(root):
        message = Message(
            "VCPToolBox runs on {root} (process {pid}), and its timers would run twice: stop it, or start beside it "
            "with --beside, which leaves them to it",
            root=root,
            pid=pid,
        )
        raise UsageError(message)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = Message("another server of Toolyard uses {root}: stop it, or add --beside", root=root)
            raise UsageError(message) from error
        yield
    finally:
        os.close(folder)


def find_vcptoolbox(root: Path) -> int | None:
    """Return the process of VCPToolBox that runs in a tree, as far as this user can see it; None: there is none."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            is_server = any(os.path.basename(word) in _SERVERS for word in words[1:])
            if is_server and os.path.samefile(os.readlink(entry / "cwd"), root):
                return int(entry.name)
    return None
