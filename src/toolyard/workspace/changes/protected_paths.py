"""Places that no tool writes by itself: what stands there would run, or decide, without anybody looking (S-15)."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from itertools import islice

from toolyard.message import Message
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.json import Json
from toolyard.protocol.tool import ToolCall, fold_name

_PROFILES = frozenset({
    ".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zprofile", ".zshenv", ".envrc", ".npmrc",
    ".netrc", ".pypirc", ".gitconfig", "authorized_keys", "crontab", "sitecustomize.py", "usercustomize.py",
})  # fmt: skip
_OURS = frozenset({"plugin-manifest.json", "plugin-manifest.json.block", "config.env", "config.toml", ".mcp.json"})
_FOLDERS = frozenset({".git", ".ssh", ".toolyard", ".github", ".husky", ".vscode"})
_NAMES = _PROFILES | _OURS | _FOLDERS
_TEXTS = frozenset({"content", "oldstring", "newstring", "newsource", "searchstring", "replacestring", "diffcontent"})
_PATCHED = (
    r"(?m)^(?:\*\*\* (?:Add|Update|Delete) File:|\*\*\* Move to:|\+\+\+ |--- |rename (?:from|to) |diff --git )(.*)$"
)


_MAX_PATHS = 1000  # that are followed for one call: a person looks at one that names more


class WriteAccess(Enum):
    """The places that a call may write to."""

    PLAIN = "plain"  # nobody was asked about a protected place: it may write none
    USUAL = "usual"  # everything but what is below .git
    FORCED = "forced"  # a person said so

    @classmethod
    def from_call(cls, call: ToolCall) -> "WriteAccess":
        return cls.FORCED if call.force else cls.PLAIN if call.avoids_protected else cls.USUAL


def require_writable(path: str, access: WriteAccess) -> None:
    """Refuse a write to a real path below ``.git``, and for PLAIN to any protected place; it need not exist yet."""
    if access is WriteAccess.PLAIN and _is_protected_path(path):
        raise Failure(
            Reason.DENIED,
            Message("'{path}' is a protected place, and nobody was asked about it: nothing was written.", path=path),
            hint=Message("Call again with the path itself, so that a person can be asked."),
            context={"path_resolved": path},
        )
    if ".git" in path.lower().split("/") and access is not WriteAccess.FORCED:
        raise Failure(
            Reason.DENIED,
            Message(
                "'{path}' is inside .git, where a file can run at the next commit: nothing was written.", path=path
            ),
            hint=Message("A person can do it with --force, or use git itself."),
            context={"path_resolved": path},
        )


def names_protected_path(arguments: Mapping[str, Json]) -> bool:
    """Return whether any argument names such a place, as a path or in a patch; the file need not exist yet.

    What is the text of a file and no path is known by the argument's name. When in doubt a person is asked: a name
    counts wherever it stands in a path, however the path is written.
    """
    return any(map(_is_protected_path, _list_paths(arguments)))


def leads_to_protected_path(arguments: Mapping[str, Json], lead: Callable[[str], Iterable[str]]) -> bool:
    """Return whether any argument names such a place, or a path that leads to one; ``lead`` tells where a path leads.

    More paths than can be followed in a moment are for a person to look at.
    """
    if names_protected_path(arguments):
        return True
    paths = list(dict.fromkeys(islice(_list_paths(arguments), _MAX_PATHS + 1)))
    return len(paths) > _MAX_PATHS or any(_is_protected_path(place) for path in paths for place in lead(path))


def _list_paths(arguments: Mapping[str, Json]) -> Iterator[str]:
    """Every text that may be a path, and those in patches."""
    waiting: list[Json] = [dict(arguments)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [inner for key, inner in value.items() if fold_name(key).rstrip("0123456789") not in _TEXTS]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            yield value
            yield from _list_patched_paths(value)


def _list_patched_paths(text: str) -> Iterator[str]:
    """The paths that a patch names: as they are written, and as they are meant."""
    named = [match[1].partition("\t")[0] for match in re.finditer(_PATCHED, text)]
    yield from named
    if named:
        from toolyard.protocol.patching.patch_plan import parse_patch  # large, and only patches need it

        with suppress(Failure):  # what cannot be read cannot be applied
            for change in parse_patch(text):
                yield from (path for path in (change.path, change.new_path) if path)


def _is_protected_path(path: str) -> bool:
    parts = path.casefold().replace("\\", "/").split("/")
    return not _NAMES.isdisjoint(part.strip(' \t\r"') for part in parts)
