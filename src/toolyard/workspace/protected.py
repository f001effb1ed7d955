"""Places that no tool writes by itself: what stands there would run, or decide, without anybody looking (S-15)."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from toolyard.protocol.apply_patch import parse
from toolyard.protocol.call import fold
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import Json

_PROFILES = frozenset({
    ".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zprofile", ".zshenv", ".envrc", ".npmrc",
    ".netrc", ".pypirc", ".gitconfig", "authorized_keys", "crontab", "sitecustomize.py", "usercustomize.py",
})  # fmt: skip
_OURS = frozenset({"plugin-manifest.json", "plugin-manifest.json.block", "config.env", "config.toml", ".mcp.json"})
_FOLDERS = frozenset({".git", ".ssh", ".toolyard", ".github", ".husky", ".vscode"})
_NAMES = _PROFILES | _OURS | _FOLDERS
_TEXTS = frozenset({"content", "oldstring", "newstring", "newsource", "searchstring", "replacestring", "diffcontent"})
_PATCHED = re.compile(
    r"^(?:\*\*\* (?:Add|Update|Delete) File:|\*\*\* Move to:|\+\+\+ |--- |rename (?:from|to) |diff --git )(.*)$",
    re.MULTILINE,
)


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
    """Whether any argument names such a place, as a path or in a patch; the file need not exist yet.

    What is the text of a file and no path is known by the argument's name. When in doubt a person is asked: a name
    counts wherever it stands in a path, however the path is written.
    """
    waiting: list[Json] = [dict(arguments)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [inner for key, inner in value.items() if fold(key).rstrip("0123456789") not in _TEXTS]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and (_is_protected(value) or any(map(_is_protected, _patched(value)))):
            return True
    return False


def _patched(text: str) -> Iterator[str]:
    """The paths that a patch names: as they are written, and as they are meant."""
    named = [found[1].partition("\t")[0] for found in _PATCHED.finditer(text)]
    yield from named
    if named:
        with suppress(Failure):  # what cannot be read cannot be applied
            for change in parse(text):
                yield from (path for path in (change.path, change.new_path) if path)


def _is_protected(path: str) -> bool:
    parts = path.casefold().replace("\\", "/").split("/")
    return not _NAMES.isdisjoint(part.strip(' \t\r"') for part in parts)
