"""Threads where memory may be short.

A thread that finds no memory for its first steps ends without a word, and ``threading.Thread.start`` waits for that
word for ever. So the threads of a pool are started when the pool is made, while there is memory, and a thread for one
piece of work tells of its end by ending.
"""

import _thread
import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from errno import EAGAIN, ENOMEM
from types import TracebackType
from typing import Generic, TypeVar

from toolyard.process_memory import count_free_bytes, is_short_of_memory, save_address_space

T = TypeVar("T")
_THREAD = 16 * 2**20  # bytes that a thread may take: its stack, and what it works with


def start_pool(count: int, name: str) -> ThreadPoolExecutor:
    """Start a pool with all its threads; with fewer, but one at least, in a process whose memory is limited."""
    free = count_free_bytes()
    if free is not None:
        count = max(1, min(count, free // 2 // _THREAD))
    pool = ThreadPoolExecutor(count, thread_name_prefix=name)
    started = threading.Event()
    for _ in range(count):
        pool.submit(started.wait)  # which is busy: so each one starts a thread
    started.set()
    return pool


def use_started_pool() -> None:
    """Give the event loop of a long-running process a started pool for its blocking work, before its first call."""
    save_address_space()
    pool = start_pool(min(32, (os.cpu_count() or 1) + 4), "toolyard-work")
    asyncio.get_running_loop().set_default_executor(pool)


def run_in_new_thread(work: Callable[[], T]) -> T:
    """Run ``work`` in a thread of its own, which ends with it. Raises what it raises, or OSError without memory."""
    if is_short_of_memory():
        raise OSError(ENOMEM, os.strerror(ENOMEM))
    values: list[T] = []
    problems: list[BaseException] = []
    ended = _thread.allocate_lock()
    ended.acquire()
    run = _ThreadRun(work, values, problems, ended)
    try:
        _thread.start_new_thread(run, ())
    except RuntimeError as error:
        raise OSError(EAGAIN, os.strerror(EAGAIN)) from error
    del run  # the thread alone has it now
    ended.acquire()
    if problems:
        raise problems.pop()
    if not values:
        raise OSError(ENOMEM, os.strerror(ENOMEM))
    return values.pop()


class _ThreadRun(Generic[T]):
    """The work of a thread. ``ended`` is released when it has run, or when the thread has let go of it without that."""

    def __init__(
        self, work: Callable[[], T], values: list[T], problems: list[BaseException], ended: _thread.LockType
    ) -> None:
        self._work, self._values, self._problems, self._ended = work, values, problems, ended

    def __call__(self) -> None:
        with self:
            self._values.append(self._work())

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None:
            self._problems.append(error)
        self._tell_end()
        return True

    def __del__(self) -> None:
        self._tell_end()

    def _tell_end(self) -> None:
        with contextlib.suppress(RuntimeError):  # it was told already
            self._ended.release()
