"""The events that follow a cursor: each once, in order, and a ``gap`` where some were forgotten.

Whoever reads it keeps the number of the last event as the cursor to go on from. A gap is told as an event of its own,
with the number of the last event that is gone: after it a reader looks at the present state instead.
"""

from collections.abc import AsyncIterator
from typing import Final

from toolyard.engine.clock import Clock
from toolyard.protocol.store import Event, Store

GAP: Final = "gap"
_PAGE = 500


async def feed(store: Store, clock: Clock, after: int, *, follow: bool = True) -> AsyncIterator[Event]:
    """Until it is closed; without ``follow`` until the last event that there is now."""
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
