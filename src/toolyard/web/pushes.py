"""Pushes: task results that plugins send to clients of VCPToolBox's channels, and a record of their delivery.

Every client reads the feed on its own, so a push keeps its order among the other messages. One further reader records
with the task how many listeners were ``reached``: a client has taken a message when it was sent and the next one is
requested, within ``DELIVERY_S``. A push without listeners is recorded too. Beyond ``MAX_PENDING`` pushes at once a
record may be late; it is lost only with the server.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from toolyard.dialects import vcp_server
from toolyard.engine.tasks import PUSH_AGAIN
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifest import Push
from toolyard.web.feed import ClientEvent, Feed, Follower
from toolyard.yard.yard import Yard

DELIVERY_S: Final = 5.0
MAX_PENDING: Final = 64
_POLL_S = 0.05
_KINDS = ("task.succeeded", "task.failed", PUSH_AGAIN)


@dataclass(frozen=True, slots=True)
class _Listener:
    channel: str
    since: int  # number of the last event before it listened


class Pushes:
    """The pushes of a server; ``is_open``: the channels are enabled."""

    def __init__(self, yard: Yard, feed: Feed, *, is_open: bool) -> None:
        self._yard, self._feed, self.is_open = yard, feed, is_open
        self._listeners: dict[Follower, _Listener] = {}

    def find_push(self, plugin: str) -> Push | None:
        """Return the push of a plugin's manifest, if enabled."""
        loaded = self._yard.plugins.plugins.get(plugin)
        push = loaded.manifest.push if loaded and loaded.manifest else None
        return push if push and push.enabled else None

    def make_message(self, event: ClientEvent, channel: str) -> JsonObject | None:
        """Return the message for clients of a channel, or None when the event is no push."""
        push = self._find_event_push(event)
        if push is None or push.target_client_type not in (None, channel):
            return None
        plugin, task_id = str(event.data["plugin"]), str(event.data["task_id"])
        return vcp_server.push_message(push.message_type, plugin, task_id, event.data["result"], full=push.use_result)

    @contextlib.contextmanager
    def subscribe(self, follower: Follower, channel: str) -> Iterator[None]:
        """Count a client as a listener of a channel."""
        self._listeners[follower] = _Listener(channel, follower.cursor)
        try:
            yield
        finally:
            del self._listeners[follower]

    async def run(self) -> None:
        """Record deliveries until cancelled."""
        room = asyncio.Semaphore(MAX_PENDING)
        cursor = self._feed.last_seq
        async with asyncio.TaskGroup() as noting:
            while True:  # resume where it was dropped
                follower = Follower(cursor, is_client=False)
                async with contextlib.aclosing(self._feed.follow(follower)) as messages:
                    async for event in messages:
                        push = self._find_event_push(event)
                        if push is not None:
                            await room.acquire()
                            noting.create_task(self._record_delivery(event, push)).add_done_callback(
                                lambda _: room.release()
                            )
                cursor = follower.cursor

    def _find_event_push(self, event: ClientEvent) -> Push | None:
        if event.type not in _KINDS or event.data.get("result") is None:
            return None
        return self.find_push(str(event.data["plugin"]))

    async def _record_delivery(self, event: ClientEvent, push: Push) -> None:
        target = push.target_client_type
        heard = [
            follower
            for follower, one in self._listeners.items()
            if one.since < event.seq and target in (None, one.channel)
        ]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DELIVERY_S):
                while any(one.cursor < event.seq and one in self._listeners for one in heard):  # noqa: ASYNC110 they tell nobody
                    await asyncio.sleep(_POLL_S)
        note: JsonObject = {
            "seq": event.seq, "at": event.at, "target": target, "type": push.message_type, "clients": len(heard),
            "reached": sum(one.cursor >= event.seq for one in heard), "again": event.type == PUSH_AGAIN,
        }  # fmt: skip
        await self._yard.tasks.record_push(str(event.data["id"]), note)
