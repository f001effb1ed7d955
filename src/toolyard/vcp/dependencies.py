"""The needs of an installation's plugins of this machine, found before they are called: nothing of them is run.

- npm packages that their scripts import, looked for where Node looks, and among those that Toolyard installs;
- native modules of these packages: built, for this system, and for its C library (the versions of GLIBC that a file
  asks for stand in it by name);
- Python packages that their scripts import outside of a ``try``, asked of the interpreter that runs them;
- programs that they start by name.

What can be installed is, into two folders of the home, outside of what a review covers: ``vcp-packages`` for npm and
``vcp-python``, a virtual environment. Nothing is written into the tree.
"""

import ast
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from toolyard.message import Message
from toolyard.plugins.package.code_names import find_packages
from toolyard.plugins.package.fingerprint import is_own_folder
from toolyard.plugins.package.installation_view import PACKAGES_FOLDER, PYTHON_FOLDER
from toolyard.plugins.package.plugin import Plugin

_MAX_BYTES = 64 * 2**20
_MAX_SCRIPTS = 200
_MAX_FOLDERS = 1000
_ASK_S = 30.0
_STORE = "rust-vexus-lite"  # the vector engine of VCPToolBox's knowledge base
_MACHINES: Final = {"x86_64": 62, "aarch64": 183}  # as ELF files name them
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)\0")
_STARTED = re.compile(
    r"""(?:spawn|spawnSync|execFile|execFileSync|Popen|subprocess\.run|check_output)\(\s*\[?\s*['"]([\w.+-]+)['"]"""
)
_DISTRIBUTIONS: Final = {
    "PIL": "pillow", "bs4": "beautifulsoup4", "cv2": "opencv-python", "dotenv": "python-dotenv", "yaml": "pyyaml",
    "sklearn": "scikit-learn", "Crypto": "pycryptodome", "googleapiclient": "google-api-python-client",
}  # fmt: skip
# those that run plugins, which are looked for before, and one that is started on Windows alone
_OTHER_PROGRAMS: Final = frozenset({"node", "python", "python3", "taskkill"})
_FIND = """
import importlib.util, json, sys
def is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
print(json.dumps([name for name in json.load(sys.stdin) if not is_there(name)]))
"""


class NeedKind(StrEnum):
    NPM = "npm"
    NATIVE = "native"
    PYTHON = "python"
    PROGRAM = "program"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Something that a plugin needs and this machine does not have."""

    kind: NeedKind
    name: str
    why: Message
    package: str = ""  # as its installer names it; empty: nothing here installs it


def find_needs(plugin: Plugin, home: Path) -> tuple[Need, ...]:
    """Return what a plugin needs and does not find."""
    return (*_find_npm_needs(plugin, home), *_find_python_needs(plugin), *_find_program_needs(plugin))


def install_needs(needs: Iterable[Need], home: Path, python: str) -> tuple[str, ...]:
    """Install what can be. Return the problems that the installers had."""
    wanted = sorted({(need.kind, need.package) for need in needs if need.package})
    npm = [package for kind, package in wanted if kind is NeedKind.NPM]
    pip = [package for kind, package in wanted if kind is NeedKind.PYTHON]
    problems = []
    if npm:
        folder = home / PACKAGES_FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        problems += [_run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), one]) for one in npm]
    if pip:
        folder = home / PYTHON_FOLDER
        if not (folder / "bin/python").exists():
            problems.append(_run([python, "-m", "venv", "--system-site-packages", str(folder)]))
        problems += [_run([str(folder / "bin/python"), "-m", "pip", "install", "--quiet", one]) for one in pip]
    return tuple(filter(None, problems))


def _run(command: Sequence[str]) -> str:
    """Run an installer. Return its problem; empty when there was none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 the owner asked for it
    except OSError as error:
        return Message("{command}: {error}", command=" ".join(command), error=error.strerror)
    lines = (done.stderr or done.stdout).strip().splitlines()
    return "" if done.returncode == 0 else Message("{command}: {error}", command=" ".join(command), error=lines[-1:])


# --- Node ---


def _find_npm_needs(plugin: Plugin, home: Path) -> Iterator[Need]:
    for package in find_packages(plugin.folder):
        place = _find_package(plugin.folder, package, home)
        if place is None:
            yield Need(
                kind=NeedKind.NPM, name=package, package=package,
                why=Message("the npm package {package} is not installed", package=package),
            )  # fmt: skip
        elif problem := _find_native_problem(place):
            yield Need(kind=NeedKind.NATIVE, name=package, why=problem)


def _find_package(folder: Path, package: str, home: Path) -> Path | None:
    """Return where Node finds a package: above the folder, else among those that were installed for it."""
    places = [above / "node_modules" / package for above in (folder, *folder.parents)]
    places.append(home / PACKAGES_FOLDER / "node_modules" / package)
    return next((place for place in places if place.is_dir()), None)


def _find_native_problem(package: Path) -> Message | None:
    """Return what is wrong with the native module of a package; None when it has none, or a good one."""
    built = [
        file for pattern in ("build/Release/*.node", "prebuilds/*/*.node", "*.node") for file in package.glob(pattern)
    ]
    if not built:
        if (package / "binding.gyp").is_file():
            return Message("the native module of {package} is not built: npm rebuild {package}", package=package.name)
        return None
    ours = [file for file in built if _is_for_this_system(file)]
    too_new = [needed for file in ours if (needed := read_glibc(file)) > our_glibc() > (0, 0)]
    if ours and len(too_new) == len(ours):
        return Message(
            "the native module of {package} needs GLIBC {needed}, and this system has {ours}",
            package=package.name,
            needed=".".join(map(str, min(too_new))),
            ours=".".join(map(str, our_glibc())),
        )
    return None


def find_store_problem(root: Path) -> Message | None:
    """Return why VCPToolBox's own vector engine cannot be loaded here; None when it can, or is not there."""
    problem = _find_native_problem(root / _STORE)
    return problem and Message("{problem}: its plugins run without the knowledge base", problem=problem)


def _is_for_this_system(file: Path) -> bool:
    """Return whether a native module is one for Linux with this processor and GLIBC."""
    try:
        with open(file, "rb") as opened:
            head = opened.read(20)
    except OSError:
        return False
    machine = _MACHINES.get(platform.machine(), 0)
    return head[:4] == b"\x7fELF" and head[18:20] == machine.to_bytes(2, "little") and "musl" not in str(file)


def read_glibc(file: Path) -> tuple[int, int]:
    """Return the newest version of GLIBC that a file asks for; (0, 0) for none."""
    try:
        with open(file, "rb") as opened:
            content = opened.read(_MAX_BYTES)
    except OSError:
        return (0, 0)
    return max(((int(major), int(minor)) for major, minor in _GLIBC.findall(content)), default=(0, 0))


def our_glibc() -> tuple[int, int]:
    try:
        name = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):  # another C library
        return (0, 0)
    found = re.fullmatch(r"glibc (\d+)\.(\d+)", name)
    return (int(found[1]), int(found[2])) if found else (0, 0)


# --- Python and programs ---


def _find_python_needs(plugin: Plugin) -> Iterator[Need]:
    program = plugin.command.argv[0] if plugin.command else ""
    if not Path(program).name.startswith("python"):
        return
    for name in _ask_missing(program, sorted(_find_imports(plugin.folder))):
        package = _DISTRIBUTIONS.get(name, name)
        why = Message("the Python package {package} is not installed", package=package)
        yield Need(kind=NeedKind.PYTHON, name=name, package=package, why=why)


def _find_imports(folder: Path) -> set[str]:
    """Return the top-level packages that scripts import and cannot do without."""
    local = {path.stem for path in folder.glob("*.py")}
    for _, (_, folders, _) in zip(range(_MAX_FOLDERS), os.walk(folder), strict=False):
        folders[:] = [name for name in folders if is_own_folder(name)]
        local.update(folders)
    names: set[str] = set()
    for _, script in zip(range(_MAX_SCRIPTS), sorted(folder.glob("*.py")), strict=False):
        try:
            module = ast.parse(script.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        names |= {name.partition(".")[0] for name in _list_imports(module.body)}
    return {name for name in names if name not in local and name not in sys.stdlib_module_names}


def _list_imports(statements: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield what the top of a module imports; in a ``try`` it has something else in case there is none."""
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from (one.name for one in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module


def _ask_missing(python: str, names: Sequence[str]) -> list[str]:
    """Ask an interpreter which packages it does not find; none of them is loaded."""
    if not names:
        return []
    try:
        done = subprocess.run(  # noqa: S603 the interpreter of the plugin, with a program of ours
            [python, "-I", "-c", _FIND], input=json.dumps(names), capture_output=True, text=True, timeout=_ASK_S,
            check=True,
        )  # fmt: skip
        missing = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return []
    return [str(name) for name in missing]


def _find_program_needs(plugin: Plugin) -> Iterator[Need]:
    names: set[str] = set()
    for path in plugin.fingerprint.files if plugin.fingerprint else ():
        if path.endswith((".js", ".mjs", ".cjs", ".py")) and "/" not in path:
            try:
                names.update(_STARTED.findall((plugin.folder / path).read_text("utf-8", "replace")))
            except OSError:
                continue
    for name in sorted(names - _OTHER_PROGRAMS):
        if shutil.which(name) is None:
            why = Message("it starts the program {name}, which this machine does not have", name=name)
            yield Need(kind=NeedKind.PROGRAM, name=name, why=why)
