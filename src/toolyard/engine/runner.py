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
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from toolyard.engine.batch import combine_items, split_items
from toolyard.engine.cancel_scope import CancelScope
from toolyard.engine.check import check_call
from toolyard.engine.clock import Clock
from toolyard.engine.inline import InlineRun, advance, go_to_event_loop, is_on_event_loop
from toolyard.engine.journal import Recorder
from toolyard.engine.masking import Mask
from toolyard.engine.media import MediaKeeper, SaveMedia
from toolyard.engine.registry import Registry
from toolyard.engine.stopwatch import Stopwatch
from toolyard.engine.uncancellable import uncancellable
from toolyard.errors import StorageError
from toolyard.message import Message, add_hint
from toolyard.process_memory import is_short_of_memory
from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.call import ASKING_ORIGINS, ToolCall, describe_oversize, require_readable
from toolyard.protocol.envelope import Envelope, ErrorCode, Fault, Status, is_partial
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import Json, JsonObject, json_problem
from toolyard.protocol.outcome import BatchItem, Course, Outcome, Result
from toolyard.protocol.tool import Risk, Tool, ToolSpec, confirm_start

PermitCall = Callable[[ToolCall, ToolSpec], Coroutine[Any, Any, ToolCall]]
"""Returns the call when it may run, with what it may do; raises Failure when it may not."""
FindProcess = Callable[[str], JsonObject | None]
"""Returns how the process of an ended call ran, if it had one; called once for each."""

_log = logging.getLogger(__name__)
_STOP_S = 5.0  # for all calls together when the Yard closes
_LATE_S = 0.5  # a limit that is seen so much later was passed while this process stood still ...
_CATCH_UP_S = 3.0  # ... and the call has this long to read what it missed
_NO_THREAD = "can't start new thread"  # in the words of Python
_GRACE_S = 1.0  # for a stopped tool to put things in order before it is left behind
_QUICK_S = 0.1  # a call that reads for longer is recorded as running
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
        permit: PermitCall | None = None,
        processes: FindProcess | None = None,
        save_media: SaveMedia | None = None,
    ) -> None:
        self._media = MediaKeeper(save_media)
        self._registry, self._root, self._clock = registry, root, clock
        self._permit, self._processes = permit, processes
        self._journal, self._mask = journal, mask
        self._running: dict[asyncio.Future[Outcome], tuple[str, CancelScope]] = {}

    async def settle(self, call: ToolCall) -> Outcome:
        """Run one call to its end. Cancelled, it stops the call and waits until that is journalled."""
        watch = Stopwatch(self._clock)
        scope = CancelScope(call.tool, self._clock, confirm=partial(self._journal.confirm, call))
        checked = self._check_inline(call)
        if checked is None or isinstance(checked, Failure):
            work = self._settle(call, watch, scope, checked)
        else:
            work = self._settle_inline(call, watch, scope, checked)
        run = asyncio.ensure_future(work)
        self._running[run] = call.id, scope
        run.add_done_callback(self._running.pop)
        try:
            return await asyncio.shield(run)
        except asyncio.CancelledError:
            scope.cancel()
            await uncancellable(asyncio.wait({run}))
            if run.cancelled():  # the event loop ends, and every task with it
                ended = self._add_course(call, watch, self._to_failed_outcome(call, scope.to_failure(), watch))
                await uncancellable(self._journal.record_end(call, ended))
            raise

    def _check_inline(self, call: ToolCall) -> Tool | Failure | None:
        """Return the tool of a call that can begin inline, or the failure of the call; None when it cannot."""
        if not self._journal.runs_inline:
            return None
        asks = call.origin in ASKING_ORIGINS
        try:
            require_readable(call)
            tool = self._registry.get(call.tool) if asks else self._registry.get_built_in(call.tool)
            if tool is None or not (asks or tool.spec.runs_inline) or split_items(call, tool) is not None:
                return None
            if asks:
                check_call(tool, call)
        except Failure as failure:
            return failure
        except Exception:  # noqa: BLE001 a bug, reported when the call is settled
            return None
        return tool

    async def _settle_inline(self, call: ToolCall, watch: Stopwatch, scope: CancelScope, tool: Tool) -> Outcome:
        """Settle a call that begins inline; an inline tool that ignores its deadline is left behind."""
        limit = grace_s = None
        if tool.spec.runs_inline:
            limit, grace_s = _timeout_s(call, tool), _grace_s(tool)
            scope = scope.with_timeout(limit)
        run = InlineRun(self._settle(call, watch, scope, tool))
        if _defers_start(tool) and limit is not None and limit > _QUICK_S:
            limit -= _QUICK_S
            if not await run.wait_left(_QUICK_S, unless=scope.cancelled):
                with contextlib.suppress(StorageError):  # the end of the call will tell
                    await self._journal.record_deferred_start(call)
        if await run.wait_left(limit, unless=scope.cancelled):
            return await run.result()
        failure = scope.expire()
        began = not run.withdraw()
        if began and await run.wait_left(grace_s):
            return await run.result()
        if began:
            failure = scope.to_unstopped_failure()
        else:
            await self._journal.record_start(call)
        outcome = self._add_course(call, watch, self._to_failed_outcome(call, failure, watch))
        recorded = await self._journal.record_end(call, outcome)
        if recorded is None and began and await run.wait_left(_GRACE_S):
            return await run.result()  # its end was recorded in this very moment
        return recorded or outcome  # the thread's own result is dropped

    async def _settle(
        self, call: ToolCall, watch: Stopwatch, scope: CancelScope, checked: Tool | Failure | None
    ) -> Outcome:
        await self._journal.record_start(call, deferred=_defers_start(checked))
        outcome = self._add_course(call, watch, await self._attempt(call, watch, scope, checked))
        outcome = await self._journal.record_end(call, outcome) or outcome
        envelope = outcome.envelope
        _log.debug("%s %s: %s in %s ms", call.tool, call.id, envelope.status, envelope.stats["time_ms"])
        return outcome

    def _add_course(self, call: ToolCall, watch: Stopwatch, outcome: Outcome) -> Outcome:
        """Add to an outcome when it ran, how long it waited, and its process."""
        process = self._processes(call.id) if self._processes else None
        masked = self._mask.log_json(process) if process else None
        course = Course(
            ran=watch.started, waited_ms=watch.waited_ms, process=masked if isinstance(masked, dict) else None
        )
        return replace(outcome, course=course)

    def find_running(self, call_id: str) -> "asyncio.Future[Outcome] | None":
        """Return the future outcome of a call that runs here."""
        return next((run for run, (own, _) in self._running.items() if own == call_id), None)

    def cancel(self, call_id: str) -> bool:
        """Stop a running call: it ends as CANCELLED. False when no such call is running."""
        scopes = [scope for own, scope in self._running.values() if own == call_id]
        for scope in scopes:
            scope.cancel()
        return bool(scopes)

    async def stop(self) -> None:
        """Cancel every call and wait until they have ended, as CANCELLED; bounded."""
        for _, scope in self._running.values():
            scope.cancel()
        if self._running:
            await asyncio.wait(set(self._running), timeout=_STOP_S)

    async def _attempt(
        self, call: ToolCall, watch: Stopwatch, scope: CancelScope, checked: Tool | Failure | None = None
    ) -> Outcome:
        """Run a call; ``checked`` is its tool, or its failure, when it was checked before."""
        arguments = call.arguments
        try:
            if isinstance(checked, Failure):
                raise checked
            if is_short_of_memory():
                raise MemoryError
            require_readable(call)
            tool = checked or self._registry.get(call.tool)
            items = split_items(call, tool)
            if items is None and not tool.spec.verbatim:
                arguments = accept_arguments(tool.spec, call.arguments)
            else:
                _require_json(call)
            if call.origin in ASKING_ORIGINS and "#" not in call.id:  # the items of a batch are permitted together
                if checked is None:
                    check_call(tool, call)
                with watch.exclude_wait():
                    call = await self._wait_permission(call, tool.spec, scope)
            watch.mark_started()
            if items is not None:
                return await self._run_batch(call, tool, items, watch, scope)
            result = await self._run(tool, replace(call, arguments=arguments), scope)
            data, extras, warnings = await self._media.keep(result.data, result.extras)
            context = _add_warnings(result.context, warnings)
            return self._to_outcome(call, arguments, replace(result, data=data, extras=extras, context=context), watch)
        except Failure as failure:
            failure.data, failure.extras, warnings = await self._media.keep(failure.data, failure.extras)
            failure.context = _add_warnings(failure.context, warnings)
            return replace(self._to_failed_outcome(call, failure, watch), arguments=arguments)
        except StorageError as error:
            _log.error("%s %s: %s", call.tool, call.id, error)
            return self._to_failed_outcome(
                call, _storage_failure(call, error, has_begun=watch.started is not None), watch
            )
        except Exception as error:  # noqa: BLE001 a bug of ours must still end in an envelope
            if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and str(error) == _NO_THREAD):
                _log.error("%s %s: the server is short of memory", call.tool, call.id)
                return self._to_failed_outcome(call, _memory_failure(call, has_begun=watch.started is not None), watch)
            _log.exception("%s failed on call %s", call.tool, call.id)
            bug = Message(
                "call.bug",
                "Toolyard has a bug: {tool} raised {error}.",
                tool=call.tool,
                error=f"{type(error).__name__}: {error}".rstrip(": "),
            )
            hint = Message("hint.report_bug", "Please report it; the same call will fail again.")
            return self._to_failed_outcome(call, Failure(ErrorCode.INTERNAL_ERROR, bug, hint=hint), watch)

    async def _wait_permission(self, call: ToolCall, spec: ToolSpec, scope: CancelScope) -> ToolCall:
        """Wait until the call may run; a cancel withdraws the approval."""
        if self._permit is None:
            return call
        scope()
        permit = self._permit(call, spec)
        if not is_on_event_loop():
            if ended := advance(permit):
                return ended.value
            await go_to_event_loop()
            await self._journal.record_deferred_start(call)
        asking = asyncio.ensure_future(permit)
        if not await _wait_done(asking, scope, None):
            asking.cancel()
            await asyncio.wait({asking}, timeout=_GRACE_S)
            raise scope.to_failure()
        return asking.result()

    async def _run(self, tool: Tool, call: ToolCall, scope: CancelScope) -> Result:
        if tool.spec.runs_inline and not is_on_event_loop():
            return await tool.run(call, scope)
        await go_to_event_loop()
        limit = _timeout_s(call, tool)
        scope = scope.with_timeout(limit)
        await confirm_start(scope)
        task = asyncio.ensure_future(tool.run(call, scope))
        if not await _wait_done(task, scope, limit):
            failure = scope.expire()
            if not await _cancel_run(task, _grace_s(tool)):
                raise failure if task.done() else scope.to_unstopped_failure()
        if task.cancelled():  # by itself
            scope.cancel()
            raise scope.to_failure()
        return task.result()  # also of a tool that was done before it could be stopped: what happened, happened

    async def _run_batch(
        self, call: ToolCall, tool: Tool, items: list[JsonObject], watch: Stopwatch, scope: CancelScope
    ) -> Outcome:
        """Run the items of a batch in order; a failed item does not stop the rest, a cancel does."""
        done: list[BatchItem] = []
        for number, arguments in enumerate(items, 1):
            single = replace(call, id=f"{call.id}#{number}", arguments=arguments)
            outcome = await self._attempt(single, Stopwatch(self._clock), scope)
            own = outcome.extras.reads
            reads = tool.spec.risk is Risk.READ if own is None else own
            done.append(BatchItem(call=single, outcome=outcome, reads=reads))
        result, fault = combine_items(done)
        return replace(self._to_outcome(call, call.arguments, result, watch, fault), batch=tuple(done))

    def _to_outcome(
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
            context=self._build_context(call.arguments, result.context),
        )
        return Outcome(envelope=envelope, root=self._root, arguments=arguments, extras=result.extras)

    def _to_failed_outcome(self, call: ToolCall, failure: Failure, watch: Stopwatch) -> Outcome:
        context = {**failure.context, **({"reason": failure.reason.value} if failure.reason else {})}
        envelope = Envelope(
            status=Status.ERROR,
            data=failure.data,
            text=self._mask.text(add_hint(failure.text or failure.message, failure.hint)),
            error=Fault(failure.code, self._mask.text(failure.message)),
            stats={"time_ms": watch.time_ms, **failure.stats},
            context=self._build_context(_echo_arguments(call.arguments), context),
        )
        return Outcome(envelope=envelope, root=self._root, arguments=call.arguments, extras=failure.extras)

    def _build_context(self, echo: Json, extra: JsonObject) -> JsonObject:
        return {"cwd": ".", "params_input": self._mask.json(echo), **extra}


def _add_warnings(context: JsonObject, warnings: list[str]) -> JsonObject:
    if not warnings:
        return context
    earlier = context.get("warnings")
    return {**context, "warnings": [*(earlier if isinstance(earlier, list) else []), *warnings]}


async def _wait_done(work: "asyncio.Future[Any]", scope: CancelScope, seconds: float | None) -> bool:
    """Wait at most ``seconds`` or until the call is cancelled; return whether the work is done.

    When this process stood still past that time, what has come meanwhile is read first.
    """
    either: set[asyncio.Future[Any]] = {work, scope.cancelled}
    time = asyncio.get_running_loop().time
    began = time()
    done, _ = await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    if not done and seconds is not None and time() - began - seconds > _LATE_S:
        await asyncio.wait(either, timeout=_CATCH_UP_S, return_when=asyncio.FIRST_COMPLETED)
    return work.done()


async def _cancel_run(task: "asyncio.Future[Result]", grace_s: float) -> bool:
    """Cancel a run and wait a moment. True when it succeeded all the same; else its result is ignored."""
    task.cancel()
    await asyncio.wait({task}, timeout=grace_s)
    if task.done() and not task.cancelled():
        return task.exception() is None
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return False


def _defers_start(checked: Tool | Failure | None) -> bool:
    """Return whether the start of a checked call is recorded with its end: it reads, or does not run at all."""
    if checked is None or isinstance(checked, Failure):
        return checked is not None
    return checked.spec.runs_inline and checked.spec.risk is Risk.READ


def _grace_s(tool: Tool) -> float:
    return _WRITE_GRACE_S if tool.spec.risk is Risk.WRITE else _GRACE_S


def _storage_failure(call: ToolCall, error: StorageError, *, has_begun: bool) -> Failure:
    """Return the failure of a call during which the state could not be read or written."""
    if has_begun:
        return Failure(
            Reason.INTERRUPTED,
            Message(
                "call.interrupted_state_unavailable",
                "{tool} was cut off, because the state could not be read or written ({error}): "
                "what it had done by then is not known.",
                tool=call.tool,
                error=error,
            ),
            hint=Message("hint.inspect_changes", "Look at what it may have changed before you call it again."),
        )
    return Failure(
        Reason.START_FAILED,
        Message(
            "call.state_unavailable",
            "{tool} was not run, because the state cannot be read or written ({error}).",
            tool=call.tool,
            error=error,
        ),
        hint=Message("hint.call_when_mended", "Call it again when that is mended."),
    )


def _memory_failure(call: ToolCall, *, has_begun: bool) -> Failure:
    """Return the failure of a call for which this process has no memory."""
    if has_begun:
        return Failure(
            Reason.INTERRUPTED,
            Message("call.out_of_memory", "{tool} was cut off: the server is out of memory.", tool=call.tool),
            hint=Message("hint.inspect_changes", "Look at what it may have changed before you call it again."),
        )
    return Failure(
        Reason.BUSY,
        Message("call.short_of_memory", "{tool} was not run: the server is short of memory.", tool=call.tool),
        hint=Message("hint.try_later", "Try again later."),
    )


def _timeout_s(call: ToolCall, tool: Tool) -> float:
    return tool.spec.timeout_s if call.timeout_s is None else min(call.timeout_s, tool.spec.timeout_s)


def _require_json(call: ToolCall) -> None:
    problem = json_problem(call.arguments, "arguments")
    if problem:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("call.cannot_run", "{tool} cannot run: {problem}.", tool=call.tool, problem=problem),
            hint=Message("hint.send_json_arguments", "Send arguments that are JSON."),
        )


def _echo_arguments(arguments: JsonObject) -> Json:
    """Return the caller's arguments as sent, or a description of arguments that are no JSON or too large."""
    problem = json_problem(arguments, "arguments") or describe_oversize(arguments)
    return {"unreadable": problem} if problem else arguments
