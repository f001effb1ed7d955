"""Trust: which plugins may run. The shipped ones, those in trusted folders, those reviewed as they are now (S-83).

A review shows the whole command line, the keys of the environment and every file that counts, and binds the permission
to the fingerprint that was shown: whatever changes afterwards, also between the review and the answer, makes the plugin
need another one. That a plugin only reads, so that models may run it without asking, is believed only when its owner
confirmed it with the permission. What was allowed is kept in ``trust.json`` of the home folder, so that the difference
can be shown, and ``ReviewedFiles`` keeps the text files themselves. When ``trust.json`` cannot be read, nothing counts
as reviewed.
"""

import hashlib
import json
import logging
import os
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from toolyard.message import Message
from toolyard.plugins.package.config_env import list_config_paths
from toolyard.plugins.package.fingerprint import Fingerprint
from toolyard.plugins.package.plugin import MANIFEST, Origin, Plugin, PluginState
from toolyard.protocol.access import AccessChoice
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import Risk
from toolyard.workspace.home_folder import StateFile, make_private_folder

FILE_NAME = "trust.json"
_MAX_DIFF_LINES = 400
_MAX_KEPT_MANIFEST = 64 * 1024
NO_LINKS: Final[Mapping[str, str]] = MappingProxyType({})
REVIEWED_FOLDER: Final = "reviewed"
MAX_FILES: Final = 500
MAX_FILE_BYTES: Final = 512 * 1024
MAX_BYTES: Final = 8 * 2**20  # of all files of a plugin
_DAMAGED = (OSError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Everything that an owner should see before allowing a plugin."""

    name: str
    folder: Path
    state: PluginState
    command_line: str  # as the manifest has it, whole
    argv: tuple[str, ...]
    shell: bool
    detached: bool  # its processes may continue after its answer
    environment: tuple[str, ...]
    files: Mapping[str, str]  # path -> sha256
    digest: str
    raw_manifest: bytes
    claims_read: bool = False  # its manifest says that it only reads
    read_confirmed: bool = False  # and the owner has confirmed that of exactly this
    access: AccessChoice = AccessChoice.DECLARED  # the owner's decision so far
    paths: tuple[str, ...] = ()  # that its settings name: it may write there
    links: Mapping[str, str] = field(default_factory=dict)  # on the way to what it may reach, and where they lead
    changed: tuple[str, ...] = ()  # since it was allowed: "changed main.py", "added helper.py", "now runs in a shell"
    manifest_diff: str = ""

    @property
    def shown_digest(self) -> str:
        """The digest of what is shown: of the plugin as it is, and of where its links lead."""
        links = json.dumps(sorted(self.links.items()))
        return (
            hashlib.sha256(f"{self.digest}{links}".encode()).hexdigest() if self.digest and self.links else self.digest
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Permission:
    """A stored permission: what was allowed."""

    name: str = ""
    digest: str = ""
    command_line: str = ""
    shell: bool = False
    detached: bool | None = None  # None: it was allowed before anybody was asked
    environment: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    manifest: str = ""
    read_confirmed: bool = False
    access: AccessChoice = AccessChoice.DECLARED
    paths: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)


class Trust:
    def __init__(self, home: Path, *, folders: Collection[Path] = ()) -> None:
        self._file = StateFile(home / FILE_NAME)
        self._copies = ReviewedFiles(home)
        self.trust_folders(folders)

    def trust_folders(self, folders: Collection[Path]) -> None:
        """Set the folders whose plugins may run without a review, by the owner's setting or for this run only."""
        self._folders = tuple(os.path.realpath(folder) for folder in folders)

    @property
    def problem(self) -> str:
        """The reason why the permissions cannot be read; empty when they can."""
        self._file.read()
        return self._file.problem

    def find_state(self, folder: Path, origin: Origin, fingerprint: Fingerprint) -> PluginState:
        """Return READY, NEEDS_REVIEW or CHANGED. Folders are given by their real paths, here and below."""
        if origin is Origin.SHIPPED or self._is_trusted(folder):
            return PluginState.READY
        record = self._find_permission(folder)
        if record is None:
            return PluginState.NEEDS_REVIEW
        return PluginState.READY if fingerprint.digest and fingerprint.digest == record.digest else PluginState.CHANGED

    def was_allowed(self, folder: Path) -> bool:
        """Return whether the owner lets the plugin in a folder run, in the version that is there or in another."""
        return self._is_trusted(folder) or self._find_permission(folder) is not None

    def reviewed_name(self, folder: Path) -> str:
        """Return the name that the plugin in a folder had when it was reviewed; empty when it was not."""
        record = self._find_permission(folder)
        return record.name if record else ""

    def detach_permission(self, folder: Path, fingerprint: Fingerprint) -> bool | None:
        """Return whether the owner allowed background work of this version; None: no decision."""
        record = self._find_permission(folder)
        return record.detached if record is not None and fingerprint.digest == record.digest else None

    def is_read_confirmed(self, folder: Path, origin: Origin, fingerprint: Fingerprint) -> bool:
        """Return whether a plugin's claim to be read-only counts: shipped, or confirmed by its owner as it is now."""
        if origin is Origin.SHIPPED:
            return True
        record = self._find_permission(folder)
        return bool(record and record.read_confirmed and fingerprint.digest and fingerprint.digest == record.digest)

    def access_choice(self, folder: Path, origin: Origin, fingerprint: Fingerprint) -> AccessChoice:
        """Return the owner's decision on what this version may reach; without one, the usual one for its origin."""
        record = self._find_permission(folder)
        if record is not None and fingerprint.digest and fingerprint.digest == record.digest:
            return record.access
        return AccessChoice.INSTALLATION if origin is Origin.VCP else AccessChoice.DECLARED

    def granted_keys(self, folder: Path, origin: Origin, named: frozenset[str]) -> frozenset[str]:
        """Return which of the host's keys that a plugin names its owner granted: those that a review has shown."""
        if origin is Origin.SHIPPED or self._is_trusted(folder):
            return named
        record = self._find_permission(folder)
        return named & frozenset(record.environment) if record else frozenset()

    def granted_paths(self, folder: Path, origin: Origin, named: tuple[str, ...]) -> tuple[str, ...]:
        """Return which of the paths that its settings name a plugin may write: those that a review has shown.

        A plugin that can write its own folder could name others, so nothing is granted that nobody saw.
        """
        if origin is Origin.SHIPPED or self._is_trusted(folder):
            return named
        record = self._find_permission(folder)
        return tuple(path for path in named if record and path in record.paths)

    def find_unseen_links(self, folder: Path, links: Mapping[str, str]) -> dict[str, str]:
        """Return those of ``links`` that no review of this plugin has shown, or that lead elsewhere since."""
        record = self._find_permission(folder) if links else None
        return {path: lead for path, lead in links.items() if record is None or record.links.get(path) != lead}

    def review(self, plugin: Plugin, environment: Iterable[str], links: Mapping[str, str] = NO_LINKS) -> Review:
        """Build the review of a plugin as it is now; ``environment`` are the keys that its child gets."""
        if plugin.manifest is None or plugin.command is None or plugin.fingerprint is None:
            raise ValueError("only a plugin whose manifest and command can be read can be reviewed")
        record = self._find_permission(plugin.folder)
        review = Review(
            name=plugin.name,
            folder=plugin.folder,
            state=plugin.state,
            command_line=plugin.manifest.command_line,
            argv=plugin.command.argv,
            shell=plugin.manifest.shell,
            detached=plugin.manifest.detached,
            environment=tuple(sorted(environment)),
            files=plugin.fingerprint.files,
            digest=plugin.fingerprint.digest,
            raw_manifest=plugin.raw_manifest,
            claims_read=plugin.manifest.risk is Risk.READ,
            read_confirmed=self.is_read_confirmed(plugin.folder, plugin.origin, plugin.fingerprint),
            access=plugin.access,
            paths=list_config_paths(plugin.config),
            links=links,
        )
        if record is None:
            return review
        return replace(
            review, changed=_describe_changes(record, review), manifest_diff=_diff(record.manifest, plugin.raw_manifest)
        )

    def allow(self, review: Review, *, at: str, confirm_read: bool = False) -> None:
        """Allow exactly what ``review`` shows. ``at`` is the time, for people to read. Raises ConfigError.

        ``confirm_read``: the owner also confirms that it only reads, as its manifest says.
        """
        if not review.digest:
            raise ValueError("a plugin that has no fingerprint cannot be allowed")
        entry: JsonObject = {
            "name": review.name,
            "digest": review.digest,
            "command_line": review.command_line,
            "shell": review.shell,
            "detached": review.detached,
            "environment": list(review.environment),
            "files": dict(review.files),
            "manifest": review.raw_manifest[:_MAX_KEPT_MANIFEST].decode(errors="replace"),
            "read_confirmed": confirm_read and review.claims_read,
            "access": review.access.value,
            "paths": list(review.paths),
            "links": dict(review.links),
            "at": at,
        }
        self._file.update(lambda value: _permission_table(value).update({str(review.folder): entry}))
        self._copies.keep(review.folder, review.files)

    def revoke(self, folder: Path) -> None:
        """Revoke the permission."""

        def take(value: JsonObject) -> None:
            _permission_table(value).pop(str(folder), None)

        self._file.update(take)
        self._copies.forget(folder)

    def reviewed_files(self, folder: Path) -> Mapping[str, str] | None:
        """Return the files that were allowed with their digests, the manifest too; None when nothing was."""
        record = self._find_permission(folder)
        return {**record.files, MANIFEST: digest_manifest(record.manifest.encode())} if record else None

    def reviewed_text(self, folder: Path, path: str) -> str | None:
        """Return the text of a file as it was allowed; None when no copy was kept."""
        record = self._find_permission(folder)
        if record and path == MANIFEST:
            return record.manifest
        digest = record.files.get(path) if record else None
        return self._copies.read(folder, path, digest) if digest else None

    def _is_trusted(self, folder: Path) -> bool:
        return any(folder.is_relative_to(trusted) for trusted in self._folders)

    def _find_permission(self, folder: Path) -> _Permission | None:
        plugins = self._file.read().get("plugins")
        entry = plugins.get(str(folder)) if isinstance(plugins, dict) else None
        if not isinstance(entry, dict):
            return None
        files, keys, access = entry.get("files"), entry.get("environment"), entry.get("access")
        paths, links = entry.get("paths"), entry.get("links")
        return _Permission(
            name=str(entry.get("name") or ""),
            digest=str(entry.get("digest") or ""),
            command_line=str(entry.get("command_line") or ""),
            shell=entry.get("shell") is True,
            detached=detached if isinstance(detached := entry.get("detached"), bool) else None,
            environment=tuple(map(str, keys)) if isinstance(keys, list) else (),
            files={path: str(digest) for path, digest in files.items()} if isinstance(files, dict) else {},
            manifest=str(entry.get("manifest") or ""),
            read_confirmed=entry.get("read_confirmed") is True,
            access=AccessChoice(access) if access in list(AccessChoice) else AccessChoice.DECLARED,
            paths=tuple(map(str, paths)) if isinstance(paths, list) else (),
            links={path: str(lead) for path, lead in links.items()} if isinstance(links, dict) else {},
        )


def digest_manifest(raw: bytes) -> str:
    """Return the digest of as much of a manifest as a permission keeps."""
    kept = raw[:_MAX_KEPT_MANIFEST].decode(errors="replace")
    return hashlib.sha256(kept.encode()).hexdigest()


def _permission_table(value: JsonObject) -> dict[str, Json]:
    plugins = value.setdefault("plugins", {})
    if not isinstance(plugins, dict):
        plugins = value["plugins"] = {}
    return plugins


def _describe_changes(then: _Permission, now: Review) -> tuple[str, ...]:
    lines: list[str] = [
        _describe_file_change(path, then.files, now.files)
        for path in sorted({*then.files, *now.files})
        if then.files.get(path) != now.files.get(path)
    ]
    if now.command_line != then.command_line:
        lines.append(Message("the command was: {command}", command=then.command_line))
    if now.shell != then.shell:
        lines.append(Message("now runs in a shell") if now.shell else Message("no longer runs in a shell"))
    if now.detached and not then.detached:
        lines.append(Message("now may work on after its answer"))
    lines += [
        Message("{path} now leads to {lead} by a link", path=path, lead=lead)
        for path, lead in sorted(now.links.items())
        if then.links.get(path) != lead
    ]
    lines += [
        Message("now has {key} in its environment", key=key) for key in sorted({*now.environment} - {*then.environment})
    ]
    return tuple(lines)


def _describe_file_change(path: str, then: Mapping[str, str], now: Mapping[str, str]) -> str:
    if path not in then:
        return Message("added {path}", path=path)
    if path not in now:
        return Message("removed {path}", path=path)
    return Message("changed {path}", path=path)


def _diff(old: str, new: bytes) -> str:
    import difflib

    now = new[:_MAX_KEPT_MANIFEST].decode(errors="replace")
    lines = difflib.unified_diff(old.splitlines(), now.splitlines(), "allowed", "now", lineterm="", n=1)
    return "\n".join(line for _, line in zip(range(_MAX_DIFF_LINES), lines, strict=False))


class ReviewedFiles:
    """Copies of the text files that an owner has reviewed, so that the next review can show what is different.

    One compressed file for each plugin in the folder ``reviewed`` of the home. It is replaced with every permission and
    removed with it. A copy counts only if it has the digest that the permission names, so nobody can show a false
    difference by changing it. What is binary or beyond the bounds is not kept: of that a review shows the digests.
    """

    def __init__(self, home: Path) -> None:
        self._place = home / REVIEWED_FOLDER

    def keep(self, folder: Path, files: Mapping[str, str]) -> None:
        """Keep copies of the files with these digests. Without room for them only a difference cannot be shown."""
        archive = self._find_archive(folder)
        draft = archive.with_name(f".{archive.name}.{os.getpid()}")
        try:
            make_private_folder(self._place)
            with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as kept:
                for path, content in _read_texts(folder, files):
                    kept.writestr(zipfile.ZipInfo(path), content, zipfile.ZIP_DEFLATED)
            draft.replace(archive)
        except (OSError, ValueError) as error:  # a name that a zip cannot hold
            _log.warning("the reviewed files of %s are not kept: %s", folder, error)
            draft.unlink(missing_ok=True)

    def read(self, folder: Path, path: str, digest: str) -> str | None:
        """Return the text of a file as it was reviewed; None when it was not kept."""
        try:
            with zipfile.ZipFile(self._find_archive(folder)) as kept, kept.open(path) as file:
                content = file.read(MAX_FILE_BYTES + 1)
        except _DAMAGED:
            return None
        return content.decode(errors="replace") if hashlib.sha256(content).hexdigest() == digest else None

    def forget(self, folder: Path) -> None:
        self._find_archive(folder).unlink(missing_ok=True)

    def _find_archive(self, folder: Path) -> Path:
        return self._place / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]}.zip"


def is_text(content: bytes) -> bool:
    """Return whether a file is shown as text: UTF-8 without NUL, but for a character that is cut at the end."""
    if b"\x00" in content:
        return False
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return error.end >= len(content) - 3 and error.reason == "unexpected end of data"
    return True


def _read_texts(folder: Path, files: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield the text files that still have the digests that were reviewed, within the bounds."""
    room = MAX_BYTES
    for path, digest in sorted(files.items())[:MAX_FILES]:
        try:
            with open(folder / path, "rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
        except OSError:
            continue
        is_same = hashlib.sha256(content).hexdigest() == digest
        if is_same and len(content) <= min(room, MAX_FILE_BYTES) and is_text(content):
            room -= len(content)
            yield path, content
