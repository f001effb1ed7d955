"""Plugins from git repositories: which addresses are accepted, and how git runs without running their code (S-87).

Only https, only hosts on the list, no login and no port in the address. git gets no settings but ours, no terminal, no
helper, no hook, no submodule and no filter; it fetches one commit without its history. The files are taken out as an
archive, so the rules for archives hold for them: no file is checked out. A commit is named in full or by a branch or a
tag; the result says which one it was.
"""

import re
import resource
import shutil
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from toolyard.confinement.contained_process import contain_process
from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.program_files import list_program_trees
from toolyard.errors import ToolyardError, UsageError
from toolyard.message import Message

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
        raise UsageError(
            Message("plugin.no_address", "'{address}' is no address: {error}", address=address, error=error)
        ) from error
    if not address.isascii() or not address.isprintable() or " " in address or parts.scheme != "https":
        raise UsageError(
            Message(
                "plugin.address_not_https",
                "'{address}' is not taken: only https addresses are, such as https://github.com/owner/name",
                address=address,
            )
        )
    if parts.username is not None or parts.password is not None or port is not None or parts.query:
        raise UsageError(
            Message(
                "plugin.address_has_extra_parts",
                "'{address}' is not taken: leave out the login, the port and the query",
                address=address,
            )
        )
    if parts.hostname not in hosts or parts.netloc.lower() != parts.hostname:
        known = ", ".join(sorted(hosts))
        raise UsageError(
            Message(
                "plugin.host_not_listed",
                "'{hostname}' is not on the list of hosts ({known}): if you trust it, add --host",
                hostname=parts.hostname,
                known=known,
            )
        )
    if not _PATH.fullmatch(parts.path) or ".." in parts.path or re.search(r"%(?:[01]|2[ef]|7f)", parts.path, re.I):
        raise UsageError(
            Message(
                "plugin.address_not_repository",
                "'{address}' is not taken: its path is not that of a repository",
                address=address,
            )
        )
    if "#" in address and not _REF.fullmatch(ref):
        raise UsageError(Message("plugin.git_ref_not_found", "'{ref}' names no commit, branch or tag", ref=ref))
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


def _build_profile(folder: Path, variables: Mapping[str, str]) -> Profile:
    program = shutil.which("git", path=variables.get("PATH"))
    trees = list_program_trees(program) if program else ()
    repository = () if variables["GIT_ALLOW_PROTOCOL"] != "file" else ("/",)  # it is somewhere on this machine
    return Profile(read=(*trees, *repository), write=(str(folder.parent.resolve()),), network=Network.ANY)


def _run_git(argv: tuple[str, ...], folder: Path, variables: Mapping[str, str]) -> str:
    try:
        with contain_process(
            _build_profile(folder, variables),
            argv, cwd=folder, env=dict(variables), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", starts_others=True,
        ) as running:  # fmt: skip
            if hasattr(resource, "prlimit"):
                resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (MAX_PACK, MAX_PACK))
            out, err = running.communicate(timeout=TIMEOUT_S)
    except FileNotFoundError as error:
        raise ToolyardError(
            Message(
                "plugin.git_not_installed",
                "git is not installed: install it, or download the plugin as a zip",
            )
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ToolyardError(
            Message(
                "plugin.git_timed_out",
                "git took longer than {timeout_s} s: download the plugin as a zip",
                timeout_s=TIMEOUT_S,
            )
        ) from error
    if running.returncode:
        message = " ".join(err.split())[-500:] or Message(
            "plugin.git_exit_code", "exit code {code}", code=running.returncode
        )
        hint = (
            Message("plugin.git_redirect", " (an address that redirects is not followed: try it with .git at its end)")
            if "redirect" in message
            else ""
        )
        raise ToolyardError(
            Message("plugin.git_fetch_failed", "git could not fetch it: {message}{hint}", message=message, hint=hint)
        )
    return str(out).strip()
