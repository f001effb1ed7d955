"""A plugin as its owner sees it: a row of a list, and the review before it may run. Values of secrets are in neither.

A review shows the files of the folder: what each is, whether it counts, and what has changed since. Every file that the
fingerprint covers is in the list, and the others of the plugin's own work up to ``MAX_LISTED``. Only a file of the list
can be read. Its text comes with the difference against the version that was reviewed, if that was kept. Settings are
left out: they hold secrets, and have a page of their own.
"""

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from toolyard.dialects.tool_specs import to_function
from toolyard.message import to_fields
from toolyard.plugins.package.fingerprint import is_own_folder
from toolyard.plugins.package.plugin import BLOCK, CONFIG, MANIFEST, Plugin, PluginProblem
from toolyard.plugins.package.plugin_access import AccessOption
from toolyard.plugins.package.trust import MAX_FILE_BYTES, Review, is_text
from toolyard.protocol.access import AccessChoice
from toolyard.protocol.edits.diff import build_patch
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.manifest import Manifest
from toolyard.protocol.manifests.spec import tool_spec
from toolyard.protocol.tool_text import write_plugin

MAX_LISTED: Final = 500  # beside the files that count
_MAX_ENTRIES = 20_000
_SAMPLE = 8192
_LEFT_OUT = frozenset({CONFIG})


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginReview:
    """A review with what the manifest says and what is worth a look."""

    review: Review
    manifest: Manifest
    problems: tuple[PluginProblem, ...] = ()
    access: tuple[AccessOption, ...] = ()
    from_host: tuple[str, ...] = ()  # the names of variables that it gets beyond what every program needs

    def with_access(self, choice: AccessChoice | None) -> "PluginReview":
        """Return a copy with the owner's decision on what it may reach; None: no decision."""
        return self if choice is None else replace(self, review=replace(self.review, access=choice))

    def with_detached(self, *, detached: bool | None) -> "PluginReview":
        """Return a copy with the owner's decision on background work; None: no decision."""
        return self if detached is None else replace(self, review=replace(self.review, detached=detached))

    def to_json(self) -> dict[str, Any]:
        review, spec = self.review, tool_spec(self.manifest)
        return {
            "name": review.name,
            "folder": str(review.folder),
            "state": review.state.value,
            "type": self.manifest.type.value,
            "risk": self.manifest.risk.value,
            "read_confirmed": review.read_confirmed,
            "command_line": review.command_line,
            "argv": list(review.argv),
            "shell": review.shell,
            "detached": review.detached,
            "environment": list(review.environment),
            "access": review.access.value,
            "access_options": [option.to_json() for option in self.access],
            "files": dict(review.files),
            "digest": review.shown_digest,
            "links": dict(review.links),
            "changed": list(review.changed),
            "manifest_diff": review.manifest_diff,
            "model_reads": spec.description,
            "parameters": spec.parameters,
            "native": to_function(spec),
            "prompt_text": write_plugin(self.manifest),
            "problems": problems_to_json(self.problems),
        }


def plugin_to_json(plugin: Plugin) -> dict[str, Any]:
    return {
        "name": plugin.name,
        "type": plugin_type(plugin),
        "version": plugin.manifest.version if plugin.manifest else "",
        "origin": plugin.origin.value,
        "state": plugin.state.value,
        **to_fields("reason", plugin.reason),
        "folder": str(plugin.folder),
        "hidden_by": str(plugin.hidden_by) if plugin.hidden_by else None,
        "hides": [str(folder) for folder in plugin.hides],
        "problems": problems_to_json(plugin.problems),
    }


def describe_status(plugin: Plugin) -> str:
    """Return why a plugin does not run, or which others of its name it hides."""
    if plugin.reason or not plugin.hides:
        return plugin.reason
    return f"it runs instead of {', '.join(map(str, plugin.hides))}"


def plugin_type(plugin: Plugin) -> str:
    return plugin.manifest.type.value if plugin.manifest else "-"


def problems_to_json(problems: Sequence[PluginProblem]) -> list[dict[str, Any]]:
    return [
        asdict(problem) | to_fields("message", problem.message) | to_fields("fix", problem.fix) for problem in problems
    ]


class FileKind(StrEnum):
    TEXT = "text"
    BINARY = "binary"
    LARGE = "large"  # a text beyond ``MAX_FILE_BYTES``
    LINK = "link"
    GONE = "gone"  # it was there when it was reviewed


class FileChange(StrEnum):
    NONE = "none"
    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    path: str
    size: int
    kind: FileKind
    counts: bool  # the fingerprint covers it
    change: FileChange = FileChange.NONE

    def to_json(self) -> JsonObject:
        return {
            "path": self.path, "size": self.size, "kind": self.kind.value, "counts": self.counts,
            "change": self.change.value,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """A file, its text, and the patch from the version that was reviewed to this one; None: there is none."""

    file: ListedFile
    digest: str
    text: str | None = None
    before: str | None = None

    def to_json(self) -> JsonObject:
        patch: Json = None
        if self.file.change is not FileChange.NONE and (self.before is not None or self.file.kind is FileKind.TEXT):
            is_known = self.before is not None or self.file.change is FileChange.ADDED
            patch = build_patch(self.before or "", self.text or "").to_json() if is_known else None
        return {**self.file.to_json(), "sha256": self.digest, "text": self.text, "structured_patch": patch}


def list_files(
    folder: Path, counted: Mapping[str, str], reviewed: Mapping[str, str] | None
) -> tuple[list[ListedFile], int]:
    """Return the files of a plugin, those that changed first, and how many more there are.

    ``counted`` are the files of its fingerprint with their digests, ``reviewed`` those of the permission, if any.
    """
    others, left_out = _find_others(folder, counted)
    counted = {path: digest for path, digest in counted.items() if path != MANIFEST or not (folder / BLOCK).exists()}
    files = [_describe(folder, path, counted, reviewed) for path in (*sorted(counted), *others)]
    files += [  # those that the fingerprint has no more
        ListedFile(path=path, size=0, kind=FileKind.GONE, counts=True, change=FileChange.REMOVED)
        for path in sorted({*(reviewed or ())} - {*counted})
    ]
    unique = {one.path: one for one in files}
    order = {MANIFEST: 0, BLOCK: 0}
    return sorted(
        unique.values(),
        key=lambda one: (one.change is FileChange.NONE, not one.counts, order.get(one.path, 1), one.path),
    ), left_out


def read_content(folder: Path, file: ListedFile, before: str | None) -> FileContent:
    """Return the content of a file that ``list_files`` has named."""
    if file.kind in (FileKind.GONE, FileKind.LINK):
        return FileContent(file=file, digest="", before=before)
    digest, content = hashlib.sha256(), b""
    with open(_open_inside(folder, file.path), "rb") as opened:
        while chunk := opened.read(2**20):
            digest.update(chunk)
            content = content if len(content) > MAX_FILE_BYTES else content + chunk
    text = content.decode(errors="replace") if file.kind is FileKind.TEXT and len(content) <= MAX_FILE_BYTES else None
    return FileContent(file=file, digest=digest.hexdigest(), text=text, before=before)


def _open_inside(folder: Path, path: str) -> int:
    """Open an ordinary file of the folder; a link that leads out of it is not followed."""
    full = os.path.realpath(folder / path)
    if not full.startswith(os.path.realpath(folder) + os.sep):
        raise PermissionError(f"{path} is outside of the folder")
    fd = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise PermissionError(f"{path} is no ordinary file")
    return fd


def _describe(folder: Path, path: str, counted: Mapping[str, str], reviewed: Mapping[str, str] | None) -> ListedFile:
    change = FileChange.NONE
    if reviewed is not None and path in counted and counted[path] != reviewed.get(path):
        change = FileChange.CHANGED if path in reviewed else FileChange.ADDED
    size, kind = _inspect(folder, path)
    return ListedFile(path=path, size=size, kind=kind, counts=path in counted, change=change)


def _inspect(folder: Path, path: str) -> tuple[int, FileKind]:
    try:
        if os.path.islink(folder / path):
            return 0, FileKind.LINK
        with open(_open_inside(folder, path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            kind = FileKind.TEXT if is_text(file.read(_SAMPLE)) else FileKind.BINARY
    except OSError:
        return 0, FileKind.GONE
    return size, FileKind.LARGE if kind is FileKind.TEXT and size > MAX_FILE_BYTES else kind


def _find_others(folder: Path, counted: Mapping[str, str]) -> tuple[list[str], int]:
    """Return the other files of the plugin's own work, as many as are listed, and the number of the rest."""
    others: list[str] = []
    entries = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if is_own_folder(name) and name != "__pycache__")
        for name in sorted(names):
            entries += 1
            path = os.path.relpath(os.path.join(place, name), folder)
            if path not in counted and path not in _LEFT_OUT:
                others.append(path)
        if entries > _MAX_ENTRIES:
            break
    return others[:MAX_LISTED], max(0, len(others) - MAX_LISTED)
