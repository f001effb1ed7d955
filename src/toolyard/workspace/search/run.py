"""A search from its first batch to its last: the walk, the engine and what they find, brought together.

Batches run beside each other and beside the walk that makes them. However the search ends, no process is left.
"""

import errno
import os
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ParamSpec

from toolyard.workspace.search.batches import Batch
from toolyard.workspace.search.child import Child
from toolyard.workspace.search.found import Found
from toolyard.workspace.search.ripgrep import Engine, Notes, Query

P = ParamSpec("P")


class Refused(Exception):
    """The engine does not take the pattern; ``said`` is why."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said = said


class NotStarted(Exception):
    """The engine is not there or cannot run."""


@dataclass(slots=True)
class Progress:
    """How far a search came and what it could not look into."""

    files: int = 0
    binary: set[bytes] = field(default_factory=set)
    faults: dict[str, tuple[str, int]] = field(default_factory=dict)  # by path: what happened, its errno or 0
    broke_down: bool = False  # the engine ended by itself before its work did


class _Children(deque[tuple[Child, Batch]]):
    """Searches that run, the oldest first."""

    def __enter__(self) -> "_Children":
        return self

    def __exit__(self, *_: object) -> None:
        for child, _batch in self:
            child.stop()


class Searching:
    def __init__(self, engine: Engine, query: Query, folder: int, check: Callable[[], None], found: Found) -> None:
        self._engine, self._query, self._folder, self._check, self._found = engine, query, folder, check, found
        self.progress = Progress()

    def batches(self, batches: Iterable[Batch]) -> None:
        """Search them all. Raises Refused, TimeUp, Enough, or the Failure of a call that was cancelled."""
        with _Children() as running:
            for batch in batches:
                if len(running) >= self._engine.at_once:
                    self._finish(running)
                running.append((self._started(batch), batch))
            while running:
                self._finish(running)

    def file(self, fd: int) -> None:
        """Search one open file."""
        with _Children() as running:
            child = _started(self._engine.search_file, self._query, fd, self._folder)
            running.append((child, Batch(hidden=False, files=1)))
            self._finish(running)

    def nothing(self) -> None:
        """Only ask whether the engine takes the pattern."""
        with open(os.devnull, "rb") as empty:
            self.file(empty.fileno())
        self.progress.files -= 1

    def _started(self, batch: Batch) -> Child:
        return _started(self._engine.search, self._query, batch, self._folder)

    def _finish(self, running: _Children, *, again: bool = False) -> None:
        """Read the oldest child to its end; it stays in ``running`` until then."""
        child, batch = running[0]
        notes = Notes()
        self._found.begin()
        try:
            for chunk in child.output(self._check, notes.add):
                self._found.feed(chunk)
            code = child.end()
        finally:
            self.progress.binary |= notes.binary
            self.progress.faults |= notes.faults
        if not self._found.complete and code == 2:
            raise Refused(notes.said.strip())
        child.stop()
        if not self._found.complete and not again and self._smaller(running):
            self._finish(running, again=True)
            return
        if not self._found.complete:
            self.progress.broke_down = True
            self._found.broken_off()
        self.progress.files += batch.files
        running.popleft()

    def _smaller(self, running: _Children) -> bool:
        """Start the oldest batch once more without its largest files, if that is what the engine broke down on."""
        smaller, large = running[0][1].without_large(self._folder)
        if large:
            self._found.take_back()
            self.progress.faults |= {path: (os.strerror(errno.EFBIG), errno.EFBIG) for path in large}
            self.progress.files += len(large)  # they count as files, and as not searched
            running[0] = (self._started(smaller), smaller)
        return bool(large)


def _started(start: Callable[P, Child], *arguments: P.args, **options: P.kwargs) -> Child:
    try:
        return start(*arguments, **options)
    except OSError as error:
        raise NotStarted(error.strerror or str(error)) from error
