"""The MCP servers that are written down: in ``mcp.json`` of the home and in ``.mcp.json`` of the project.

Of two with one name the home's counts. Reading again costs one ``stat`` per file while nothing has changed. A file that
cannot be read counts as empty and says why in ``problems``.
"""

import hashlib
import json
import operator
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Final

from toolyard.dialects.mcp_config import KEY, ServerDeclaration, expand_variables, parse_servers
from toolyard.plugins.environment import HOST_KEYS
from toolyard.plugins.state_file import StateFile
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import JsonObject

HOME_FILE: Final = "mcp.json"
PROJECT_FILE: Final = ".mcp.json"


class Scope(StrEnum):
    HOME = "home"
    PROJECT = "project"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A server, and where it is written down."""

    declared: ServerDeclaration
    scope: Scope
    file: Path

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def key(self) -> str:
        """Under which its permission is kept: what one project was allowed, another is not."""
        return f"{self.file}::{self.name}"

    @property
    def command_line(self) -> str:
        """Exactly what is run or reached, whole."""
        return self.declared.url or shlex.join((self.declared.command, *self.declared.args))

    @cached_property
    def digest(self) -> str:
        told = json.dumps(self.declared.to_json(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(told.encode(errors="surrogatepass")).hexdigest()


class Declarations:
    def __init__(self, project: Path, home: Path) -> None:
        self._home = StateFile(home / HOME_FILE)
        self._files = ((Scope.HOME, self._home), (Scope.PROJECT, StateFile(project / PROJECT_FILE)))
        self.problems: tuple[str, ...] = ()
        self._values: list[JsonObject] = []  # of the files, from which ``_entries`` were read
        self._entries: dict[str, Entry] = {}
        self._revision = 0

    def all(self) -> list[Entry]:
        """Return every server that is written down."""
        return list(self._read().values())

    def _read(self) -> dict[str, Entry]:
        values = [file.read() for _, file in self._files]
        if len(values) == len(self._values) and all(map(operator.is_, values, self._values)):
            return self._entries
        self._values, self._entries = values, self._parse(values)
        self._revision += 1
        return self._entries

    def _parse(self, values: list[JsonObject]) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        problems: list[str] = []
        for (scope, file), value in zip(self._files, values, strict=True):
            declared, wrong = parse_servers(value) if value else ([], [])
            problems += [file.problem] if file.problem else [f"{file.path}: {one}" for one in wrong]
            for one in declared:
                if one.name in found:
                    problems.append(f"{file.path}: {one.name} is also in {found[one.name].file}, which counts")
                found.setdefault(one.name, Entry(declared=one, scope=scope, file=file.path))
        self.problems = tuple(problems)
        return found

    def version(self) -> int:
        """Return what changes whenever one of the files does."""
        self._read()
        return self._revision

    def known(self, name: str) -> Entry | None:
        """Return a server as it was when the files were last read: without looking at them."""
        return self._entries.get(name)

    def get(self, name: str) -> Entry | None:
        return self._read().get(name)

    def add(self, declared: ServerDeclaration) -> None:
        """Write one into the home's file. Raises ConfigError."""

        def put(value: JsonObject) -> None:
            servers = value.setdefault(KEY, {})
            if isinstance(servers, dict):
                servers[declared.name] = declared.to_json() | ({"disabled": True} if declared.disabled else {})

        self._home.change(put)

    def switch(self, name: str, *, on: bool) -> bool:
        """Enable or disable one; whether it was in the home's file. What was allowed stays so. Raises ConfigError."""
        found: list[object] = []

        def turn(value: JsonObject) -> None:
            servers = value.get(KEY)
            entry = servers.get(name) if isinstance(servers, dict) else None
            if isinstance(entry, dict):
                found.append(entry)
                for word in ("disabled", "enabled"):
                    entry.pop(word, None)
                if not on:
                    entry["disabled"] = True

        self._home.change(turn)
        return bool(found)

    def remove(self, name: str) -> bool:
        """Whether it was in the home's file."""
        gone: list[object] = []

        def take(value: JsonObject) -> None:
            servers = value.get(KEY)
            if isinstance(servers, dict) and name in servers:
                gone.append(servers.pop(name))

        self._home.change(take)
        return bool(gone)


def filled(declared: ServerDeclaration, environ: Mapping[str, str], secret_keys: Collection[str]) -> ServerDeclaration:
    """With its variables filled in from the host's environment, but for the keys of the host. Raises Failure."""
    denied = next(_denied(declared, secret_keys), None)
    if denied:
        message = f"{declared.name} asks for {denied}, which is a key of this host."
        raise Failure(Reason.DENIED, message, hint="Write the server's own key into its env instead.")

    def put(text: str) -> str:
        return expand_variables(text, environ)

    try:
        return ServerDeclaration(
            name=declared.name,
            command=put(declared.command),
            args=tuple(map(put, declared.args)),
            env={key: put(value) for key, value in declared.env.items()},
            cwd=put(declared.cwd),
            url=put(declared.url),
            headers={key: put(value) for key, value in declared.headers.items()},
        )
    except KeyError as error:
        message = f"{declared.name} needs the variable {error.args[0]}, which is not set."
        raise Failure(Reason.START_FAILED, message, hint="Set it in the environment of Toolyard.") from error


def _denied(declared: ServerDeclaration, secret_keys: Collection[str]) -> Iterator[str]:
    keys = HOST_KEYS | {key.lower() for key in secret_keys}
    return (name for name in declared.variables if name.lower() in keys or name.lower().startswith("toolyard_"))
