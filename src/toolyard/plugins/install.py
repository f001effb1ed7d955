"""Install and remove plugins. Nothing of a plugin is run, neither on the way in nor on the way out.

A source is a folder, an archive or the https address of a git repository. It is put together beside its place under a
hidden name, where it can be looked at, and gets its own by one rename: a plugin is there whole or not at all. Installed
dependencies and version control (``EXCLUDED``) do not come along from a folder, and links are refused. What is removed
goes to a folder of its own, from which a person can take it back.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from toolyard.crashpoint import crashpoint
from toolyard.errors import ToolyardError, UsageError
from toolyard.message import Message, join_messages
from toolyard.own_command import FOR_DEFAULT_HOME, OwnCommand
from toolyard.plugins.archive import extract_archive, move_into_place, write_file
from toolyard.plugins.archive_entries import ArchiveEntry, ArchiveError, Caps, check_entries, too_many_entries
from toolyard.plugins.git_source import HOSTS, fetch_commit, parse_git_address
from toolyard.plugins.plugin_files import MANIFEST, PluginFiles, read_plugin_files, read_signature
from toolyard.workspace.home_folder import make_private_folder

FOLDER = "plugins"
REMOVED = ".removed"
EXCLUDED = frozenset({".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__"})
_DEPENDENCIES = ("node_modules", ".venv", "venv")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPlugin:
    name: str
    folder: Path
    source: str
    proof: str = ""  # what pins it: "sha256 ...", "commit ... tree ..."
    left_out: tuple[str, ...] = ()  # dependencies that have to be installed again


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedPlugin:
    """A plugin in the home that is not discovered yet; ``stage`` is the folder to remove with it."""

    name: str
    folder: Path
    stage: Path
    source: str
    proof: str = ""
    left_out: tuple[str, ...] = ()

    def discard(self) -> None:
        shutil.rmtree(self.stage, ignore_errors=True)


def install_plugin(
    source: str,
    home: Path,
    environ: Mapping[str, str],
    *,
    hosts: Collection[str] = (),
    caps: Caps = Caps(),  # noqa: B008
    own_command: OwnCommand = FOR_DEFAULT_HOME,
) -> InstalledPlugin:
    """Install a plugin into the home; ``hosts`` are accepted beside the usual ones. Raises ToolyardError."""
    return install_staged(stage_plugin(source, home, environ, hosts=hosts, caps=caps), home, own_command)


def stage_plugin(
    source: str,
    home: Path,
    environ: Mapping[str, str],
    *,
    hosts: Collection[str] = (),
    caps: Caps = Caps(),  # noqa: B008
    prefix: str = ".incoming-",
) -> StagedPlugin:
    """Copy a plugin beside its place, to be reviewed and then installed or discarded. Raises ToolyardError."""
    place = home / FOLDER / f"{prefix}{token_hex(8)}"
    try:
        make_private_folder(place)
        proof, left_out = _copy_source(source, place, environ, (*HOSTS, *(host.lower() for host in hosts)), caps)
        folder = _find_plugin_folder(place / "content", source)
        return StagedPlugin(
            name=_read_name(folder, source), folder=folder, stage=place, source=source, proof=proof, left_out=left_out
        )
    except OSError as error:
        shutil.rmtree(place, ignore_errors=True)
        raise ToolyardError(
            Message(
                "plugin.install_failed",
                "{source} cannot be installed: {error}",
                source=source,
                error=error.strerror or error,
            )
        ) from error
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def install_staged(staged: StagedPlugin, home: Path, own_command: OwnCommand) -> InstalledPlugin:
    """Move a staged plugin to its place. Raises ToolyardError; the stage is removed in any case."""
    name, target = staged.name, home / FOLDER / staged.name
    try:
        move_into_place(staged.folder, target)
    except ArchiveError:
        raise ToolyardError(
            Message(
                "plugin.already_installed",
                "{name} is installed already in {target}: remove it first with '{command}'",
                name=name,
                target=target,
                command=own_command.for_home.format("plugin remove", name),
            )
        ) from None
    except OSError as error:
        raise ToolyardError(
            Message(
                "plugin.install_failed",
                "{source} cannot be installed: {error}",
                source=staged.source,
                error=error.strerror or error,
            )
        ) from error
    finally:
        staged.discard()
    return InstalledPlugin(name=name, folder=target, source=staged.source, proof=staged.proof, left_out=staged.left_out)


def remove_plugin(folder: Path, home: Path, *, stamp: str) -> Path | None:
    """Remove a plugin from the home. Return where it is kept; None when it was only a link. Raises ToolyardError."""
    place = home / FOLDER
    inside = place.iterdir() if place.is_dir() else ()
    entry = next((path for path in inside if os.path.realpath(path) == str(folder)), None)
    if entry is None:
        raise ToolyardError(
            Message(
                "plugin.outside_install_folder",
                "{folder} is not in {place}: only installed plugins are removed",
                folder=folder,
                place=place,
            )
        )
    if entry.is_symlink():
        entry.unlink()
        return None
    target = place / REMOVED / f"{entry.name}-{stamp}-{token_hex(3)}"
    target.parent.mkdir(mode=0o700, exist_ok=True)
    crashpoint("plugin.before-removal")
    entry.rename(target)
    return target


def copy_folder(source: Path, target: Path, caps: Caps = Caps()) -> tuple[str, ...]:  # noqa: B008
    """Copy a folder by the rules for archives. Return the dependencies that were left out. Raises ToolyardError."""
    try:
        entries, left_out = _list_folder(source, caps)
        planned = check_entries(entries, caps, caps.bytes)
        target.mkdir(mode=0o700)
        for entry in planned:
            if entry.is_folder:
                (target / entry.path).mkdir(parents=True, exist_ok=True)
            else:
                fd = os.open(source / entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                with os.fdopen(fd, "rb") as stream:
                    write_file(target / entry.path, stream, entry)
    except ArchiveError as refused:
        raise ToolyardError(
            Message("plugin.source_refused", "{source} is refused: {refused}", source=source, refused=refused)
        ) from refused
    return left_out


def _copy_source(
    source: str, stage: Path, environ: Mapping[str, str], hosts: Collection[str], caps: Caps
) -> tuple[str, tuple[str, ...]]:
    """Copy the source to ``stage/content``. Return what pins it, and what was left out."""
    local = Path(source).expanduser()
    if local.is_dir():
        return "", copy_folder(local.resolve(), stage / "content", caps)
    if local.is_file():
        with local.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        extract_archive(local, stage / "content", caps)
        return f"sha256 {digest}", ()
    if ":" not in source:
        raise UsageError(
            Message(
                "plugin.source_not_found",
                "there is no '{source}': name a folder, a zip or tar archive, or a git address",
                source=source,
            )
        )
    pinned = fetch_commit(parse_git_address(source, hosts=hosts), stage / "git", stage / "tar", environ)
    extract_archive(stage / "tar", stage / "content", caps)
    return f"commit {pinned.commit} tree {pinned.tree}", ()


def _list_folder(source: Path, caps: Caps) -> tuple[list[ArchiveEntry], tuple[str, ...]]:
    entries: list[ArchiveEntry] = []
    left_out: list[str] = []
    pending = [""]
    while pending:
        inner = pending.pop()
        with os.scandir(source / inner) as listing:
            for entry in sorted(listing, key=lambda entry: entry.name):
                path = f"{inner}{entry.name}"
                if entry.name in EXCLUDED:
                    left_out += [path] if entry.name in _DEPENDENCIES else []
                    continue
                entries.append(_build_entry(entry, path))
                if len(entries) > caps.entries:
                    raise too_many_entries(caps)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{path}/")
    return entries, tuple(left_out)


def _build_entry(entry: "os.DirEntry[str]", path: str) -> ArchiveEntry:
    info = entry.stat(follow_symlinks=False)
    is_folder = stat.S_ISDIR(info.st_mode)
    plain = is_folder or stat.S_ISREG(info.st_mode)
    return ArchiveEntry(
        path=path,
        size=0 if is_folder else info.st_size,
        is_folder=is_folder,
        executable=bool(info.st_mode & 0o100),
        problem="" if plain else Message("archive.not_a_file", "a link, a device or another thing that is no file"),
    )


def _find_plugin_folder(content: Path, source: str) -> Path:
    """Return the folder with the manifest: the top, or the only one, two levels down at most."""
    for folders in ([content], *([*content.glob(pattern)] for pattern in ("*/", "*/*/"))):
        candidates = sorted(folder for folder in folders if folder.is_dir() and read_signature(folder))
        if len(candidates) > 1:
            names = ", ".join(folder.name for folder in candidates[:10])
            raise ToolyardError(
                Message(
                    "plugin.several_in_source",
                    "{source} has several plugins ({names}): install one of them, by its own folder",
                    source=source,
                    names=names,
                )
            )
        if candidates:
            return candidates[0]
    raise ToolyardError(
        Message(
            "plugin.no_no_plugin", "{source} has no {manifest}: this is no plugin", source=source, manifest=MANIFEST
        )
    )


def _read_name(folder: Path, source: str) -> str:
    signature = read_signature(folder)
    files: PluginFiles | None = read_plugin_files(folder, signature, None) if signature else None
    if files is None or files.manifest is None:
        problems = (
            join_messages([str(one) for one in files.problems if not one.warning])
            if files
            else Message("plugin.manifest_gone", "the manifest is gone")
        )
        raise ToolyardError(
            Message(
                "plugin.not_installable", "{source} cannot be installed: {problems}", source=source, problems=problems
            )
        )
    return files.manifest.name
