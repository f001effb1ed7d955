"""The tools of other hosts, as tools of this one.

A tool that this host has too runs here: that needs no queue and nobody's help. There is one exception: if it has a
limit and other hosts have it too, its calls go through the queue, because only there the limit holds for all of them.

Each signal between hosts wakes exactly those who wait for it. One that was missed delays nobody for long: whoever waits
looks by themselves after a while, and at once when the store says that some were missed.
"""

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterator, Set
from contextlib import contextmanager

from toolyard.engine.clock import Clock
from toolyard.errors import StorageError
from toolyard.hosts.directory import HOSTS_CHANGED, Directory
from toolyard.hosts.queue import Queue
from toolyard.hosts.remote_calls import DONE, STOP, RemoteCalls
from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure, Reason, Status
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.remote_call import RemoteCall, RemoteCallState
from toolyard.protocol.store import SharedStore, Signal
from toolyard.protocol.tool import Checkpoint, Outcome, Result, ToolCall, ToolSpec

_log = logging.getLogger(__name__)
_AWAY_S = 1.0  # between two attempts while the database is away
_LOOK_S = 2.0  # how often a waiting call sees whether anybody is there to run it
_TRUST_S = 10.0  # how long it relies on signals alone
_STOP_S = 0.8  # what a cancelled call may still take; the runner leaves it behind after one second
NOBODY_S = 15.0  # how long a call waits for a host when the last one with its tool is gone
_OURS = frozenset({"params_input"})  # of a context: told by the sender's own runner


class SignalRouter:
    """Calls ``stop`` with the id of a call that its sender stops, and ``moved`` when a host comes or goes.

    ``missed`` is called when a signal to stop may not have been heard.
    """

    def __init__(
        self,
        store: SharedStore,
        *,
        stop: Callable[[str], object],
        moved: Callable[[], None],
        missed: Callable[[], None],
    ) -> None:
        self._stop, self._moved, self._missed = stop, moved, missed
        self._waiting: dict[str, asyncio.Event] = {}
        store.subscribe(self._handle_signal)

    @contextmanager
    def expect_end(self, call_id: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set when the call may have ended."""
        self._waiting[call_id] = ended = asyncio.Event()
        try:
            yield ended
        finally:
            del self._waiting[call_id]

    def _handle_signal(self, signal: Signal | None) -> None:
        if signal is None:
            for ended in self._waiting.values():
                ended.set()
            self._missed()
        elif signal.type == DONE:
            if waiting := self._waiting.get(signal.id):
                waiting.set()
        elif signal.type == STOP:
            self._stop(signal.id)
        elif signal.type == HOSTS_CHANGED:
            self._moved()


class RemoteTools:
    """A source of the registry, searched before those of this host. ``here`` returns this host's tool names."""

    def __init__(
        self,
        directory: Directory,
        calls: RemoteCalls,
        queue: Queue,
        signals: SignalRouter,
        clock: Clock,
        here: Callable[[], Set[str]],
        keep_process: Callable[[str, JsonObject], None],
        store_time: Callable[[], float],
    ) -> None:
        self._keep_process, self._store_time = keep_process, store_time
        self._directory, self._calls, self._queue, self._signals = directory, calls, queue, signals
        self._clock, self._here = clock, here

    def find(self, name: str) -> "RemoteTool | None":
        spec = self._directory.find_remote_tool(name)
        if spec is None or (name in self._here() and not spec.at_once):
            return None
        return RemoteTool(self, spec)

    def all(self) -> "Iterator[RemoteTool]":
        here = self._here()
        return (
            RemoteTool(self, spec) for name, spec in self._directory.list_remote_tools().items() if name not in here
        )

    def version(self) -> Hashable:
        return self._directory.version()

    async def run(self, call: ToolCall, spec: ToolSpec) -> Outcome:
        """Send a call, wait for its end. Cancelled, it takes the call back, or asks whoever runs it to stop.

        While the database is away it waits, up to the limit of the call: who said earlier that it has ended could not
        keep another host from starting it.
        """
        limit_s = spec.timeout_s if call.timeout_s is None else min(call.timeout_s, spec.timeout_s)
        until = self._clock.monotonic() + limit_s
        with self._signals.expect_end(call.id) as ended:
            try:
                await self._calls.submit(call, spec, due=self._store_time() + limit_s)
                await self._queue.put(spec.name, call.id)
                remote = await self._wait_end(call.id, spec.name, ended)
            except (asyncio.CancelledError, Failure, StorageError):
                done = await asyncio.shield(self._stop_and_wait(call.id, ended, until))
                if done is None:
                    raise
                remote = done  # it had ended before it could be stopped: what happened, happened
        self._calls.require_valid_end(remote)
        outcome = remote.to_outcome()
        if outcome.course.process is not None:
            self._keep_process(call.id, outcome.course.process)
        return outcome

    async def _wait_end(self, call_id: str, tool: str, ended: asyncio.Event) -> RemoteCall:
        """Wait for the end of a call, mostly without queries: signals tell of it, and the directory knows the hosts."""
        served = looked = self._clock.monotonic()
        while True:
            try:
                async with asyncio.timeout(_LOOK_S):
                    await ended.wait()
            except TimeoutError:
                pass
            now = self._clock.monotonic()
            if tool in self._here() or self._directory.find_remote_tool(tool):
                served = now
            if not ended.is_set() and served == now and now - looked < _TRUST_S:
                continue
            ended.clear()
            looked = now
            try:
                remote = await self._calls.get(call_id)
            except StorageError as error:
                _log.warning("%s %s waits: %s", tool, call_id, error)
                ended.set()
                await asyncio.sleep(_AWAY_S)
                continue
            if remote is None or remote.state is RemoteCallState.DONE:
                return remote or _raise_record_missing(call_id, tool)
            if remote.state is RemoteCallState.QUEUED and now - served > NOBODY_S:
                raise Failure(
                    Reason.START_FAILED,
                    Message("No host that is up has {tool} any more.", tool=tool),
                    hint=Message("Start one, or use another tool."),
                )

    async def _stop(self, call_id: str, until: float) -> RemoteCall | None:
        """Stop a call; tried again while the database is away, ``until`` no other host may start the call any more."""
        while True:
            try:
                return await self._calls.stop(call_id)
            except StorageError:
                if self._clock.monotonic() >= until:
                    raise
            await asyncio.sleep(_AWAY_S)

    async def _stop_and_wait(self, call_id: str, ended: asyncio.Event, until: float) -> RemoteCall | None:
        """Stop a call; return it if it has run to its end all the same."""
        ended.clear()
        remote = await self._stop(call_id, until)
        if remote is not None and remote.state is RemoteCallState.RUNNING:
            try:
                async with asyncio.timeout(_STOP_S):
                    await ended.wait()
                remote = await self._calls.get(call_id)
            except TimeoutError:
                return None
        has_outcome = remote is not None and remote.outcome_text is not None
        return remote if has_outcome else None


class RemoteTool:
    def __init__(self, home: RemoteTools, spec: ToolSpec) -> None:
        self._home, self._spec = home, spec

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        checkpoint()
        try:
            return to_result(await self._home.run(call, self._spec))
        except StorageError as error:
            raise Failure(
                Reason.INTERRUPTED,
                Message(
                    "{name} runs on another host, and the way there is cut ({error}). Nobody knows if it ran.",
                    name=self._spec.name,
                    error=error,
                ),
                hint=Message("Look at what it may have changed before you call it again."),
            ) from error


def to_result(outcome: Outcome) -> Result:
    """Convert an outcome of another host into the result of a tool here; a failed one raises its Failure."""
    envelope = outcome.envelope
    context = {key: value for key, value in envelope.context.items() if key not in _OURS}
    stats = {key: value for key, value in envelope.stats.items() if key != "time_ms"}
    if envelope.error is not None:
        reason = context.pop("reason", None)
        cause: ErrorCode | Reason = Reason(reason) if reason in list(Reason) else envelope.error.code
        raise Failure(
            cause,
            envelope.error.message,
            text=envelope.text,
            data=envelope.data,
            stats=stats,
            context=context,
            extras=outcome.extras,
        )
    return Result(
        data=envelope.data,
        text=envelope.text,
        partial=envelope.status is Status.PARTIAL,
        stats=stats,
        context=context,
        extras=outcome.extras,
    )


def _raise_record_missing(call_id: str, tool: str) -> RemoteCall:
    raise Failure(
        Reason.INTERRUPTED,
        Message("{tool} was sent to another host, and its record {call_id} is gone.", tool=tool, call_id=call_id),
    )
