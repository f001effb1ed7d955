"""Requests with an ``Idempotency-Key``: each runs once, even if its client leaves; repeats get the same response.

Such a request runs in a task of its own and outlives the client that sent it. A repeat joins it while it runs, from the
first piece of its response, and gets the stored response afterwards. One that runs on another host is awaited for up to
``WAIT_S``. A client that has seen the end of a response gets the same again, also after a crash of the server.

An error before any tool has run is not stored: nothing has happened, so a repeat tries again. A request that was cut
off by a shutdown, a bug or because no client was left, stays interrupted.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from toolyard.engine.idempotency import (
    Conflict,
    Finished,
    Idempotency,
    IdempotentRequest,
    InProgress,
    Interrupted,
    Started,
    StoredResponse,
)
from toolyard.engine.uncancellable import uncancellable
from toolyard.errors import StorageError
from toolyard.gateway.chat import ChatRun
from toolyard.gateway.options import CHAT_HEADER
from toolyard.gateway.sse import DONE
from toolyard.message import Message
from toolyard.own_command import OwnCommand
from toolyard.protocol.failure import Reason
from toolyard.protocol.idempotency import RequestRecord
from toolyard.web.chat_response import ChatResponse
from toolyard.web.drain import Drain
from toolyard.web.idempotency import (
    REPLAYED,
    SHOULD_RETRY,
    conflict_refusal,
    describe_calls,
    fingerprint_request,
    in_progress_refusal,
    interrupted_refusal,
    not_kept_refusal,
    require_valid_key,
    too_many_refusal,
)
from toolyard.web.recording import Recording
from toolyard.web.refusal import Refusal, error_body, internal_error

MAX_RUNS: Final = 1000
WAIT_S: Final = 55.0
_FIRST_POLL_S, _MAX_POLL_S = 0.02, 1.0
_CLOSE_S = 5.0
_log = logging.getLogger("toolyard.web")


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotentWork:
    """The work of a request; ``run`` returns its response, or the beginning of its stream."""

    run: Callable[[], Awaitable[ChatRun]]
    call: str = ""  # the id of the call that it starts,
    chat: str = ""  # or of the chat
    wait_early: Callable[[], Awaitable[ChatRun]] | None = (
        None  # returns another response, for clients that cannot wait longer
    )
    unfollowed_s: float | None = None  # seconds without a client after which it is cut off; None: never


@dataclass(eq=False, slots=True)
class _Run:
    """A request that runs on this host."""

    started: Started
    work: IdempotentWork
    response: "asyncio.Future[ChatRun]"  # the complete response, or all but the pieces of a stream
    recording: Recording = field(default_factory=Recording)  # of a stream
    is_stream: bool = False
    task: "asyncio.Task[None] | None" = field(default=None, repr=False)
    is_answered: bool = False  # its response is stored and sent to every client
    clients: int = 0
    timer: asyncio.TimerHandle | None = None  # runs while it has no client

    def add_client(self) -> None:
        self.clients += 1
        self.stop_timer()

    def remove_client(self) -> None:
        self.clients -= 1
        self.start_timer()

    def start_timer(self) -> None:
        """Start the timer that cuts off a run without clients."""
        limit_s = self.work.unfollowed_s
        if not self.clients and limit_s is not None and self.task is not None and not self.task.done():
            self.timer = asyncio.get_running_loop().call_later(limit_s, self.task.cancel)

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class IdempotentRuns:
    """The requests of this server that have a key. ``close`` interrupts those that still run."""

    def __init__(self, idempotency: Idempotency, drain: Drain, own_command: OwnCommand) -> None:
        self._idempotency, self._drain, self._own_command = idempotency, drain, own_command
        self._runs: dict[str, _Run] = {}

    async def answer(self, request: Request, key: str, caller: str, work: IdempotentWork) -> Response:
        """Answer a request with its ``work``, which runs once for all requests with this key. Raises Refusal."""
        require_valid_key(request)
        fingerprint = await fingerprint_request(request)
        keyed = IdempotentRequest(caller=caller, key=key, fingerprint=fingerprint, call=work.call, chat=work.chat)
        return ChatResponse(self._answer(keyed, work))

    async def wait_idle(self) -> None:
        """Wait until no request runs."""
        while tasks := self._list_tasks():
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """Interrupt every request that still runs; each is recorded as interrupted, and its clients get an error."""
        await asyncio.sleep(0)  # a task that is cancelled before its first step would end nothing
        tasks = self._list_tasks()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_S)

    def _list_tasks(self) -> "list[asyncio.Task[None]]":
        return [run.task for run in self._runs.values() if run.task is not None]

    async def _answer(self, request: IdempotentRequest, work: IdempotentWork) -> ChatRun:
        loop = asyncio.get_running_loop()
        deadline, poll_s = loop.time() + WAIT_S, _FIRST_POLL_S
        while (entry := await uncancellable(self._begin(request, work))) is None:
            if loop.time() >= deadline or self._drain.is_ending:
                raise in_progress_refusal()
            await asyncio.sleep(poll_s)
            poll_s = min(2 * poll_s, _MAX_POLL_S)
        return entry if isinstance(entry, ChatRun) else await self._join(*entry)

    async def _begin(self, request: IdempotentRequest, work: IdempotentWork) -> "ChatRun | tuple[_Run, bool] | None":
        """Return the stored response of a request, or its run and whether it starts now; None: it runs elsewhere."""
        if len(self._runs) >= MAX_RUNS and request.id not in self._runs:
            raise too_many_refusal(MAX_RUNS)
        match await self._idempotency.begin(request):
            case Started() as started:
                return self._start(started, work), True
            case Finished(response):
                if response is None:
                    raise not_kept_refusal()
                return _replay(response)
            case Interrupted(record):
                raise await self._interrupted_refusal(record)
            case Conflict():
                raise conflict_refusal()
            case InProgress():
                run = self._runs.get(request.id)
                return (run, False) if run else None

    def _start(self, started: Started, work: IdempotentWork) -> _Run:
        run = _Run(started, work, asyncio.get_running_loop().create_future())
        run.response.add_done_callback(lambda head: head.cancelled() or head.exception())  # also without clients
        self._runs[started.record.id] = run
        run.task = asyncio.create_task(self._run(run))
        run.start_timer()
        return run

    async def _join(self, run: _Run, is_first: bool) -> ChatRun:  # noqa: FBT001 passed as part of a tuple
        """Return the response of a running request to one of its clients."""
        pieces = _follow(run)
        await anext(pieces)  # from here on it counts as a client, until this is closed
        try:
            answer = await _wait_for_answer(run)
            if run.is_stream and not run.recording.has_beginning:
                raise not_kept_refusal()
        except BaseException:
            await pieces.aclose()
            raise
        if not is_first:
            answer = replace(answer, headers={**answer.headers, REPLAYED: "true"})
        if run.is_stream:
            return replace(answer, pieces=pieces)
        await pieces.aclose()
        return answer

    async def _run(self, run: _Run) -> None:
        try:
            await self._produce(run, await run.work.run())
        except asyncio.CancelledError:
            await uncancellable(self._interrupt(run))
        except Exception as error:  # noqa: BLE001 each client gets it
            await self._handle_error(run, error)
        finally:
            run.stop_timer()
            del self._runs[run.started.record.id]

    async def _produce(self, run: _Run, made: ChatRun) -> None:
        """Deliver a response to all clients; it is stored before they see its end."""
        if made.pieces is None:
            await uncancellable(self._deliver(run, made))
            return
        recording, end = run.recording, b""
        run.is_stream = True
        run.response.set_result(replace(made, pieces=None))
        async with aclosing(made.pieces) as pieces:
            async for piece in pieces:
                if piece.endswith(DONE):
                    end = piece
                else:
                    await recording.put(piece)
        await uncancellable(self._deliver_end(run, made, end))

    async def _deliver(self, run: _Run, made: ChatRun) -> None:
        await self._store(run, made, made.body)
        run.response.set_result(made)
        run.is_answered = True

    async def _deliver_end(self, run: _Run, made: ChatRun, end: bytes) -> None:
        recording = run.recording
        await self._store(run, made, recording.to_bytes() + end if recording.is_whole else None)
        recording.end(end)
        run.is_answered = True

    async def _store(self, run: _Run, made: ChatRun, body: bytes | None) -> None:
        """Store a response, unless it is an error and no tool has run; ``body`` is None when it is too large."""
        if made.status >= HTTPStatus.BAD_REQUEST and not await self._has_tool_run(run, made):
            await self._commit_end(run, self._idempotency.release(run.started))
            return
        headers = {**made.headers, **({CHAT_HEADER: made.id} if made.id else {})}
        is_stream = made.pieces is not None
        response = StoredResponse(status=int(made.status), headers=headers, body=body, is_stream=is_stream)
        await self._commit_end(run, self._idempotency.finish(run.started, response))

    async def _interrupt(self, run: _Run) -> None:
        """End an unfinished request: the server stops, or no client is left."""
        if run.is_answered:
            return  # at this very moment
        await self._commit_end(run, self._idempotency.interrupt(run.started))
        self._notify_failure(run, await self._interrupted_refusal(run.started.record))

    async def _handle_error(self, run: _Run, error: Exception) -> None:
        """End a request that raised; once a tool has run, clients get an error that they do not retry."""
        if await self._has_tool_run(run):
            _log.error("%s failed after a tool had run", run.started.record.id, exc_info=error)
            await self._interrupt(run)
        else:
            await self._commit_end(run, self._idempotency.release(run.started))
            self._notify_failure(run, error)

    def _notify_failure(self, run: _Run, error: Exception) -> None:
        """Pass an error to all clients, as the response or as the end of a stream."""
        if not run.response.done():
            run.response.set_exception(error)
        else:
            refusal = error if isinstance(error, Refusal) else internal_error(run.started.record.id)
            run.recording.end(b"data: %b\n\n" % error_body(refusal.status_code, refusal.detail, refusal.code))

    async def _has_tool_run(self, run: _Run, made: ChatRun | None = None) -> bool:
        """Return whether a tool of the request may have run: not one that was too busy to begin."""
        if made is not None and made.headers.get(SHOULD_RETRY) == "false":
            return True
        try:
            calls = await self._idempotency.find_calls(run.started.record)
        except StorageError:
            return True
        return any(call.reason != Reason.BUSY for call in calls)

    async def _commit_end(self, run: _Run, ending: Awaitable[bool]) -> None:
        """Commit the end of a request. Its clients get their response in any case."""
        try:
            if not await ending:
                _log.warning("%s was already ended by another host", run.started.record.id)
        except StorageError as error:
            _log.error("the end of %s is not stored, a repeat will get 'interrupted': %s", run.started.record.id, error)

    async def _interrupted_refusal(self, record: RequestRecord) -> Refusal:
        try:
            calls = await self._idempotency.find_calls(record)
        except StorageError as error:
            return interrupted_refusal(
                Message("idempotency.calls_unknown", "Its calls cannot be listed now: {error}.", error=error)
            )
        return interrupted_refusal(describe_calls(calls, self._own_command))


async def _wait_for_answer(run: _Run) -> ChatRun:
    """Wait for the response of a request, or for the one for clients that cannot wait longer."""
    if run.work.wait_early is None or run.response.done():
        return await asyncio.shield(run.response)
    early = asyncio.ensure_future(run.work.wait_early())
    try:
        await asyncio.wait({run.response, early}, return_when=asyncio.FIRST_COMPLETED)
        return run.response.result() if run.response.done() else early.result()
    finally:
        early.cancel()


async def _follow(run: _Run) -> AsyncGenerator[bytes, None]:
    """Yield an empty piece first, then every piece of a stream, to one client."""
    run.add_client()
    try:
        async with aclosing(run.recording.follow()) as pieces:
            async for piece in pieces:
                yield piece
    finally:
        run.remove_client()


def _replay(response: StoredResponse) -> ChatRun:
    """Return a stored response to send again."""
    run = ChatRun(id="", status=response.status, headers={**response.headers, REPLAYED: "true"})
    body = response.body or b""
    return replace(run, pieces=_single_piece(body)) if response.is_stream else replace(run, body=body)


async def _single_piece(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body
