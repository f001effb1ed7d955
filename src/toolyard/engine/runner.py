"""``settle``: the one way to run a tool. From top to bottom: check, permit, run, bound, journal.

Whatever happens a call ends in exactly one Outcome: a tool's Failure, its bug, its deadline and a cancel are error
envelopes, never exceptions. Each is settled in a task of its own, which only the end of the event loop cancels: when
the task that awaits ``settle`` is cancelled, the call is stopped as by any cancel, and the exception goes on after the
outcome is journalled. The wait for permission is no part of the time that a call took.

The start of a call is recorded before it runs. That of a built-in tool that reads is recorded with its end, unless it
takes longer than ``_QUICK_S``: one commit instead of two is a fifth of the time of a Read over HTTP (bench row
"deferred start").

A tool that ignores its checkpoint is left behind at the deadline; it cannot hold up its call, and the envelope says so:
it may still finish. A write that has begun by then is waited for: what has happened is told as done.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from toolyard.engine.cancellation import CancelScope, uncancellable
from toolyard.engine.clock import Clock
from toolyard.engine.history.journal import Recorder
from toolyard.engine.registry import Registry
from toolyard.errors import StorageError
from toolyard.message import Message, add_hint, join_sentences
from toolyard.process_memory import is_short_of_memory
from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.envelope import Envelope, ErrorCode, Extras, Failure, Fault, Reason, Status, is_partial
from toolyard.protocol.json import Json, JsonObject, json_problem
from toolyard.protocol.mask import Mask
from toolyard.protocol.tool import (
    ASKING_ORIGINS,
    BatchItem,
    Course,
    Outcome,
    Result,
    Risk,
    Tool,
    ToolCall,
    ToolSpec,
    confirm_start,
    describe_oversize,
    find_check,
    require_readable,
    split_batch,
)

PermitCall = Callable[[ToolCall, ToolSpec], Coroutine[Any, Any, ToolCall]]
"""Returns the call when it may run, with what it may do; raises Failure when it may not."""
FindProcess = Callable[[str], JsonObject | None]
"""Returns how the process of an ended call ran, if it had one; called once for each."""
KeepMedia = Callable[[Outcome], Awaitable[Outcome]]
"""Stores the media of an outcome where readers of its envelope can fetch them, and refers to them in its data."""
_log = logging.getLogger(__name__)
_STOP_S = 5.0  # for all calls together when the Yard closes
_LATE_S = 0.5  # a limit that is seen so much later was passed while this process stood still ...
_CATCH_UP_S = 3.0  # ... and the call has this long to read what it missed
_NO_THREAD = "can't start new thread"  # in the words of Python
_GRACE_S = 1.0  # for a stopped tool to put things in order before it is left behind
_QUICK_S = 0.1  # a call that reads for longer is recorded as running
_WRITE_GRACE_S = 20.0  # for one that writes: it heeds its checkpoint, but not amid the write itself
_LOOK_FIRST = Message("Look at what it may have changed before you call it again.")


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
        keep_media: KeepMedia | None = None,
    ) -> None:
        self._registry, self._root, self._clock = registry, root, clock
        self._journal, self._mask = journal, mask
        self._permit, self._processes, self._keep_media = permit, processes, keep_media
        self._running: dict[asyncio.Future[Outcome], _Run] = {}

    async def settle(self, call: ToolCall) -> Outcome:
        """Run one call to its end. Cancelled, it stops the call and waits until that is journalled."""
        scope = CancelScope(call.tool, self._clock, confirm=partial(self._journal.confirm, call))
        run = _Run(call, scope, self._clock)
        settling = asyncio.ensure_future(self._settle(run))
        self._running[settling] = run
        settling.add_done_callback(self._running.pop)
        try:
            return await asyncio.shield(settling)
        except asyncio.CancelledError:
            scope.cancel()
            await uncancellable(asyncio.wait({settling}))
            if settling.cancelled():  # the event loop ends, and every task with it
                await uncancellable(self._record_end(run, self._to_failed_outcome(run, scope.to_failure())))
            raise

    def find_running(self, call_id: str) -> "asyncio.Future[Outcome] | None":
        """Return the future outcome of a call that runs here."""
        return next((settling for settling, run in self._running.items() if run.call.id == call_id), None)

    def cancel(self, call_id: str) -> bool:
        """Stop a running call: it ends as CANCELLED. False when no such call is running."""
        scopes = [run.scope for run in self._running.values() if run.call.id == call_id]
        for scope in scopes:
            scope.cancel()
        return bool(scopes)

    async def stop(self) -> None:
        """Cancel every call and wait until they have ended, as CANCELLED; bounded."""
        for run in self._running.values():
            run.scope.cancel()
        if self._running:
            await asyncio.wait(set(self._running), timeout=_STOP_S)

    async def _settle(self, run: "_Run") -> Outcome:
        is_deferred = self._defers_start(run.call)
        await self._journal.record_start(run.call, deferred=is_deferred)
        attempt = asyncio.ensure_future(self._attempt(run))
        if is_deferred and not (await asyncio.wait({attempt}, timeout=_QUICK_S))[0]:
            with contextlib.suppress(StorageError):  # the end of the call will tell
                await self._journal.record_deferred_start(run.call)
        outcome = await self._record_end(run, await attempt)
        envelope = outcome.envelope
        _log.debug("%s %s: %s in %s ms", run.call.tool, run.call.id, envelope.status, envelope.stats["time_ms"])
        return outcome

    def _defers_start(self, call: ToolCall) -> bool:
        """Return whether a call can be forgotten when this process dies: it changes nothing, and asks nobody."""
        try:
            tool = self._registry.get_built_in(call.tool)
        except Exception:  # noqa: BLE001 a bug, reported when the call is checked
            return False
        return tool is not None and tool.spec.risk is Risk.READ and not tool.spec.exact_approval

    async def _record_end(self, run: "_Run", outcome: Outcome) -> Outcome:
        """Record an outcome with when it ran, how long it waited and its process; return the valid one."""
        process = self._processes(run.call.id) if self._processes else None
        masked = self._mask.log_json(process) if process else None
        course = Course(ran=run.started, waited_ms=run.waited_ms, process=masked if isinstance(masked, dict) else None)
        outcome = replace(outcome, course=course)
        return await self._journal.record_end(run.call, outcome) or outcome

    async def _attempt(self, run: "_Run") -> Outcome:
        """Return what comes of a call, or of one item of a batch, whatever happens."""
        try:
            outcome = await self._check_and_run(run)
            return outcome if self._keep_media is None else await self._keep_media(outcome)
        except Exception as error:  # noqa: BLE001 a bug of ours must still end in an envelope
            return self._to_failed_outcome(run, _to_failure(run.call, error, has_begun=run.started is not None))

    async def _check_and_run(self, run: "_Run") -> Outcome:
        """Check, permit, run and bound a call."""
        call = run.call
        try:
            tool, items = self._check(run)
            if call.origin in ASKING_ORIGINS and not run.is_item:  # the items of a batch are permitted together
                check_call(tool, call)
                call = await self._get_permission(tool, run)
            run.mark_started()
            if items is not None:
                return await self._run_batch(tool, call, items, run)
            return self._to_outcome(run, await self._run_tool(tool, replace(call, arguments=run.arguments), run.scope))
        except Failure as failure:
            return replace(self._to_failed_outcome(run, failure), arguments=run.arguments)

    def _check(self, run: "_Run") -> tuple[Tool, list[JsonObject] | None]:
        """Return the tool and, of a numbered batch, its items; the run gets its checked arguments. Raises Failure."""
        call = run.call
        if is_short_of_memory():
            raise MemoryError
        require_readable(call)
        tool = self._registry.get(call.tool)
        items = split_items(call, tool)
        if items is None and not tool.spec.verbatim:
            run.arguments = accept_arguments(tool.spec, call.arguments)
        elif problem := json_problem(call.arguments, "arguments"):
            raise Failure(
                ErrorCode.INVALID_PARAM,
                Message("{tool} cannot run: {problem}.", tool=call.tool, problem=problem),
                hint=Message("Send arguments that are JSON."),
            )
        return tool, items

    async def _get_permission(self, tool: Tool, run: "_Run") -> ToolCall:
        """Wait until the call may run, and return it with what it may do; a cancel withdraws the approval."""
        if self._permit is None:
            return run.call
        with run.exclude_wait():
            run.scope()
            asking = asyncio.ensure_future(self._permit(run.call, tool.spec))
            if not await _wait_done(asking, run.scope, None):
                asking.cancel()
                await asyncio.wait({asking}, timeout=_GRACE_S)
                raise run.scope.to_failure()
            return asking.result()

    async def _run_tool(self, tool: Tool, call: ToolCall, scope: CancelScope) -> Result:
        limit = tool.spec.timeout_s if call.timeout_s is None else min(call.timeout_s, tool.spec.timeout_s)
        scope = scope.with_timeout(limit)
        await confirm_start(scope)
        task = asyncio.ensure_future(tool.run(call, scope))
        if not await _wait_done(task, scope, limit):
            failure = scope.expire()
            if not await _cancel_run(task, _WRITE_GRACE_S if tool.spec.risk is Risk.WRITE else _GRACE_S):
                raise failure if task.done() else scope.to_unstopped_failure()
        if task.cancelled():  # by itself
            scope.cancel()
            raise scope.to_failure()
        return task.result()  # also of a tool that was done before it could be stopped: what happened, happened

    async def _run_batch(self, tool: Tool, call: ToolCall, items: list[JsonObject], run: "_Run") -> Outcome:
        """Run the items of a batch in order; a failed item does not stop the rest, a cancel does."""
        done: list[BatchItem] = []
        for number, arguments in enumerate(items, 1):
            single = replace(call, id=f"{call.id}#{number}", arguments=arguments)
            outcome = await self._attempt(_Run(single, run.scope, self._clock, is_item=True))
            own = outcome.extras.reads
            reads = tool.spec.risk is Risk.READ if own is None else own
            done.append(BatchItem(call=single, outcome=outcome, reads=reads))
        result, fault = _combine_items(done)
        return replace(self._to_outcome(run, result, fault), batch=tuple(done))

    def _to_outcome(self, run: "_Run", result: Result, fault: Fault | None = None) -> Outcome:
        partial = result.partial or is_partial(result.data)
        measured: Mapping[str, int | float | str] = {"time_ms": run.time_ms}
        envelope = Envelope(
            status=Status.ERROR if fault else Status.PARTIAL if partial else Status.SUCCESS,
            data=result.data,
            text=self._mask.text(result.text),
            error=fault,
            stats={**measured, **result.stats, **measured},  # first, and never the tool's own word
            context=self._build_context(run.call.arguments, result.context),
        )
        return Outcome(envelope=envelope, root=self._root, arguments=run.arguments, extras=result.extras)

    def _to_failed_outcome(self, run: "_Run", failure: Failure) -> Outcome:
        arguments = run.call.arguments
        context = {**failure.context, **({"reason": failure.reason.value} if failure.reason else {})}
        problem = json_problem(arguments, "arguments") or describe_oversize(arguments)
        envelope = Envelope(
            status=Status.ERROR,
            data=failure.data,
            text=self._mask.text(add_hint(failure.text or failure.message, failure.hint)),
            error=Fault(failure.code, self._mask.text(failure.message)),
            stats={"time_ms": run.time_ms, **failure.stats},
            context=self._build_context({"unreadable": problem} if problem else arguments, context),
        )
        return Outcome(envelope=envelope, root=self._root, arguments=arguments, extras=failure.extras)

    def _build_context(self, echo: Json, extra: JsonObject) -> JsonObject:
        return {"cwd": ".", "params_input": self._mask.json(echo), **extra}


class _Run:
    """One call on its way, with its cancel scope and its stopwatch."""

    def __init__(self, call: ToolCall, scope: CancelScope, clock: Clock, *, is_item: bool = False) -> None:
        self.call, self.scope, self.is_item = call, scope, is_item
        self.arguments = call.arguments  # as the tool gets them, once they are checked
        self.started: float | None = None  # when its tool began, in seconds since 1970
        self._clock, self._began, self._waited = clock, clock.monotonic(), 0.0

    @contextlib.contextmanager
    def exclude_wait(self) -> Iterator[None]:
        since = self._clock.monotonic()
        try:
            yield
        finally:
            self._waited += max(0.0, self._clock.monotonic() - since)

    def mark_started(self) -> None:
        """Note that the tool begins."""
        self.started = self._clock.now().timestamp()

    @property
    def time_ms(self) -> float:
        return _to_ms(self._clock.monotonic() - self._began - self._waited)

    @property
    def waited_ms(self) -> float:
        return _to_ms(self._waited)


def _to_ms(seconds: float) -> float:
    return round(max(0.0, seconds) * 1000, 3)


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


def _combine_items(items: Sequence[BatchItem]) -> tuple[Result, Fault | None]:
    """Combine the outcomes of all items into one result; a fault only when none of them succeeded."""
    envelopes = [item.outcome.envelope for item in items]
    failed: list[Json] = [
        {"item": str(number), **envelope.error.to_dict()}
        for number, envelope in enumerate(envelopes, 1)
        if envelope.error
    ]
    good = len(items) - len(failed)
    numbered = enumerate(envelopes, 1)
    remarks = [
        Message("({number}) {text}", number=number, text=envelope.text)
        for number, envelope in numbered
        if envelope.status is not Status.SUCCESS
    ]
    finished = Message(
        "Batch of {count} finished: {good} succeeded, {bad} failed.", count=len(items), good=good, bad=len(failed)
    )
    text = join_sentences(finished, *remarks)
    data: JsonObject = {"results": [envelope.data for envelope in envelopes]}
    if failed:
        data["failed_items"] = failed
    partial = any(envelope.status is not Status.SUCCESS for envelope in envelopes)
    result = Result(data=data, text=text, partial=partial, extras=_find_action(items))
    return result, None if good else envelopes[0].error


def _find_action(items: Sequence[BatchItem]) -> Extras:
    """Return the special action of a batch: a client can do one, and the last is what it is left with."""
    asked = [item.outcome.extras for item in items if item.outcome.extras.action is not None]
    return Extras(action=asked[-1].action, payload=asked[-1].payload) if asked else Extras()


def _to_failure(call: ToolCall, error: Exception, *, has_begun: bool) -> Failure:
    """Return the failure of a call that was ended by this process: for want of its state or memory, or by a bug."""
    if isinstance(error, StorageError):
        _log.error("%s %s: %s", call.tool, call.id, error)
        if has_begun:
            return Failure(
                Reason.INTERRUPTED,
                Message(
                    "{tool} was cut off, because the state could not be read or written ({error}): "
                    "what it had done by then is not known.",
                    tool=call.tool,
                    error=error,
                ),
                hint=_LOOK_FIRST,
            )
        return Failure(
            Reason.START_FAILED,
            Message(
                "{tool} was not run, because the state cannot be read or written ({error}).",
                tool=call.tool,
                error=error,
            ),
            hint=Message("Call it again when that is mended."),
        )
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and str(error) == _NO_THREAD):
        _log.error("%s %s: the server is short of memory", call.tool, call.id)
        if has_begun:
            text = Message("{tool} was cut off: the server is out of memory.", tool=call.tool)
            return Failure(Reason.INTERRUPTED, text, hint=_LOOK_FIRST)
        text = Message("{tool} was not run: the server is short of memory.", tool=call.tool)
        return Failure(Reason.BUSY, text, hint=Message("Try again later."))
    _log.error("%s failed on call %s", call.tool, call.id, exc_info=error)
    bug = Message(
        "Toolyard has a bug: {tool} raised {error}.",
        tool=call.tool,
        error=f"{type(error).__name__}: {error}".rstrip(": "),
    )
    return Failure(ErrorCode.INTERNAL_ERROR, bug, hint=Message("Please report it; the same call will fail again."))


def check_call(tool: Tool, call: ToolCall) -> None:
    """Raise Failure unless the tool would begin this call, and every item of it when it is a batch.

    This comes before an approval is asked for: nobody should approve what cannot run as shown.
    One bad item refuses the whole batch: what is approved is approved as one.
    """
    items = split_items(call, tool)
    if items is None:
        _check_one(tool, call)
        return
    for number, arguments in enumerate(items, 1):
        try:
            _check_one(tool, replace(call, arguments=arguments))
        except Failure as failure:
            raise Failure(
                ErrorCode.INVALID_PARAM,
                Message("Item {number} of the batch: {message}", number=number, message=failure.message),
                hint=join_sentences(failure.hint, Message("Nothing of the batch was run.")),
            ) from failure


def _check_one(tool: Tool, call: ToolCall) -> None:
    arguments = call.arguments if tool.spec.verbatim else accept_arguments(tool.spec, call.arguments)
    if (check := find_check(tool)) is not None:
        check(replace(call, arguments=arguments))


def split_items(call: ToolCall, tool: Tool) -> list[JsonObject] | None:
    """Split a numbered batch into the arguments of its items; None when it is a single call."""
    if not tool.spec.splits_batches or not all(isinstance(name, str) for name in call.arguments):
        return None  # a name that is no text is refused with the arguments
    return split_batch(call.arguments, (*tool.spec.parameter_names, *tool.spec.synonyms))
