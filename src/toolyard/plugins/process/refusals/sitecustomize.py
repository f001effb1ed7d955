"""Loaded by Python before a plugin's script. Says on stderr which files the plugin was kept from; see __init__.py."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # the typing module is slow to import
if TYPE_CHECKING:
    from typing import Any


def _install() -> None:
    import builtins
    import contextlib
    import functools
    import io
    import json
    import os
    from errno import EACCES, EPERM, EROFS

    noted: set[str] = set()

    def note(error: OSError) -> None:
        for name in (error.filename2, error.filename):
            if isinstance(name, (str, bytes, os.PathLike)) and error.errno in (EACCES, EPERM, EROFS):
                path = os.path.abspath(os.fsdecode(name))
                if path not in noted and len(noted) < 50:
                    noted.add(path)
                    with contextlib.suppress(OSError):
                        os.write(2, f"\nTOOLYARD REFUSED {json.dumps(path)}\n".encode())
                return

    def watch(holder: Any, name: str) -> None:
        original = getattr(holder, name)

        @functools.wraps(original)
        def watched(*words: Any, **named: Any) -> Any:
            try:
                return original(*words, **named)
            except OSError as error:
                note(error)
                raise

        setattr(holder, name, watched)

    watch(io, "open")
    builtins.open = io.open
    for name in ("listdir", "mkdir", "open", "remove", "rename", "replace", "rmdir", "scandir", "unlink"):
        watch(os, name)


def _load_next() -> None:
    """Load the sitecustomize that stands in the place of which this one is."""
    import importlib.machinery
    import importlib.util
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    others = [place for place in sys.path if os.path.abspath(place or ".") != here]
    sys.path[:] = others
    found = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if found is not None and found.loader is not None:
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)


_install()
_load_next()
