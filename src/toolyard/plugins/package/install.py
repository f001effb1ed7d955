"""Install and remove plugins. Nothing of a plugin is run, neither on the way in nor on the way out.

A source is a folder, an archive or the https address of a git repository. It is put together beside its place under a
hidden name, where it can be looked at, and gets its own by one rename: a plugin is there whole or not at all. Installed
dependencies and version control (``EXCLUDED``) do not come along from a folder, and links are refused. What is removed
goes to a folder of its own, from which a person can take it back.

Of git, only https addresses are taken, only of hosts on the list, without login and port (S-87). git gets no settings
but ours, no terminal, no helper, no hook, no submodule and no filter; it fetches one commit without its history. The
files are taken out as an archive, so the rules for archives hold for them: no file is checked out. A commit is named in
full or by a branch or a tag; the result says which one it was.
"""

import hashlib
import os
import re
import resource
import shutil
import stat
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from urllib.parse import urlsplit

from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.program_files import list_program_trees
from toolyard.confinement.start import contain_process
from toolyard.crashpoint import crashpoint
from toolyard.errors import ToolyardError, UsageError
from toolyard.message import Message, join_messages
from toolyard.own_command import FOR_DEFAULT_HOME, OwnCommand
from toolyard.plugins.package.archive import (
    ArchiveEntry,
    ArchiveError,
    Caps,
    check_entries,
    extract_archive,
    move_into_place,
    too_many_entries,
    write_file,
)
from toolyard.plugins.package.plugin import MANIFEST, PluginFiles, read_plugin_files, read_signature
from toolyard.workspace.home_folder import make_private_folder

FOLDER = "plugins"
REMOVED = ".removed"
EXCLUDED = frozenset({".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__"})
_DEPENDENCIES = ("node_modules", ".venv", "venv")
HOSTS = ("github.com", "gitlab.com", "gitee.com", "gitcode.com", "codeberg.org", "bitbucket.org")
TIMEOUT_S = 300
MAX_PACK = 400 * 2**20
_PATH = re.compile(r"(?:/[A-Za-z0-9_~+%][A-Za-z0-9._~+%-]*)+/?")
_REF = re.compile(r"(?!.*(?:\.\.|//|/\.|\.lock$))[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}(?<![/.])")
_SETTINGS = (
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "credential.helper=",
    "http.followRedirects=false",
    "submodule.recurse=false",
    "filter.lfs.smudge=",
    "filter.lfs.process=",
    "filter.lfs.required=false",
    "fetch.fsckObjects=true",
    "gc.auto=0",
)
_PASSED_VARIABLES = ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")


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
            Message("{source} cannot be installed: {error}", source=source, error=error.strerror or error)
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
                "{name} is installed already in {target}: remove it first with '{command}'",
                name=name,
                target=target,
                command=own_command.for_home.format("plugin remove", name),
            )
        ) from None
    except OSError as error:
        raise ToolyardError(
            Message("{source} cannot be installed: {error}", source=staged.source, error=error.strerror or error)
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
            Message("{folder} is not in {place}: only installed plugins are removed", folder=folder, place=place)
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
        raise ToolyardError(Message("{source} is refused: {refused}", source=source, refused=refused)) from refused
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
            Message("there is no '{source}': name a folder, a zip or tar archive, or a git address", source=source)
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
        problem="" if plain else Message("a link, a device or another thing that is no file"),
    )


def _find_plugin_folder(content: Path, source: str) -> Path:
    """Return the folder with the manifest: the top, or the only one, two levels down at most."""
    for folders in ([content], *([*content.glob(pattern)] for pattern in ("*/", "*/*/"))):
        candidates = sorted(folder for folder in folders if folder.is_dir() and read_signature(folder))
        if len(candidates) > 1:
            names = ", ".join(folder.name for folder in candidates[:10])
            raise ToolyardError(
                Message(
                    "{source} has several plugins ({names}): install one of them, by its own folder",
                    source=source,
                    names=names,
                )
            )
        if candidates:
            return candidates[0]
    raise ToolyardError(Message("{source} has no {manifest}: this is no plugin", source=source, manifest=MANIFEST))


def _read_name(folder: Path, source: str) -> str:
    signature = read_signature(folder)
    files: PluginFiles | None = read_plugin_files(folder, signature, None) if signature else None
    if files is None or files.manifest is None:
        problems = (
            join_messages([str(one) for one in files.problems if not one.warning])
            if files
            else Message("the manifest is gone")
        )
        raise ToolyardError(Message("{source} cannot be installed: {problems}", source=source, problems=problems))
    return files.manifest.name


@dataclass(frozen=True, slots=True)
class GitSource:
    url: str
    ref: str = "HEAD"  # a commit, a branch or a tag


@dataclass(frozen=True, slots=True)
class Commit:
    commit: str
    tree: str


def parse_git_address(address: str, *, hosts: Collection[str] = HOSTS) -> GitSource:
    """Parse ``https://host/owner/name`` or ``https://host/owner/name#commit``. Raises UsageError."""
    url, _, ref = address.partition("#")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError(Message("'{address}' is no address: {error}", address=address, error=error)) from error
    if not address.isascii() or not address.isprintable() or " " in address or parts.scheme != "https":
        raise UsageError(
            Message(
                "'{address}' is not taken: only https addresses are, such as https://github.com/owner/name",
                address=address,
            )
        )
    if parts.username is not None or parts.password is not None or port is not None or parts.query:
        raise UsageError(
            Message("'{address}' is not taken: leave out the login, the port and the query", address=address)
        )
    if parts.hostname not in hosts or parts.netloc.lower() != parts.hostname:
        known = ", ".join(sorted(hosts))
        raise UsageError(
            Message(
                "'{hostname}' is not on the list of hosts ({known}): if you trust it, add --host",
                hostname=parts.hostname,
                known=known,
            )
        )
    if not _PATH.fullmatch(parts.path) or ".." in parts.path or re.search(r"%(?:[01]|2[ef]|7f)", parts.path, re.I):
        raise UsageError(Message("'{address}' is not taken: its path is not that of a repository", address=address))
    if "#" in address and not _REF.fullmatch(ref):
        raise UsageError(Message("'{ref}' names no commit, branch or tag", ref=ref))
    return GitSource(f"https://{parts.hostname}{parts.path}", ref or "HEAD")


def build_git_command(*words: str, protocol: str = "https") -> tuple[str, ...]:
    """Return the argv of git with only one protocol allowed."""
    settings = (*_SETTINGS, f"protocol.{protocol}.allow=always")
    return ("git", *(word for setting in settings for word in ("-c", setting)), *words)


def build_git_environment(environ: Mapping[str, str], home: Path, protocol: str = "https") -> dict[str, str]:
    passed = {name: environ[name] for name in ("PATH", *_PASSED_VARIABLES) if environ.get(name)}
    return passed | {
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ALLOW_PROTOCOL": protocol,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/false",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_ATTR_NOSYSTEM": "1",
    }


def fetch_commit(
    source: GitSource, folder: Path, archive: Path, environ: Mapping[str, str], *, protocol: str = "https"
) -> Commit:
    """Fetch one commit as the tar ``archive``, working in the new folder ``folder``. Raises ToolyardError."""
    folder.mkdir(mode=0o700)
    variables = build_git_environment(environ, folder, protocol)

    def git(*words: str) -> str:
        return _run_git(build_git_command(*words, protocol=protocol), folder, variables)

    git("init", "--quiet", "--bare", "--template=", ".")
    git("fetch", "--quiet", "--depth=1", "--no-tags", "--recurse-submodules=no", "--", source.url, source.ref)
    commit = git("rev-parse", "--verify", "FETCH_HEAD^{commit}")
    tree = git("rev-parse", "--verify", f"{commit}^{{tree}}")
    git("archive", "--format=tar", f"--output={archive}", commit)
    return Commit(commit, tree)


def _build_git_profile(folder: Path, variables: Mapping[str, str]) -> Profile:
    program = shutil.which("git", path=variables.get("PATH"))
    trees = list_program_trees(program) if program else ()
    repository = () if variables["GIT_ALLOW_PROTOCOL"] != "file" else ("/",)  # it is somewhere on this machine
    return Profile(read=(*trees, *repository), write=(str(folder.parent.resolve()),), network=Network.ANY)


def _run_git(argv: tuple[str, ...], folder: Path, variables: Mapping[str, str]) -> str:
    try:
        with contain_process(
            _build_git_profile(folder, variables),
            argv, cwd=folder, env=dict(variables), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", starts_others=True,
        ) as running:  # fmt: skip
            if hasattr(resource, "prlimit"):
                resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (MAX_PACK, MAX_PACK))
            out, err = running.communicate(timeout=TIMEOUT_S)
    except FileNotFoundError as error:
        raise ToolyardError(Message("git is not installed: install it, or download the plugin as a zip")) from error
    except subprocess.TimeoutExpired as error:
        raise ToolyardError(
            Message("git took longer than {timeout_s} s: download the plugin as a zip", timeout_s=TIMEOUT_S)
        ) from error
    if running.returncode:
        message = " ".join(err.split())[-500:] or Message("exit code {code}", code=running.returncode)
        hint = (
            Message(" (an address that redirects is not followed: try it with .git at its end)")
            if "redirect" in message
            else ""
        )
        raise ToolyardError(Message("git could not fetch it: {message}{hint}", message=message, hint=hint))
    return str(out).strip()
