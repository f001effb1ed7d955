"""``/ws``: every event with its number; and VCPToolBox's channels, when the owner has turned them on."""

import asyncio
import contextlib
from datetime import UTC, datetime
from http import HTTPStatus
from typing import cast

from fastapi import APIRouter, WebSocket

from toolyard.app import Yard
from toolyard.dialects import vcp_server
from toolyard.protocol.json import JsonObject, json_bytes
from toolyard.web.access import Access, Visitor
from toolyard.web.edge import VISITOR
from toolyard.web.feed import Feed, Follower, Told
from toolyard.web.pushes import Pushes
from toolyard.web.scope import Scope
from toolyard.web.sockets import Client, deny


def router(yard: Yard, feed: Feed, access: Access, pushes: Pushes) -> APIRouter:
    routes = APIRouter()

    @routes.websocket("/ws")
    async def events(socket: WebSocket) -> None:
        visitor = cast("Visitor", socket.scope[VISITOR])
        cursor = await _cursor(socket.query_params.get("cursor"), feed)
        if cursor is None:
            await deny(socket, HTTPStatus.BAD_REQUEST, "'cursor' is the number of the last event that was read")
            return
        follower = Follower(cursor)
        await socket.accept("bearer" if "bearer" in socket.scope["subprotocols"] else None)
        client = Client(socket, feed, access, visitor, say=_all if visitor.is_admin else _approvals, hear=_nothing)
        await client.serve(follower)

    if pushes.is_open:
        for path, channel in (("/VCPlog/{key}", vcp_server.LOG), ("/vcpinfo/{key}", vcp_server.INFO)):
            routes.add_api_websocket_route(path, _Channel(yard, feed, access, pushes, channel).connect)
    return routes


class _Channel:
    """A channel of VCPToolBox: what happens from now on, in its words."""

    def __init__(self, yard: Yard, feed: Feed, access: Access, pushes: Pushes, name: str) -> None:
        self._yard, self._feed, self._access, self._pushes, self._name = yard, feed, access, pushes, name
        self._zone = yard.config.zone

    async def connect(self, socket: WebSocket, key: str) -> None:  # noqa: ARG002 the edge has looked at it
        visitor = cast("Visitor", socket.scope[VISITOR])
        follower = Follower(await self._feed.newest())

        async def hear(said: JsonObject) -> bool:
            return await self._hear(said, visitor)

        def say(told: Told) -> list[str]:
            if not visitor.is_admin and not told.type.startswith("approval."):
                return []
            return [_text(message) for message in self._messages(told)]

        with self._pushes.listening(follower, self._name) if visitor.is_admin else contextlib.nullcontext():
            await socket.accept()
            await socket.send_text(_text(vcp_server.connected_message(self._name)))
            await Client(socket, self._feed, self._access, visitor, say=say, hear=hear).serve(follower)

    def _messages(self, told: Told) -> list[JsonObject]:
        data = told.data
        log = self._name == vcp_server.LOG
        if log and told.type == "call.finished":
            failed, content = data.get("error") is not None, str(data.get("text", ""))
            return [vcp_server.log_line(str(data["tool"]), failed=failed, content=content)]
        if log and told.type == "approval.requested":
            moment = datetime.fromtimestamp(told.at, UTC).astimezone(self._zone)
            return [vcp_server.approval_request(data, told.at, moment.isoformat(timespec="milliseconds"))]
        push = self._pushes.message(told, self._name)
        return [push] if push else []

    async def _hear(self, said: JsonObject, visitor: Visitor) -> bool:
        response = vcp_server.parse_approval_response(said)
        if response is None:
            return isinstance(said.get("type"), str)  # clients say other things too, such as heartbeats
        id_, allowed, reason = response
        if visitor.may(frozenset({Scope.APPROVE})):
            answering = self._yard.approvals.answer(id_, allowed=allowed, by=visitor.caller, reason=reason)
            await asyncio.shield(answering)  # it was said, also when they leave at once
        return True


async def _cursor(text: str | None, feed: Feed) -> int | None:
    if text is None:
        return await feed.newest()
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        return None
    return int(text)


def _all(told: Told) -> list[str]:
    return [told.text]


def _approvals(told: Told) -> list[str]:
    return [told.text] if told.type.startswith("approval.") or told.type == "gap" else []


async def _nothing(said: JsonObject) -> bool:
    """Clients of ``/ws`` have nothing to say."""
    return said.get("type") == "ping"


def _text(message: JsonObject) -> str:
    return json_bytes(message).decode()
