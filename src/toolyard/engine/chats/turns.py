"""Stored turns: what a chat turn has asked of tools, kept so that no effect happens twice after a crash.

Before the first call of a turn that does more than read begins, its fingerprint (of the request), the replies of its
model and the ids of their calls are committed; the results of the calls are in the journal. When the same request
comes again, here or on another host, the turn continues from there: see ``gateway.turns.turn_log``. A stored turn
counts for ``REPEATED_S`` after its last change. Secrets in it are masked; of a turn over ``MAX_STORED`` bytes only the
ids of its calls are kept.
"""

import asyncio
import logging
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from toolyard.crashpoint import crashpoint
from toolyard.engine.clock import Clock
from toolyard.engine.ownership import IsAlive, find_orphans, is_owner_alive
from toolyard.errors import StorageError
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.mask import Mask
from toolyard.protocol.store import Query, Record, Store, read_objects, read_optional_text, read_text

_log = logging.getLogger(__name__)
TURN: Final = "turn"  # the kind of its records
REPEATED_S: Final = 600.0  # after the end of a turn, in which a repeated request joins or continues it
MAX_STORED: Final = 2**20
_MOST_OPEN = 500  # turns of earlier processes that are looked at


class TurnState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"  # also: it was left by its client


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRound:
    """A reply of the model, and the calls that it asked for: the id and the tool of each, empty for one not made."""

    reply: JsonObject  # its ``message``, ``finish_reason`` and ``usage``; empty when it was too large
    calls: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    id: str
    caller: str
    request: str  # the fingerprint of its request
    chat: str
    created: float
    updated: float = 0.0
    state: TurnState = TurnState.RUNNING
    owner: str = ""
    nonce: str | None = None
    rounds: tuple[StoredRound, ...] = ()
    version: int = 0

    @classmethod
    def from_record(cls, record: Record) -> "StoredTurn":
        body = record.body
        rounds = tuple(_round_from_json(one) for one in read_objects(body, "rounds"))
        return cls(
            id=record.id, caller=record.caller, request=record.key, chat=read_text(body, "chat"),
            created=record.created, updated=record.updated, state=TurnState(record.state), owner=record.owner,
            nonce=read_optional_text(body, "nonce"), rounds=rounds, version=record.version,
        )  # fmt: skip

    def to_record(self) -> Record:
        rounds: list[Json] = [{"reply": one.reply, "calls": [[*call] for call in one.calls]} for one in self.rounds]
        body: JsonObject = {"chat": self.chat, "nonce": self.nonce, "rounds": rounds}
        return Record(
            kind=TURN, id=self.id, state=self.state, version=self.version, created=self.created, updated=self.updated,
            caller=self.caller, key=self.request, owner=self.owner, body=body,
        )  # fmt: skip


def _round_from_json(value: JsonObject) -> StoredRound:
    reply, calls = value.get("reply"), value.get("calls")
    pairs = [call for call in calls if isinstance(call, list)] if isinstance(calls, list) else []
    return StoredRound(
        reply=reply if isinstance(reply, dict) else {}, calls=tuple((str(pair[0]), str(pair[1])) for pair in pairs)
    )


class Turns:
    """The stored turns of a state, as the host ``owner`` sees them."""

    def __init__(self, store: Store, clock: Clock, *, owner: str, mask: Mask) -> None:
        self._store, self._clock, self.owner, self._mask = store, clock, owner, mask
        self._own: set[str] = set()  # the ids of the turns that run in this process
        self._earlier: dict[tuple[str, str], str] | None = None  # ids of turns by caller and request, once looked up

    async def find(self, caller: str, request: str) -> StoredTurn | None:
        """Return the newest turn of the same request, while it counts; see ``is_running``."""
        if self._store.is_shared:
            found = await self._store.find(TURN, Query(caller=caller, key=request), limit=1)
            record = found[0] if found else None
        else:
            earlier = await self._load_earlier() if self._earlier is None else self._earlier
            id_ = earlier.get((caller, request))
            record = await self._store.get(TURN, id_) if id_ else None
        turn = StoredTurn.from_record(record) if record else None
        is_over = turn is not None and turn.state is not TurnState.RUNNING and turn.updated < self._now() - REPEATED_S
        return None if is_over else turn

    def is_running(self, turn: StoredTurn) -> bool:
        """Return whether a turn still runs, here or on another host."""
        if turn.state is not TurnState.RUNNING:
            return False
        return turn.id in self._own if turn.owner == self.owner else is_owner_alive(turn.owner)

    async def settle_orphans(self, alive: IsAlive = is_owner_alive) -> int:
        """End the turns of dead hosts, so that they can be continued; return how many there were."""
        settled = 0
        async for page in find_orphans(self._store, TURN, (TurnState.RUNNING,), alive):
            ended = [replace(record, state=TurnState.FAILED, updated=self._now(), owner="") for record in page]
            settled += sum(await asyncio.gather(*(self._store.commit([record], lasting=False) for record in ended)))
        return settled

    async def keep(self, turn: StoredTurn) -> StoredTurn:
        """Commit a turn before its calls begin, or its end; return it with its version.

        A store that refuses is no reason to end the turn: the calls themselves will then not begin.
        """
        is_running = turn.state is TurnState.RUNNING
        turn = replace(turn, updated=self._now(), owner=self.owner if is_running else "")
        self._own.add(turn.id)
        try:
            record = self._bound(turn)
            if await self._store.commit([record], lasting=False):
                turn = replace(turn, version=turn.version + 1)
        except StorageError as error:
            _log.error("the turn %s is not stored: a repeated request may run its tools again: %s", turn.id, error)
        finally:
            if not is_running:
                self._own.discard(turn.id)
        if self._earlier is not None:
            self._earlier[turn.caller, turn.request] = turn.id
            while len(self._earlier) > _MOST_OPEN:
                del self._earlier[next(iter(self._earlier))]
        crashpoint("turn.stored")
        return turn

    def _bound(self, turn: StoredTurn) -> Record:
        """Return the record of a turn, masked; without the replies when they are too large."""
        record = turn.to_record()
        body = self._mask.json(record.body)
        if len(json_bytes(body)) > MAX_STORED or not isinstance(body, dict):
            rounds = tuple(replace(one, reply={}) for one in turn.rounds)
            return replace(turn, rounds=rounds).to_record()
        return replace(record, body=body)

    async def _load_earlier(self) -> dict[tuple[str, str], str]:
        found = await self._store.find(TURN, Query(by_change=True), limit=_MOST_OPEN)
        self._earlier = {(one.caller, one.key): one.id for one in reversed(found)}
        return self._earlier

    def _now(self) -> float:
        return self._clock.now().timestamp()
