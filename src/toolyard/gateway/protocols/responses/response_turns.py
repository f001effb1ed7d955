"""The turns of Responses clients: created, gone on with, stored, and continued in the background.

A response is a rendering of the log of one turn, from its beginning or from where an earlier response has asked for
approval. It is stored once somebody has its end (``stored_responses``): the client that reads it, or, of one in the
background, this module, which listens to its log.

A background response whose host has died is continued from the calls that are stored (``engine.chats.turns``), once.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Final
from uuid import uuid4

from toolyard.engine.approvals import Approvals
from toolyard.engine.chats.responses import OPEN, KeptResponse, KeptResponses, ResponseState
from toolyard.engine.clock import Clock
from toolyard.engine.ownership import IsAlive, is_owner_alive
from toolyard.gateway.chat_request import EXTENSION, OFFER_HEADER, ClientRequest
from toolyard.gateway.chats import Chat
from toolyard.gateway.faults import ChatFailed, ChatFault, bad_request
from toolyard.gateway.native_requests import is_plain, make_outgoing
from toolyard.gateway.offer_policy import split_alias
from toolyard.gateway.protocols.chat import CHAT
from toolyard.gateway.protocols.chat_body import objects
from toolyard.gateway.protocols.responses.client_answer import ResponseWriter, find_start, to_usage
from toolyard.gateway.protocols.responses.client_request import (
    SESSION_HEADERS,
    TURN_HEADER,
    read_turn,
    strip_chat_headers,
    without_tools,
)
from toolyard.gateway.protocols.responses.forwarded import pass_on
from toolyard.gateway.protocols.responses.input_items import COMPACTION_TRIGGER, approval_of, list_items
from toolyard.gateway.protocols.responses.rendering import ResponsesRendering, first_response_id, response_id
from toolyard.gateway.protocols.responses.stored_responses import LoadedRequest, Session, StoredResponses
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


@dataclass(slots=True)
class _Background:
    log: TurnLog
    rendering: ResponsesRendering
    writer: ResponseWriter
    caller: str


class ResponseTurns:
    def __init__(self, chat: Chat, kept: KeptResponses, approvals: Approvals, clock: Clock) -> None:
        self._chat, self._kept, self._approvals, self._clock = chat, kept, approvals, clock
        self._stored = StoredResponses(kept)
        self._background: dict[str, _Background] = {}  # by the ids of responses
        self.close = self._stored.close

    async def create(
        self, sent: ClientRequest, single: SingleRun | None = None, session: Session | None = None
    ) -> ClientAnswer:
        """Answer a request; ``sent.body`` is as its client sent it. Faults are answers too."""
        try:
            request = await self._stored.load(sent, session)
            if request.asked.answers:
                return await self._go_on(request)
            if request.asked.is_background:
                return await self._start_background(request)
            if request.asked.is_warm_up:
                return self._warm_up(request)
            if (forwarded := await self._forward(request)) is not None:
                return forwarded
        except ChatFailed as failed:
            return render_failure(CHAT, failed.fault)
        return await self._chat.complete(_to_chat(request), single, self._render(request))

    def _warm_up(self, request: LoadedRequest) -> ClientAnswer:
        """Answer a request that only begins a conversation: nothing is asked of a model."""
        rendering = self._render(request)
        answer = rendering.render_empty(f"resp_{uuid4().hex}")
        return ClientAnswer(pieces=_single_piece(answer)) if rendering.is_streamed else ClientAnswer(body=answer)

    async def _forward(self, request: LoadedRequest) -> ClientAnswer | None:
        """Send a request on as it came, if no turn is needed; what is to be stored is. Raises ChatFailed."""
        chat, protocol, sent = self._chat, ProviderProtocol.RESPONSES, request.sent
        goes_on = request.previous or request.asked.conversation
        if goes_on or not sent.raw or not await is_plain(chat, _to_chat(request), protocol):
            return None
        body, has_extension = sent.body, EXTENSION in sent.body
        model, _ = split_alias(str(body.get("model") or ""))
        body = {key: value for key, value in body.items() if key != EXTENSION} if has_extension else body
        outgoing = make_outgoing("/responses", b"" if has_extension else sent.raw, body, chat.mask, {})
        forwarded = await chat.upstreams.forward(model, outgoing, protocol)
        tell = partial(self._keep_forwarded, request) if request.asked.is_stored else None
        return await pass_on(chat, forwarded, tell)

    def _keep_forwarded(self, request: LoadedRequest, response: JsonObject) -> None:
        """Store a response under the id that its provider gave it."""
        if isinstance(response.get("id"), str) and response.get("status") in ("completed", "incomplete"):
            self._stored.store(_to_kept(request, response, self._now()))

    # --- a turn that waits for approvals

    async def _go_on(self, request: LoadedRequest) -> ClientAnswer:
        """Answer the questions of an earlier response, and go on with its turn. Raises ChatFailed."""
        chat, caller, answers = "", request.sent.caller, request.asked.answers
        for answer in answers:
            id_ = approval_of(answer.request)
            approval = await self._approvals.get(id_)
            if approval is None or approval.caller != caller:
                message = Message("there is no approval request '{id}'", id=answer.request[:100])
                raise bad_request(message, "approval_not_found", param="input")
            chat = approval.chat or ""
            if approval.state is ApprovalState.PENDING:
                if answer.is_allowed and not request.sent.may_approve:
                    raise _may_not_approve()
                await self._approvals.answer(id_, allowed=answer.is_allowed, by=caller, reason=answer.reason)
        log = self._chat.find_log(caller, chat)
        place = find_start(log, approval_of(answers[0].request)) if log is not None else None
        if log is None:
            log, place = await self._restart_asked(caller, chat), (0, 0)
        if place is None:
            raise _turn_is_over()
        return await self._chat.read(log, replace(self._render(request), start=place[0], number=place[1]))

    async def _restart_asked(self, caller: str, chat: str) -> TurnLog:
        """Continue a turn that has asked, after its host has died: its first response has the request. Raises
        ChatFailed."""
        kept = await self._kept.get(caller, first_response_id(chat))
        if kept is None or not kept.request:
            raise _turn_is_over()
        request = await self._stored.load(_to_sent(kept))
        return await self._chat.start(replace(_to_chat(request), is_repeat=True), BACKGROUND_S)

    # --- in the background

    async def _start_background(self, request: LoadedRequest) -> ClientAnswer:
        """Begin a turn that goes on without its client. Raises ChatFailed."""
        if sum(one.log.is_running for one in self._background.values()) >= MAX_BACKGROUND:
            raise _too_many()
        rendering = self._render(request)
        log = await self._chat.start(replace(_to_chat(request), turn=f"chat_{uuid4().hex}"), BACKGROUND_S)
        id_ = response_id(log)
        response = rendering.describe(log)
        if id_ not in self._background:
            self._listen(id_, log, rendering, request.sent.caller)
            kept = _to_kept(request, response | {"status": "in_progress"}, log.record.started)
            await self._kept.keep(replace(kept, request=request.sent.body))
        if request.asked.is_streamed:
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
        try:
            request = await self._stored.load(_to_sent(kept))
            chat = replace(_to_chat(request), is_repeat=True, turn=f"chat_{kept.id.removeprefix('resp_')}")
            log = await self._chat.start(chat, BACKGROUND_S)
        except ChatFailed as failed:
            await self._kept.keep(_fail(taken, failed.fault.message))
            return
        self._listen(kept.id, log, self._render(request), kept.caller)

    # --- stored responses

    def _render(self, request: LoadedRequest) -> ResponsesRendering:
        """Return what the client gets of a turn. At its end it is what the next request goes on from."""
        asked, session = request.asked, request.session

        def end(created: float, response: JsonObject) -> None:
            if session is not None:
                session.remember(response, request)
            is_cut = self._chat.is_stopping and response["status"] == "failed" and asked.is_background
            if asked.is_stored and not is_cut:  # the next server continues one that the end of this one cut off
                self._stored.store(_to_kept(request, dict(response), created))

        return ResponsesRendering(
            asked=asked, previous=request.previous, on_end=end, now=self._now, is_streamed=asked.is_streamed
        )

    async def get(self, caller: str, id_: str) -> KeptResponse | None:
        """Return a response of this caller, as far as it has come."""
        kept, running = await self._stored.get(caller, id_), self._background.get(id_)
        if kept is not None and kept.state in OPEN and running is not None:
            return replace(kept, response=dict(running.writer.response))
        return kept

    async def delete(self, caller: str, id_: str) -> bool:
        running = self._background.get(id_)
        if running is not None and running.caller == caller:
            del self._background[id_]
            self._chat.interrupt(caller=caller, chat=running.log.record.id)
        return await self._stored.delete(caller, id_)

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
            tokens = await self._chat.estimate_tokens(_to_chat(await self._stored.load(sent)))
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
        compacted |= {key: response[key] for key in ("id", "created_at", "output")}
        compacted["usage"] = response["usage"] or to_usage({})
        return ClientAnswer(body=json_bytes(compacted))

    def _now(self) -> float:
        return self._clock.now().timestamp()


async def _single_piece(piece: bytes) -> AsyncGenerator[bytes, None]:
    yield piece


def _to_kept(request: LoadedRequest, response: JsonObject, created: float) -> KeptResponse:
    """Return a response as it is stored; with its request, if its turn may have to be continued."""
    id_, asked = str(response["id"]), request.asked
    asks = any(item.get("type") == "mcp_approval_request" for item in objects(response.get("output")))
    return KeptResponse(
        id=id_, caller=request.sent.caller, state=ResponseState(str(response["status"])), created=created,
        previous=request.previous, conversation=asked.conversation, items=tuple(_name_items(id_, asked.items)),
        response=response, request=asked.sent if asks else {}, rights=_to_rights(request.sent),
    )  # fmt: skip


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


def _to_chat(request: LoadedRequest) -> ClientRequest:
    sent, asked = request.sent, request.asked
    turn = read_turn(sent.body, sent.headers)
    return ClientRequest(
        without_tools(asked.body) if turn.is_side else asked.body,
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
