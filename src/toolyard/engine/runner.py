"""``settle``: the one way to run a tool.

Resolve, check the arguments, get permission, run under a deadline, time, catch, make the envelope, journal. Whatever
happens a call ends in exactly one Outcome: a tool's Failure, its bug, its deadline and a cancel are error envelopes,
never exceptions. Each is settled in a task of its own, which only the end of the event loop cancels: when the task that
awaits ``settle`` is cancelled, the call is stopped as by any cancel, and the exception goes on after the outcome is
journalled. The wait for permission is no part of the time that a call took.
A tool that ignores its checkpoint is left behind at the deadline; it cannot hold up its call, and the envelope says so:
it may still finish. A write that has begun by then is waited for: what has happened is told as done.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from toolyard.engine.approvals import ASKED
from toolyard.engine.batch import items_of, together
from toolyard.engine.check import check_call
from toolyard.engine.clock import Clock
from toolyard.engine.journal import Recorder
from toolyard.engine.masking import Mask
from toolyard.engine.media import MediaKeeper, Save
from toolyard.engine.registry import Registry
from toolyard.engine.stop import Stop
from toolyard.engine.stopwatch import Stopwatch
from toolyard.engine.straight import Straight
from toolyard.engine.whole import whole
from toolyard.errors import StorageError
from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.call import ToolCall, describe_oversize, require_readable
from toolyard.protocol.envelope import Envelope, ErrorCode, Fault, Status, is_partial
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import Json, JsonObject, json_problem
from toolyard.protocol.outcome import BatchItem, Course, Outcome, Result
from toolyard.protocol.tool import Risk, Tool, ToolSpec, confirm_start

Permit = Callable[[ToolCall, ToolSpec], Awaitable[ToolCall]]
"""Returns the call when it may run, with what it may do; raises Failure when it may not."""
Processes = Callable[[str], JsonObject | None]
"""How the process of a call ran that has just ended, if it had one; asked once."""
Run = Callable[[Tool, ToolCall, Stop], Awaitable[Result]]

_log = logging.getLogger(__name__)
_STOP_S = 5.0  # for all calls together when the Yard closes
_GRACE_S = 1.0  # for a stopped tool to put things in order before it is left behind
_WRITE_GRACE_S = 20.0  # for one that writes: it heeds its checkpoint, but not amid the write itself


class Runner:
    def __init__(
        self,
        registry: Registry,
        *,
        root: str,
        clock: Clock,
        journal: Recorder,
        mask: Mask,
        permit: Permit | None = None,
        processes: Processes | None = None,
        save_media: Save | None = None,
    ) -> None:
        self._media = MediaKeeper(save_media)
        self._registry, self._root, self._clock = registry, root, clock
        self._permit, self._processes = permit, processes
        self._journal, self._mask = journal, mask
        self._running: dict[asyncio.Future[Outcome], tuple[str, Stop]] = {}

    async def settle(self, call: ToolCall) -> Outcome:
        """Run one call to its end. Cancelled, it stops the call and waits until that is journalled."""
        watch = Stopwatch(self._clock)
        stop = Stop(call.tool, self._clock, confirm=partial(self._journal.confirm, call))
        tool = self._straight(call)
        work = self._settle(call, watch, stop, self._run) if tool is None else self._pass(call, watch, stop, tool)
        run = asyncio.ensure_future(work)
        self._running[run] = call.id, stop
        run.add_done_callback(self._running.pop)
        try:
            return await asyncio.shield(run)
        except asyncio.CancelledError:
            stop.cancel()
            await whole(asyncio.wait({run}))
            if run.cancelled():  # the event loop ends, and every task with it
                ended = self._told(call, watch, self._failed(call, stop.failure(), watch))
                await whole(self._journal.finished(call, ended))
            raise

    def _straight(self, call: ToolCall) -> Tool | None:
        """The tool of a call that has nothing to wait for."""
        if call.origin in ASKED or not self._journal.straight:
            return None
        try:
            require_readable(call)
            tool = self._registry.built_in(call.tool)
            return tool if tool is not None and tool.spec.straight and items_of(call, tool) is None else None
        except Failure:
            return None  # told when it is settled

    async def _pass(self, call: ToolCall, watch: Stopwatch, stop: Stop, tool: Tool) -> Outcome:
        """Straight through a thread, as far as that keeps to its deadline."""
        limit = _limit(call, tool)
        stop = stop.within(limit)
        run = Straight(self._settle(call, watch, stop, _at_once))
        if await run.ended(limit, unless=stop.asked):
            return run.result()
        failure = stop.expire()
        began = not run.withdraw()
        if began and await run.ended(_grace_s(tool)):
            return run.result()
        if began:
            failure = stop.failure_unstopped()
        else:
            await self._journal.started(call)
        outcome = self._told(call, watch, self._failed(call, failure, watch))
        kept = await self._journal.finished(call, outcome)
        if kept is None and began and await run.ended(_GRACE_S):
            return run.result()  # it was told in this very moment
        return kept or outcome  # of its thread nobody hears any more

    async def _settle(self, call: ToolCall, watch: Stopwatch, stop: Stop, run: Run) -> Outcome:
        await self._journal.started(call)
        outcome = self._told(call, watch, await self._attempt(call, watch, stop, run))
        outcome = await self._journal.finished(call, outcome) or outcome
        envelope = outcome.envelope
        _log.debug("%s %s: %s in %s ms", call.tool, call.id, envelope.status, envelope.stats["time_ms"])
        return outcome

    def _told(self, call: ToolCall, watch: Stopwatch, outcome: Outcome) -> Outcome:
        """With how it went."""
        process = self._processes(call.id) if self._processes else None
        masked = self._mask.log_json(process) if process else None
        course = Course(ran=watch.ran, waited_ms=watch.waited_ms, process=masked if isinstance(masked, dict) else None)
        return replace(outcome, course=course)

    def cancel(self, call_id: str) -> bool:
        """Stop a running call: it ends as CANCELLED. False when no such call is running."""
        stops = [stop for own, stop in self._running.values() if own == call_id]
        for stop in stops:
            stop.cancel()
        return bool(stops)

    async def stop(self) -> None:
        """Cancel every call and wait until they have ended, as CANCELLED; bounded."""
        for _, stop in self._running.values():
            stop.cancel()
        if self._running:
            await asyncio.wait(set(self._running), timeout=_STOP_S)

    async def _attempt(self, call: ToolCall, watch: Stopwatch, stop: Stop, run: Run) -> Outcome:
        arguments = call.arguments
        try:
            require_readable(call)
            tool = self._registry.get(call.tool)
            items = items_of(call, tool)
            if items is None and not tool.spec.verbatim:
                arguments = accept_arguments(tool.spec, call.arguments)
            else:
                _require_json(call)
            if call.origin in ASKED and "#" not in call.id:  # the items of a batch are permitted together
                check_call(tool, call)
                with watch.waiting():
                    call = await self._permission(call, tool.spec, stop)
            watch.runs()
            if items is not None:
                return await self._batch(call, tool, items, watch, stop)
            result = await run(tool, replace(call, arguments=arguments), stop)
            data, extras, warnings = await self._media.keep(result.data, result.extras)
            context = _add_warnings(result.context, warnings)
            return self._done(call, arguments, replace(result, data=data, extras=extras, context=context), watch)
        except Failure as failure:
            failure.data, failure.extras, warnings = await self._media.keep(failure.data, failure.extras)
            failure.context = _add_warnings(failure.context, warnings)
            return replace(self._failed(call, failure, watch), arguments=arguments)
        except StorageError as error:
            _log.error("%s %s: %s", call.tool, call.id, error)
            return self._failed(call, _storage_failure(call, error, has_begun=watch.ran is not None), watch)
        except Exception as error:  # noqa: BLE001 a bug of ours must still end in an envelope
            _log.exception("%s failed on call %s", call.tool, call.id)
            bug = f"Toolyard has a bug: {call.tool} raised {type(error).__name__}: {error}".rstrip(": ")
            hint = "Please report it; the same call will fail again."
            return self._failed(call, Failure(ErrorCode.INTERNAL_ERROR, f"{bug}.", hint=hint), watch)

    async def _permission(self, call: ToolCall, spec: ToolSpec, stop: Stop) -> ToolCall:
        """Wait until the call may run; a cancel ends the wait, and with it the question."""
        if self._permit is None:
            return call
        stop()
        asking = asyncio.ensure_future(self._permit(call, spec))
        if not await _first(asking, stop, None):
            asking.cancel()
            await asyncio.wait({asking}, timeout=_GRACE_S)
            raise stop.failure()
        return asking.result()

    async def _run(self, tool: Tool, call: ToolCall, stop: Stop) -> Result:
        limit = _limit(call, tool)
        stop = stop.within(limit)
        await confirm_start(stop)
        task = asyncio.ensure_future(tool.run(call, stop))
        if not await _first(task, stop, limit):
            failure = stop.expire()
            if not await _end(task, _grace_s(tool)):
                raise failure if task.done() else stop.failure_unstopped()
        if task.cancelled():  # by itself
            stop.cancel()
            raise stop.failure()
        return task.result()  # also of a tool that was done before it could be stopped: what happened, happened

    async def _batch(
        self, call: ToolCall, tool: Tool, items: list[JsonObject], watch: Stopwatch, stop: Stop
    ) -> Outcome:
        """One after the other, in order; a failed item does not stop the rest, a cancel does."""
        done: list[BatchItem] = []
        for number, arguments in enumerate(items, 1):
            single = replace(call, id=f"{call.id}#{number}", arguments=arguments)
            outcome = await self._attempt(single, Stopwatch(self._clock), stop, self._run)
            own = outcome.extras.reads
            reads = tool.spec.risk is Risk.READ if own is None else own
            done.append(BatchItem(call=single, outcome=outcome, reads=reads))
        result, fault = together(done)
        return replace(self._done(call, call.arguments, result, watch, fault), batch=tuple(done))

    def _done(
        self, call: ToolCall, arguments: JsonObject, result: Result, watch: Stopwatch, fault: Fault | None = None
    ) -> Outcome:
        partial = result.partial or is_partial(result.data)
        measured: Mapping[str, int | float | str] = {"time_ms": watch.time_ms}
        envelope = Envelope(
            status=Status.ERROR if fault else Status.PARTIAL if partial else Status.SUCCESS,
            data=result.data,
            text=self._mask.text(result.text),
            error=fault,
            stats={**measured, **result.stats, **measured},  # first, and never the tool's own word
            context=self._context(call.arguments, result.context),
        )
        return Outcome(envelope=envelope, root=self._root, arguments=arguments, extras=result.extras)

    def _failed(self, call: ToolCall, failure: Failure, watch: Stopwatch) -> Outcome:
        context = {**failure.context, **({"reason": failure.reason.value} if failure.reason else {})}
        envelope = Envelope(
            status=Status.ERROR,
            data=failure.data,
            text=self._mask.text(failure.text or _sentences(failure.message, failure.hint)),
            error=Fault(failure.code, self._mask.text(failure.message)),
            stats={"time_ms": watch.time_ms, **failure.stats},
            context=self._context(_echo(call.arguments), context),
        )
        return Outcome(envelope=envelope, root=self._root, arguments=call.arguments, extras=failure.extras)

    def _context(self, echo: Json, extra: JsonObject) -> JsonObject:
        return {"cwd": ".", "params_input": self._mask.json(echo), **extra}


def _add_warnings(context: JsonObject, warnings: list[str]) -> JsonObject:
    if not warnings:
        return context
    earlier = context.get("warnings")
    return {**context, "warnings": [*(earlier if isinstance(earlier, list) else []), *warnings]}


async def _at_once(tool: Tool, call: ToolCall, stop: Stop) -> Result:
    return await tool.run(call, stop)


async def _first(work: "asyncio.Future[Any]", stop: Stop, seconds: float | None) -> bool:
    """Wait so long, or until the call is cancelled; whether the work was done before."""
    either: set[asyncio.Future[Any]] = {work, stop.asked}
    await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    return work.done()


async def _end(task: "asyncio.Future[Result]", grace_s: float) -> bool:
    """Ask a run to end and give it a moment. True when it was done all the same; else nobody hears of it any more."""
    task.cancel()
    await asyncio.wait({task}, timeout=grace_s)
    if task.done() and not task.cancelled():
        return task.exception() is None
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return False


def _grace_s(tool: Tool) -> float:
    return _WRITE_GRACE_S if tool.spec.risk is Risk.WRITE else _GRACE_S


def _storage_failure(call: ToolCall, error: StorageError, *, has_begun: bool) -> Failure:
    """What becomes of a call when the state cannot be read or written on the way."""
    if has_begun:
        message = f"{call.tool} was cut off, because the state could not be read or written ({error}): what it had "
        return Failure(
            Reason.INTERRUPTED,
            f"{message}done by then is not known.",
            hint="Look at what it may have changed before you call it again.",
        )
    return Failure(
        Reason.START_FAILED,
        f"{call.tool} was not run, because the state cannot be read or written ({error}).",
        hint="Call it again when that is mended.",
    )


def _limit(call: ToolCall, tool: Tool) -> float:
    return tool.spec.timeout_s if call.timeout_s is None else min(call.timeout_s, tool.spec.timeout_s)


def _sentences(message: str, hint: str) -> str:
    ended = message.endswith((".", "!", "?", "。", "»")) or not hint
    return f"{message}{'' if ended else '.'} {hint}".strip()


def _require_json(call: ToolCall) -> None:
    problem = json_problem(call.arguments, "arguments")
    if problem:
        raise Failure(
            ErrorCode.INVALID_PARAM, f"{call.tool} cannot run: {problem}.", hint="Send arguments that are JSON."
        )


def _echo(arguments: JsonObject) -> Json:
    """The caller's arguments as sent; what JSON cannot carry, or is too large, is described instead."""
    problem = json_problem(arguments, "arguments") or describe_oversize(arguments)
    return {"unreadable": problem} if problem else arguments
