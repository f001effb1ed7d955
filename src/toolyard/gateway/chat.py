"""Chat: the port between HTTP and the model providers.

A request with an id for its chat survives its client when it streams: it goes on, its reply is recorded, and ``follow``
gives every later piece. Any other request ends when its client leaves, with its model and its tools.
"""

import asyncio
import logging
import random
import re
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Final

from toolyard.gateway.ask import Ask
from toolyard.gateway.bounds import Bounds, bounds_of
from toolyard.gateway.chats import Chats, Entry, Recorded
from toolyard.gateway.contact import Contact
from toolyard.gateway.faults import ChatFailed, bad_request, written
from toolyard.gateway.host import Texts, Tools
from toolyard.gateway.interruption import Interrupted
from toolyard.gateway.prompt import filled
from toolyard.gateway.records import ChatRecord
from toolyard.gateway.shown import Show
from toolyard.gateway.turn import Turn
from toolyard.gateway.upstreams import Upstreams
from toolyard.gateway.vcp import EXTRAS, handle_of
from toolyard.gateway.whole import whole_answer
from toolyard.protocol.json import Json, JsonObject

_log = logging.getLogger(__name__)
EXTENSION: Final = "toolyard"  # for what OpenAI has no word for:
_SAID: Final = frozenset({"chat", "show", "tools", "mode"})
_ID = re.compile(r"[A-Za-z0-9_.-]{1,128}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRun:
    """An answer: whole in ``body``, or as it comes in ``pieces``."""

    id: str
    status: int = HTTPStatus.OK
    body: bytes = b""
    pieces: AsyncGenerator[bytes, None] | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a request says to the host and not to the model."""

    chat: str
    show: Show
    handle: str
    bounds: Bounds


class Chat:
    def __init__(
        self,
        upstreams: Upstreams,
        tools: Tools,
        texts: Texts,
        *,
        now: Callable[[], datetime],
        show: Show = Show.SUMMARY,
        nonce: bool = False,
    ) -> None:
        self._upstreams, self._tools, self._texts, self._now = upstreams, tools, texts, now
        self._show, self._nonce = show, nonce
        self._chats = Chats()
        self._leaving: dict[asyncio.Task[None], Upstreams] = {}  # providers that only running turns still need

    def change_upstreams(self, upstreams: Upstreams) -> None:
        """Turns from now on go to these; one that runs stays with the provider it began with."""
        before, self._upstreams = self._upstreams, upstreams
        self._leaving[task := asyncio.create_task(self._leave(before))] = before
        task.add_done_callback(self._leaving.pop)

    async def complete(
        self,
        body: JsonObject,
        *,
        caller: str,
        may_approve: bool = False,
        raw: bytes = b"",
        vcp: bool = False,
        chat: str = "",
        show: str = "",
    ) -> ChatRun:
        """Answer a chat request; faults are answers too. ``raw`` is ``body`` as it came, if it came as bytes."""
        try:
            wanted = self._wanted(body, may_approve=may_approve, vcp=vcp, chat=chat, show=show)
            turn = await self._turn(body, raw, caller, wanted)
            entry = self._begun(turn, wanted)
        except ChatFailed as failed:
            return self._failed("", failed)
        try:
            if entry.recorded is not None and turn.ask.streams:
                return await self._surviving(entry, turn, entry.recorded)
            return await (self._plain(entry, turn) if turn.ask.streams else self._whole(entry, turn))
        except ChatFailed as failed:
            return self._failed(turn.record.id, failed, turn.record)

    async def models(self) -> list[JsonObject]:
        return await self._upstreams.models()

    @property
    def upstreams(self) -> Upstreams:
        """The model providers that answer now."""
        return self._upstreams

    def contacts(self) -> dict[str, Contact]:
        """When each model provider last answered or failed, since these providers were set."""
        return self._upstreams.contacts()

    def interrupt(self, *, caller: str, request_id: str = "", chat: str = "") -> bool:
        return self._chats.interrupt(caller, handle=request_id, chat=chat)

    def record(self, chat: str, caller: str) -> JsonObject | None:
        """What was sent to the model in a chat of this caller, and what its tools did."""
        entry = self._chats.get(caller, chat)
        if entry is None:
            return None
        cursor: Json = entry.recorded.cursor if entry.recorded else None
        return entry.record.to_dict() | {"cursor": cursor}

    def follow(self, chat: str, cursor: int, caller: str) -> AsyncGenerator[bytes, None] | None:
        """The events of a surviving chat behind ``cursor``; None when there is no such chat."""
        entry = self._chats.get(caller, chat)
        return entry.recorded.follow(cursor) if entry and entry.recorded else None

    async def close(self) -> None:
        await self._chats.close()
        await self._upstreams.close()
        for task, upstreams in (leaving := dict(self._leaving)).items():
            task.cancel()
            await upstreams.close()  # not by the task: it may not have had its first step
        if leaving:
            await asyncio.wait(leaving)

    def _wanted(self, body: JsonObject, *, may_approve: bool, vcp: bool, chat: str, show: str) -> _Wanted:
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            raise bad_request("'messages' must be a list with at least one message")
        if not isinstance(body.get("model", ""), str):
            raise bad_request("'model' must be a text")
        if not isinstance(body.get("stream"), bool | None):
            raise bad_request("'stream' must be true or false")
        said = {} if body.get(EXTENSION) is None else body[EXTENSION]
        if not isinstance(said, dict) or not said.keys() <= _SAID:
            odd = f", not of '{min(said.keys() - _SAID)[:50]}'" if isinstance(said, dict) else ""
            raise bad_request(f"'{EXTENSION}' is an object of {', '.join(sorted(_SAID))}{odd}")
        chat = str(said.get("chat") or chat)
        if chat and not _ID.fullmatch(chat):
            raise bad_request("the id of a chat has 1 to 128 letters, digits, '_', '.' or '-'")
        form = str(said.get("show") or show)
        if form and form not in list(Show):
            raise bad_request(f"'show' is one of {', '.join(Show)}, not '{form[:50]}'")
        usual = Show.RAW if vcp else self._show
        if not vcp and usual is not Show.EVENTS and _wants_json(body):
            usual = Show.HIDDEN  # a line about a call would make it no JSON
        return _Wanted(chat, Show(form) if form else usual, handle_of(body), bounds_of(said, may_approve=may_approve))

    async def _leave(self, upstreams: Upstreams) -> None:
        await self._chats.outlived()
        await upstreams.idle()
        await upstreams.close()

    async def _turn(self, body: JsonObject, raw: bytes, caller: str, wanted: _Wanted) -> Turn:
        nonce = secrets.token_hex(4) if self._nonce else None
        messages = body["messages"]
        prompt = await filled(messages if isinstance(messages, list) else [], self._texts, caller, nonce)
        model = str(body.get("model") or "")
        upstream, name = self._upstreams.pick(model)  # from here to the books without a pause: it may be leaving
        changes: JsonObject = {"messages": prompt.messages} if prompt.changed else {}
        changes |= {"model": name} if name != model else {}
        ours = [key for key in (*EXTRAS, EXTENSION) if key in body]
        if changes or ours or not raw:
            body = {key: value for key, value in body.items() if key not in ours} | changes
            raw = written(body)
        several = body.get("n") not in (None, 1)
        ask = Ask(
            caller=caller,
            body=body,
            raw=raw,
            show=wanted.show,
            looks=not prompt.forbids_tools and not several,
            nonce=nonce,
        )
        now = self._now().timestamp()
        id_ = wanted.chat or f"chat_{random.getrandbits(128):032x}"  # nobody sees another's, so it may be guessed
        record = ChatRecord(id=id_, caller=caller, model=name, started=now)
        return Turn(ask, upstream, self._tools, record, int(now), bounds=wanted.bounds)

    def _begun(self, turn: Turn, wanted: _Wanted) -> Entry:
        """The turn in the books. Raises ChatFailed while another one of its chat runs."""
        before = self._chats.get(turn.ask.caller, wanted.chat)
        if before is not None and before.turn is not None:
            raise bad_request(f"the chat '{wanted.chat}' is still running", "chat_busy", HTTPStatus.CONFLICT)
        entry = Entry(turn.record, wanted.handle, turn)
        entry.recorded = before.recorded if before else None
        if wanted.chat and turn.ask.streams:
            entry.recorded = entry.recorded or Recorded()
            entry.recorded.begin()
        self._chats.begin(entry)
        return entry

    async def _whole(self, entry: Entry, turn: Turn) -> ChatRun:
        try:
            await turn.open()
            body = await whole_answer(turn)
        finally:
            self._chats.end(entry)
        return ChatRun(id=turn.record.id, body=body)

    async def _plain(self, entry: Entry, turn: Turn) -> ChatRun:
        try:
            await turn.open()
        except BaseException:
            self._chats.end(entry)
            raise
        passing = self._passing(entry, turn)
        await anext(passing)  # one that has not begun would not end its turn when it is closed
        return ChatRun(id=turn.record.id, pieces=passing)

    async def _passing(self, entry: Entry, turn: Turn) -> AsyncGenerator[bytes, None]:
        try:
            yield b""
            async with aclosing(turn.pieces()) as pieces:
                async for piece in pieces:
                    yield piece
        except (asyncio.CancelledError, GeneratorExit):
            turn.record.failed("the client left")
            raise
        finally:
            self._chats.end(entry)

    async def _surviving(self, entry: Entry, turn: Turn, recorded: Recorded) -> ChatRun:
        begun = recorded.cursor
        opening = entry.opening = asyncio.create_task(turn.open())
        opening.add_done_callback(lambda _: self._opened(entry, turn, recorded, opening))
        await asyncio.shield(opening)  # the client may leave before the model has said a word
        headers = {"X-Toolyard-Cursor": str(begun)}
        return ChatRun(id=turn.record.id, pieces=recorded.follow(begun), headers=headers)

    def _opened(self, entry: Entry, turn: Turn, recorded: Recorded, opening: asyncio.Task[None]) -> None:
        entry.opening = None
        failed = asyncio.CancelledError() if opening.cancelled() else opening.exception()
        if failed is None:
            entry.task = asyncio.create_task(self._record(entry, turn, recorded))
            return
        if isinstance(failed, ChatFailed):
            fault = failed.fault.masked(self._tools.mask)
            turn.record.failed(fault.message)
            recorded.put(fault.event())
        else:
            turn.record.failed(str(failed) or "It was stopped before the model was asked.")
            if not opening.cancelled():
                _log.error("the turn %s could not begin", turn.record.id, exc_info=failed)
        self._chats.end(entry)

    async def _record(self, entry: Entry, turn: Turn, recorded: Recorded) -> None:
        try:
            async with aclosing(turn.pieces()) as pieces:
                async for piece in pieces:
                    recorded.put(piece)
                    with suppress(Interrupted), turn.interruption.stops():
                        await recorded.room()
        finally:
            self._chats.end(entry)

    def _failed(self, chat: str, failed: ChatFailed, record: ChatRecord | None = None) -> ChatRun:
        fault = failed.fault.masked(self._tools.mask)
        if record is not None:
            record.failed(fault.message)
        headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
        return ChatRun(id=chat, status=fault.status, body=fault.body(), headers=headers)


def _wants_json(body: JsonObject) -> bool:
    wanted = body.get("response_format")
    return isinstance(wanted, dict) and wanted.get("type") in ("json_object", "json_schema")
