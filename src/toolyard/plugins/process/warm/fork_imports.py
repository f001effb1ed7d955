"""Imports that a fork server makes ahead, and the check whether it may fork at all. See ``fork_main``.

Only the standard library and installed packages are imported: those that the script, or a module of its folder that it
imports, names in the import statements at its beginning. The first statement that could change what an import does
(a call, an assignment to anything but a plain name) ends the search. No code of the plugin itself is run, it is read.
"""

from __future__ import annotations

import ast
import gc
import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STANDARD = os.path.dirname(os.path.abspath(os.__file__))
_NEVER = ("antigravity", "this")
_QUIET = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass, ast.Global,
)  # fmt: skip


def preload(script: str, folder: str, known: set[str], sources: Any) -> str:
    """Import ahead, watched by ``sources``. Return why this interpreter cannot be forked now; empty when it can."""
    local = [folder, *(entry for entry in sys.path[1:] if not _is_installed(entry))]
    sys.path[:] = installed = [entry for entry in sys.path[1:] if _is_installed(entry)]
    finders = sys.meta_path[:]
    sys.meta_path[:] = [one for one in finders if not str(getattr(one, "__module__", "")).startswith("__editable__")]
    sys.meta_path.insert(0, sources)
    fewer = sys.meta_path[:]
    opened = os.listdir("/proc/self/fd")
    _follow_script(ImportFollower(local), script)
    if sys.path != installed:
        return "an import changes sys.path"
    sys.meta_path[:] = finders + [one for one in sys.meta_path if one not in fewer]
    for name in {name.partition(".")[0] for name in sys.modules} - known:
        spec = PathFinder.find_spec(name, local)
        if spec is not None and spec.loader is not None:
            return f"the plugin has a module {name} of its own"
    for entry in [entry for entry in sys.path_importer_cache if entry not in installed]:
        sys.path_importer_cache.pop(entry, None)
    return _find_obstacle(len(opened), sources)


def _follow_script(imports: ImportFollower, script: str) -> bool:
    try:
        return imports.follow(script)
    except MissingPackageError:  # the script will say so itself
        return False


def _find_obstacle(opened: int, sources: Any) -> str:
    if len(os.listdir("/proc/self/fd")) != opened:
        return "an import leaves a file open"
    if _has_printed():
        return "an import prints"
    if len(os.listdir("/proc/self/task")) > 1:
        _try_fork()
        if len(os.listdir("/proc/self/task")) > 1:
            return "an import starts a thread"
    gc.collect()
    reason: str = sources.find_obstacle()
    if reason:
        return reason
    gc.freeze()  # a child's collections leave these pages shared (bench row "freeze before a fork")
    return ""


def reset_start_time() -> None:
    """Reset the start time that logging knows, in a new child."""
    logging = sys.modules.get("logging")
    if logging:
        import time

        now = time.time_ns()
        logging._startTime = now if isinstance(logging._startTime, int) else now / 1e9  # type: ignore[attr-defined]


def list_mtimes(script: str) -> bytes:
    """Return modification times and paths of the script and of the folders of installed packages."""
    paths = [script, *(entry for entry in sys.path[1:] if _is_installed(entry) and os.path.exists(entry))]
    return b"\0".join(b"%d %s" % (os.stat(path).st_mtime_ns, os.fsencode(os.path.abspath(path))) for path in paths)


class MissingPackageError(Exception):
    """Raised when a package that the plugin imports is not installed."""


class ImportFollower:
    def __init__(self, local: list[str]) -> None:
        self._local = local
        self._followed: set[str] = set()

    def follow(self, file: str) -> bool:
        """Import what this file imports. False when it does more than import and define. Raises MissingPackageError."""
        if file in self._followed:
            return True
        self._followed.add(file)
        try:
            with open(file, "rb") as opened:
                tree = ast.parse(opened.read())
        except (OSError, SyntaxError, ValueError):
            return False
        return all(self._follow_statement(statement, os.path.dirname(file)) for statement in tree.body)

    def _follow_statement(self, statement: Any, folder: str) -> bool:
        if isinstance(statement, ast.Import):
            return all(self._load(name.name, ()) for name in statement.names)
        if isinstance(statement, ast.ImportFrom):
            names = tuple(name.name for name in statement.names)
            if not statement.level:
                return self._load(statement.module or "", names)
            for _ in range(statement.level - 1):
                folder = os.path.dirname(folder)
            module = [statement.module] if statement.module else []
            return all(self._follow_local(folder, ".".join([*module, name])) for name in names)
        if isinstance(statement, ast.Try):
            try:
                tried = all(self._follow_statement(one, folder) for one in [*statement.body, *statement.orelse])
            except MissingPackageError:
                tried = all(_is_quiet(one) for handler in statement.handlers for one in handler.body)
            return tried and all(self._follow_statement(one, folder) for one in statement.finalbody)
        return _is_quiet(statement)

    def _load(self, name: str, names: tuple[str, ...]) -> bool:
        top = name.partition(".")[0]
        if top in _NEVER or top == "__future__":
            return True
        own = None if top in sys.builtin_module_names else PathFinder.find_spec(top, self._local)
        if own is not None and (own.loader is not None or PathFinder.find_spec(top) is None):
            roots = [root for root in self._local if PathFinder.find_spec(top, [root]) is not None]
            return all(self._follow_local(roots[0], f"{name}.{last}") for last in names or ("",))
        try:
            __import__(name, {}, {}, list(names))
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] != top:
                raise
            raise MissingPackageError(name) from None
        return True

    def _follow_local(self, root: str, name: str) -> bool:
        """Follow every file of the plugin that importing ``name`` would run, outermost package first."""
        place = root
        for word in filter(None, name.split(".")):
            place = os.path.join(place, word)
            for file in (place + ".py", os.path.join(place, "__init__.py")):
                if os.path.isfile(file) and not self.follow(file):
                    return False
        return True


def _is_quiet(statement: Any) -> bool:
    """Return whether a statement leaves alone what an import depends on: sys.path, the environment, warning filters."""
    if isinstance(statement, ast.Expr):
        call = statement.value
        if isinstance(call, ast.Call):
            return isinstance(call.func, ast.Attribute) and call.func.attr == "reconfigure"
        return isinstance(call, ast.Constant)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return all(isinstance(one, (ast.Name, ast.Tuple)) for one in targets)
    if isinstance(statement, (ast.If, ast.Try, ast.With)):
        inner = [getattr(statement, part, []) for part in ("body", "orelse", "finalbody")]
        inner += [handler.body for handler in getattr(statement, "handlers", [])]
        return all(_is_quiet(one) for part in inner for one in part)
    return isinstance(statement, _QUIET)


def _is_installed(entry: str) -> bool:
    words = entry.split(os.sep)
    return "site-packages" in words or "dist-packages" in words or _is_standard(entry)


def _is_standard(entry: str) -> bool:
    zipped = entry.endswith(".zip") and os.path.basename(entry).startswith("python")
    return entry == _STANDARD or entry.startswith(_STANDARD + os.sep) or zipped


def _has_printed() -> bool:
    import fcntl
    import termios

    sys.stdout.flush()
    sys.stderr.flush()
    return any(fcntl.ioctl(number, termios.FIONREAD, b"\0" * 4) != b"\0" * 4 for number in (1, 2))


def _try_fork() -> None:
    """Fork once. Libraries that can be forked (OpenBLAS, say) end their threads before a fork and restart them."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
