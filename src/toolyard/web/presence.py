"""The presence file ``server.json``: how other processes of a home find its running server."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from toolyard.crashpoint import crashpoint
from toolyard.liveness import is_process_alive, process_start_time

FILE: Final = "server.json"


class Presence(NamedTuple):
    """The address and the process of a running server."""

    url: str
    pid: int
    started: int  # start time from the kernel: a pid alone may be reused
    project: str

    @property
    def is_alive(self) -> bool:
        return is_process_alive(self.pid, self.started)


def announce(home: Path, url: str, project: Path) -> Presence:
    """Write the presence file of this process atomically, readable by its owner only."""
    pid = os.getpid()
    here = Presence(url=url, pid=pid, started=process_start_time(pid), project=str(project.resolve()))
    record = {"url": here.url, "pid": here.pid, "started": here.started, "project": here.project}
    draft = home / f".{FILE}.{pid}"
    with suppress(FileNotFoundError):
        draft.unlink()
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(record, file)
    crashpoint("presence.before-replace")
    draft.replace(home / FILE)
    return here


def withdraw(home: Path) -> None:
    """Remove the presence file if it is this process's."""
    presence = read_presence(home)
    if presence is not None and presence.pid == os.getpid():
        with suppress(FileNotFoundError):
            (home / FILE).unlink()


def read_presence(home: Path) -> Presence | None:
    """Read the presence file; None when it is missing or invalid."""
    try:
        record = json.loads((home / FILE).read_text(encoding="utf-8"))
        return Presence(
            url=str(record["url"]),
            pid=int(record["pid"]),
            started=int(record["started"]),
            project=str(record["project"]),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
