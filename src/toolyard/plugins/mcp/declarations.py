"""The configured MCP servers: ``mcp.json`` of the home and ``.mcp.json`` of the project.

Of two with one name the home's counts. Reading again costs one ``stat`` per file while nothing has changed. A file that
cannot be read counts as empty and says why in ``problems``.
"""

import hashlib
import json
import operator
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Final

from toolyard.dialects.mcp_config import KEY, ServerDeclaration, expand_variables, parse_servers
from toolyard.message import Message
from toolyard.plugins.package.environment import HOST_KEYS
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.workspace.home_folder import StateFile

HOME_FILE: Final = "mcp.json"
PROJECT_FILE: Final = ".mcp.json"


class Scope(StrEnum):
    HOME = "home"
    PROJECT = "project"


@dataclass(frozen=True, kw_only=True)
class ConfiguredServer:
    """A configured server, and the file that declares it."""

    declared: ServerDeclaration
    scope: Scope
    file: Path

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def trust_key(self) -> str:
        """The key of its permission: what one project allows, another does not."""
        return f"{self.file}::{self.name}"

    @property
    def command_line(self) -> str:
        """The exact command that is run, or the address."""
        return self.declared.url or shlex.join((self.declared.command, *self.declared.args))

    @cached_property
    def digest(self) -> str:
        text = json.dumps(self.declared.to_json(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


class Declarations:
    def __init__(self, project: Path, home: Path) -> None:
        self._home = StateFile(home / HOME_FILE)
        self._files = ((Scope.HOME, self._home), (Scope.PROJECT, StateFile(project / PROJECT_FILE)))
        self.problems: tuple[str, ...] = ()
        self._values: list[JsonObject] = []  # of the files, from which ``_entries`` were read
        self._entries: dict[str, ConfiguredServer] = {}
        self._revision = 0

    def all(self) -> list[ConfiguredServer]:
        """Return every configured server."""
        return list(self._read().values())

    def _read(self) -> dict[str, ConfiguredServer]:
        values = [file.read() for _, file in self._files]
        if len(values) == len(self._values) and all(map(operator.is_, values, self._values)):
            return self._entries
        self._values, self._entries = values, self._parse(values)
        self._revision += 1
        return self._entries

    def _parse(self, values: list[JsonObject]) -> dict[str, ConfiguredServer]:
        servers: dict[str, ConfiguredServer] = {}
        problems: list[str] = []
        for (scope, file), value in zip(self._files, values, strict=True):
            declared, wrong = parse_servers(value) if value else ([], [])
            problems += [file.problem] if file.problem else [_in_file(file.path, one) for one in wrong]
            for one in declared:
                if one.name in servers:
                    twice = Message(
                        "{name} is also in {file}, which counts", name=one.name, file=servers[one.name].file
                    )
                    problems.append(_in_file(file.path, twice))
                servers.setdefault(one.name, ConfiguredServer(declared=one, scope=scope, file=file.path))
        self.problems = tuple(problems)
        return servers

    def version(self) -> int:
        """Return a number that changes whenever one of the files does."""
        self._read()
        return self._revision

    def get_cached(self, name: str) -> ConfiguredServer | None:
        """Return a server as of the last read, without looking at the files."""
        return self._entries.get(name)

    def get(self, name: str) -> ConfiguredServer | None:
        return self._read().get(name)

    def add(self, declared: ServerDeclaration) -> None:
        """Write a server into the home's file. Raises ConfigError."""

        def put(value: JsonObject) -> None:
            servers = value.setdefault(KEY, {})
            if isinstance(servers, dict):
                servers[declared.name] = declared.to_json() | ({"disabled": True} if declared.disabled else {})

        self._home.update(put)

    def set_enabled(self, name: str, *, on: bool) -> bool:
        """Enable or disable a server. Return whether the home's file has it. Permissions stay. Raises ConfigError."""
        changed: list[object] = []

        def turn(value: JsonObject) -> None:
            servers = value.get(KEY)
            entry = servers.get(name) if isinstance(servers, dict) else None
            if isinstance(entry, dict):
                changed.append(entry)
                for word in ("disabled", "enabled"):
                    entry.pop(word, None)
                if not on:
                    entry["disabled"] = True

        self._home.update(turn)
        return bool(changed)

    def remove(self, name: str) -> bool:
        """Remove a server from the home's file. Return whether it was there."""
        gone: list[object] = []

        def take(value: JsonObject) -> None:
            servers = value.get(KEY)
            if isinstance(servers, dict) and name in servers:
                gone.append(servers.pop(name))

        self._home.update(take)
        return bool(gone)


def fill_variables(
    declared: ServerDeclaration, environ: Mapping[str, str], secret_keys: Collection[str]
) -> ServerDeclaration:
    """Fill in variables from the host's environment, except the keys of the host. Raises Failure."""
    denied = next(_denied_variables(declared, secret_keys), None)
    if denied:
        message = Message("{name} asks for {denied}, which is a key of this host.", name=declared.name, denied=denied)
        raise Failure(Reason.DENIED, message, hint=Message("Write the server's own key into its env instead."))

    def put(text: str) -> str:
        return expand_variables(text, environ)

    try:
        return replace(
            declared,
            command=put(declared.command),
            args=tuple(map(put, declared.args)),
            env={key: put(value) for key, value in declared.env.items()},
            cwd=put(declared.cwd),
            url=put(declared.url),
            headers={key: put(value) for key, value in declared.headers.items()},
        )
    except KeyError as error:
        message = Message("{name} needs the variable {args}, which is not set.", name=declared.name, args=error.args[0])
        raise Failure(Reason.START_FAILED, message, hint=Message("Set it in the environment of Toolyard.")) from error


def _denied_variables(declared: ServerDeclaration, secret_keys: Collection[str]) -> Iterator[str]:
    keys = HOST_KEYS | {key.lower() for key in secret_keys}
    return (name for name in declared.variables if name.lower() in keys or name.lower().startswith("toolyard_"))


def _in_file(path: Path, problem: str) -> Message:
    return Message("{file}: {problem}", file=path, problem=problem)
