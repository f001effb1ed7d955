"""A search from its first batch to its last: the walk, the engine and what they find, brought together.

Batches run beside each other and beside the walk that makes them. However the search ends, no process is left.
"""

import errno
import os
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ParamSpec

from toolyard.workspace.search.match_collector import MatchCollector
from toolyard.workspace.search.ripgrep import Batch, Engine, ErrorOutput, Query, SearchProcess

P = ParamSpec("P")


class PatternRefused(Exception):
    """The engine does not take the pattern; ``message`` says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class EngineNotStarted(Exception):
    """The engine is not there or cannot run."""


@dataclass(slots=True)
class Progress:
    """The progress of a search, and the files that could not be searched."""

    files: int = 0
    binary: set[bytes] = field(default_factory=set)
    faults: dict[str, tuple[str, int]] = field(default_factory=dict)  # by path: what happened, its errno or 0
    broke_down: bool = False  # the engine ended by itself before its work did


class _RunningProcesses(deque[tuple[SearchProcess, Batch]]):
    """Searches that run, the oldest first."""

    def __enter__(self) -> "_RunningProcesses":
        return self

    def __exit__(self, *_: object) -> None:
        for child, _batch in self:
            child.stop()


class SearchRun:
    def __init__(
        self, engine: Engine, query: Query, folder: int, check: Callable[[], None], collector: MatchCollector
    ) -> None:
        self._engine, self._query, self._folder, self._check, self._collector = engine, query, folder, check, collector
        self.progress = Progress()

    def search_batches(self, batches: Iterable[Batch]) -> None:
        """Search them all. Raises Refused, TimeUp, Enough, or the Failure of a call that was cancelled."""
        with _RunningProcesses() as running:
            for batch in batches:
                if len(running) >= self._engine.parallel_batches:
                    self._finish_oldest(running)
                running.append((self._start_batch(batch), batch))
            while running:
                self._finish_oldest(running)

    def search_file(self, fd: int) -> None:
        """Search one open file."""
        with _RunningProcesses() as running:
            child = _start_process(self._engine.search_file, self._query, fd, self._folder)
            running.append((child, Batch(hidden=False, files=1)))
            self._finish_oldest(running)

    def check_pattern(self) -> None:
        """Raise PatternRefused when the engine does not take the pattern; search nothing."""
        with open(os.devnull, "rb") as empty:
            self.search_file(empty.fileno())
        self.progress.files -= 1

    def _start_batch(self, batch: Batch) -> SearchProcess:
        return _start_process(self._engine.search, self._query, batch, self._folder)

    def _finish_oldest(self, running: _RunningProcesses, *, again: bool = False) -> None:
        """Read the oldest child to its end; it stays in ``running`` until then."""
        child, batch = running[0]
        notes = ErrorOutput()
        self._collector.begin_batch()
        try:
            for chunk in child.read_output(self._check, notes.feed):
                self._collector.feed(chunk)
            code = child.wait()
        finally:
            self.progress.binary |= notes.binary
            self.progress.faults |= notes.faults
        if not self._collector.complete and code == 2:
            raise PatternRefused(notes.message.strip())
        child.stop()
        if not self._collector.complete and not again and self._retry_without_large(running):
            self._finish_oldest(running, again=True)
            return
        if not self._collector.complete:
            self.progress.broke_down = True
            self._collector.end_early()
        self.progress.files += batch.files
        running.popleft()

    def _retry_without_large(self, running: _RunningProcesses) -> bool:
        """Start the oldest batch once more without its largest files, if that is what the engine broke down on."""
        smaller, large = running[0][1].split_off_large(self._folder)
        if large:
            self._collector.undo_batch()
            self.progress.faults |= {path: (os.strerror(errno.EFBIG), errno.EFBIG) for path in large}
            self.progress.files += len(large)  # they count as files, and as not searched
            running[0] = (self._start_batch(smaller), smaller)
        return bool(large)


def _start_process(start: Callable[P, SearchProcess], *arguments: P.args, **options: P.kwargs) -> SearchProcess:
    try:
        return start(*arguments, **options)
    except OSError as error:
        raise EngineNotStarted(error.strerror or str(error)) from error
