"""A running server as other processes of its home find it: ``server.json``, while it runs."""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolyard.crashpoint import crashpoint
from toolyard.engine.ownership import is_process_alive, process_start_time

FILE: Final = "server.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    url: str
    pid: int
    started: int  # as the kernel counts it: a pid alone may be given to another process
    project: str

    @property
    def is_alive(self) -> bool:
        return is_process_alive(self.pid, self.started)


def announce(home: Path, url: str, project: Path) -> Presence:
    """Write where this process serves; whole or not at all, for its owner only."""
    pid = os.getpid()
    here = Presence(url=url, pid=pid, started=process_start_time(pid), project=str(project.resolve()))
    told = {"url": here.url, "pid": here.pid, "started": here.started, "project": here.project}
    draft = home / f".{FILE}.{pid}"
    with suppress(FileNotFoundError):
        draft.unlink()
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(told, file)
    crashpoint("presence.before-replace")
    draft.replace(home / FILE)
    return here


def withdraw(home: Path) -> None:
    """Remove it, if it is this process's."""
    found = presence_of(home)
    if found is not None and found.pid == os.getpid():
        with suppress(FileNotFoundError):
            (home / FILE).unlink()


def presence_of(home: Path) -> Presence | None:
    """What the file says; None when there is none, or it makes no sense."""
    try:
        told = json.loads((home / FILE).read_text(encoding="utf-8"))
        return Presence(
            url=str(told["url"]), pid=int(told["pid"]), started=int(told["started"]), project=str(told["project"])
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
