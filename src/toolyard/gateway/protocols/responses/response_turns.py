"""The turns of Responses clients: created, gone on with, stored, and continued in the background.

A response is a rendering of the log of one turn, from its beginning or from where an earlier response has asked for
approval. It is stored once somebody has its end: the client that reads it, or, of one in the background, this module,
which listens to its log. What the client sends next waits for that.

A background response whose host has died is continued from the calls that are stored (``engine.chats.turns``), once.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Final
from uuid import uuid4

from toolyard.engine.approvals import Approvals
from toolyard.engine.chats.responses import MAX_CHAIN, OPEN, KeptResponse, KeptResponses, ResponseState
from toolyard.engine.clock import Clock
from toolyard.engine.ownership import IsAlive, is_owner_alive
from toolyard.gateway.chat_request import EXTENSION, OFFER_HEADER, ClientRequest
from toolyard.gateway.chats import Chat
from toolyard.gateway.faults import ChatFailed, ChatFault, bad_request
from toolyard.gateway.native_requests import is_plain, make_outgoing
from toolyard.gateway.offer_policy import split_alias
from toolyard.gateway.protocols.chat import CHAT
from toolyard.gateway.protocols.responses.client_answer import ResponseWriter, find_start
from toolyard.gateway.protocols.responses.client_request import (
    SESSION_HEADERS,
    TURN_HEADER,
    ResponsesRequest,
    check_request,
    list_references,
    parse_request,
    read_turn,
    strip_chat_headers,
)
from toolyard.gateway.protocols.responses.forwarded import pass_on
from toolyard.gateway.protocols.responses.input_items import COMPACTION_TRIGGER, approval_of, list_items, response_of
from toolyard.gateway.protocols.responses.rendering import ResponsesRendering, first_response_id, response_id
from toolyard.gateway.turns.display import Show
from toolyard.gateway.turns.rendering import ClientAnswer, render_failure
from toolyard.gateway.turns.turn_keeper import SingleRun
from toolyard.gateway.turns.turn_log import TurnLog
from toolyard.message import Message
from toolyard.protocol.access import ApprovalState
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_value
from toolyard.provider_settings import ProviderProtocol
from toolyard.settings import OfferMode

BACKGROUND_S: Final = 86_400.0  # for which a turn in the background goes on after a reader has left
MAX_BACKGROUND: Final = 200  # responses at the same time
_CLOSE_S = 5.0
_TRIES = 3


@dataclass(slots=True)
class Session:
    """The newest response of a connection that stays: its client may go on from it although it is not stored."""

    id: str = ""
    items: tuple[JsonObject, ...] = ()

    def forget(self, id_: Json) -> None:
        """Forget a response from which a request could not go on."""
        if id_ == self.id:
            self.id, self.items = "", ()


@dataclass(slots=True)
class _Background:
    log: TurnLog
    rendering: ResponsesRendering
    writer: ResponseWriter
    caller: str


class ResponseTurns:
    def __init__(self, chat: Chat, kept: KeptResponses, approvals: Approvals, clock: Clock) -> None:
        self._chat, self._kept, self._approvals, self._clock = chat, kept, approvals, clock
        self._storing: dict[str, asyncio.Task[KeptResponse | None]] = {}  # by the ids of responses
        self._background: dict[str, _Background] = {}

    async def create(
        self, sent: ClientRequest, single: SingleRun | None = None, session: Session | None = None
    ) -> ClientAnswer:
        """Answer a request; ``sent.body`` is as its client sent it. Faults are answers too."""
        try:
            previous, before = await self._load_before(sent, session)
            asked = parse_request(sent.body, before, await self._load_named(sent))
            if asked.answers:
                return await self._go_on(sent, asked, previous)
            if asked.is_background:
                return await self._start_background(sent, asked, previous)
            if asked.is_warm_up:
                return self._warm_up(self._render(asked, sent, previous, session, before))
            if (forwarded := await self._forward(sent, asked, previous)) is not None:
                return forwarded
        except ChatFailed as failed:
            return render_failure(CHAT, failed.fault)
        rendering = self._render(asked, sent, previous, session, before)
        return await self._chat.complete(_to_chat(sent, asked), single, rendering)

    def _warm_up(self, rendering: ResponsesRendering) -> ClientAnswer:
        """Answer a request that only begins a conversation: nothing is asked of a model."""
        answer = rendering.render_empty(f"resp_{uuid4().hex}")
        return ClientAnswer(pieces=_single_piece(answer)) if rendering.is_streamed else ClientAnswer(body=answer)

    async def _forward(self, sent: ClientRequest, asked: ResponsesRequest, previous: str) -> ClientAnswer | None:
        """Send a request on as it came, if no turn is needed; what is to be stored is. Raises ChatFailed."""
        chat, protocol = self._chat, ProviderProtocol.RESPONSES
        if previous or asked.conversation or not sent.raw or not await is_plain(chat, _to_chat(sent, asked), protocol):
            return None
        request, has_extension = sent.body, EXTENSION in sent.body
        model, _ = split_alias(str(request.get("model") or ""))
        request = {key: value for key, value in request.items() if key != EXTENSION} if has_extension else request
        outgoing = make_outgoing("/responses", b"" if has_extension else sent.raw, request, chat.mask, {})
        forwarded = await chat.upstreams.forward(model, outgoing, protocol)
        return await pass_on(chat, forwarded, partial(self._keep_forwarded, sent, asked) if asked.is_stored else None)

    def _keep_forwarded(self, sent: ClientRequest, asked: ResponsesRequest, response: JsonObject) -> None:
        """Store a response under the id that its provider gave it."""
        id_, state = response.get("id"), response.get("status")
        if isinstance(id_, str) and state in ("completed", "incomplete"):
            kept = KeptResponse(
                id=id_, caller=sent.caller, state=ResponseState(state), created=self._now(),
                items=tuple(_name_items(id_, asked.items)), response=response, request={}, rights={},
            )  # fmt: skip
            self._begin_storing(kept)

    # --- what came before

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

    async def _parse_again(self, sent: ClientRequest) -> ResponsesRequest:
        """Read the request of a stored response once more. Raises ChatFailed."""
        _, before = await self._load_before(sent, None)
        return parse_request(sent.body, before, await self._load_named(sent))

    async def _wait_for_storing(self) -> None:
        """Wait until the responses that clients have by now are stored."""
        if self._storing:
            await asyncio.wait([*self._storing.values()])

    # --- a turn that waits for approvals

    async def _go_on(self, sent: ClientRequest, asked: ResponsesRequest, previous: str) -> ClientAnswer:
        """Answer the questions of an earlier response, and go on with its turn. Raises ChatFailed."""
        chat = ""
        for answer in asked.answers:
            id_ = approval_of(answer.request)
            approval = await self._approvals.get(id_)
            if approval is None or approval.caller != sent.caller:
                message = Message("there is no approval request '{id}'", id=answer.request[:100])
                raise bad_request(message, "approval_not_found", param="input")
            chat = approval.chat or ""
            if approval.state is ApprovalState.PENDING:
                if answer.is_allowed and not sent.may_approve:
                    raise _may_not_approve()
                await self._approvals.answer(id_, allowed=answer.is_allowed, by=sent.caller, reason=answer.reason)
        log = self._chat.find_log(sent.caller, chat)
        first = approval_of(asked.answers[0].request)
        place = find_start(log, first) if log is not None else None
        if log is None:
            log, place = await self._restart_asked(sent.caller, chat), (0, 0)
        if place is None:
            raise _turn_is_over()
        rendering = replace(self._render(asked, sent, previous), start=place[0], number=place[1])
        return await self._chat.read(log, rendering)

    async def _restart_asked(self, caller: str, chat: str) -> TurnLog:
        """Continue a turn that has asked, after its host has died: its first response has the request. Raises
        ChatFailed."""
        kept = await self._kept.get(caller, first_response_id(chat))
        if kept is None or not kept.request:
            raise _turn_is_over()
        again = _to_sent(kept)
        asked = await self._parse_again(again)
        return await self._chat.start(replace(_to_chat(again, asked), is_repeat=True), BACKGROUND_S)

    # --- in the background

    async def _start_background(self, sent: ClientRequest, asked: ResponsesRequest, previous: str) -> ClientAnswer:
        """Begin a turn that goes on without its client. Raises ChatFailed."""
        if sum(one.log.is_running for one in self._background.values()) >= MAX_BACKGROUND:
            raise _too_many()
        rendering = self._render(asked, sent, previous)
        chat = replace(_to_chat(sent, asked), turn=f"chat_{uuid4().hex}")
        log = await self._chat.start(chat, BACKGROUND_S)
        id_ = response_id(log)
        response: JsonObject = rendering.describe(log)
        if id_ not in self._background:
            self._listen(id_, log, rendering, sent.caller)
            kept = self._to_kept(id_, log.record.started, rendering, response | {"status": "in_progress"})
            await self._kept.keep(replace(kept, state=ResponseState.IN_PROGRESS, request=sent.body))
        if asked.is_streamed:
            return await self._chat.read(log, rendering)
        return ClientAnswer(id=log.record.id, body=json_bytes(response | {"status": "queued"}))

    def _listen(self, id_: str, log: TurnLog, rendering: ResponsesRendering, caller: str) -> None:
        """Store a response at its end, whoever reads it."""
        writer = rendering.open_writer(log)
        self._background[id_] = _Background(log, rendering, writer, caller)
        for entry in log.entries():
            writer.take(entry.event)
        log.listen(lambda entry: writer.take(entry.event))
        for name, one in list(self._background.items()):
            if not one.log.is_running and self._chat.find_log(one.caller, one.log.record.id) is not one.log:
                del self._background[name]  # its events had no more room

    async def resume(self, alive: IsAlive = is_owner_alive) -> None:
        """Continue the background responses of dead hosts."""
        async for kept in self._kept.find_orphans(alive):
            if kept.id not in self._background:
                await self._resume_one(kept)

    async def _resume_one(self, kept: KeptResponse) -> None:
        if not kept.request or kept.restarts:
            why = Message("The server was restarted while this response was being made.")
            await self._kept.keep(_fail(kept, why))
            return
        taken = await self._kept.keep(replace(kept, restarts=kept.restarts + 1))
        if taken is None:
            return  # another host was faster
        again = _to_sent(kept)
        try:
            asked = await self._parse_again(again)
            chat = replace(_to_chat(again, asked), is_repeat=True, turn=f"chat_{kept.id.removeprefix('resp_')}")
            log = await self._chat.start(chat, BACKGROUND_S)
        except ChatFailed as failed:
            await self._kept.keep(_fail(taken, failed.fault.message))
            return
        self._listen(kept.id, log, self._render(asked, again, kept.previous), kept.caller)

    # --- stored responses

    def _render(
        self,
        asked: ResponsesRequest,
        sent: ClientRequest,
        previous: str,
        session: Session | None = None,
        before: list[JsonObject] | None = None,
    ) -> ResponsesRendering:
        def end(created: float, rendering: ResponsesRendering, response: JsonObject) -> None:
            if session is not None:
                is_good = response["status"] in ("completed", "incomplete")
                session.id = str(response["id"]) if is_good else ""
                session.items = (*(before or ()), *asked.items, *_items(response)) if is_good else ()
            if asked.is_stored:
                self._store(created, rendering, response)

        return ResponsesRendering(
            asked=asked, caller=sent.caller, previous=previous, rights=_to_rights(sent), on_end=end,
            now=self._now, is_streamed=asked.is_streamed,
        )  # fmt: skip

    def _store(self, created: float, rendering: ResponsesRendering, response: JsonObject) -> None:
        """Store a response that has ended. One that the end of the server cut off is continued by the next."""
        id_ = str(response["id"])
        is_cut = self._chat.is_stopping and response["status"] == "failed" and rendering.asked.is_background
        if id_ in self._storing or is_cut:
            return
        self._begin_storing(self._to_kept(id_, created, rendering, dict(response)))

    def _begin_storing(self, kept: KeptResponse) -> None:
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

    def _to_kept(self, id_: str, created: float, rendering: ResponsesRendering, response: JsonObject) -> KeptResponse:
        asked = rendering.asked
        asks = any(item.get("type") == "mcp_approval_request" for item in _items(response))
        return KeptResponse(
            id=id_, caller=rendering.caller, state=ResponseState(str(response["status"])),
            created=created, previous=rendering.previous, conversation=asked.conversation,
            items=tuple(_name_items(id_, asked.items)), response=response, request=asked.sent if asks else {},
            rights=rendering.rights,
        )  # fmt: skip

    async def get(self, caller: str, id_: str) -> KeptResponse | None:
        """Return a response of this caller, as far as it has come."""
        await self._wait_for_storing()
        kept = await self._kept.get(caller, id_)
        running = self._background.get(id_)
        if kept is not None and kept.state in OPEN and running is not None:
            return replace(kept, response=dict(running.writer.response))
        return kept

    async def delete(self, caller: str, id_: str) -> bool:
        await self._wait_for_storing()
        running = self._background.get(id_)
        if running is not None and running.caller == caller:
            del self._background[id_]
            self._chat.interrupt(caller=caller, chat=running.log.record.id)
        return await self._kept.delete(caller, id_)

    async def cancel(self, caller: str, id_: str) -> KeptResponse | None:
        """Stop a response in the background; one that has ended stays as it is. Raises ChatFailed."""
        kept = await self.get(caller, id_)
        if kept is None:
            return None
        if kept.response.get("background") is not True:
            raise bad_request(Message("only a response in the background can be cancelled"), "not_in_background")
        running = self._background.get(id_)
        if running is not None and running.log.is_running:
            self._chat.interrupt(caller=caller, chat=running.log.record.id)
            await running.log.wait_for_end()
        elif kept.state in OPEN:
            if is_owner_alive(kept.owner) and kept.owner != self._kept.owner:
                message = Message("this response runs on another host: cancel it there, or try again later")
                raise bad_request(message, "in_progress", HTTPStatus.CONFLICT)
            ended = {**kept.response, "status": "cancelled"}
            await self._kept.keep(replace(kept, state=ResponseState.CANCELLED, response=ended, request={}))
        return await self.get(caller, id_)

    async def follow(self, caller: str, id_: str, after: int) -> ClientAnswer | None:
        """Stream the events of a background response after a number; None when there is no such response."""
        running = self._background.get(id_)
        if running is not None and running.caller == caller:
            return await self._chat.read(running.log, replace(running.rendering, is_streamed=True, after=after))
        if await self.get(caller, id_) is None:
            return None
        message = Message("the events of this response are no longer kept: get it without 'stream'")
        return render_failure(CHAT, bad_request(message, "events_not_kept", param="stream").fault)

    # --- beside responses

    async def count_tokens(self, sent: ClientRequest) -> ClientAnswer:
        """Estimate the tokens of a request, with the tools that it would be offered. Faults are answers too."""
        try:
            _, before = await self._load_before(sent, None)
            asked = parse_request(sent.body, before, await self._load_named(sent))
            tokens = await self._chat.estimate_tokens(_to_chat(sent, asked))
        except ChatFailed as failed:
            return render_failure(CHAT, failed.fault)
        counted: JsonObject = {"object": "response.input_tokens", "input_tokens": tokens}
        return ClientAnswer(body=json_bytes(counted | {"toolyard": {"estimate": True}}))

    async def compact(self, sent: ClientRequest) -> ClientAnswer:
        """Return the summary of a conversation, written by its model. Faults are answers too."""
        request = sent.body
        try:
            if not request.get("model"):
                raise bad_request(Message("'model' is missing: it writes the summary"), param="model")
            items: list[Json] = [*list_items(request.get("input", [])), {"type": COMPACTION_TRIGGER}]
        except ChatFailed as failed:
            return render_failure(CHAT, failed.fault)
        alone: JsonObject = {"input": items, "stream": False, "store": False, "background": False}
        answer = await self.create(replace(sent, body=request | alone))
        if answer.status != HTTPStatus.OK:
            return answer
        response = json_value(answer.body)
        compacted: JsonObject = {"object": "response.compaction"}
        compacted |= {key: response[key] for key in ("id", "created_at", "output", "usage")}
        return ClientAnswer(body=json_bytes(compacted))

    def _now(self) -> float:
        return self._clock.now().timestamp()

    async def close(self) -> None:
        """Wait until what has ended is stored."""
        if self._storing:
            await asyncio.wait([*self._storing.values()], timeout=_CLOSE_S)


async def _single_piece(piece: bytes) -> AsyncGenerator[bytes, None]:
    yield piece


def _items(response: JsonObject) -> list[JsonObject]:
    output = response.get("output")
    return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []


def _name_items(response: str, items: list[JsonObject]) -> list[JsonObject]:
    """Return the input of a response with an id for each item, and its text in parts, as clients list it."""
    hex_ = response.removeprefix("resp_")
    made: list[JsonObject] = []
    for at, item in enumerate(items):
        kind, content = item.get("type") or "message", item.get("content")
        part = "output_text" if item.get("role") == "assistant" else "input_text"
        texts: list[Json] = [{"type": part, "text": content}]
        parts: JsonObject = {"content": texts} if isinstance(content, str) else {}
        made.append({"id": f"in_{hex_}_{at}", **item, "type": kind, **parts})
    return made


def _to_chat(sent: ClientRequest, asked: ResponsesRequest) -> ClientRequest:
    turn = read_turn(sent.body, sent.headers)
    no_tools: JsonObject = {EXTENSION: {"offer": OfferMode.NONE}} if turn.is_side else {}
    return ClientRequest(
        asked.body | no_tools,
        caller=sent.caller,
        headers=strip_chat_headers(sent.headers),
        show=Show.EVENTS,
        may_approve=sent.may_approve,
        key_offer=sent.key_offer,
        identity=asked.identify(is_turn_named=turn.is_named),
        conversation=turn.conversation,
        is_repeat=turn.is_named,
        own_calls=asked.own_calls,
        max_calls=asked.max_calls,
    )


_KEPT_HEADERS = (OFFER_HEADER.lower(), TURN_HEADER, *SESSION_HEADERS)


def _to_rights(sent: ClientRequest) -> JsonObject:
    """Return what a request may do beside its body, as it is stored."""
    headers = {name: value for name in _KEPT_HEADERS if (value := sent.headers.get(name))}
    offer = sent.key_offer.value if sent.key_offer else None
    return {"may_approve": sent.may_approve, "offer": offer, "headers": {**headers}}


def _to_sent(kept: KeptResponse) -> ClientRequest:
    """Return the request of a stored response, to be sent again."""
    headers, offer = kept.rights.get("headers"), kept.rights.get("offer")
    named: Mapping[str, str] = (
        {name: str(value) for name, value in headers.items()} if isinstance(headers, dict) else {}
    )
    return ClientRequest(
        kept.request,
        caller=kept.caller,
        headers=named,
        may_approve=kept.rights.get("may_approve") is True,
        key_offer=OfferMode(str(offer)) if offer else None,
    )


def _fail(kept: KeptResponse, why: str) -> KeptResponse:
    error: JsonObject = {"code": "server_error", "message": why}
    response = {**kept.response, "status": "failed", "error": error}
    return replace(kept, state=ResponseState.FAILED, response=response, request={})


def _previous_not_found(id_: str) -> ChatFailed:
    message = Message("Previous response with id '{id}' not found.", id=id_[:100])
    return bad_request(message, "previous_response_not_found", param="previous_response_id")


def _too_many() -> ChatFailed:
    message = Message("{limit} responses run in the background: wait, or cancel one of them", limit=MAX_BACKGROUND)
    return bad_request(message, "too_many_in_background", HTTPStatus.TOO_MANY_REQUESTS, param="background")


def _turn_is_over() -> ChatFailed:
    message = Message("The turn that asked is over: send the request again without the answer.")
    return bad_request(message, "turn_is_over", param="input")


def _may_not_approve() -> ChatFailed:
    message = Message(
        "This key may not allow calls: that takes one with the scope 'approve'. The call still waits, and can be "
        "allowed in the console, on a phone or on the command line."
    )
    fault = ChatFault(
        status=HTTPStatus.FORBIDDEN, message=message, code="forbidden", type="permission_error", param="input"
    )
    return ChatFailed(fault)
