"""Run a script as ``python script.py`` would, in an interpreter that runs already. See ``fork_main``.

The end is Python's own whenever it matters: after an exception nobody caught, or when native code of others is loaded,
which may have things to do at exit. Otherwise the same is done in the same order without taking every module apart:
threads are joined, exit functions run, the script's own objects die, what is buffered is written.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from os import environ  # of the plugin's process: the host's is not seen here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))
_STANDARD = os.path.dirname(os.path.abspath(os.__file__))


def wait_for_call() -> bool:
    """Wait on stdin for the call: a length, then the variables that it adds. Return False when none will come."""
    size = int.from_bytes(_read(4), "big")
    variables = _read(size) if size else b""
    set_variables(variables)
    return bool(variables)


def set_variables(variables: bytes) -> None:
    for pair in variables[1:].split(b"\0"):
        name, _, value = os.fsdecode(pair).partition("=")
        if name:
            environ[name] = value


def _read(size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more:
            return b""
        data += more
    return data


class Script:
    def __init__(self, first: dict[str, Any], argv: list[str]) -> None:
        self._given = argv[0]
        self.path = _absolute(argv[0]) if sys.version_info >= (3, 9) else argv[0]
        self.folder = os.path.dirname(os.path.realpath(argv[0]))
        self._path = sys.path[:]
        self._code: Any = None
        orig = getattr(sys, "orig_argv", None)
        if orig is not None:
            sys.orig_argv[:] = orig[: len(orig) - len(sys.argv)] + argv
        sys.argv[:] = argv
        self._first = first
        sys.modules["__main__"] = _main_module(first, self.path)

    def compile(self) -> None:
        with open(self.path, "rb") as file:
            self._code = compile(file.read(), self.path, "exec", dont_inherit=True)

    def prepare(self) -> None:
        """Set up the script's module search path, ahead of the fork so that children copy less."""
        isolated = sys.flags.isolated or getattr(sys.flags, "safe_path", False)
        sys.path[:] = self._path if isolated else [self.folder, *self._path[1:]]
        self._loaded = len(sys.modules)
        self._native = _has_native_code(sys.modules)

    def run(self) -> None:
        """Run the script; does not return. An exception is left to the interpreter."""
        # made after the fork: what is older was frozen, and would not be collected at the end
        main = sys.modules["__main__"] = _main_module(self._first, self.path)
        try:
            if self._code is None:
                self.compile()
            exec(self._code, main.__dict__)  # noqa: S102 this is what it is for
        except SystemExit as ending:
            if isinstance(ending.code, int) and abs(ending.code) >= 1 << 31:
                raise
            code = _exit_code(ending.code)
        except BaseException:
            sys.excepthook = _hide_own_frames(sys.excepthook)
            raise
        else:
            code = 0
        del main
        new = _newest_modules(sys.modules, len(sys.modules) - self._loaded)
        if self._native or _has_native_code(new):
            sys.exit(code)
        _exit_as_python(code, new)


def _main_module(first: dict[str, Any], path: str) -> Any:
    module = type(sys)("__main__")
    space = module.__dict__
    space.clear()
    space.update(first)
    space.update(__doc__=None, __file__=path, __loader__=type(first["__loader__"])("__main__", path))
    if "__annotations__" in space:
        space["__annotations__"] = {}
    return module


def _absolute(path: str) -> str:
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)


def _exit_code(code: object) -> int:
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    sys.stderr.write(str(code) + "\n")
    return 1


def _hide_own_frames(hook: Any) -> Any:
    def show(kind: Any, error: Any, trace: Any) -> None:
        while trace and trace.tb_frame.f_code.co_filename.startswith(_OWN_FOLDER + os.sep):
            trace = trace.tb_next
        hook(kind, error.with_traceback(trace), trace)

    return show


def _newest_modules(modules: dict[str, Any], count: int) -> dict[str, Any]:
    """Return the modules added last, without touching the others: that would copy their memory."""
    return {name: modules[name] for _, name in zip(range(count), reversed(modules))}  # noqa: B905 not before 3.10


def _has_native_code(modules: dict[str, Any]) -> bool:
    """Return whether native code other than Python's own is loaded."""
    if "_ctypes" in modules:
        return True
    files = [str(getattr(module, "__file__", None) or "") for module in list(modules.values())]
    third = ("site-packages", "dist-packages")
    return any(
        file.endswith(".so") and (not file.startswith(_STANDARD) or any(name in file for name in third))
        for file in files
    )


def _exit_as_python(code: int, new: dict[str, Any]) -> None:
    threading = sys.modules.get("threading")
    if threading:
        threading._shutdown()
    try:
        atexit._run_exitfuncs()
    finally:  # before 3.10 it raises again what it has shown
        _flush_and_exit(code, new)


def _flush_and_exit(code: int, new: dict[str, Any]) -> None:
    if not _flush(sys.stdout):
        sys.exit(code)  # Python has its own words for that
    _flush(sys.stderr)
    _flush_files(gc.get_objects())  # first of all: files that die in a cycle may lose what they hold
    for name in ("__main__", *new):
        sys.modules.pop(name, None)
    new.clear()
    gc.collect()
    _flush_files(gc.get_objects())
    _flush(sys.stdout)
    _flush(sys.stderr)
    os._exit(code)


def _flush(stream: Any) -> bool:
    try:
        if stream is not None and not getattr(stream, "closed", False):
            stream.flush()
    except (OSError, ValueError):
        return False
    return True


def _flush_files(objects: list[object]) -> None:
    """Flush files that the interpreter still holds: Python would write them at the very end."""
    import _io

    files = (_io.TextIOWrapper, _io.BufferedWriter, _io.BufferedRandom)
    for one in objects:
        if isinstance(one, files):
            try:
                one.flush()
            except (OSError, ValueError):
                continue
