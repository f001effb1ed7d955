"""Scopes: what a key may do, and which of them each path requires.

A route says its scope where it is defined (``web.routing``); ``AccessRules`` are those of all routes. What no route has
named requires ``admin``: a new path is closed until somebody opens it.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple


class Scope(StrEnum):
    CHAT = "chat"  # use models
    TOOLS = "tools"  # run tools, see their results
    APPROVE = "approve"  # answer approvals and change their rules
    ADMIN = "admin"  # everything


ANY_KEY: Final = frozenset(Scope)
PUBLIC: Final[frozenset[Scope]] = frozenset()  # no key is needed; the route may check a token or a signature itself
EVENT_SCOPES: Final = frozenset({Scope.APPROVE, Scope.ADMIN})
_ADMIN: Final = frozenset({Scope.ADMIN})

CALLBACK_PREFIX: Final = "/plugin-callback/"
PUBLISHED_PREFIXES: Final = ("/pw=", "//pw=")  # files that plugins publish; their route checks the key in the URL
VCP_CHANNELS: Final = ("/VCPlog/", "/vcpinfo/")
VCP_PLUGINS: Final = ("/api/plugins/", "/admin_api/")  # routes of plugins that live in VCPToolBox's process
FORWARDED_PATHS: Final = (
    "/v1/embeddings",
    "/v1/completions",
    "/v1/moderations",
    "/v1/images",
    "/v1/audio",
)  # passed to a provider


class PathRule(NamedTuple):
    """The rule that says who may use a path."""

    scopes: frozenset[Scope]  # one is enough; ``admin`` always is
    is_known: bool  # whether some route has named it

    @property
    def is_public(self) -> bool:
        return not self.scopes


_CLOSED: Final = PathRule(_ADMIN, is_known=False)


class AccessRules:
    """The rules of all routes: who may use which path. A rule that ends with ``*`` covers all that begins so."""

    def __init__(self, rules: Iterable[Mapping[str, frozenset[Scope]]]) -> None:
        merged = {path: PathRule(scopes, is_known=True) for some in rules for path, scopes in some.items()}
        beginnings = sorted((path for path in merged if path.endswith("*")), key=len, reverse=True)
        self._paths = merged
        self._beginnings = [(path[:-1], merged[path]) for path in beginnings]  # the longest, most exact one first

    def find(self, path: str) -> PathRule:
        exact = self._paths.get(path)
        if exact is not None:
            return exact
        return next((rule for beginning, rule in self._beginnings if path.startswith(beginning)), _CLOSED)
