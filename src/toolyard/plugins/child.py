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
- stdout may hold log lines: the last complete JSON object with a status is the answer (``protocol.plugin_output``).
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
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from toolyard.crashpoint import crashpoint
from toolyard.liveness import has_ended
from toolyard.message import Message
from toolyard.plugins.child_pipes import ChildPipes
from toolyard.plugins.child_state import ChildEvent, ChildLifecycle, ChildState
from toolyard.plugins.children import GRACE_S, Children
from toolyard.plugins.launch import ChildProcess
from toolyard.plugins.stderr import StderrRing
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifest import Limits
from toolyard.protocol.plugin_output import Output, PrintedObject
from toolyard.protocol.tool import Checkpoint, confirm_start

DRAIN_S = 1.0
SILENCE_S = 1.0  # on stdout after an answer, until it counts although the process lives on
LINGER_S = 10.0  # for a process that has answered to exit by itself
HEAD = 2048  # bytes of stdout that a failure shows
_NEWS_S = 2.0  # for the report of an exit that has happened: a fork server tells it
_LINE = 200  # characters of a noise line that a warning shows


@dataclass(frozen=True, slots=True)
class Survivors:
    """The processes of an answered call that continue; their outputs are read and discarded."""

    pid: int  # of the child that was started
    pipes: ChildPipes

    def close(self) -> None:
        """Close the pipes."""
        self.pipes.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildReport:
    """The result of one run. A child that is still alive has no exit code yet."""

    limits: Limits
    stderr: StderrRing
    answer: JsonObject | None = None
    warnings: tuple[str, ...] = ()
    noise: str = ""
    exit_code: int | None = None
    signal: int | None = None
    stdout_head: bytes = b""
    stdout_bytes: int = 0
    bad_utf8_at: int | None = None
    too_large: bool = False
    too_deep: bool = False
    overrun: bool = False  # killed because it had too many processes
    survivors_killed: bool = False  # processes of it outlived its exit, and were killed
    survivors: Survivors | None = None  # or they still run


async def confirm_input(child: ChildProcess, children: Children, checkpoint: Checkpoint) -> None:
    """Check, as the last step before a child gets its input, that its call is still to be run; else end the child."""
    try:
        await confirm_start(checkpoint)
    except BaseException:
        for pipe in (child.stdin, child.stdout, child.stderr):
            os.close(pipe)
        children.end(child.pid)
        raise


async def run_child(
    child: ChildProcess,
    stdin: bytes,
    *,
    children: Children,
    limits: Limits,
    stderr: StderrRing | None = None,
    on_first_output: Callable[[], None] | None = None,
    detached: bool = False,
    limit_s: float | None = None,
    silence_s: float | None = None,
    drain_s: float = DRAIN_S,
    grace_s: float = GRACE_S,
    linger_s: float = LINGER_S,
    head: int = HEAD,
) -> ChildReport:
    """Run a child that was just started to its end. A ``stderr`` passed in is filled even when this is cancelled.

    ``on_first_output`` is called at the first bytes on stdout; ``head`` is how much of it the report keeps as it was
    printed. Without ``silence_s`` only the exit counts. What a ``detached`` child leaves running when it has answered
    belongs to whoever gets ``survivors``. Raises TimeoutError after ``limit_s`` without an answer.
    """
    ring = StderrRing() if stderr is None else stderr
    pipes = ChildPipes(child, stdin, limits.stdout_bytes, ring, on_first_output)
    lifecycle = ChildLifecycle()
    survived = False
    try:
        code, given_up = await _wait_for_exit_or_answer(child, pipes, limit_s, silence_s)
        if lifecycle.handle(_first_event(pipes, code)) is ChildState.DRAINING:
            await pipes.drain(0 if given_up else drain_s)
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
        _clean_up(lifecycle.state, child, pipes, children, linger_s=linger_s, grace_s=grace_s)
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


def _clean_up(
    state: ChildState, child: ChildProcess, pipes: ChildPipes, children: Children, *, linger_s: float, grace_s: float
) -> None:
    """Do to a child and its pipes what its last state asks for."""
    match state:
        case ChildState.DETACHED:
            pipes.discard_output()
        case ChildState.LINGERING:
            pipes.discard_output()
            children.linger(child, linger_s, grace_s, then=pipes.close)
        case ChildState.STOPPING:
            pipes.close()
            children.stop(child, grace_s)
        case _:
            pipes.close()
            children.end(child.pid)


async def _wait_for_exit_or_answer(
    child: ChildProcess, pipes: ChildPipes, limit_s: float | None, silence_s: float | None
) -> tuple[int | None, bool]:
    """Wait for the exit, an overflow, or an answer with silence behind it. Return the exit code, None when it lives on,
    and whether its caller has given up in the moment of the exit.
    """
    loop = asyncio.get_running_loop()
    end = math.inf if limit_s is None else loop.time() + limit_s
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


def build_report(
    pipes: ChildPipes,
    output: Output,
    code: int | None,
    *,
    limits: Limits,
    stderr: StderrRing,
    overrun: bool = False,
    head: int = HEAD,
) -> ChildReport:
    """Build the report of a child that has exited with ``code``, or has answered and lives on."""
    printed = output.last
    return ChildReport(
        limits=limits,
        stderr=stderr,
        answer=printed.value if printed else None,
        warnings=(*_output_warnings(output), *_exit_warnings(printed, code)),
        noise=output.noise,
        exit_code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        stdout_head=pipes.head(head),
        stdout_bytes=output.size,
        bad_utf8_at=printed.bad_utf8_at if printed else None,
        too_deep=output.too_deep_at is not None,
        overrun=overrun,
    )


def build_overflow_report(pipes: ChildPipes, *, limits: Limits, stderr: StderrRing, head: int = HEAD) -> ChildReport:
    """Build the report of a child whose stdout is over its limit."""
    return ChildReport(
        limits=limits, stderr=stderr, stdout_head=pipes.head(head), stdout_bytes=pipes.stdout_size, too_large=True
    )


def build_receipt_report(
    pipes: ChildPipes, printed: PrintedObject, *, limits: Limits, stderr: StderrRing
) -> ChildReport:
    """Build the report of a child that has printed its receipt and lives on."""
    return ChildReport(
        limits=limits,
        stderr=stderr,
        answer=printed.value,
        warnings=printed.notes,
        noise=pipes.noise,
        stdout_head=pipes.head(HEAD),
        stdout_bytes=pipes.stdout_size,
        bad_utf8_at=printed.bad_utf8_at,
    )


def _output_warnings(output: Output) -> tuple[str, ...]:
    if output.last is None:
        return ()
    remarks = list(output.last.notes)
    if output.noise:
        first = output.noise.splitlines()[0][:_LINE]
        more = (
            Message("answer.more_noise", " (and more, {size} bytes in all)", size=output.noise_bytes)
            if output.noise_bytes > len(first.encode())
            else ""
        )
        remarks.append(
            Message(
                "answer.stdout_noise",
                "STDOUT_NOISE: stdout is for the answer only; print this to stderr: {line}{more}",
                line=first,
                more=more,
            )
        )
    if output.count > 1:
        remarks.append(
            Message(
                "answer.several_objects",
                "{count} JSON objects with a status were printed; the last one was used.",
                count=output.count,
            )
        )
    if output.last.bad_utf8_at is not None:
        remarks.append(
            Message(
                "answer.not_utf8",
                "Byte {at} of stdout is not UTF-8; what could not be read was replaced.",
                at=output.last.bad_utf8_at,
            )
        )
    return tuple(remarks)


def _exit_warnings(printed: PrintedObject | None, code: int | None) -> tuple[str, ...]:
    if printed is None:
        return ()
    if code is None:
        return (
            Message(
                "answer.did_not_exit",
                "It answered but did not exit: the answer counts, and its process is stopped {seconds:g} s later.",
                seconds=LINGER_S,
            ),
        )
    status = printed.value["status"]
    if code == 0 and status == "error":
        return (Message("answer.error_but_0", "It reported an error but exited with code 0; the report counts."),)
    if code != 0 and status != "error":
        how = (
            Message("answer.exited", "exited with code {code}", code=code)
            if code > 0
            else Message("answer.ended_by_signal", "was ended by signal {number}", number=-code)
        )
        return (
            Message(
                "answer.status_but_exit",
                "It reported {status} but {how}; the report counts.",
                status=str(status),
                how=how,
            ),
        )
    return ()
