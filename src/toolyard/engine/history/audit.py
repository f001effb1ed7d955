"""The audit trail: decisions as they were recorded, and runs with their confinement from the journal.

Entries of approvals and rules are committed together with what they tell of; the others right after it. They are kept
for ``AUDIT_S``, whatever else is forgotten.
"""

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.engine.clock import Clock
from toolyard.errors import StorageError
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.audit_record import AUDIT, RUN, Actor, AuditEntry
from toolyard.protocol.records.call_record import CALL, RESULT, CallRecord, CallResult
from toolyard.protocol.store import PageCursor, Query, Record, Store, read_object

AUDIT_S: Final = 365 * 86_400.0
_PAGE = 500  # entries that are looked at together
_MAX_PAGES = 40

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Conditions on entries; all that are given must hold."""

    since: float | None = None
    tool: str | None = None
    plugin: str | None = None
    by: str | None = None
    action: str | None = None  # a whole one, such as plugin.allowed, or its first part
    text: str | None = None  # somewhere in the entry, in any case
    decisions: bool = True
    runs: bool = True

    def matches(self, entry: AuditEntry) -> bool:
        """Return whether an entry fulfils the conditions that the store does not know."""
        return self.allows_action(entry.action) and (not self.text or self.text.casefold() in _searchable_text(entry))

    def allows_action(self, action: str) -> bool:
        return self.action is None or action == self.action or action.startswith(f"{self.action}.")


_FindEntries: TypeAlias = Callable[[AuditFilter, int, PageCursor | None], Awaitable[list[AuditEntry]]]


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
        entries = await self._scan(self._find_decisions, filter_, limit, after) if filter_.decisions else []
        if filter_.runs and filter_.allows_action(RUN):
            entries += await self._scan(self._find_runs, filter_, limit, after)
        entries.sort(key=lambda entry: entry.place, reverse=True)
        return [await self._add_confinement(entry) for entry in entries[:limit]]

    async def _scan(
        self, find: _FindEntries, filter_: AuditFilter, limit: int, after: PageCursor | None
    ) -> list[AuditEntry]:
        """Return matching entries; of very many that do not match, only the newest are looked at."""
        if filter_.action is None and not filter_.text:
            return await find(filter_, limit, after)
        matching: list[AuditEntry] = []
        for _ in range(_MAX_PAGES):
            page = await find(filter_, _PAGE, after)
            matching += [entry for entry in page if filter_.matches(entry)]
            if len(matching) >= limit or len(page) < _PAGE:
                break
            after = page[-1].place
        return matching[:limit]

    async def _find_decisions(self, filter_: AuditFilter, limit: int, after: PageCursor | None) -> list[AuditEntry]:
        query = Query(since=filter_.since, tool=filter_.tool, key=filter_.plugin, caller=filter_.by)
        return [AuditEntry.from_record(one) for one in await self._store.find(AUDIT, query, limit=limit, after=after)]

    async def _find_runs(self, filter_: AuditFilter, limit: int, after: PageCursor | None) -> list[AuditEntry]:
        """Return the runs of tools; those of a plugin have its name."""
        if filter_.tool and filter_.plugin and filter_.tool != filter_.plugin:
            return []
        query = Query(since=filter_.since, tool=filter_.tool or filter_.plugin, caller=filter_.by)
        return [_to_run(record) for record in await self._store.find(CALL, query, limit=limit, after=after)]

    async def _add_confinement(self, entry: AuditEntry) -> AuditEntry:
        """Return the entry of a run with the confinement that its result names; any other as it is."""
        if entry.action != RUN:
            return entry
        result = await self._store.get(RESULT, entry.id)
        envelope = CallResult.from_record(result).envelope if result else None
        confinement = read_object(envelope or {}, "context").get("confinement")
        return replace(entry, detail={**entry.detail, "confinement": confinement})


def _to_run(record: Record) -> AuditEntry:
    call = CallRecord.from_record(record)
    return AuditEntry(
        id=call.id, at=call.started, action=RUN, by=call.caller, way=call.origin, tool=call.tool, target=call.id,
        detail={"state": call.state.value},
    )  # fmt: skip


def _searchable_text(entry: AuditEntry) -> str:
    detail = json.dumps(entry.detail, ensure_ascii=False)
    words = (entry.action, entry.by, entry.way, entry.address, entry.tool, entry.plugin, entry.target, detail)
    return "\n".join(words).casefold()


def new_entry(
    action: str, actor: Actor, at: float, *, tool: str = "", plugin: str = "", target: str = "",
    detail: JsonObject | None = None,
) -> AuditEntry:  # fmt: skip
    return AuditEntry(
        id=f"audit_{uuid4().hex}", at=at, action=action, by=actor.name, way=actor.way, address=actor.address,
        tool=tool, plugin=plugin, target=target, detail=detail or {},
    )  # fmt: skip
