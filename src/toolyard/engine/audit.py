"""The audit trail: decisions as they were recorded, and runs with their confinement from the journal.

Entries of approvals and rules are committed together with what they tell of; the others right after it. They are kept
for ``AUDIT_S``, whatever else is forgotten.
"""

import logging
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.engine.clock import Clock
from toolyard.errors import StorageError
from toolyard.protocol.audit import AUDIT, RUN, Actor, AuditEntry
from toolyard.protocol.call_record import CALL, RESULT, CallRecord, CallResult
from toolyard.protocol.json import JsonObject
from toolyard.protocol.record_body import read_object
from toolyard.protocol.store import PageCursor, Query, Store

AUDIT_S: Final = 365 * 86_400.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Conditions on entries; all that are given must hold."""

    since: float | None = None
    tool: str | None = None
    plugin: str | None = None
    by: str | None = None
    decisions: bool = True
    runs: bool = True


class Audit:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def record(
        self, action: str, actor: Actor, *, tool: str = "", plugin: str = "", target: str = "",
        detail: JsonObject | None = None,
    ) -> None:  # fmt: skip
        """Record what was done. A store that refuses is logged: what was done is done."""
        entry = new_entry(
            action, actor, self._clock.now().timestamp(), tool=tool, plugin=plugin, target=target, detail=detail
        )
        try:
            await self._store.commit([entry.to_record()])
            crashpoint("audit.recorded")
        except StorageError as error:
            _log.error("%s of %s by %s is not in the audit trail: %s", action, target, actor.name, error)

    async def page(self, filter_: AuditFilter, *, limit: int, after: PageCursor | None = None) -> list[AuditEntry]:
        """Return entries, newest first."""
        entries = await self._find_decisions(filter_, limit, after) if filter_.decisions else []
        if filter_.runs:
            entries += await self._find_runs(filter_, limit, after)
        entries.sort(key=lambda entry: entry.place, reverse=True)
        return entries[:limit]

    async def _find_decisions(self, filter_: AuditFilter, limit: int, after: PageCursor | None) -> list[AuditEntry]:
        query = Query(since=filter_.since, tool=filter_.tool, key=filter_.plugin, caller=filter_.by)
        return [AuditEntry.from_record(one) for one in await self._store.find(AUDIT, query, limit=limit, after=after)]

    async def _find_runs(self, filter_: AuditFilter, limit: int, after: PageCursor | None) -> list[AuditEntry]:
        """Return the runs of tools; those of a plugin have its name."""
        if filter_.tool and filter_.plugin and filter_.tool != filter_.plugin:
            return []
        query = Query(since=filter_.since, tool=filter_.tool or filter_.plugin, caller=filter_.by)
        calls = map(CallRecord.from_record, await self._store.find(CALL, query, limit=limit, after=after))
        return [await self._to_run(call) for call in calls]

    async def _to_run(self, call: CallRecord) -> AuditEntry:
        result = await self._store.get(RESULT, call.id)
        envelope = CallResult.from_record(result).envelope if result else None
        confinement = read_object(envelope or {}, "context").get("confinement")
        detail: JsonObject = {"state": call.state.value, "confinement": confinement}
        return AuditEntry(
            id=call.id, at=call.started, action=RUN, by=call.caller, way=call.origin, tool=call.tool, target=call.id,
            detail=detail,
        )  # fmt: skip


def new_entry(
    action: str, actor: Actor, at: float, *, tool: str = "", plugin: str = "", target: str = "",
    detail: JsonObject | None = None,
) -> AuditEntry:  # fmt: skip
    return AuditEntry(
        id=f"audit_{uuid4().hex}", at=at, action=action, by=actor.name, way=actor.way, address=actor.address,
        tool=tool, plugin=plugin, target=target, detail=detail or {},
    )  # fmt: skip
