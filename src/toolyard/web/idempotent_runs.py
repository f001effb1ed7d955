"""Requests with an ``Idempotency-Key``: each runs once, whatever becomes of its client; repeats get the same answer.

Such a request runs in a task of its own. It outlives the client that sent it; a repeat joins it while it runs, from the
first piece of its answer, and gets the stored answer afterwards. One that runs on another host is waited for, up to
``WAIT_S``. Whoever has seen the end of an answer gets the same again, also after a crash of the server.

An error before any tool has run is not kept: nothing has happened, so a repeat tries again. A request that was cut off,
by the end of the server, by a bug or because nobody waited for it any more, is interrupted for good.
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
from toolyard.protocol.store import Record
from toolyard.web.drain import Drain
from toolyard.web.idempotency import (
    REPLAYED,
    SHOULD_RETRY,
    conflict,
    fingerprint_request,
    in_progress,
    interrupted,
    list_calls,
    not_kept,
    require_valid_key,
    too_many,
)
from toolyard.web.recording import Recording
from toolyard.web.refusal import Refusal, bug, error_body
from toolyard.web.running import Running

MAX_RUNS: Final = 1000
WAIT_S: Final = 55.0
_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.02, 1.0
_CLOSE_S = 5.0
_log = logging.getLogger("toolyard.web")


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotentWork:
    """All that a request does; ``run`` gives its answer, or the beginning of its stream."""

    run: Callable[[], Awaitable[ChatRun]]
    call: str = ""  # the id of the call that it starts,
    chat: str = ""  # or of the chat
    wait_early: Callable[[], Awaitable[ChatRun]] | None = None  # gives another answer, for whoever cannot wait longer
    unfollowed_s: float | None = None  # after which it is cut off when nobody waits for it; None: it ends by itself


@dataclass(eq=False, slots=True)
class _Run:
    """One request that runs here."""

    started: Started
    work: IdempotentWork
    head: "asyncio.Future[ChatRun]"  # the whole answer, or all but the pieces of a stream
    recording: Recording = field(default_factory=Recording)  # of a stream
    is_stream: bool = False
    task: "asyncio.Task[None] | None" = field(default=None, repr=False)
    is_answered: bool = False  # its answer is stored, and on its way to every client
    clients: int = 0
    timer: asyncio.TimerHandle | None = None  # while it has none

    def add_client(self) -> None:
        self.clients += 1
        self.stop_timer()

    def remove_client(self) -> None:
        self.clients -= 1
        self.start_timer()

    def start_timer(self) -> None:
        """Cut it off some time after the last client has left."""
        limit_s = self.work.unfollowed_s
        if not self.clients and limit_s is not None and self.task is not None and not self.task.done():
            self.timer = asyncio.get_running_loop().call_later(limit_s, self.task.cancel)

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class IdempotentRuns:
    """The requests of this server that have a key. ``close`` cuts off those that still run."""

    def __init__(self, idempotency: Idempotency, drain: Drain) -> None:
        self._idempotency, self._drain = idempotency, drain
        self._runs: dict[str, _Run] = {}

    async def answer(self, request: Request, key: str, caller: str, work: IdempotentWork) -> Response:
        """Answer a request by its ``work``, which is done once for all requests with this key. Raises Refusal."""
        require_valid_key(request)
        fingerprint = await fingerprint_request(request)
        asked = IdempotentRequest(caller=caller, key=key, fingerprint=fingerprint, call=work.call, chat=work.chat)
        return Running(self._answer(asked, work))

    async def idle(self) -> None:
        """Wait until no request runs."""
        while tasks := self._tasks():
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """Cut off every request that still runs: each is recorded as interrupted, and its clients are told."""
        await asyncio.sleep(0)  # a task that is cancelled before its first step would end nothing
        tasks = self._tasks()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_S)

    def _tasks(self) -> "list[asyncio.Task[None]]":
        return [run.task for run in self._runs.values() if run.task is not None]

    async def _answer(self, asked: IdempotentRequest, work: IdempotentWork) -> ChatRun:
        loop = asyncio.get_running_loop()
        deadline, look_s = loop.time() + WAIT_S, _FIRST_LOOK_S
        while (found := await uncancellable(self._enter(asked, work))) is None:
            if loop.time() >= deadline or self._drain.ending:
                raise in_progress()
            await asyncio.sleep(look_s)
            look_s = min(2 * look_s, _LONGEST_LOOK_S)
        return found if isinstance(found, ChatRun) else await self._join(*found)

    async def _enter(self, asked: IdempotentRequest, work: IdempotentWork) -> "ChatRun | tuple[_Run, bool] | None":
        """Return the stored answer of a request, or its run and whether that begins now; None: it runs elsewhere."""
        if len(self._runs) >= MAX_RUNS and asked.id not in self._runs:
            raise too_many(MAX_RUNS)
        match await self._idempotency.begin(asked):
            case Started() as started:
                return self._start(started, work), True
            case Finished(response):
                if response is None:
                    raise not_kept()
                return _replay(response)
            case Interrupted(record):
                raise await self._interrupted(record)
            case Conflict():
                raise conflict()
            case InProgress():
                run = self._runs.get(asked.id)
                return (run, False) if run else None

    def _start(self, started: Started, work: IdempotentWork) -> _Run:
        run = _Run(started, work, asyncio.get_running_loop().create_future())
        run.head.add_done_callback(lambda head: head.cancelled() or head.exception())  # also when nobody is left
        self._runs[started.record.id] = run
        run.task = asyncio.create_task(self._run(run))
        run.start_timer()
        return run

    async def _join(self, run: _Run, is_first: bool) -> ChatRun:  # noqa: FBT001 it is named where it is given
        """Return the answer of a request that runs, for one of its clients."""
        pieces = _follow(run)
        await anext(pieces)  # from here on it is a client, until this is closed
        try:
            answer = await _wait_for_answer(run)
            if run.is_stream and not run.recording.has_beginning:
                raise not_kept()
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
            await self._make(run, await run.work.run())
        except asyncio.CancelledError:
            await uncancellable(self._cut_off(run))
        except Exception as error:  # noqa: BLE001 each client gets it, as if it had asked alone
            await self._give_up(run, error)
        finally:
            run.stop_timer()
            del self._runs[run.started.record.id]

    async def _make(self, run: _Run, made: ChatRun) -> None:
        """Bring an answer to everybody who waits for it; it is stored before its end is seen."""
        if made.pieces is None:
            await uncancellable(self._deliver(run, made))
            return
        recording, end = run.recording, b""
        run.is_stream = True
        run.head.set_result(replace(made, pieces=None))
        async with aclosing(made.pieces) as pieces:
            async for piece in pieces:
                if piece.endswith(DONE):
                    end = piece
                else:
                    await recording.put(piece)
        await uncancellable(self._deliver_end(run, made, end))

    async def _deliver(self, run: _Run, made: ChatRun) -> None:
        await self._keep(run, made, made.body)
        run.head.set_result(made)
        run.is_answered = True

    async def _deliver_end(self, run: _Run, made: ChatRun, end: bytes) -> None:
        recording = run.recording
        await self._keep(run, made, recording.to_bytes() + end if recording.is_whole else None)
        recording.end(end)
        run.is_answered = True

    async def _keep(self, run: _Run, made: ChatRun, body: bytes | None) -> None:
        """Store an answer, unless it is an error and nothing has run; ``body`` is None when it is too large."""
        if made.status >= HTTPStatus.BAD_REQUEST and not await self._has_run(run, made):
            await self._end(run, self._idempotency.release(run.started))
            return
        headers = {**made.headers, **({CHAT_HEADER: made.id} if made.id else {})}
        is_stream = made.pieces is not None
        response = StoredResponse(status=int(made.status), headers=headers, body=body, is_stream=is_stream)
        await self._end(run, self._idempotency.finish(run.started, response))

    async def _cut_off(self, run: _Run) -> None:
        """End a request in the middle: the server stops, or nobody waits for the answer."""
        if run.is_answered:
            return  # in this very moment
        await self._end(run, self._idempotency.interrupt(run.started))
        self._fail(run, await self._interrupted(run.started.record))

    async def _give_up(self, run: _Run, error: Exception) -> None:
        """End a request that raised; once a tool has run, no client is told anything that makes it ask again."""
        if await self._has_run(run):
            _log.error("%s failed after a tool had run", run.started.record.id, exc_info=error)
            await self._cut_off(run)
        else:
            await self._end(run, self._idempotency.release(run.started))
            self._fail(run, error)

    def _fail(self, run: _Run, error: Exception) -> None:
        """Tell everybody who waits for the answer, or for the rest of it."""
        if not run.head.done():
            run.head.set_exception(error)
        else:
            refusal = error if isinstance(error, Refusal) else bug(run.started.record.id)
            run.recording.end(b"data: %b\n\n" % error_body(refusal.status_code, refusal.detail, refusal.code))

    async def _has_run(self, run: _Run, made: ChatRun | None = None) -> bool:
        """Whether a tool of the request has run, as far as anybody knows."""
        if made is not None and made.headers.get(SHOULD_RETRY) == "false":
            return True
        try:
            return bool(await self._idempotency.find_calls(run.started.record))
        except StorageError:
            return True

    async def _end(self, run: _Run, ending: Awaitable[bool]) -> None:
        """Commit the end of a request. Its clients get their answer in any case."""
        try:
            if not await ending:
                _log.warning("%s was ended by another host before", run.started.record.id)
        except StorageError as error:
            _log.error(
                "the end of %s is not stored, a repeat will be told 'interrupted': %s", run.started.record.id, error
            )

    async def _interrupted(self, record: Record) -> Refusal:
        try:
            calls = await self._idempotency.find_calls(record)
        except StorageError as error:
            return interrupted(f"Its calls cannot be listed now: {error}.")
        return interrupted(list_calls(calls))


async def _wait_for_answer(run: _Run) -> ChatRun:
    """Wait for the answer of a request, or for the one that it has for clients who cannot wait longer."""
    if run.work.wait_early is None or run.head.done():
        return await asyncio.shield(run.head)
    early = asyncio.ensure_future(run.work.wait_early())
    try:
        await asyncio.wait({run.head, early}, return_when=asyncio.FIRST_COMPLETED)
        return run.head.result() if run.head.done() else early.result()
    finally:
        early.cancel()


async def _follow(run: _Run) -> AsyncGenerator[bytes, None]:
    """Yield nothing at first, and then every piece of a stream, to one client."""
    run.add_client()
    try:
        async with aclosing(run.recording.follow()) as pieces:
            async for piece in pieces:
                yield piece
    finally:
        run.remove_client()


def _replay(response: StoredResponse) -> ChatRun:
    """A stored answer, ready to be sent once more."""
    run = ChatRun(id="", status=response.status, headers={**response.headers, REPLAYED: "true"})
    body = response.body or b""
    return replace(run, pieces=_once(body)) if response.is_stream else replace(run, body=body)


async def _once(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body
