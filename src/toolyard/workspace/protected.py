"""Places that no tool writes by itself: what stands there would run, or decide, without anybody looking (S-15)."""

import re
from collections.abc import Iterator, Mapping

from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import Json

_PROFILES = frozenset({
    ".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zprofile", ".zshenv", ".envrc", ".npmrc",
    ".netrc", ".pypirc", ".gitconfig", "authorized_keys", "crontab", "sitecustomize.py", "usercustomize.py",
})  # fmt: skip
_OURS = frozenset({"plugin-manifest.json", "plugin-manifest.json.block", "config.env", "config.toml", ".mcp.json"})
_FOLDERS = frozenset({".git", ".ssh", ".toolyard", ".github", ".husky", ".vscode"})
_PATCHED = re.compile(
    r"^(?:\*\*\* (?:Add|Update|Delete) File:|\*\*\* Move to:|\+\+\+|---|rename to)\s+(.+)$", re.MULTILINE
)
_MAX_PATH = 4096


def require_open(path: str, *, force: bool) -> None:
    """Refuse a write below ``.git``, also to a file that does not exist yet, unless a person said so."""
    if ".git" in path.lower().split("/") and not force:
        raise Failure(
            Reason.DENIED,
            f"'{path}' is inside .git, where a file can run at the next commit: nothing was written.",
            hint="A person can do it with --force, or use git itself.",
            context={"path_resolved": path},
        )


def is_protected(arguments: Mapping[str, Json]) -> bool:
    """Whether any argument names such a place, as a path or in a patch; the file need not exist yet."""
    return any(_is_protected(path) for value in arguments.values() for path in _paths(value))


def _paths(value: Json) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _paths(item)
    elif isinstance(value, str):
        if len(value) <= _MAX_PATH and "\n" not in value:
            yield value
        yield from (found[1].split("\t")[0] for found in _PATCHED.finditer(value))


def _is_protected(path: str) -> bool:
    parts = [part for part in path.strip().lower().replace("\\", "/").split("/") if part]
    if not parts:
        return False
    return parts[-1] in _PROFILES | _OURS or not _FOLDERS.isdisjoint(parts)
