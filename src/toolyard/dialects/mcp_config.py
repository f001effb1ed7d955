"""``mcpServers``: the servers that an MCP client uses, as ``.mcp.json`` and similar files declare them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from toolyard.message import Message, join_sentences
from toolyard.protocol.access import Access
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.fields import Fields
from toolyard.protocol.manifests.manifest_json import Fault
from toolyard.protocol.manifests.permissions import parse_permissions

KEY: Final = "mcpServers"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HTTP = ("http", "streamable-http", "streamableHttp")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDeclaration:
    """A declared server: a command, or a URL. ``${NAME}`` is not expanded yet."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    permissions: JsonObject = field(default_factory=dict)  # as in a plugin's manifest; of a command only
    disabled: bool = False

    @property
    def access(self) -> Access:
        """The access beyond the paths that its arguments name."""
        return _parse_access(self.permissions)[0]

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text that may name a variable."""
        return (self.command, *self.args, self.cwd, self.url, *self.env.values(), *self.headers.values())

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(match[1] for text in self.texts for match in _VARIABLE.finditer(text)))

    def to_json(self) -> JsonObject:
        """Return the declaration as written; its hash is computed over this."""
        if self.url:
            entry: JsonObject = {"type": "http", "url": self.url}
            return entry | ({"headers": dict(self.headers)} if self.headers else {})
        entry = {"command": self.command, "args": list(self.args)}
        more: JsonObject = {"env": dict(self.env), "cwd": self.cwd, "permissions": self.permissions}
        return entry | {key: value for key, value in more.items() if value}


def parse_servers(value: Json) -> tuple[list[ServerDeclaration], list[str]]:
    """Return the servers of a file, and the problems found in it."""
    servers = value.get(KEY, {}) if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        expected = Message('expected an object such as {{"mcpServers": {{"name": {{"command": "..."}}}}}}')
        return [], [expected]
    declared: list[ServerDeclaration] = []
    problems: list[str] = []
    for name, entry in servers.items():
        wrong = list(_find_problems(name, entry))
        problems += [Message("{name}: {problem}", name=name[:60], problem=problem) for problem in wrong]
        if not wrong and isinstance(entry, dict):
            declared.append(_parse_server(name, entry))
    return declared, problems


def expand_variables(text: str, values: Mapping[str, str]) -> str:
    """Expand ``${NAME}`` and ``${NAME:-default}``; raises KeyError with the name of a variable that has no value."""

    def value(match: "re.Match[str]") -> str:
        default = match[2]
        if match[1] in values:
            return values[match[1]]
        if default is None:
            raise KeyError(match[1])
        return str(default)

    return _VARIABLE.sub(value, text)


def _find_problems(name: str, entry: Json) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield Message("a name has up to 40 letters, digits, _ and -, and begins with a letter or digit")
    if not isinstance(entry, dict):
        yield Message("expected an object")
        return
    kind = entry.get("type") or entry.get("transport") or ""
    if kind == "sse":
        yield Message("the old SSE transport is not supported: use the server's streamable HTTP address")
    elif kind and kind != "stdio" and kind not in _HTTP:
        yield Message("unknown type '{type}': it is stdio or http", type=str(kind)[:40])
    if bool(entry.get("command")) == bool(entry.get("url")):
        yield Message("needs either a command or a url")
    for key in ("command", "url", "cwd"):
        if not isinstance(entry.get(key) or "", str):
            yield Message("{key} must be a text", key=key)
    url = entry.get("url")
    if isinstance(url, str) and url and not url.startswith(("http://", "https://", "${")):
        yield Message("url must begin with http:// or https://")
    yield from _parse_access(entry.get("permissions"))[1]
    if not _is_texts(entry.get("args")):
        yield Message("args must be a list of texts")
    for key in ("env", "headers"):
        if not isinstance(entry.get(key) or {}, dict) or not _is_texts(list((entry.get(key) or {}).values())):  # type: ignore[union-attr]
            yield Message("{key} must be an object of texts", key=key)


def _parse_access(value: Json) -> tuple[Access, list[str]]:
    faults: list[Fault] = []
    access = parse_permissions(Fields({"permissions": value}, (), faults))
    return access or Access(), [join_sentences(fault.message, fault.fix) for fault in faults]


def _is_texts(value: Json) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(one, str) for one in value))


def _parse_server(name: str, entry: dict[str, Any]) -> ServerDeclaration:
    return ServerDeclaration(
        name=name,
        command=entry.get("command") or "",
        args=tuple(entry.get("args") or ()),
        env=dict(entry.get("env") or {}),
        cwd=entry.get("cwd") or "",
        url=entry.get("url") or "",
        headers=dict(entry.get("headers") or {}),
        permissions=dict(entry.get("permissions") or {}),
        disabled=entry.get("disabled") is True or entry.get("enabled") is False,
    )
