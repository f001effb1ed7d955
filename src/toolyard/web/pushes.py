"""Pushes: the results of tasks that plugins want sent to clients of VCPToolBox's channels, and who took them.

Every client reads the feed by itself, so what it is pushed stands in order with all else it hears. Here is decided what
that is, and beside the clients one reader notes with the task how many were ``reached`` of those that listened: a
client has taken a message when it has gone out and the next one is asked for, within ``TAKEN_S``. A push that nobody
listens to is noted too. What was pushed while ``MOST`` others were being noted may be noted late, never lost but with
the server.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from toolyard.app import Yard
from toolyard.dialects import vcp_server
from toolyard.engine.tasks import PUSH_AGAIN
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifest import Push
from toolyard.web.feed import Feed, Follower, Told

TAKEN_S: Final = 5.0
MOST: Final = 64
_LOOK_S = 0.05
_KINDS = ("task.succeeded", "task.failed", PUSH_AGAIN)


@dataclass(frozen=True, slots=True)
class _Listener:
    channel: str
    since: int  # what came before it has not heard


class Pushes:
    """``is_open``: whether there are channels at all."""

    def __init__(self, yard: Yard, feed: Feed, *, is_open: bool) -> None:
        self._yard, self._feed, self.is_open = yard, feed, is_open
        self._listeners: dict[Follower, _Listener] = {}

    def of(self, plugin: str) -> Push | None:
        """What the manifest of a plugin wants pushed, if anything."""
        found = self._yard.plugins.plugins.get(plugin)
        push = found.manifest.push if found and found.manifest else None
        return push if push and push.enabled else None

    def message(self, told: Told, channel: str) -> JsonObject | None:
        """What clients of a channel are sent for an event."""
        push = self._wanted(told)
        if push is None or push.target_client_type not in (None, channel):
            return None
        plugin, task_id = str(told.data["plugin"]), str(told.data["task_id"])
        return vcp_server.push_message(push.message_type, plugin, task_id, told.data["result"], full=push.use_result)

    @contextlib.contextmanager
    def listening(self, follower: Follower, channel: str) -> Iterator[None]:
        """While a client follows a channel."""
        self._listeners[follower] = _Listener(channel, follower.cursor)
        try:
            yield
        finally:
            del self._listeners[follower]

    async def run(self) -> None:
        """Note what is pushed, until it is cancelled."""
        room = asyncio.Semaphore(MOST)
        cursor = self._feed.last
        async with asyncio.TaskGroup() as noting:
            while True:  # again when it was dropped, from where it was
                follower = Follower(cursor, is_client=False)
                async with contextlib.aclosing(self._feed.follow(follower)) as messages:
                    async for told in messages:
                        push = self._wanted(told)
                        if push is not None:
                            await room.acquire()
                            noting.create_task(self._note(told, push)).add_done_callback(lambda _: room.release())
                cursor = follower.cursor

    def _wanted(self, told: Told) -> Push | None:
        if told.type not in _KINDS or told.data.get("result") is None:
            return None
        return self.of(str(told.data["plugin"]))

    async def _note(self, told: Told, push: Push) -> None:
        target = push.target_client_type
        heard = [
            follower
            for follower, one in self._listeners.items()
            if one.since < told.seq and target in (None, one.channel)
        ]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TAKEN_S):
                while any(one.cursor < told.seq and one in self._listeners for one in heard):  # noqa: ASYNC110 they tell nobody
                    await asyncio.sleep(_LOOK_S)
        note: JsonObject = {
            "seq": told.seq, "at": told.at, "target": target, "type": push.message_type, "clients": len(heard),
            "reached": sum(one.cursor >= told.seq for one in heard), "again": told.type == PUSH_AGAIN,
        }  # fmt: skip
        await self._yard.tasks.record_push(str(told.data["id"]), note)
