"""Stored responses: what clients of the Responses protocol asked and got, kept so that a later request goes on from it.

Each belongs to one caller; for any other it does not exist. One that follows another names it, so the conversation
before a response is the chain of those: at most ``MAX_CHAIN``, and ``MAX_HISTORY`` bytes. A response over
``MAX_STORED`` bytes is not kept. Secrets are masked. What has ended is deleted like everything else that has
(``engine.retention``).

One in the background has a record from its beginning, with its request: if its host dies, another one continues it,
once. A client that deletes a response leaves its empty record, until that is deleted too.
"""

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from toolyard.engine.clock import Clock
from toolyard.engine.ownership import IsAlive, find_orphans, is_owner_alive
from toolyard.errors import StorageError
from toolyard.protocol.json import JsonObject, json_bytes, json_value
from toolyard.protocol.mask import Mask
from toolyard.protocol.store import Query, Record, Store, read_integer, read_object, read_objects, read_text

RESPONSE: Final = "response"  # the kind of its records
MAX_STORED: Final = 8 * 2**20
MAX_CHAIN: Final = 1000
MAX_HISTORY: Final = 32 * 2**20
_log = logging.getLogger(__name__)


class ResponseState(StrEnum):
    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DELETED = "deleted"


OPEN: Final = (ResponseState.QUEUED, ResponseState.IN_PROGRESS)
ENDED: Final = tuple(state for state in ResponseState if state not in OPEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResponse:
    id: str
    caller: str
    state: ResponseState
    created: float
    updated: float = 0.0
    owner: str = ""
    previous: str = ""  # the id of the response that it follows
    conversation: str = ""  # the id of the conversation that it is of
    items: tuple[JsonObject, ...] = ()  # its input
    response: JsonObject  # as its client gets it
    request: JsonObject  # as its client sent it, while the turn may have to be continued; else empty
    rights: JsonObject  # of its caller, for the same
    restarts: int = 0
    version: int = 0

    @classmethod
    def from_record(cls, record: Record) -> "KeptResponse":
        body = record.body
        return cls(
            id=record.id, caller=record.caller, state=ResponseState(record.state), created=record.created,
            updated=record.updated, owner=record.owner, previous=read_text(body, "previous"), conversation=record.key,
            items=read_objects(body, "items"), response=read_object(body, "response"),
            request=read_object(body, "request"), rights=read_object(body, "rights"),
            restarts=read_integer(body, "restarts"), version=record.version,
        )  # fmt: skip

    def to_record(self) -> Record:
        """Return the record; of a deleted response nothing is left but that it was there."""
        body: JsonObject = {
            "previous": self.previous, "items": [*self.items], "response": self.response, "request": self.request,
            "rights": self.rights, "restarts": self.restarts,
        }  # fmt: skip
        is_deleted = self.state is ResponseState.DELETED
        return Record(
            kind=RESPONSE, id=self.id, state=self.state, version=self.version, created=self.created,
            updated=self.updated, caller=self.caller, key=self.conversation, owner=self.owner,
            body={} if is_deleted else body,
        )  # fmt: skip

    @property
    def output(self) -> tuple[JsonObject, ...]:
        return read_objects(self.response, "output")


class KeptResponses:
    """The stored responses of a state, as the host ``owner`` sees them."""

    def __init__(self, store: Store, clock: Clock, *, owner: str, mask: Mask) -> None:
        self._store, self._clock, self.owner, self._mask = store, clock, owner, mask

    async def keep(self, kept: KeptResponse) -> KeptResponse | None:
        """Store a response and return it; None when it is too large, or was changed meanwhile."""
        is_open = kept.state in OPEN
        kept = replace(kept, updated=self._clock.now().timestamp(), owner=self.owner if is_open else "")
        record = kept.to_record()
        raw = json_bytes(record.body)
        if len(raw) > MAX_STORED:
            _log.warning("the response %s is not stored: it has more than %d bytes", kept.id, MAX_STORED)
            return None
        text = raw.decode()
        if (masked := self._mask.text(text)) is not text and masked != text:
            record = replace(record, body=json_value(masked))
        try:
            is_kept = await self._store.commit([record], lasting=False)
        except StorageError as error:
            _log.error("the response %s is not stored: %s", kept.id, error)
            return None
        return replace(kept, version=kept.version + 1) if is_kept else None

    async def get(self, caller: str, id_: str) -> KeptResponse | None:
        """Return a response of this caller."""
        record = await self._store.get(RESPONSE, id_) if id_ else None
        if record is None or record.caller != caller or record.state == ResponseState.DELETED:
            return None
        return KeptResponse.from_record(record)

    async def find_newest(self, caller: str, conversation: str) -> KeptResponse | None:
        """Return the newest response of a conversation; one that failed or was cancelled is no part of it."""
        query = Query(states=(ResponseState.COMPLETED, ResponseState.INCOMPLETE), caller=caller, key=conversation)
        found = await self._store.find(RESPONSE, query, limit=1)
        return KeptResponse.from_record(found[0]) if found else None

    async def list_items(self, last: KeptResponse) -> list[JsonObject] | None:
        """Return the items of a conversation up to a response; None when a part of it is gone, or it is too long."""
        chain, size = list[tuple[JsonObject, ...]](), 0
        one: KeptResponse | None = last
        while one is not None:
            items = (*one.items, *one.output)
            size += len(json_bytes([*items]))
            chain.append(items)
            if len(chain) > MAX_CHAIN or size > MAX_HISTORY:
                return None
            if not one.previous:
                return [item for items in reversed(chain) for item in items]
            one = await self.get(last.caller, one.previous)
        return None

    async def delete(self, caller: str, id_: str) -> bool:
        """Delete a response; False when there is none."""
        while kept := await self.get(caller, id_):
            now = self._clock.now().timestamp()
            deleted = replace(kept, state=ResponseState.DELETED, updated=now, conversation="", owner="")
            if await self._store.commit([deleted.to_record()]):
                return True
        return False

    async def find_orphans(self, alive: IsAlive = is_owner_alive) -> AsyncIterator[KeptResponse]:
        """Yield the open responses of dead hosts."""
        async for page in find_orphans(self._store, RESPONSE, OPEN, alive):
            for record in page:
                yield KeptResponse.from_record(record)
