"""``/ws``: every event with its number; and VCPToolBox's channels, if enabled, with the pushes that plugins ask for."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from fastapi import WebSocket

from toolyard.dialects import vcp_messages
from toolyard.engine.background.tasks import PUSH_AGAIN
from toolyard.protocol.json import JsonObject, json_bytes
from toolyard.protocol.manifests.manifest import Push
from toolyard.web.feed import ClientEvent, Feed, Follower
from toolyard.web.routing import Routes
from toolyard.web.security.access import Access
from toolyard.web.security.keys import INSTALLATION
from toolyard.web.security.scope import EVENT_SCOPES, Principal, get_principal
from toolyard.web.server.websocket_client import WebSocketClient, deny_websocket
from toolyard.yard.yard import Yard


class Pushes:
    """The pushes of a server; ``is_open``: the channels are enabled."""

    def __init__(self, yard: Yard, feed: Feed, *, is_open: bool) -> None:
        self._yard, self._feed, self.is_open = yard, feed, is_open
        self._listeners: dict[Follower, _Listener] = {}
        self._direct: dict[asyncio.Queue[str], str] = {}  # by client: what waits for it; with its channel
        yard.vcp.on_push(self._take_push)

    def _take_push(self, push: JsonObject) -> None:
        """Give what a plugin in VCPToolBox's process pushes to the clients of its channel; a slow one misses some."""
        if not isinstance(push.get("data"), dict):
            return
        text = json_bytes(push["data"]).decode()
        for queue, channel in self._direct.items():
            if push.get("target") in (None, channel):
                with contextlib.suppress(asyncio.QueueFull):
                    queue.put_nowait(text)

    @contextlib.asynccontextmanager
    async def send_to(self, socket: WebSocket, channel: str) -> AsyncIterator[None]:
        """Send what plugins push to a client of a channel."""
        queue: asyncio.Queue[str] = asyncio.Queue(MAX_WAITING)

        async def send() -> None:
            while True:
                await socket.send({"type": "websocket.send", "text": await queue.get()})

        self._direct[queue] = channel
        sending = asyncio.create_task(send())
        try:
            yield
        finally:
            del self._direct[queue]
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    def find_push(self, plugin: str) -> Push | None:
        """Return the push of a plugin's manifest, if enabled."""
        loaded = self._yard.plugins.plugins.get(plugin)
        push = loaded.manifest.push if loaded and loaded.manifest else None
        if loaded is None and self._yard.nodes.nodes is not None:
            push = self._yard.nodes.nodes.find_push(plugin)
        return push if push and push.enabled else None

    def make_message(self, event: ClientEvent, channel: str) -> JsonObject | None:
        """Return the message for clients of a channel, or None when the event is no push."""
        push = self._find_event_push(event)
        if push is None or push.target_client_type not in (None, channel):
            return None
        plugin, task_id = str(event.data["plugin"]), str(event.data["task_id"])
        return vcp_messages.push_message(push.message_type, plugin, task_id, event.data["result"], full=push.use_result)

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
        await self._yard.state.tasks.record_push(str(event.data["id"]), note)


def router(yard: Yard, feed: Feed, access: Access, pushes: Pushes) -> Routes:
    routes = Routes(scope=EVENT_SCOPES)

    @routes.websocket("/ws")
    async def events(socket: WebSocket) -> None:
        principal = get_principal(socket.scope)
        cursor = await _parse_cursor(socket.query_params.get("cursor"), feed)
        if cursor is None:
            await deny_websocket(socket, HTTPStatus.BAD_REQUEST, "'cursor' must be the number of the last event read")
            return
        follower = Follower(cursor)
        await socket.accept("bearer" if "bearer" in socket.scope["subprotocols"] else None)
        client = WebSocketClient(
            socket,
            feed,
            access,
            principal,
            encode=_encode_all if principal.is_admin else _encode_approvals,
            receive=_accept_ping,
        )
        await client.serve(follower)

    for path, channel in (("/VCPlog/{key:path}", vcp_messages.LOG), ("/vcpinfo/{key:path}", vcp_messages.INFO)):
        if pushes.is_open:
            routes.websocket(path)(_VcpChannel(yard, feed, access, pushes, channel).connect)
        else:
            routes.allow(path, EVENT_SCOPES)  # who may use it is told that it is closed
    return routes


class _VcpChannel:
    """A channel of VCPToolBox: new events in its format."""

    def __init__(self, yard: Yard, feed: Feed, access: Access, pushes: Pushes, name: str) -> None:
        self._yard, self._feed, self._access, self._pushes, self._name = yard, feed, access, pushes, name

    async def connect(self, socket: WebSocket, key: str) -> None:  # noqa: ARG002 the middleware has checked it
        principal = get_principal(socket.scope)
        follower = Follower(await self._feed.read_newest_seq())
        sees_all = principal.is_admin or principal.key_id == INSTALLATION

        async def receive(message: JsonObject) -> bool:
            return await self._receive(message, principal)

        def encode(event: ClientEvent) -> list[str]:
            if not sees_all and not event.type.startswith("approval."):
                return []
            return [_to_text(message) for message in self._list_messages(event)]

        with self._pushes.subscribe(follower, self._name) if sees_all else contextlib.nullcontext():
            await socket.accept()
            await socket.send_text(_to_text(vcp_messages.connected_message(self._name)))
            client = WebSocketClient(socket, self._feed, self._access, principal, encode=encode, receive=receive)
            async with self._pushes.send_to(socket, self._name) if sees_all else contextlib.nullcontext():
                await client.serve(follower)

    def _list_messages(self, event: ClientEvent) -> list[JsonObject]:
        data = event.data
        log = self._name == vcp_messages.LOG
        if log and event.type == "call.finished":
            return [vcp_messages.log_line(data)]
        if event.type == "call.finished":
            action = vcp_messages.action_message(data)
            return [action] if action else []
        if log and event.type == "approval.requested":
            moment = datetime.fromtimestamp(event.at, UTC).astimezone(self._yard.state.zone)
            return [vcp_messages.approval_request(data, event.at, moment.isoformat(timespec="milliseconds"))]
        push = self._pushes.make_message(event, self._name)
        return [push] if push else []

    async def _receive(self, message: JsonObject, principal: Principal) -> bool:
        response = vcp_messages.parse_approval_response(message)
        if response is None:
            return isinstance(message.get("type"), str)  # clients send other messages too, such as heartbeats
        id_, allowed, reason = response
        if principal.can_approve:
            answering = self._yard.state.approvals.answer(id_, allowed=allowed, by=principal.actor, reason=reason)
            await asyncio.shield(answering)  # the answer counts even if the client leaves at once
        return True


async def _parse_cursor(text: str | None, feed: Feed) -> int | None:
    if text is None:
        return await feed.read_newest_seq()
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        return None
    return int(text)


def _encode_all(event: ClientEvent) -> list[str]:
    return [event.text]


def _encode_approvals(event: ClientEvent) -> list[str]:
    return [event.text] if event.type.startswith("approval.") or event.type == "gap" else []


async def _accept_ping(message: JsonObject) -> bool:
    """Accept pings only: clients of ``/ws`` send nothing else."""
    return message.get("type") == "ping"


def _to_text(message: JsonObject) -> str:
    return json_bytes(message).decode()


DELIVERY_S: Final = 5.0
MAX_PENDING: Final = 64
MAX_WAITING: Final = 200  # pushes for one client
_POLL_S = 0.05
_KINDS = ("task.succeeded", "task.failed", PUSH_AGAIN)


@dataclass(frozen=True, slots=True)
class _Listener:
    channel: str
    since: int  # number of the last event before it listened
