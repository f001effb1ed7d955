"""The ``Idempotency-Key`` header: a request that has one runs once, even if its client leaves; repeats get the same.

A key gets a **single run** (``engine.chats.idempotency``). What it starts goes on without its client: a tool
call in a task of its own, a chat turn by its log (``gateway.turns.turn_log``). A repeat joins it while it runs, and
gets the stored answer afterwards. One that runs on another host is awaited for up to ``WAIT_S``. A client that has seen
the end of an answer gets the same again, also after a crash of the server.

An error before any tool has run is not stored: nothing has happened, so a repeat tries again. A request that was cut
off by a shutdown, a bug or because no client was left, stays interrupted.

Errors of requests that must not be repeated have status 400 and ``x-should-retry: false``: client libraries retry 408,
409, 429 and 5xx on their own, and some of them unknown statuses too.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Final, TypeVar

from starlette.requests import Request

from toolyard.engine.cancellation import uncancellable
from toolyard.engine.chats.idempotency import (
    MAX_RESPONSE,
    Conflict,
    Finished,
    Idempotency,
    IdempotentRequest,
    InProgress,
    Interrupted,
    RequestRecord,
    Started,
    StoredResponse,
    hash_request,
)
from toolyard.errors import StorageError
from toolyard.gateway.faults import ChatFault
from toolyard.gateway.protocols.chat import CHAT
from toolyard.gateway.turns.rendering import ClientAnswer, render_failure
from toolyard.message import Message
from toolyard.own_command import OwnCommand
from toolyard.protocol.envelope import Reason
from toolyard.protocol.records.call_record import CallRecord
from toolyard.web.refusal import Refusal, error_type
from toolyard.web.server.health import Drain

KEY: Final = "Idempotency-Key"
KEY_HELP: Final = (
    "A unique name of this request, such as a UUID: it runs once, and repeats with the same name get the same response."
)
REPLAYED: Final = "Idempotency-Replayed"
MAX_RUNS: Final = 1000
WAIT_S: Final = 55.0
_FIRST_POLL_S, _MAX_POLL_S = 0.02, 1.0
_CLOSE_S = 5.0
_SHOULD_RETRY = "x-should-retry"
_NO_RETRY = {_SHOULD_RETRY: "false"}
_RETRY_LATER = {"Retry-After": "5"}
_VALID_KEY = re.compile(r"[ -~]{1,255}")
_LARGE_BODY = 2**20  # bytes from which a body is hashed in a thread
_MAX_NAMED_CALLS = 20  # of an interrupted request
_log = logging.getLogger("toolyard.web")

T = TypeVar("T")


class IdempotentRequests:
    """The requests of this server that have a key. ``close`` interrupts the calls that still run."""

    def __init__(self, idempotency: Idempotency, drain: Drain, own_command: OwnCommand) -> None:
        self.idempotency, self.drain, self.own_command = idempotency, drain, own_command
        self._calls: dict[str, asyncio.Task[ClientAnswer]] = {}

    async def single_run(self, request: Request, caller: str, *, call: str = "", chat: str = "") -> "SingleRun":
        """Return the run of a request, whose call or chat has this id. Raises Refusal without one valid key."""
        keys = request.headers.getlist(KEY)
        if len(keys) != 1 or not _VALID_KEY.fullmatch(keys[0]):
            message = Message("send one {key} of 1 to 255 printable ASCII characters, such as a UUID", key=KEY)
            raise Refusal(HTTPStatus.BAD_REQUEST, message, code="invalid_idempotency_key")
        fingerprint = await _fingerprint_request(request)
        keyed = IdempotentRequest(caller=caller, key=keys[0], fingerprint=fingerprint, call=call, chat=chat)
        return SingleRun(self, keyed)

    async def run_call(self, single: "SingleRun", run: Callable[[], Awaitable[ClientAnswer]]) -> ClientAnswer:
        """Return the answer of a call, which runs once for all requests with its key."""

        async def start(_: Started) -> asyncio.Task[ClientAnswer]:
            task = self._calls[single.key] = asyncio.create_task(self._run(single, run))
            task.add_done_callback(lambda _: self._calls.pop(single.key))
            return task

        task = await single.find_or_start(self._calls.get, start)
        if isinstance(task, StoredResponse):
            return single.mark(ClientAnswer.from_stored(task))
        return single.mark(await asyncio.shield(task))

    async def _run(self, single: "SingleRun", run: Callable[[], Awaitable[ClientAnswer]]) -> ClientAnswer:
        answer = None
        try:
            answer = await run()
            stored = StoredResponse(status=answer.status, headers=answer.headers, body=answer.body)
            await uncancellable(single.finish(stored))
        except asyncio.CancelledError:
            if answer is not None:
                return answer  # it was stored at this very moment
            return render_failure(CHAT, await uncancellable(single.interrupt()))
        except Exception as error:
            fault = await single.fail()
            if fault is None:
                raise
            _log.error("%s failed after a tool had run", single.key, exc_info=error)
            return render_failure(CHAT, fault)
        return answer

    async def wait_idle(self) -> None:
        """Wait until no call runs."""
        while self._calls:
            await asyncio.wait(self._calls.values())

    async def close(self) -> None:
        """Interrupt every call that still runs; its clients get an error that says so."""
        await asyncio.sleep(0)  # a task that is cancelled before its first step would end nothing
        tasks = [*self._calls.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_S)


class SingleRun:
    """The one run that the key of a request gets; see ``gateway.turns.turn_keeper.SingleRun``."""

    def __init__(self, requests: IdempotentRequests, request: IdempotentRequest) -> None:
        self._idempotency, self._drain = requests.idempotency, requests.drain
        self._own_command, self._request = requests.own_command, request
        self._started: Started | None = None
        self._is_repeat = False

    @property
    def key(self) -> str:
        return self._request.id

    @property
    def chat(self) -> str:
        return self._request.chat

    def mark(self, answer: ClientAnswer) -> ClientAnswer:
        """Return the answer with a header that says so when it is that of an earlier request."""
        return replace(answer, headers={**answer.headers, REPLAYED: "true"}) if self._is_repeat else answer

    async def find_or_start(
        self, running: Callable[[str], T | None], start: Callable[[Started], Awaitable[T]]
    ) -> T | StoredResponse:
        """Return what runs under the key, what ``start`` returns when it is the first, or the stored answer."""
        loop = asyncio.get_running_loop()
        deadline, poll_s = loop.time() + WAIT_S, _FIRST_POLL_S
        while (found := await uncancellable(self._begin(running, start))) is None:
            if loop.time() >= deadline or self._drain.is_ending:
                raise _in_progress()
            await asyncio.sleep(poll_s)
            poll_s = min(2 * poll_s, _MAX_POLL_S)
        return found

    async def _begin(
        self, running: Callable[[str], T | None], start: Callable[[Started], Awaitable[T]]
    ) -> T | StoredResponse | None:
        """Return None while it runs elsewhere, or is just about to run here."""
        if self._idempotency.running_count >= MAX_RUNS and not self._idempotency.is_running_here(self.key):
            raise _too_many(MAX_RUNS)
        match await self._idempotency.begin(self._request):
            case Started() as started:
                self._started, self._is_repeat = started, False
                try:
                    return await start(started)
                except BaseException:
                    await self._end(self._idempotency.release(started))
                    raise
            case Finished(response):
                if response is None:
                    raise _not_kept()
                self._is_repeat = True
                return response
            case Interrupted(record):
                raise _interrupted(await self._describe_calls(record))
            case Conflict():
                raise _conflict()
            case InProgress():
                self._is_repeat = True
                return running(self.key)

    def refuse_late(self) -> Refusal:
        """Return the refusal of a repeat that joins a stream whose beginning is no longer kept."""
        return _not_kept()

    async def finish(self, response: StoredResponse) -> None:
        """Store the answer; an error before any tool has run leaves the key free instead."""
        is_harmless = response.status >= HTTPStatus.BAD_REQUEST and response.headers.get(_SHOULD_RETRY) != "false"
        if is_harmless and not await self._has_tool_run():
            await self._end(self._idempotency.release(self._own))
        else:
            await self._end(self._idempotency.finish(self._own, response))

    async def interrupt(self) -> ChatFault:
        """Give up the request for good; return the fault for those who wait for it."""
        await self._end(self._idempotency.interrupt(self._own))
        refusal = _interrupted(await self._describe_calls(self._own.record))
        return ChatFault(
            status=refusal.status_code, message=refusal.detail, code=refusal.code,
            type=error_type(refusal.status_code), is_final=True,
        )  # fmt: skip

    async def fail(self) -> ChatFault | None:
        """Interrupt the request if a tool has run, else leave the key free."""
        if await self._has_tool_run():
            return await self.interrupt()
        await self._end(self._idempotency.release(self._own))
        return None

    @property
    def _own(self) -> Started:
        if self._started is None:
            raise RuntimeError("another request with this key has started")
        return self._started

    async def _has_tool_run(self) -> bool:
        """Return whether a tool of the request may have run: not one that was too busy to begin."""
        try:
            calls = await self._idempotency.find_calls(self._own.record)
        except StorageError:
            return True
        return any(call.reason != Reason.BUSY for call in calls)

    async def _end(self, ending: Awaitable[bool]) -> None:
        """Commit the end of the request. Its clients get their answer in any case."""
        try:
            if not await ending:
                _log.warning("%s was already ended by another host", self.key)
        except StorageError as error:
            _log.error("the end of %s is not stored, a repeat will get 'interrupted': %s", self.key, error)

    async def _describe_calls(self, record: RequestRecord) -> str:
        """Return a sentence that names the calls of a request, and how to look at one."""
        try:
            calls = await self._idempotency.find_calls(record)
        except StorageError as error:
            return Message("Its calls cannot be listed now: {error}.", error=error)
        return describe_calls(calls, self._own_command)


async def _fingerprint_request(request: Request) -> str:
    """Return the fingerprint of a request: its route and its body."""
    url, body = request.url, await request.body()
    route = f"{request.method} {url.path}?{url.query}"
    if len(body) < _LARGE_BODY:
        return hash_request(route, body)
    return await asyncio.to_thread(hash_request, route, body)


def describe_calls(calls: list[CallRecord], own_command: OwnCommand) -> str:
    if not calls:
        return "The journal has no calls of it."
    named = ", ".join(f"{call.id} ({call.tool}, {call.state})" for call in calls[:_MAX_NAMED_CALLS])
    more = f" and {len(calls) - _MAX_NAMED_CALLS} more" if len(calls) > _MAX_NAMED_CALLS else ""
    return f"Its calls: {named}{more}. See GET /v1/calls/ID or '{own_command.for_home.format('journal show ID')}'."


def _interrupted(calls: str) -> Refusal:
    message = Message(
        "The first request with this {key} was interrupted before it was answered, and will not run again. {calls} "
        "To run it again, send another {key}.",
        key=KEY,
        calls=calls,
    )
    return Refusal(HTTPStatus.BAD_REQUEST, message, code="interrupted", headers=_NO_RETRY)


def _not_kept() -> Refusal:
    message = Message(
        "The first request with this {key} was answered and will not run again. Its response is no longer stored: "
        "at most {max_response} bytes are kept, and less while the state is too large. Its calls are in GET /v1/calls.",
        key=KEY,
        max_response=MAX_RESPONSE,
    )
    return Refusal(HTTPStatus.BAD_REQUEST, message, code="response_not_kept", headers=_NO_RETRY)


def _conflict() -> Refusal:
    message = Message(
        "This {key} was used for a different request: repeat that one unchanged, or send another {key}.", key=KEY
    )
    return Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, message, code="idempotency_key_reused", headers=_NO_RETRY)


def _too_many(most: int) -> Refusal:
    message = Message("{most} requests with an {key} are running: try again later", most=most, key=KEY)
    return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, message, code="too_many_running", headers=_RETRY_LATER)


def _in_progress() -> Refusal:
    message = Message(
        "The first request with this {key} is still running on another host: repeat it to get its response.", key=KEY
    )
    return Refusal(HTTPStatus.CONFLICT, message, code="idempotency_in_progress", headers=_RETRY_LATER)
