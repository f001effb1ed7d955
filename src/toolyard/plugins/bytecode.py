"""The cache for compiled Python of plugins: a folder of the home for each fingerprint (S-83).

Python runs what ``__pycache__`` beside a source has when the times written in it fit, whatever the source says, so a
review of the sources would not cover it. Children that may run Python are told to keep compiled code here instead, and
then they do not read ``__pycache__`` at all. What one version of a plugin has compiled is read by that version alone.

The last ``MAX_VERSIONS`` versions of each plugin have a folder. A cache that cannot be written costs time only.
"""

import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from toolyard.plugins.environment import data_folder
from toolyard.plugins.plugin import Plugin
from toolyard.workspace.home_folder import make_private_folder

FOLDER: Final = "python-cache"
VARIABLE: Final = "PYTHONPYCACHEPREFIX"
MAX_VERSIONS: Final = 3
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_SOURCES = (".py", ".pyw", ".pyc")
_WITHOUT_ENVIRONMENT = re.compile(r"-[A-Za-z]*[EI][A-Za-z]*")


def make_cache_folder(home: Path, plugin: Plugin) -> Path | None:
    """Create and return the folder for the bytecode of this version of a plugin; None when it has no Python."""
    if plugin.command is None or plugin.fingerprint is None or not _can_run_python(plugin):
        return None
    own = home / FOLDER / data_folder(home, plugin.name).name
    folder = own / plugin.fingerprint.digest
    if not folder.is_dir():
        with suppress(OSError):
            make_private_folder(folder)
            _remove_oldest(own)
    return folder


def add_cache_option(argv: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Name the cache on the command line of a Python that ignores its environment (``-E``, ``-I``)."""
    if not _PYTHON.fullmatch(Path(argv[0]).name):
        return argv
    for word in argv[1:]:
        if not word.startswith("-") or word == "-":
            break
        if _WITHOUT_ENVIRONMENT.fullmatch(word):
            return (argv[0], f"-Xpycache_prefix={folder}", *argv[1:])
    return argv


def _can_run_python(plugin: Plugin) -> bool:
    argv = plugin.command.argv if plugin.command else ()
    files = plugin.fingerprint.files if plugin.fingerprint else {}
    return bool(argv and _PYTHON.fullmatch(Path(argv[0]).name)) or any(name.endswith(_SOURCES) for name in files)


def _remove_oldest(own: Path) -> None:
    newest_first = sorted(own.iterdir(), key=lambda folder: folder.lstat().st_mtime_ns, reverse=True)
    for folder in newest_first[MAX_VERSIONS:]:
        shutil.rmtree(folder, ignore_errors=True)
