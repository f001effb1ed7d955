"""The entries of an archive, checked before anything is unpacked."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace

from toolyard.message import Message

_MAX_PATH = 1024  # bytes
_MAX_NAME = 255
_MAX_DEPTH = 40
_ALWAYS = 4 * 2**20  # text with many blanks shrinks far: a little may unpack from anything
_DRIVE = re.compile(r"[A-Za-z]:")
_SECRET = "config.env"  # noqa: S105 the name of the file that has them


class ArchiveError(Exception):
    """Raised when an archive is refused, with the reason."""


@dataclass(frozen=True, slots=True)
class Caps:
    entries: int = 5000
    bytes: int = 200 * 2**20
    ratio: int = 200

    def max_unpacked(self, packed: int) -> int:
        """Return how many bytes an archive of this size may unpack to."""
        return max(_ALWAYS, packed * self.ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveEntry:
    path: str  # as the archive has it; when judged: relative, with plain parts
    size: int = 0
    is_folder: bool = False
    executable: bool = False
    problem: str = ""  # why it is neither a file nor a folder that can be taken
    member: object = None  # how the archive's reader knows it

    @property
    def mode(self) -> int:
        if self.path.rsplit("/", 1)[-1] == _SECRET:
            return 0o600
        return 0o755 if self.executable else 0o644


def check_entries(entries: Iterable[ArchiveEntry], caps: Caps, packed: int) -> list[ArchiveEntry]:
    """Return the entries with normalized paths, folders before their content. Raises ArchiveError."""
    checked: list[ArchiveEntry] = []
    claims: dict[str, tuple[str, bool]] = {}
    total = 0
    for number, entry in enumerate(entries, 1):
        if number > caps.entries:
            raise too_many_entries(caps)
        if entry.problem:
            raise _refuse(entry.path, Message("archive.entry_is", "is {problem}", problem=entry.problem))
        path = normalize_path(entry.path)
        if "__pycache__" in path.split("/"):
            raise _refuse(
                path,
                Message("archive.compiled_python", "is compiled Python, which nobody can review; pack it without"),
            )
        if entry.size < 0 or (entry.is_folder and entry.size):
            raise _refuse(path, Message("archive.impossible_size", "has an impossible size"))
        total += entry.size
        if total > caps.bytes:
            raise too_large_unpacked(caps.bytes)
        if path:
            _check_collision(claims, path, is_folder=entry.is_folder)
            checked.append(replace(entry, path=path))
        elif not entry.is_folder:
            raise ArchiveError(Message("archive.no_name", "a file in it has no name"))
    if total > caps.max_unpacked(packed):
        raise ArchiveError(
            Message("archive.too_compressed", "it unpacks to more than {ratio} times its size", ratio=caps.ratio)
        )
    if not checked:
        raise ArchiveError(Message("archive.empty", "it is empty"))
    return checked


def normalize_path(name: str) -> str:
    """Return ``./a//b/`` as ``a/b``, empty for the top. Raises ArchiveError when it leaves the folder or is hidden."""
    _check_characters(name)
    if name.startswith("/") or _DRIVE.match(name):
        raise _refuse(name, Message("archive.absolute_path", "is an absolute path"))
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise _refuse(name, Message("archive.leads_out", "leads out of the folder"))
    path = "/".join(parts)
    if len(parts) > _MAX_DEPTH or len(path.encode()) > _MAX_PATH or any(len(p.encode()) > _MAX_NAME for p in parts):
        raise _refuse(f"{name[:80]}...", Message("archive.path_too_long", "is too long or too deep"))
    return path


def too_many_entries(caps: Caps) -> ArchiveError:
    return ArchiveError(Message("archive.too_many_entries", "it has more than {entries} entries", entries=caps.entries))


def too_large_unpacked(most: int) -> ArchiveError:
    """Return the error for an archive that unpacks to more than ``most`` bytes."""
    return ArchiveError(Message("archive.too_large", "it unpacks to more than {mib} MiB", mib=most >> 20))


def _refuse(path: str, why: Message) -> ArchiveError:
    return ArchiveError(Message("archive.entry_refused", "'{path}' {why}", path=escape_unprintable(path), why=why))


def escape_unprintable(text: str) -> str:
    """Return a text that a terminal can print: invisible characters are written as their numbers."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}" for c in text)


def _check_characters(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ArchiveError(
            Message("archive.name_not_utf8", "the name '{name}' is not UTF-8", name=escape_unprintable(name))
        ) from None
    if "\\" in name:
        raise _refuse(name, Message("archive.backslash", "has a backslash"))
    if any(unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") for char in name):
        raise _refuse(name, Message("archive.hidden_characters", "has hidden characters"))


def _check_collision(claims: dict[str, tuple[str, bool]], path: str, *, is_folder: bool) -> None:
    """Refuse a path that occurs twice, also when only its case differs, and a file where a folder is needed."""
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        part = "/".join(parts[:end])
        wants_folder = is_folder or end < len(parts)
        key = unicodedata.normalize("NFKC", part).casefold()
        other, was_folder = claims.get(key, (part, True))
        if other != part or (key in claims and not (was_folder and wants_folder)):
            raise _refuse(path, Message("archive.collides", "collides with '{other}'", other=escape_unprintable(other)))
        claims[key] = (part, wants_folder)
