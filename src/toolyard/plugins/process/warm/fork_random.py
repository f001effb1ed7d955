"""Sources of randomness in a fork server: which ones each child must reseed, and which ones forbid forking.

A source that an import seeded from the operating system is reseeded in every child, so that no two calls draw the same
numbers. One that an import seeded with a value of its own may be meant to repeat, or not (the time, a process id): that
cannot be known, and such a launch is not forked. Numbers that an import has drawn already stay what they are.

Known are ``random.Random`` and numpy's generators. See ``fork_main``.
"""

from __future__ import annotations

import gc
import sys
from _weakref import ref
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_OWN_VALUE = "an import seeds a source of randomness with a value of its own"
_DRAWS = ("seed", "random", "getrandbits", "getstate", "setstate")


class RandomSources:
    """The first finder of ``sys.meta_path``: watches how each source of randomness is seeded by an import."""

    def __init__(self) -> None:
        self._watching = True
        self._seeded: dict[
            int, tuple[Any, bool]
        ] = {}  # of a Random: a reference to it, and whether the system seeded it
        self._entropy: set[int] = set()  # what the system gave to numpy
        self._undo: list[Callable[[], None]] = []
        self._reseed: list[Callable[[], None]] = []
        self._hooks: dict[str, Callable[[Any], None]] = {"random": self._watch_random, "secrets": self._watch_secrets}
        for name in [name for name in self._hooks if name in sys.modules]:
            self._hooks.pop(name)(sys.modules[name])

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return None, except for the modules to watch, which are patched after they have been run."""
        hook = self._hooks.pop(name, None)
        spec: Any = PathFinder.find_spec(name, path, target) if hook else None
        if spec is not None and hook:
            spec.loader = _HookedLoader(spec.loader, hook)
        return spec

    def find_obstacle(self) -> str:
        """Stop watching. Return why this interpreter cannot be forked; empty when it can."""
        self._watching = False
        for undo in self._undo:
            undo()
        return self._find_random_obstacle() or self._find_numpy_obstacle()

    def reseed(self) -> None:
        """Reseed, in a new child, what would be the same in two of them. Python itself reseeds ``random``."""
        for reseed in self._reseed:
            reseed()

    def _watch_random(self, module: Any) -> None:
        original, of_module = module.Random.seed, module.seed

        def seed(source: Any, a: Any = None, *more: Any, **named: Any) -> None:
            if self._watching:
                self._seeded[id(source)] = (ref(source), a is None)
            original(source, a, *more, **named)

        def undo() -> None:
            module.Random.seed, module.seed = original, of_module

        module.Random.seed = seed
        module.seed = module._inst.seed
        self._undo.append(undo)

    def _watch_secrets(self, module: Any) -> None:
        original = module.randbits

        def randbits(k: int) -> int:
            number: int = original(k)
            if self._watching:
                self._entropy.add(number)
            return number

        def undo() -> None:
            module.randbits = original

        module.randbits = randbits
        self._undo.append(undo)

    def _find_random_obstacle(self) -> str:
        random = sys.modules.get("random")
        if random is None:
            return ""
        for source in _instances(random.Random):
            kind = type(source)
            if issubclass(kind, random.SystemRandom):
                continue  # it has no state
            if any(getattr(kind, name) is not getattr(random.Random, name) for name in _DRAWS):
                return f"an import makes a source of randomness of an unknown kind, {kind.__name__}"
            reference, by_system = self._seeded.get(id(source), (ref(source), source is random._inst))
            if reference() is not source or not by_system:
                return _OWN_VALUE
            if source is not random._inst:
                self._reseed.append(source.seed)
        return ""

    def _find_numpy_obstacle(self) -> str:
        numpy = sys.modules.get("numpy.random")
        if numpy is None:
            return ""
        if not hasattr(numpy, "BitGenerator"):
            return "its numpy is too old to tell how it was seeded"
        generators = _instances(numpy.BitGenerator)
        sequences = [getattr(one, "seed_seq", None) or getattr(one, "_seed_seq", None) for one in generators]
        if any(getattr(one, "entropy", None) not in self._entropy for one in sequences):
            return _OWN_VALUE
        if not {id(one) for one in _instances(numpy.SeedSequence)} <= {id(one) for one in sequences}:
            return "an import keeps a seed of numpy for later"
        self._reseed.extend(one.__init__ for one in generators)
        legacy = _instances(numpy.RandomState)
        self._reseed.extend(one.seed for one in legacy if type(one._bit_generator) is numpy.MT19937)
        return ""


class _HookedLoader:
    """A loader that calls a hook after the module has run, and leaves no trace in it."""

    def __init__(self, loader: Any, hook: Callable[[Any], None]) -> None:
        self._loader, self._hook = loader, hook

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._hook(module)


def _instances(kind: Any) -> list[Any]:
    """Return the living objects of a kind. Not by isinstance, which objects can answer with code of their own."""
    return [one for one in gc.get_objects() if issubclass(type(one), kind)]
