"""Rule uses: how often rules decided and when last, counted in memory and saved with the rules a moment later.

Calls only count in memory; all that was counted within ``SAVE_S`` is one write for each rule, so a crash loses the
counts of that moment. Rules of chats are in no store: their counts end with the process.
"""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import replace
from typing import Final, NamedTuple

from toolyard.errors import StorageError
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import Record, Store

SAVE_S: Final = 5.0
_MAX_COUNTED = 10_000
_TRIES = 5  # another host may count the same rule in the same moment
_log = logging.getLogger(__name__)


class _Count(NamedTuple):
    hits: int = 0
    last: float | None = None


class RuleUses:
    def __init__(self, store: Store, kind: str, *, save_s: float = SAVE_S) -> None:
        self._store, self._kind, self._save_s = store, kind, save_s
        self._counted: dict[str, _Count] = {}  # what the store does not have yet
        self._of_chats: OrderedDict[str, _Count] = OrderedDict()
        self._saving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self.lock = asyncio.Lock()  # held while rules are read for clients, so that nothing counts twice

    def count(self, rule: Record, at: float) -> None:
        if rule.body.get("chat"):
            self._of_chats[rule.id] = _Count(self._of_chats.pop(rule.id, _Count()).hits + 1, at)
            while len(self._of_chats) > _MAX_COUNTED:
                self._of_chats.popitem(last=False)
            return
        self._counted[rule.id] = _Count(self._counted.get(rule.id, _Count()).hits + 1, at)
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._save_later())

    def to_json(self, rule: Record) -> JsonObject:
        counted = self._of_chats.get(rule.id) or self._counted.get(rule.id) or _Count()
        stored = _stored_count(rule)
        return {"hits": stored.hits + counted.hits, "last_used": counted.last or stored.last}

    async def save(self) -> None:
        """Save the counts. Those that the store refuses stay in memory."""
        async with self.lock:
            for id_ in list(self._counted):
                try:
                    await self._save(id_)
                except StorageError as error:
                    _log.warning("the uses of rules are not kept yet: %s", error)
                    return

    async def close(self) -> None:
        self._closing.set()
        if self._saving is not None:
            await asyncio.wait({self._saving})  # never cut off: what is written twice would count twice
            await self.save()

    async def _save_later(self) -> None:
        while self._counted and not self._closing.is_set():  # more may be counted while this is saved
            try:
                async with asyncio.timeout(self._save_s):
                    await self._closing.wait()
            except TimeoutError:
                pass
            await self.save()

    async def _save(self, id_: str) -> None:
        for _ in range(_TRIES):
            rule = await self._store.get(self._kind, id_)
            if rule is None:
                del self._counted[id_]
                return
            new, stored = self._counted[id_], _stored_count(rule)
            body: JsonObject = {**rule.body, "hits": stored.hits + new.hits, "last_used": new.last}
            if await self._store.commit([replace(rule, body=body)], [], lasting=False):
                now = self._counted.pop(id_)
                if now.hits > new.hits:
                    self._counted[id_] = _Count(now.hits - new.hits, now.last)
                return


def _stored_count(rule: Record) -> _Count:
    hits, last = rule.body.get("hits"), rule.body.get("last_used")
    return _Count(hits if isinstance(hits, int) else 0, last if isinstance(last, int | float) else None)
