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
from toolyard.protocol.rule import RULE, Rule
from toolyard.protocol.store import Store

SAVE_S: Final = 5.0
_MAX_COUNTED = 10_000
_TRIES = 5  # another host may count the same rule in the same moment
_log = logging.getLogger(__name__)


class _Count(NamedTuple):
    hits: int = 0
    last: float | None = None


class RuleUses:
    def __init__(self, store: Store, *, save_s: float = SAVE_S) -> None:
        self._store, self._save_s = store, save_s
        self._counted: dict[str, _Count] = {}  # what the store does not have yet
        self._of_chats: OrderedDict[str, _Count] = OrderedDict()
        self._saving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self.lock = asyncio.Lock()  # held while rules are read for clients, so that nothing counts twice

    def count(self, rule: Rule, at: float) -> None:
        if rule.chat:
            self._of_chats[rule.id] = _Count(self._of_chats.pop(rule.id, _Count()).hits + 1, at)
            while len(self._of_chats) > _MAX_COUNTED:
                self._of_chats.popitem(last=False)
            return
        self._counted[rule.id] = _Count(self._counted.get(rule.id, _Count()).hits + 1, at)
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._save_later())

    def add_to(self, rule: Rule) -> Rule:
        """Return a rule with the uses that the store does not have yet."""
        counted = self._of_chats.get(rule.id) or self._counted.get(rule.id) or _Count()
        return replace(rule, hits=rule.hits + counted.hits, last_used=counted.last or rule.last_used)

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
            record = await self._store.get(RULE, id_)
            if record is None:
                del self._counted[id_]
                return
            new, rule = self._counted[id_], Rule.from_record(record)
            used = replace(rule, hits=rule.hits + new.hits, last_used=new.last)
            if await self._store.commit([used.to_record()], [], lasting=False):
                now = self._counted.pop(id_)
                if now.hits > new.hits:
                    self._counted[id_] = _Count(now.hits - new.hits, now.last)
                return
