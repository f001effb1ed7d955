"""Assistants of each caller: named chat options, at most ``MAX_PER_CALLER``, kept until their caller deletes them.

A caller sees its own only. Of two changes at once the later one counts: an assistant is small and changed as a whole.
"""

from dataclasses import fields, replace
from typing import Any, Final
from uuid import uuid4

from toolyard.engine.clock import Clock
from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.records.assistant_record import ASSISTANT, Assistant, AssistantOptions, AssistantState
from toolyard.protocol.store import Query, Store

MAX_PER_CALLER: Final = 200


class Assistants:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def list_all(self, caller: str) -> list[Assistant]:
        """Return the assistants of a caller, by name."""
        records = await self._store.find(ASSISTANT, _active(caller), limit=MAX_PER_CALLER)
        return sorted(map(Assistant.from_record, records), key=lambda one: (one.name.casefold(), one.id))

    async def add(self, caller: str, options: AssistantOptions) -> Assistant:
        """Store a new assistant. Raises Failure when there are too many."""
        if await self._store.count(ASSISTANT, _active(caller)) >= MAX_PER_CALLER:
            raise Failure(
                ErrorCode.CONFLICT,
                Message("There are {most} assistants already. Delete some of them first.", most=MAX_PER_CALLER),
            )
        now = self._clock.now().timestamp()
        new = Assistant(id=f"assistant_{uuid4().hex}", created=now, updated=now, caller=caller, **_to_fields(options))
        await self._store.commit([new.to_record()], [new.to_event()])
        return new

    async def change(self, caller: str, id_: str, options: AssistantOptions) -> Assistant | None:
        """Replace the options of an assistant; None when the caller has no such one."""
        while stored := await self._get(caller, id_):
            changed = replace(stored, updated=self._clock.now().timestamp(), **_to_fields(options))
            if await self._store.commit([changed.to_record()], [changed.to_event()]):
                return changed
        return None

    async def delete(self, caller: str, id_: str) -> bool:
        """Delete an assistant; False when the caller has no such one."""
        while stored := await self._get(caller, id_):
            deleted = replace(stored, state=AssistantState.DELETED, updated=self._clock.now().timestamp())
            if await self._store.commit([deleted.to_record()], [deleted.to_event()]):
                return True
        return False

    async def _get(self, caller: str, id_: str) -> Assistant | None:
        record = await self._store.get(ASSISTANT, id_)
        is_own = record is not None and record.caller == caller and record.state == AssistantState.ACTIVE
        return Assistant.from_record(record) if record and is_own else None


def _active(caller: str) -> Query:
    return Query(states=(AssistantState.ACTIVE,), caller=caller)


def _to_fields(options: AssistantOptions) -> dict[str, Any]:
    return {field.name: getattr(options, field.name) for field in fields(options)}
