"""Sessions: the working folder and the exported variables that one command leaves for the next.

A session is a file in the data folder of the plugin, not a process.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MAX_SESSIONS = 100
MAX_BYTES = 256 * 1024
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
OF_THE_SHELL = frozenset({"PWD", "OLDPWD", "SHLVL", "_"})


class SessionError(Exception):
    """Raised when a session cannot be used or kept."""


@dataclass(frozen=True)
class Session:
    name: str
    folder: str = ""  # relative to the project
    set: Mapping[str, str] = field(default_factory=dict)  # variables that differ from a new session
    removed: tuple[str, ...] = ()

    def apply(self, base: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in {**base, **self.set}.items() if name not in self.removed}

    def after(self, base: Mapping[str, str], environment: Mapping[str, str], folder: str) -> "Session":
        """Return the session as a command with this environment and folder leaves it."""
        changed = {
            name: value for name, value in environment.items() if name not in OF_THE_SHELL and base.get(name) != value
        }
        removed = tuple(sorted(name for name in base if name not in environment and name not in OF_THE_SHELL))
        return Session(self.name, folder, changed, removed)


def load_session(place: Path, name: str) -> Session:
    """Return a session; an unknown one is new. Raises SessionError."""
    file = _file_of(place, name)
    try:
        with file.open("rb") as opened:
            value = json.loads(opened.read(2 * MAX_BYTES))
        return Session(
            name,
            str(value["folder"]),
            {str(key): str(text) for key, text in value["set"].items()},
            tuple(map(str, value["removed"])),
        )
    except FileNotFoundError:
        return Session(name)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SessionError(f"The session '{name}' cannot be read ({error}): remove it and begin anew.") from error


def save_session(place: Path, session: Session) -> None:
    """Keep a session. Raises SessionError."""
    file = _file_of(place, session.name)
    value = {"folder": session.folder, "set": dict(session.set), "removed": list(session.removed)}
    content = json.dumps(value).encode()
    if len(content) > MAX_BYTES:
        raise SessionError(
            f"The session '{session.name}' was not kept: its variables have more than {MAX_BYTES} bytes."
        )
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not file.exists() and len(list(place.glob("*.json"))) >= MAX_SESSIONS:
        raise SessionError(f"The session '{session.name}' was not kept: there are {MAX_SESSIONS}; remove some first.")
    draft = file.with_name(f".{session.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
        opened.write(content)
    draft.replace(file)


def remove_session(place: Path, name: str) -> None:
    """Remove a session. Raises SessionError when there is none."""
    try:
        _file_of(place, name).unlink()
    except FileNotFoundError:
        raise SessionError(f"There is no session '{name}'.") from None


def list_sessions(place: Path) -> list[Session]:
    sessions = []
    for file in sorted(place.glob("*.json")):
        try:
            sessions.append(load_session(place, file.stem))
        except SessionError:
            continue
    return sessions


def _file_of(place: Path, name: str) -> Path:
    if not NAME.fullmatch(name):
        raise SessionError("The name of a session has letters, digits, '_', '.' and '-', at most 64.")
    return place / f"{name}.json"
