"""``/ws``: every event with its number; and VCPToolBox's channels, if enabled."""

import asyncio
import contextlib
from datetime import UTC, datetime
from http import HTTPStatus

from fastapi import APIRouter, WebSocket

from toolyard.dialects import vcp_server
from toolyard.protocol.json import JsonObject, json_bytes
from toolyard.web.feed import ClientEvent, Feed, Follower
from toolyard.web.pushes import Pushes
from toolyard.web.security.access import Access
from toolyard.web.security.principal import Principal, get_principal
from toolyard.web.websocket_client import WebSocketClient, deny_websocket
from toolyard.yard.yard import Yard


def router(yard: Yard, feed: Feed, access: Access, pushes: Pushes) -> APIRouter:
    routes = APIRouter()

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

    if pushes.is_open:
        for path, channel in (("/VCPlog/{key}", vcp_server.LOG), ("/vcpinfo/{key}", vcp_server.INFO)):
            routes.add_api_websocket_route(path, _VcpChannel(yard, feed, access, pushes, channel).connect)
    return routes


class _VcpChannel:
    """A channel of VCPToolBox: new events in its format."""

    def __init__(self, yard: Yard, feed: Feed, access: Access, pushes: Pushes, name: str) -> None:
        self._yard, self._feed, self._access, self._pushes, self._name = yard, feed, access, pushes, name

    async def connect(self, socket: WebSocket, key: str) -> None:  # noqa: ARG002 the middleware has checked it
        principal = get_principal(socket.scope)
        follower = Follower(await self._feed.read_newest_seq())

        async def receive(message: JsonObject) -> bool:
            return await self._receive(message, principal)

        def encode(event: ClientEvent) -> list[str]:
            if not principal.is_admin and not event.type.startswith("approval."):
                return []
            return [_to_text(message) for message in self._list_messages(event)]

        with self._pushes.subscribe(follower, self._name) if principal.is_admin else contextlib.nullcontext():
            await socket.accept()
            await socket.send_text(_to_text(vcp_server.connected_message(self._name)))
            await WebSocketClient(socket, self._feed, self._access, principal, encode=encode, receive=receive).serve(
                follower
            )

    def _list_messages(self, event: ClientEvent) -> list[JsonObject]:
        data = event.data
        log = self._name == vcp_server.LOG
        if log and event.type == "call.finished":
            return [vcp_server.log_line(data)]
        if event.type == "call.finished":
            action = vcp_server.action_message(data)
            return [action] if action else []
        if log and event.type == "approval.requested":
            moment = datetime.fromtimestamp(event.at, UTC).astimezone(self._yard.zone)
            return [vcp_server.approval_request(data, event.at, moment.isoformat(timespec="milliseconds"))]
        push = self._pushes.make_message(event, self._name)
        return [push] if push else []

    async def _receive(self, message: JsonObject, principal: Principal) -> bool:
        response = vcp_server.parse_approval_response(message)
        if response is None:
            return isinstance(message.get("type"), str)  # clients send other messages too, such as heartbeats
        id_, allowed, reason = response
        if principal.can_approve:
            answering = self._yard.approvals.answer(id_, allowed=allowed, by=principal.actor, reason=reason)
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
