"""One run of one plugin child, from its input to its report.

The contract of a plugin's child process:

- It gets one JSON object on stdin, or nothing when there are no arguments, then the end of input. It need not read it.
- stdin, stdout and stderr are moved at the same time; no order of reading and writing can block it or us.
- Its result is decided when it exits, plus up to ``DRAIN_S`` while another process still holds its stdout. Not by the
  end of the pipe: a background process may hold that for ever. Then whatever is left of the call is killed, with a
  warning; or it continues as ``Survivors``, when its owner allows that.
- A child that has answered and does not exit, because a thread or an open handle keeps it, is decided all the same:
  after ``silence_s`` without a word on stdout, or at its limit. It may go on for ``LINGER_S`` and is then stopped;
  a ``detached`` one continues as ``Survivors``.
- stdout may hold log lines: the last complete JSON object with a status is the answer (``plugin_output``).
  More than ``limits.stdout_bytes`` ends the call, and nothing of it is used.
- stderr is read to the end and never blocks the child; beginning and end are kept, the middle is counted.
- At its limit without an answer, or when the caller gives up, the run returns at once, and behind it the child gets
  SIGTERM, then ``GRACE_S``, then SIGKILL, with everything it started. One that has ended by then has ended in time,
  although the host may see its limit first: after a pause of the host all news are there at once.
- Lost: what is written to stdout after the decision, and the middle of a long stderr. Kept in memory: stdout up to its
  limit, 320 KiB of stderr, and the answer.
"""

import asyncio
import math
import os
from asyncio import FIRST_COMPLETED
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from toolyard.crashpoint import crashpoint
from toolyard.plugins.process.child_report import (
    HEAD,
    LINGER_S,
    ChildReport,
    Survivors,
    build_overflow_report,
    build_report,
)
from toolyard.plugins.process.children import GRACE_S, Children
from toolyard.plugins.process.launch import ChildProcess
from toolyard.plugins.process.pipes import ChildPipes
from toolyard.plugins.process.process_output import StderrRing
from toolyard.process_numbers import has_ended
from toolyard.protocol.manifests.manifest import Limits
from toolyard.protocol.tool import Checkpoint, confirm_start

DRAIN_S = 1.0
SILENCE_S = 1.0  # on stdout after an answer, until it counts although the process lives on
_NEWS_S = 2.0  # for the report of an exit that has happened: a fork server tells it


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """The times of one run, in seconds."""

    limit_s: float | None = None  # for the answer
    silence_s: float | None = None  # on stdout after an answer, until it counts; None: only the exit does
    drain_s: float = DRAIN_S  # after the exit, for another process that holds stdout
    grace_s: float = GRACE_S  # from SIGTERM to SIGKILL
    linger_s: float = LINGER_S  # for a process that has answered to exit by itself


class ChildState(Enum):
    RUNNING = auto()
    WORKING = auto()
    ANSWERED = auto()
    DRAINING = auto()
    DETACHED = auto()
    LINGERING = auto()
    STOPPING = auto()
    RELEASED = auto()
    ENDED = auto()


class ChildEvent(Enum):
    RECEIPT = auto()  # its first JSON object with a status was read: the call of an asynchronous plugin is over
    ANSWERED = auto()  # stdout holds an answer, and silence behind it or the limit says that it is complete
    EXITED = auto()  # its process has ended
    OVERFLOWED = auto()  # stdout is over its limit
    MAY_CONTINUE = auto()  # what is alive of it may continue: its owner allows it, and it broke no limit
    MUST_END = auto()  # nothing is alive of it, or nothing may be
    STOP = auto()  # it is to be stopped: by its limit, by its caller, or because its task has ended
    RELEASE = auto()  # the host ends, and the child outlives it


TRANSITIONS: Final[Mapping[ChildState, Mapping[ChildEvent, ChildState]]] = {
    ChildState.RUNNING: {
        ChildEvent.RECEIPT: ChildState.WORKING,
        ChildEvent.ANSWERED: ChildState.ANSWERED,
        ChildEvent.EXITED: ChildState.DRAINING,
        ChildEvent.OVERFLOWED: ChildState.ENDED,
        ChildEvent.STOP: ChildState.STOPPING,
        ChildEvent.RELEASE: ChildState.RELEASED,
    },
    ChildState.WORKING: {
        ChildEvent.EXITED: ChildState.DRAINING,
        ChildEvent.STOP: ChildState.STOPPING,
        ChildEvent.RELEASE: ChildState.RELEASED,
    },
    ChildState.ANSWERED: {
        ChildEvent.MAY_CONTINUE: ChildState.DETACHED,
        ChildEvent.MUST_END: ChildState.LINGERING,
        ChildEvent.STOP: ChildState.STOPPING,
    },
    ChildState.DRAINING: {
        ChildEvent.RECEIPT: ChildState.DRAINING,
        ChildEvent.OVERFLOWED: ChildState.ENDED,
        ChildEvent.MAY_CONTINUE: ChildState.DETACHED,
        ChildEvent.MUST_END: ChildState.ENDED,
        ChildEvent.STOP: ChildState.STOPPING,
        ChildEvent.RELEASE: ChildState.RELEASED,
    },
    ChildState.DETACHED: {
        ChildEvent.RECEIPT: ChildState.DETACHED,
        ChildEvent.STOP: ChildState.STOPPING,
        ChildEvent.RELEASE: ChildState.RELEASED,
    },
    ChildState.LINGERING: {},
    ChildState.STOPPING: {
        ChildEvent.EXITED: ChildState.STOPPING,
        ChildEvent.MAY_CONTINUE: ChildState.STOPPING,
        ChildEvent.MUST_END: ChildState.ENDED,
        ChildEvent.STOP: ChildState.STOPPING,
        ChildEvent.RELEASE: ChildState.STOPPING,
    },
    ChildState.RELEASED: {},
    ChildState.ENDED: {
        ChildEvent.RECEIPT: ChildState.ENDED,
        ChildEvent.STOP: ChildState.ENDED,
        ChildEvent.RELEASE: ChildState.ENDED,
    },
}


class ChildLifecycle:
    """The state of one child, which changes by events only.

    A child is RUNNING from the moment it gets its input. ``run_child`` (a call that waits for the answer) and
    ``task_child.AsyncChild`` (a call that waits for a receipt only) report events; what they do to the process and its
    pipes follows from the state that they reach:

        RUNNING    its input is written and its output collected; nothing is decided
        WORKING    it has printed its receipt and works on its task; its stdout is read and discarded
        ANSWERED   it has answered but not exited: whether it may continue is about to be decided
        DRAINING   it has exited: what is left in the pipes is read, processes that it started may still hold them
        DETACHED   it has answered, or exited, and what continues of it may do so; its stdout is read and discarded
        LINGERING  it has answered and has a moment to exit by itself; then ``Children`` stops it
        STOPPING   it gets SIGTERM, then SIGKILL, with everything it started
        RELEASED   the host ends and the child outlives it; its guardian reads the pipes
        ENDED      everything of it is killed, and the pipes are closed

    A synchronous call, which waits for the answer:

        RUNNING ── EXITED ──────▶ DRAINING ── MUST_END ──────▶ ENDED
           │                         └─────── MAY_CONTINUE ──▶ DETACHED
           ├────── ANSWERED ────▶ ANSWERED ── MUST_END ──────▶ LINGERING
           │                         └─────── MAY_CONTINUE ──▶ DETACHED
           ├────── OVERFLOWED (also while DRAINING) ─────────▶ ENDED
           └────── STOP (also while DRAINING) ───────────────▶ STOPPING

    An asynchronous call, which waits for the receipt:

        RUNNING ── RECEIPT ──▶ WORKING ── EXITED ──▶ DRAINING ── MUST_END ──────▶ ENDED
                                                         └────── MAY_CONTINUE ──▶ DETACHED
        any of these ── STOP ──▶ STOPPING ── MUST_END ──▶ ENDED
        any of these ── RELEASE ──▶ RELEASED

    The exit may come before the receipt is read, so a RECEIPT after it changes nothing. STOP may be repeated, and may
    come after the end. An event that a state does not know is a bug: ``handle`` raises RuntimeError.
    """

    def __init__(self) -> None:
        self._state = ChildState.RUNNING

    @property
    def state(self) -> ChildState:
        return self._state

    def handle(self, event: ChildEvent) -> ChildState:
        """Return the state after an event. Raises RuntimeError when the state does not know it."""
        after = TRANSITIONS[self._state].get(event)
        if after is None:
            raise RuntimeError(f"a child that is {self._state.name} cannot handle {event.name}")
        self._state = after
        return after


async def run_child(
    child: ChildProcess,
    stdin: bytes,
    *,
    children: Children,
    limits: Limits,
    stderr: StderrRing | None = None,
    on_first_output: Callable[[], None] | None = None,
    detached: bool = False,
    times: RunTimes = RunTimes(),  # noqa: B008 a frozen value
    head: int = HEAD,
) -> ChildReport:
    """Run a child that was just started to its end. A ``stderr`` passed in is filled even when this is cancelled.

    ``on_first_output`` is called at the first bytes on stdout; ``head`` is how much of it the report keeps as it was
    printed. What a ``detached`` child leaves running when it has answered belongs to whoever gets ``survivors``. Raises
    TimeoutError after ``limit_s`` without an answer.
    """
    ring = StderrRing() if stderr is None else stderr
    pipes = ChildPipes(child, stdin, limits.stdout_bytes, ring, on_first_output)
    lifecycle = ChildLifecycle()
    survived = False
    try:
        code, given_up = await _wait_for_exit_or_answer(child, pipes, times)
        if lifecycle.handle(_first_event(pipes, code)) is ChildState.DRAINING:
            await pipes.drain(0 if given_up else times.drain_s)
            survived = await children.has_lasting_survivors(child.pid)
        overrun = children.is_over_process_limit(child.pid)
        crashpoint("plugin.exited")
        match lifecycle.state:
            case ChildState.ANSWERED:
                lifecycle.handle(ChildEvent.MAY_CONTINUE if detached and not overrun else ChildEvent.MUST_END)
            case ChildState.DRAINING if pipes.output_overflow.is_set():
                lifecycle.handle(ChildEvent.OVERFLOWED)
            case ChildState.DRAINING:
                may_continue = survived and detached and not overrun
                lifecycle.handle(ChildEvent.MAY_CONTINUE if may_continue else ChildEvent.MUST_END)
    except BaseException:
        lifecycle.handle(ChildEvent.STOP)
        raise
    finally:
        _clean_up(lifecycle.state, child, pipes, children, times)
    if pipes.output_overflow.is_set():
        return build_overflow_report(pipes, limits=limits, stderr=ring, head=head)
    output = await pipes.decode_output()
    report = build_report(pipes, output, code, limits=limits, stderr=ring, overrun=overrun, head=head)
    if lifecycle.state is ChildState.DETACHED:
        return replace(report, survivors=Survivors(child.pid, pipes))
    return replace(report, survivors_killed=survived and not overrun)


def _first_event(pipes: ChildPipes, code: int | None) -> ChildEvent:
    if code is not None:
        return ChildEvent.EXITED
    return ChildEvent.OVERFLOWED if pipes.output_overflow.is_set() else ChildEvent.ANSWERED


def _clean_up(state: ChildState, child: ChildProcess, pipes: ChildPipes, children: Children, times: RunTimes) -> None:
    """Do to a child and its pipes what its last state asks for."""
    match state:
        case ChildState.DETACHED:
            pipes.discard_output()
        case ChildState.LINGERING:
            pipes.discard_output()
            children.linger(child, times.linger_s, times.grace_s, then=pipes.close)
        case ChildState.STOPPING:
            pipes.close()
            children.stop(child, times.grace_s)
        case _:
            pipes.close()
            children.end(child.pid)


async def _wait_for_exit_or_answer(child: ChildProcess, pipes: ChildPipes, times: RunTimes) -> tuple[int | None, bool]:
    """Wait for the exit, an overflow, or an answer with silence behind it. Return the exit code, None when it lives on,
    and whether its caller has given up in the moment of the exit.
    """
    loop, silence_s = asyncio.get_running_loop(), times.silence_s
    end = math.inf if times.limit_s is None else loop.time() + times.limit_s
    exit_, overflow = asyncio.ensure_future(child.wait()), asyncio.ensure_future(pipes.output_overflow.wait())
    try:
        while True:
            left = end - loop.time()
            wait_s = min(left, math.inf if silence_s is None else pipes.seconds_until_silent(silence_s) or silence_s)
            given_up: asyncio.CancelledError | None = None
            try:
                await asyncio.wait(
                    (exit_, overflow), timeout=wait_s if wait_s < math.inf else None, return_when=FIRST_COMPLETED
                )
            except asyncio.CancelledError as error:
                given_up = error
            over = given_up is not None or loop.time() >= end
            if over:
                await read_unread_news(child.pid, pipes, exit_)
            if exit_.done():
                return exit_.result(), given_up is not None
            if given_up:
                raise given_up
            silent = silence_s is not None and not pipes.seconds_until_silent(silence_s)
            if overflow.done() or ((over or silent) and await pipes.has_answer()):
                return None, False
            if over:
                raise TimeoutError
    finally:
        exit_.cancel()
        overflow.cancel()


async def read_unread_news(pid: int, pipes: ChildPipes, exit_: "asyncio.Future[int]") -> None:
    """Read what a child has printed and whether it has ended, which nobody may have read when its limit is seen."""
    pipes.read_output()
    if not exit_.done() and has_ended(pid):
        await asyncio.wait((exit_,), timeout=_NEWS_S)


async def wait_for_exit_or(exit_: Awaitable[int], event: asyncio.Event) -> int | None:
    """Wait for the exit or the event; None when the event came first."""
    ending, happening = asyncio.ensure_future(exit_), asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((ending, happening), return_when=asyncio.FIRST_COMPLETED)
        return ending.result() if ending.done() else None
    finally:
        ending.cancel()
        happening.cancel()


async def confirm_input(child: ChildProcess, children: Children, checkpoint: Checkpoint) -> None:
    """Check, as the last step before a child gets its input, that its call is still to be run; else end the child."""
    try:
        await confirm_start(checkpoint)
    except BaseException:
        for pipe in (child.stdin, child.stdout, child.stderr):
            os.close(pipe)
        children.end(child.pid)
        raise
