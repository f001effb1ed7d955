"""The event feed: the events after a cursor, each once and in order, with a ``gap`` where some were deleted.

A reader keeps the number of the last event as its cursor. A gap is an event of its own with the number of the last
deleted event: after it a reader fetches the current state.
"""

from collections.abc import AsyncIterator
from typing import Final

from toolyard.engine.clock import Clock
from toolyard.protocol.store import Event, Store

GAP: Final = "gap"
_PAGE = 500


async def read_feed(store: Store, clock: Clock, after: int, *, follow: bool = True) -> AsyncIterator[Event]:
    """Yield events until closed; without ``follow`` only those that exist now."""
    while True:
        _, newest = await store.event_span()
        page = await store.events(after, limit=_PAGE)
        before = page[0].seq - 1 if page else newest
        if before != after:  # forgotten, or the cursor is one of another state
            low, high = sorted((after, before))
            at = clock.now().timestamp()
            yield Event(seq=before, type=GAP, at=at, data={"from": low + 1, "to": high})
            after = before
        for event in page:
            yield event
            after = event.seq
        if not page:
            if not follow:
                return
            await store.next_event(after)
