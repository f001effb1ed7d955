"""Syntax errors in the Python files of a plugin; nothing of them is run.

They are compiled by the Python that runs Toolyard. When the plugin has another one, which may know more or less, the
message says so and is a warning. Bounded: the first ``_MAX_FILES`` files, none larger than ``_MAX_BYTES``.
"""

import os
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from toolyard.message import Message
from toolyard.plugins.plugin import PluginProblem

_MAX_FILES = 100
_MAX_BYTES = 128 * 1024  # the compiler's time is not linear
_FILE = "<plugin-source>"
_QUIET = ("ignore", None, Warning, re.compile(re.escape(_FILE)), 0)
_VERSION = re.compile(r"python(\d+\.\d+)")


def find_syntax_errors(
    folder: Path, files: Iterable[str], named: Collection[str], program: str
) -> Iterator[PluginProblem]:
    """Yield the first error of each file; files ``named`` on the command line cannot run at all."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    version = _VERSION.fullmatch(os.path.basename(os.path.realpath(program)))
    is_ours = version is None or version[1] == own
    for name in sorted(file for file in files if file.endswith((".py", ".pyw")))[:_MAX_FILES]:
        error = _syntax_error(folder / name)
        if error is not None:
            kind, line, what = type(error).__name__, error.lineno or 1, error.msg[:200]
            message = Message(
                "plugin.python_syntax_error",
                "Python cannot read it: {kind} in line {line}: {what}.",
                kind=kind,
                line=line,
                what=what,
            )
            if not is_ours:
                message = Message(
                    "plugin.python_version_may_differ",
                    "Python {own}, which may know less than the plugin's, has a {kind} in line {line}: {what}.",
                    own=own,
                    kind=kind,
                    line=line,
                    what=what,
                )
            yield PluginProblem(
                message=message,
                fix=Message("plugin.correct_place", "Correct it at this place."),
                file=name,
                line=line,
                column=max(0, error.offset or 0),
                warning=not is_ours or name not in named,
            )


def _syntax_error(path: Path) -> SyntaxError | None:
    if _QUIET not in warnings.filters:  # for this name alone and for good: catch_warnings() is not safe among threads
        warnings.filterwarnings("ignore", module=re.escape(_FILE))
    try:
        with path.open("rb") as file:
            source = file.read(_MAX_BYTES + 1)
        if len(source) <= _MAX_BYTES:
            compile(source, _FILE, "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    except (OSError, ValueError, RecursionError, MemoryError, OverflowError):
        return None  # unreadable files are reported elsewhere
    return None
