"""Idempotent requests: each runs at most once under the key that its client chose, and its answer is kept for repeats.

A client that got no answer cannot know whether its request ran. With a key it may simply send the request again:

- ``begin`` commits the record of a request before anything of it runs. Of several with one key at the same moment, on
  any number of hosts, exactly one is told to start.
- ``finish`` keeps the answer, up to ``MAX_RESPONSE`` bytes. Of a larger one only the fact is kept that it ended.
- A request whose host has died is interrupted, and so is one whose answer could not be stored: nobody knows how far it
  came, so it is never started again.
- ``release`` is for a request of which nothing has run: the next one with its key starts.
- What has ended is remembered for ``KEPT_S``. Each caller has keys of its own.
"""

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from typing import Final
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.engine.clock import Clock
from toolyard.engine.ownership import IsAlive, find_orphans, is_owner_alive
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.call_record import CALL, CallRecord
from toolyard.protocol.store import PageCursor, Query, Record, Store, read_optional_text, read_text

KEPT: Final = "kept"  # the state of a response
KEPT_S: Final = 86_400.0
MAX_RESPONSE: Final = 4 * 2**20
_PAGE = 500
_MAX_PAGES = 20  # of calls that are looked through for those of one request


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotentRequest:
    """A request and the key that its client gave it."""

    caller: str
    key: str
    fingerprint: str  # a digest of its route and body
    call: str = ""  # the id of the call that it starts,
    chat: str = ""  # or of the chat

    @property
    def id(self) -> str:
        named = b"\0".join((self.caller.encode(), self.key.encode()))  # no caller has a NUL in its name
        return f"idempotency_{sha256(named).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResponse:
    """The answer to a request as its client got it."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = b""  # None: it is larger than what is kept
    is_stream: bool = False  # its body is a stream of server-sent events


class RequestState(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    RELEASED = "released"  # nothing of it has run


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    id: str
    state: RequestState
    created: float
    updated: float
    caller: str
    fingerprint: str  # a digest of its route and body
    call: str = ""  # the id of the call that it starts,
    chat: str = ""  # or of the chat
    response: str | None = None  # the id of the record with its response
    owner: str = ""
    version: int = 0

    @classmethod
    def from_record(cls, record: Record) -> "RequestRecord":
        body = record.body
        return cls(
            id=record.id, state=RequestState(record.state), created=record.created, updated=record.updated,
            caller=record.caller, owner=record.owner, version=record.version,
            fingerprint=read_text(body, "fingerprint"), call=read_text(body, "call"), chat=read_text(body, "chat"),
            response=read_optional_text(body, "response"),
        )  # fmt: skip

    def to_record(self) -> Record:
        body: JsonObject = {"fingerprint": self.fingerprint, "call": self.call, "chat": self.chat}
        if self.response is not None:
            body["response"] = self.response
        return Record(
            kind=IDEMPOTENCY, id=self.id, state=self.state, version=self.version, created=self.created,
            updated=self.updated, caller=self.caller, owner=self.owner, body=body,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Started:
    """The request is to run now, here; it is to be finished, released or interrupted."""

    record: RequestRecord


@dataclass(frozen=True, slots=True)
class InProgress:
    """The request runs already, on this host or on another one."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The request has ended; without a response when that was too large to be kept."""

    response: StoredResponse | None


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The request was cut off, and nobody knows how far it came."""

    record: RequestRecord


@dataclass(frozen=True, slots=True)
class Conflict:
    """The key belongs to another request."""


BeginResult = Started | InProgress | Finished | Interrupted | Conflict


def hash_request(route: str, body: bytes) -> str:
    """Return the digest that tells two requests with the same key apart."""
    digest = sha256(route.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(body)
    return digest.hexdigest()


class Idempotency:
    """The idempotent requests of a store, as the host ``owner`` sees them."""

    def __init__(self, store: Store, clock: Clock, *, owner: str) -> None:
        self._store, self._clock, self.owner = store, clock, owner
        self._running: set[str] = set()  # requests that run in this process, by the ids of their records

    @property
    def running_count(self) -> int:
        """The number of requests that run in this process."""
        return len(self._running)

    def is_running_here(self, id_: str) -> bool:
        return id_ in self._running

    async def begin(self, request: IdempotentRequest) -> BeginResult:
        """Take a request: start it, unless it has been started before."""
        while True:
            stored = await self._store.get(IDEMPOTENCY, request.id)
            record = RequestRecord.from_record(stored) if stored else None
            if record is None or self._is_free(record):
                if started := await self._start(request, record.version if record else 0):
                    return started
            elif record.fingerprint != request.fingerprint:
                return Conflict()
            elif record.state is RequestState.FINISHED:
                return Finished(await self._get_response(record))
            elif record.state is RequestState.INTERRUPTED:
                return Interrupted(record)
            elif not self._is_lost(record):
                return InProgress()
            else:
                await self._end(record, RequestState.INTERRUPTED)

    async def finish(self, started: Started, response: StoredResponse) -> bool:
        """Store the response; False when another host took this one for dead and ended the request first."""
        record, sent = started.record, response.body
        if sent is None or len(sent) > MAX_RESPONSE:
            return await self._end(record, RequestState.FINISHED)
        now, id_ = self._now(), f"response_{uuid4().hex}"
        stored = Record(
            kind=RESPONSE, id=id_, state=KEPT, created=now, updated=now, caller=record.caller,
            body=_response_to_json(response, sent),
        )  # fmt: skip
        return await self._end(replace(record, response=id_), RequestState.FINISHED, stored)

    async def release(self, started: Started) -> bool:
        """Let the next request with this key start: nothing of this one has run."""
        return await self._end(started.record, RequestState.RELEASED)

    async def interrupt(self, started: Started) -> bool:
        """End a request that was cut off."""
        return await self._end(started.record, RequestState.INTERRUPTED)

    async def find_calls(self, record: RequestRecord) -> list[CallRecord]:
        """Return the calls in the journal that a request has made, the first one first."""
        if record.call:
            call = await self._store.get(CALL, record.call)
            return [CallRecord.from_record(call)] if call else []
        calls: list[CallRecord] = []
        query, after = Query(caller=record.caller, since=record.created), None
        for _ in range(_MAX_PAGES):
            page = await self._store.find(CALL, query, limit=_PAGE, after=after)
            calls += [call for call in map(CallRecord.from_record, page) if call.chat == record.chat]
            if len(page) < _PAGE:
                break
            after = PageCursor(at=page[-1].created, id=page[-1].id)
        ended = record.updated if record.state in ENDED else self._now()
        return [call for call in reversed(calls) if call.started <= ended]

    async def settle_orphans(self, alive: IsAlive = is_owner_alive) -> int:
        """Interrupt the requests of dead hosts; return how many there were."""
        settled = 0
        async for page in find_orphans(self._store, IDEMPOTENCY, (RequestState.RUNNING,), alive):
            records = map(RequestRecord.from_record, page)
            settled += sum(await asyncio.gather(*(self._end(record, RequestState.INTERRUPTED) for record in records)))
        return settled

    async def _start(self, request: IdempotentRequest, version: int) -> Started | None:
        """Commit the record of a request; None when another one was faster."""
        now = self._now()
        record = RequestRecord(
            id=request.id, state=RequestState.RUNNING, version=version, created=now, updated=now,
            caller=request.caller, owner=self.owner, fingerprint=request.fingerprint, call=request.call,
            chat=request.chat,
        )  # fmt: skip
        if record.id in self._running:
            await asyncio.sleep(0)  # another one with this key is being started in this process
            return None
        self._running.add(record.id)  # before it can be read: whoever reads it must not take it for lost
        won = False
        try:
            won = await self._store.commit([record.to_record()])
        finally:
            if not won:
                self._running.discard(record.id)
        crashpoint("idempotency.started")
        return Started(replace(record, version=version + 1)) if won else None

    async def _end(self, record: RequestRecord, state: RequestState, *others: Record) -> bool:
        ended = replace(record, state=state, updated=self._now(), owner="")
        crashpoint("idempotency.before-ended")
        try:
            won = await self._store.commit([ended.to_record(), *others])
        finally:
            self._running.discard(record.id)
        crashpoint("idempotency.ended")
        return won

    async def _get_response(self, record: RequestRecord) -> StoredResponse | None:
        stored = await self._store.get(RESPONSE, record.response) if record.response else None
        return _response_from_json(stored.body) if stored else None

    def _is_free(self, record: RequestRecord) -> bool:
        if record.state == RequestState.RUNNING:
            return False
        return record.state == RequestState.RELEASED or self._now() - record.updated >= KEPT_S

    def _is_lost(self, record: RequestRecord) -> bool:
        """Return whether this host started it and it no longer runs here: its end could not be stored."""
        return record.owner == self.owner and record.id not in self._running

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _response_to_json(response: StoredResponse, sent: bytes) -> JsonObject:
    body: JsonObject = {"status": response.status, "headers": {**response.headers}, "is_stream": response.is_stream}
    try:
        return body | {"text": sent.decode()}
    except UnicodeDecodeError:
        return body | {"base64": base64.b64encode(sent).decode()}


def _response_from_json(body: JsonObject) -> StoredResponse:
    headers = body["headers"] if isinstance(body["headers"], dict) else {}
    text = body.get("text")
    return StoredResponse(
        status=int(str(body["status"])),
        headers={name: str(value) for name, value in headers.items()},
        body=text.encode() if isinstance(text, str) else base64.b64decode(str(body["base64"])),
        is_stream=body["is_stream"] is True,
    )


IDEMPOTENCY: Final = "idempotency"  # the kind of its records,
RESPONSE: Final = "idempotency_response"  # and of those with the answer to a request

ENDED: Final = (RequestState.FINISHED, RequestState.INTERRUPTED, RequestState.RELEASED)
