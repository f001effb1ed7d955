"""Files that other programs run or obey by themselves, told by their kind.

The kinds are those of any project: hidden files, which are settings of shells, editors and tools; start-up files; code
that configures, builds or starts; definitions of builds, tasks and infrastructure; programs. A kind is told by how such
files are named, so that a tool that nobody here has heard of is covered too. ``obeyed_files.toml`` has the names that
no kind tells from an ordinary file, each with its reason.
"""

import re
import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

_MAX_STEPS = 4096  # whose answers are kept

_CODE = r"\.(?:[cm]?[jt]s|py|pyw|rb|php|pl|pm|lua|tcl|groovy|kts?|scala|exs?|jl|r|rs|go|hs|el|vim|clj|cljs|edn|sc)"
_DATA = r"\.(?:json[5c]?|ya?ml|toml|ini|cfg|conf|xml|properties)"
_PROGRAM = (
    "sh|bash|zsh|fish|ksh|csh|command|exe|com|bat|cmd|ps[dm]?1|vbs|wsf|hta|reg|scpt|applescript|jar|war|class|wasm|node|"
    "pyd|whl|egg|phar|gem|deb|rpm|apk|msi|dmg|pkg|appimage|dll|so|dylib"
)
_INFRASTRUCTURE = "tf|tofu|tfvars|hcl|bicep|nomad|pp|sls|jsonnet|libsonnet|rego|dhall|cue"
_BUILDS = "build|builder|config|configure|conf|deploy|install|make|release|settings|setup|tasks?"
_STARTS = "asgi|autoload|autorun|autostart|boot|bootstrap|entrypoint|manage|preload|startup|wsgi"
_OPERATES = (
    "ansible|chart|ci|cd|cloudformation|compose|deploy|deployment|docker|helm|helmfile|ingress|inventory|k8s|kubernetes|"
    "kustomization|kustomize|pipelines?|playbook|pulumi|serverless|stack|swarm|terraform|values|workflows?"
)
# Folders whose code frameworks, or the commands of a person, run.
_LOADED: Final = frozenset(
    {"addons", "bin", "conf", "config", "cron", "dags", "initializers", "migrations", "playbooks", "script", "scripts"}
)


def _has_word(words: str) -> str:
    """Return the expression of a name with one of these words in it, before its extension."""
    return rf"(?:.*[._-])?(?:{words})(?:[._-].*)?"


_KINDS: Final = {
    rf"(?!(?:src|arc)(?:\.|$))[a-z0-9_+-]+rc(?:{_DATA}|{_CODE})?": "programs read such a file when they start",
    r"init\.(?:el|lua|vim)|.*\.(?:el|vim)": "editors run such a file when they start",
    _has_word(_BUILDS) + _CODE: "build tools, linters and frameworks run code of such a name",
    _has_word(_STARTS) + _CODE: "frameworks start with code of such a name",
    r"[a-z_-]{2,}file": "build and task tools run such a file",
    rf"(?!profile)[a-z_-]{{2,}}file(?:{_CODE}|\.(?:ya?ml|toml|lock))": "build and task tools run such a file",
    rf".*\.(?:{_INFRASTRUCTURE})|.*\.tf\.json": "infrastructure is changed by it",
    _has_word(_OPERATES) + r"\.ya?ml": "infrastructure and pipelines are run by it",
    rf".*\.(?:{_PROGRAM})|.*\.so\..*": "it is a program",
}
# Hidden files that only list names, or that only stand there.
_PLAIN_HIDDEN = re.compile(r"\.(?:[a-z-]*ignore|(?:git)?keep|mailmap|nojekyll)")


class ObeyedFile(NamedTuple):
    """A row of the table."""

    pattern: str
    reason: str


def find_reason(path: str) -> str | None:
    """Return the reason why other programs run or obey a path, relative to the project's root; None: they do not."""
    *folders, last = path.casefold().split("/")
    reasons = map(_find_row, (*folders, f"{last}$"))
    return next((reason for reason in reasons if reason), None) or _find_kind(tuple(folders), last)


@lru_cache(_MAX_STEPS)
def _find_kind(folders: tuple[str, ...], name: str) -> str | None:
    hidden = [step for step in (*folders, name) if step.startswith(".") and step.strip(".")]
    if hidden and not (hidden == [name] and _PLAIN_HIDDEN.fullmatch(name)):
        return "hidden files are settings of shells, editors and tools, which run what they name"
    if any(folder.endswith(".d") for folder in folders):
        return "what stands in such a folder is loaded as a whole"
    if not _LOADED.isdisjoint(folders) and re.fullmatch(rf"[^.]+|.*{_CODE}", name):
        return "frameworks and commands run the code in such a folder"
    return next((reason for kind, reason in _KINDS.items() if re.fullmatch(kind, name, re.DOTALL)), None)


@cache
def load_table() -> tuple[ObeyedFile, ...]:
    text = files(__package__).joinpath("obeyed_files.toml").read_text(encoding="utf-8")
    return tuple(ObeyedFile(*row) for rows in tomllib.loads(text).values() for row in rows.items())


@lru_cache(_MAX_STEPS)
def _find_row(step: str) -> str | None:
    match = _expression().fullmatch(step)
    return load_table()[match.lastindex - 1].reason if match and match.lastindex else None


@cache
def _expression() -> re.Pattern[str]:
    """One group for each row; what is matched ends with ``$`` when it is the last step of a path."""
    return re.compile("|".join(f"({_translate(row.pattern)})" for row in load_table()), re.DOTALL)


def _translate(pattern: str) -> str:
    name = ".*".join(re.escape(part) for part in pattern.removesuffix("$").split("*"))
    return name + (r"\$" if pattern.endswith("$") else r"\$?")
