"""The stored responses, as requests go on from them: a request is read with what it follows, and an end is stored.

A response is stored once somebody has its end. What the client sends next waits for that.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Final

from toolyard.engine.chats.responses import MAX_CHAIN, MAX_HISTORY, OPEN, KeptResponse, KeptResponses
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.faults import ChatFailed, bad_request
from toolyard.gateway.protocols.chat_body import objects
from toolyard.gateway.protocols.responses.client_request import (
    ResponsesRequest,
    check_request,
    list_references,
    parse_request,
)
from toolyard.gateway.protocols.responses.input_items import response_of
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject, json_bytes

_CLOSE_S: Final = 5.0
_TRIES: Final = 3


@dataclass(slots=True)
class Session:
    """The newest response of a connection that stays: its client may go on from it although it is not stored."""

    id: str = ""
    items: tuple[JsonObject, ...] = ()
    size: int = 0  # bytes of the items

    def remember(self, response: JsonObject, request: "LoadedRequest") -> None:
        """Remember a response with the conversation before it, unless it failed or is too long."""
        added = (*request.asked.items, *objects(response.get("output")))
        is_next = bool(request.previous) and request.previous == self.id
        size = (self.size if is_next else len(json_bytes([*request.before]))) + len(json_bytes([*added]))
        if response["status"] in ("completed", "incomplete") and size <= MAX_HISTORY:
            self.id, self.items, self.size = str(response["id"]), (*request.before, *added), size
        else:
            self.forget(self.id)

    def forget(self, id_: Json) -> None:
        """Forget a response from which a request could not go on."""
        if id_ == self.id:
            self.id, self.items, self.size = "", (), 0


@dataclass(frozen=True, slots=True)
class LoadedRequest:
    """A request with what it goes on from."""

    sent: ClientRequest
    asked: ResponsesRequest
    previous: str  # the id of the response that it follows
    before: list[JsonObject]  # the items of the conversation up to it
    session: Session | None = None


class StoredResponses:
    def __init__(self, kept: KeptResponses) -> None:
        self._kept = kept
        self._storing: dict[str, asyncio.Task[KeptResponse | None]] = {}  # by the ids of responses

    # --- requests

    async def load(self, sent: ClientRequest, session: Session | None = None) -> LoadedRequest:
        """Read a request with what it goes on from. Raises ChatFailed."""
        previous, before = await self._load_before(sent, session)
        asked = parse_request(sent.body, before, await self._load_named(sent))
        return LoadedRequest(sent, asked, previous, before, session)

    async def _load_before(self, sent: ClientRequest, session: Session | None) -> tuple[str, list[JsonObject]]:
        """Return the response that a request follows, and the items of the conversation up to it. Raises ChatFailed."""
        previous, conversation = check_request(sent.body)
        if session is not None and previous and previous == session.id:
            return previous, list(session.items)
        if not previous and not conversation:
            return "", []
        await self._wait_for_storing()
        if conversation:
            newest = await self._kept.find_newest(sent.caller, conversation)
            if newest is None:
                return "", []
        else:
            newest = await self._kept.get(sent.caller, previous)
        items = await self._kept.list_items(newest) if newest is not None and newest.state not in OPEN else None
        if newest is None or items is None:
            raise _previous_not_found(previous or conversation)
        return newest.id, items

    async def _load_named(self, sent: ClientRequest) -> list[JsonObject]:
        """Return the items of the responses whose items a request names."""
        named = dict.fromkeys(map(response_of, list_references(sent.body)))
        if named:
            await self._wait_for_storing()
        found = [await self._kept.get(sent.caller, id_) for id_ in list(named)[:MAX_CHAIN]]
        return [item for one in found if one is not None for item in (*one.items, *one.output)]

    # --- responses

    async def get(self, caller: str, id_: str) -> KeptResponse | None:
        """Return a response of this caller."""
        await self._wait_for_storing()
        return await self._kept.get(caller, id_)

    async def delete(self, caller: str, id_: str) -> bool:
        await self._wait_for_storing()
        return await self._kept.delete(caller, id_)

    def store(self, kept: KeptResponse) -> None:
        """Store a response that has ended, once."""
        if kept.id in self._storing:
            return
        task = self._storing[kept.id] = asyncio.create_task(self._commit(kept))
        task.add_done_callback(lambda _: self._storing.pop(kept.id, None))

    async def _commit(self, kept: KeptResponse) -> KeptResponse | None:
        for _ in range(_TRIES):  # its beginning may be stored at the same moment
            stored = await self._kept.get(kept.caller, kept.id)
            if stored is not None and stored.state not in OPEN:
                return stored  # somebody else has read the same end
            version = stored.version if stored else 0
            if (done := await self._kept.keep(replace(kept, version=version))) is not None:
                return done
        return None

    async def _wait_for_storing(self) -> None:
        """Wait until the responses that clients have by now are stored."""
        if self._storing:
            await asyncio.wait([*self._storing.values()])

    async def close(self) -> None:
        """Wait until what has ended is stored."""
        if self._storing:
            await asyncio.wait([*self._storing.values()], timeout=_CLOSE_S)


def _previous_not_found(id_: str) -> ChatFailed:
    message = Message("Previous response with id '{id}' not found.", id=id_[:100])
    return bad_request(message, "previous_response_not_found", param="previous_response_id")
