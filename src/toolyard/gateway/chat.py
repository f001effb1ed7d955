"""Chat: the port between HTTP and the model providers.

A request finds the log of a turn or begins one, and its answer is a rendering of that log: streamed, or complete. See
``turn_log`` for what a request that is sent again finds. A streamed request that names its chat survives its client:
``follow`` gives every later piece, and it ends when nobody has followed it for a while. Any other ends when its client
leaves, with its model and its tools, unless the client timed out and will retry, or was told that a call waits for
approval.

A request with an ``Idempotency-Key`` has no client here: the code that joins its repeats asks once, and lets it end.
"""

import asyncio
import logging
import random
import secrets
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from typing import Final
from uuid import uuid4

from toolyard.engine.turns import REPEATED_S, StoredRound, StoredTurn, Turns, TurnState
from toolyard.engine.uncancellable import uncancellable
from toolyard.gateway.chat_record import ChatRecord
from toolyard.gateway.faults import (
    ChatFailed,
    ChatFault,
    bad_request,
    changed_history,
    encode_request,
    server_stopping,
)
from toolyard.gateway.interruption import Interrupted
from toolyard.gateway.media.media import replace_published_messages
from toolyard.gateway.media.media_refusals import MediaRefusals
from toolyard.gateway.memory import RecalledMessages, TurnMemory, last_question
from toolyard.gateway.model_request import ModelRequest
from toolyard.gateway.offers.offer_policy import OfferPolicy, choose_offer, declines_tools, split_alias
from toolyard.gateway.options import EXTENSION, NO_HEADERS, ChatOptions, parse_options, wants_json
from toolyard.gateway.ports import PendingApproval, PromptSources, ToolPort
from toolyard.gateway.prompt import ask_for_structured_reply, fill_prompt
from toolyard.gateway.providers.contact import Contact
from toolyard.gateway.providers.upstreams import TOUR, Upstreams
from toolyard.gateway.sinks.display import Show, approvals_extension, write_approvals
from toolyard.gateway.sinks.events import Begun, Failed, Finished, Gap
from toolyard.gateway.sinks.json_answer import JsonAnswer
from toolyard.gateway.sinks.sse_writer import write_event
from toolyard.gateway.tool_calls.native_calls import Ownership
from toolyard.gateway.tool_calls.rounds import write_as_text
from toolyard.gateway.turn import NO_HISTORY, History, PlayedRound, Turn
from toolyard.gateway.turn_log import GRACE_S, LogReader, Repeat, TurnLog, TurnLogs
from toolyard.gateway.vcp import EXTRAS
from toolyard.message import Message
from toolyard.protocol.chat_mode import ReplyForm
from toolyard.protocol.json import JsonObject
from toolyard.protocol.offer import OfferMode

APPROVAL_WAIT_S: Final = 55.0  # many clients give up after a minute
FOLLOWED_S: Final = 1800.0
_LOOK_S = 1.0
_NO_RETRY = {"x-should-retry": "false"}  # OpenAI's SDKs repeat no request that is answered so
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRun:
    """An answer: complete in ``body``, or streamed in ``pieces``."""

    id: str
    status: int = HTTPStatus.OK
    body: bytes = b""
    pieces: AsyncGenerator[bytes, None] | None = None
    headers: dict[str, str] = field(default_factory=dict)


class Chat:
    def __init__(
        self,
        upstreams: Upstreams,
        tools: ToolPort,
        texts: PromptSources,
        offer_policy: OfferPolicy,
        *,
        now: Callable[[], datetime],
        memory: TurnMemory | None,
        refusals: MediaRefusals,
        turns: Turns | None = None,
        show: Show = Show.SUMMARY,
        nonce: bool = False,
        followed_s: float = FOLLOWED_S,
        approval_wait_s: float = APPROVAL_WAIT_S,
    ) -> None:
        """``followed_s``: seconds for which a chat with an id continues without a reader. Without ``memory`` tool
        rounds are forgotten with their turn, without ``turns`` what has run is forgotten with this process.
        """
        self._upstreams, self._tools, self._texts, self._now = upstreams, tools, texts, now
        self._show, self._nonce = show, nonce
        self._memory, self._refusals, self._turns = memory, refusals, turns
        self.offer_policy = offer_policy
        self._followed_s, self._approval_wait_s = followed_s, approval_wait_s
        self._logs = TurnLogs()
        self.is_stopping = False  # the server ends what still runs
        self._forwarded: set[Callable[[], None]] = set()  # each ends an answer that is passed through
        self._leaving: dict[asyncio.Task[None], Upstreams] = {}  # providers that only running turns still need

    def change_upstreams(self, upstreams: Upstreams) -> None:
        """Send turns from now on to these providers; a running turn stays with the provider it began with."""
        before, self._upstreams = self._upstreams, upstreams
        self._leaving[task := asyncio.create_task(self._close_when_unused(before))] = before
        task.add_done_callback(self._leaving.pop)

    async def complete(
        self,
        body: JsonObject,
        *,
        caller: str,
        may_approve: bool = False,
        raw: bytes = b"",
        vcp: bool = False,
        headers: Mapping[str, str] = NO_HEADERS,
        key_offer: OfferMode | None = None,
        run_id: str = "",
    ) -> ChatRun:
        """Answer a chat request; faults are answers too. ``raw`` is ``body`` as received, if it came as bytes.

        ``key_offer``: the offer mode of the request's key, if it has one. ``run_id`` is for an idempotent
        request, and the id of its chat unless it names one: it always begins a turn of its own, and its answer comes
        when the turn has ended. See ``wait_early``.
        """
        try:
            options = parse_options(body, headers, may_approve=may_approve, vcp=vcp, usual=self._show)
            log = await self._find_or_begin(body, raw, caller, options, key_offer, run_id)
        except ChatFailed as failed:
            return self._to_failed_run("", failed.fault.mask_secrets(self._tools.mask))
        reader = log.read(log.begun)
        if log.is_streamed:
            return await self._stream(log, reader, _Wait(options.timeout_s))
        return await self._answer(log, reader, _Wait(options.timeout_s), is_early=not run_id)

    async def wait_early(self, chat: str, caller: str) -> ChatRun:
        """Return the answer for a client that cannot wait, once a call of an idempotent request waits for approval.

        That may never happen: then the waiting client gets the answer of the request, and this is cancelled.
        """
        await asyncio.sleep(self._approval_wait_s)
        while True:
            log = self._logs.get(caller, chat)
            waiting = await log.turn.pending_approvals() if log and log.is_running else []
            if log is not None and waiting and log.is_running and not log.is_streamed:
                return self._answer_early(log, waiting)
            await asyncio.sleep(_LOOK_S)

    @property
    def followed_s(self) -> float:
        """Seconds for which a chat without a reader continues."""
        return self._followed_s

    async def models(self) -> list[JsonObject]:
        return self.offer_policy.list_models(await self._upstreams.models())

    def unavailable_providers(self) -> list[str]:
        """Return the providers that did not answer when they were last asked for their models."""
        return self._upstreams.unavailable()

    async def model(self, id_: str) -> JsonObject | None:
        """Return a model by its id, an alias included, or by the name of its provider as in ``name/model``."""
        name, _ = split_alias(id_)
        listed = next((one for one in await self._upstreams.models() if one.get("id") == name), None)
        model = listed or await self._upstreams.model(name)
        return None if model is None else {**model, "id": id_}

    @property
    def upstreams(self) -> Upstreams:
        """The current model providers."""
        return self._upstreams

    def contacts(self) -> dict[str, Contact]:
        """Return the last contact with each model provider, since these providers were set."""
        return self._upstreams.contacts()

    def interrupt(self, *, caller: str, request_id: str = "", chat: str = "") -> bool:
        return self._logs.interrupt(caller, handle=request_id, chat=chat)

    def record(self, chat: str, caller: str) -> JsonObject | None:
        """Return the requests sent to the model in a chat of this caller, and the work of its tools."""
        log = self._logs.get(caller, chat)
        if log is None:
            return None
        return log.record.to_dict() | {"cursor": log.followed.cursor if log.is_named and log.followed else None}

    def follow(self, chat: str, cursor: int, caller: str) -> AsyncGenerator[bytes, None] | None:
        """Return the events of a chat that its client has named after ``cursor``; None when there is no such chat."""
        log = self._logs.get(caller, chat)
        return self._follow(log.followed, cursor) if log and log.is_named and log.followed else None

    async def stop_running(self, seconds: float) -> None:
        """End every running turn with an error that says how to go on; wait for that up to ``seconds``."""
        self.is_stopping = True
        for end in list(self._forwarded):
            end()
        for log in self._logs.running():
            log.turn.interrupt(server_stopping())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._logs.wait_for_running()

    @contextmanager
    def ended_by_stop(self, end: Callable[[], None]) -> Iterator[None]:
        """Call ``end`` when running answers are stopped, for one that is passed through and no turn."""
        self._forwarded.add(end)
        try:
            yield
        finally:
            self._forwarded.discard(end)

    async def close(self) -> None:
        await self._logs.close()
        await self._upstreams.close()
        for task, upstreams in (leaving := dict(self._leaving)).items():
            task.cancel()
            await upstreams.close()  # not by the task: it may not have had its first step
        if leaving:
            await asyncio.wait(leaving)

    async def _close_when_unused(self, upstreams: Upstreams) -> None:
        await self._logs.wait_for_running()
        await upstreams.idle()
        await upstreams.close()

    async def _make_turn(
        self,
        body: JsonObject,
        raw: bytes,
        caller: str,
        options: ChatOptions,
        key_offer: OfferMode | None,
        run_id: str,
        history: History,
    ) -> Turn:
        sent = body["messages"]
        sent = sent if isinstance(sent, list) else []
        model = str(body.get("model") or "")
        base_model, alias = split_alias(model)
        choice = choose_offer(options.offer, alias, key_offer, self.offer_policy.default_mode)
        is_plain = choice.forbids_tools(sent) and not self._upstreams.is_tour(base_model)  # its script names its tools
        nonce = history.nonce or (secrets.token_hex(4) if self._nonce and not is_plain else None)
        recalled = RecalledMessages(sent)
        if not is_plain:
            recalled = self._memory.recall(caller, sent, nonce) if self._memory else recalled
            recalled = replace(recalled, messages=replace_published_messages(recalled.messages))
        prompt = await fill_prompt(recalled.messages, self._texts, caller, nonce, is_plain=is_plain)
        runs_tools = not (is_plain or prompt.forbids_tools or declines_tools(body))
        if options.reply is ReplyForm.JSON:
            prompt = replace(prompt, messages=ask_for_structured_reply(prompt.messages, has_tools=runs_tools))
        messages = prompt.messages if body.get("tools") else write_as_text(prompt.messages, recalled.calls, nonce)
        await self._upstreams.learn(base_model)
        upstream, name = self._upstreams.pick(base_model)  # no await from here to its registration
        changes: JsonObject = {"messages": messages} if messages is not sent else {}
        changes |= {"model": name} if name != model else {}
        ours = [key for key in (*EXTRAS, EXTENSION) if key in body]
        if changes or ours or not raw:
            body = {key: value for key, value in body.items() if key not in ours} | changes
            raw = encode_request(body)
        answers_json = wants_json(body) or options.reply is ReplyForm.JSON
        ask = ModelRequest(
            caller=caller,
            body=body,
            raw=raw,
            show=options.show,
            runs_tools=runs_tools,
            nonce=nonce,
            question=last_question(sent),
            shows_media=options.show in (Show.SUMMARY, Show.HIDDEN) and not answers_json,
            reply=options.reply,
            owners=Ownership.from_body(body),
        )
        text_form = None
        if name != TOUR and ask.runs_tools:
            ask, text_form = self.offer_policy.add_offer(ask, prompt, choice, options.bounds, upstream, name)
        now = self._now().timestamp()
        own = run_id or f"chat_{random.getrandbits(128):032x}"  # need not be secret: only its caller reads it
        id_ = options.chat or own
        record = ChatRecord(id=id_, caller=caller, model=name, started=now, offer=ask.offer.to_json())
        memory = self._memory if options.show is not Show.RAW else None  # a raw answer has its rounds in it
        return Turn(
            ask,
            upstream,
            self._tools,
            record,
            int(now),
            self._refusals,
            now=self._now,
            memory=memory,
            bounds=options.bounds,
            text_form=text_form,
            history=history.rounds,
        )

    # --- a request finds a log or begins one

    async def _find_or_begin(
        self,
        body: JsonObject,
        raw: bytes,
        caller: str,
        options: ChatOptions,
        key_offer: OfferMode | None,
        run_id: str,
    ) -> TurnLog:
        """Return the log that this request reads: of the turn that it repeats, or of a new one. Raises ChatFailed."""
        request = b"" if run_id or not raw else fingerprint_request(raw, options)
        history = NO_HISTORY
        if (log := self._logs.find(caller, request)) is not None:
            match log.judge_repeat(is_marked=options.is_retry):
                case Repeat.JOIN:
                    return log
                case Repeat.CONTINUE:
                    await log.has_ended.wait()  # it was told to
                    history = log.history
        elif request:
            history = await self._find_stored(caller, request, is_marked=options.is_retry)
        turn = await self._make_turn(body, raw, caller, options, key_offer, run_id, history)
        newer = self._logs.find(caller, request) if turn.continues else None
        if newer is not None and newer is not log and newer.is_running:
            return newer  # another repetition was faster
        return self._begin(turn, request, options)

    async def _find_stored(self, caller: str, request: bytes, *, is_marked: bool) -> History:
        """Return the rounds of a turn that an earlier process, or another host, has not ended. Raises ChatFailed."""
        stored = await self._turns.find(caller, request.hex()) if self._turns else None
        if stored is None or self._turns is None or (stored.state is TurnState.DONE and not is_marked):
            return NO_HISTORY
        if self._turns.is_running(stored):
            if not is_marked:
                return NO_HISTORY  # the same wish, twice
            message = Message("chat.runs_elsewhere", "the first request still runs on another host: repeat it later")
            raise bad_request(message, "in_progress", HTTPStatus.CONFLICT)
        if not all(one.reply for one in stored.rounds):
            raise ChatFailed(changed_history())
        return History(tuple(PlayedRound(one.reply, [*one.calls]) for one in stored.rounds), stored.nonce)

    def _begin(self, turn: Turn, request: bytes, options: ChatOptions) -> TurnLog:
        """Run a turn in a task of its own, which writes its log. Raises ChatFailed while another one of its chat runs.

        The chat of a client that named it goes on without a reader, any other does not.
        """
        before = self._logs.get(turn.request.caller, options.chat) if options.chat else None
        if before is not None and before.is_running:
            raise bad_request(
                Message("chat.chat_still_running", "the chat '{chat}' is still running", chat=options.chat),
                "chat_busy",
                HTTPStatus.CONFLICT,
            )
        patience_s = self._followed_s if options.chat and turn.request.streams else 0.0
        log = TurnLog(turn, request=request, patience_s=patience_s, handle=options.handle, before=before)
        log.is_named = bool(options.chat)
        turn.tell = log.append
        stored = _StoredLog(self._turns, turn, request) if request and self._turns else None
        turn.before_calls = stored.keep if stored else None
        self._logs.begin(log)
        log.task = asyncio.create_task(self._run(log, stored))
        log.task.add_done_callback(partial(self._end_log, log))
        return log

    async def _run(self, log: TurnLog, stored: "_StoredLog | None") -> None:
        """Run a turn to its end, and write its events to its log. Its end is stored before anybody reads it."""
        turn, end = log.turn, None
        try:
            await turn.open()
            log.append(Begun())
            async with aclosing(turn.events()) as events:
                async for event in events:
                    if isinstance(event, Finished | Failed):
                        end = event
                        break
                    log.append(event)
                    if log.is_far_ahead:
                        with suppress(Interrupted), turn.interruption.guard():
                            await log.wait_for_readers()
        except ChatFailed as failed:  # before the model answered
            fault = failed.fault.mask_secrets(self._tools.mask)
            turn.record.mark_failed(fault.message)
            end = Failed(fault)
        except asyncio.CancelledError:
            turn.record.mark_failed(Message("chat.stopped", "It was stopped with the server."))
            raise
        finally:
            if stored is not None and stored.is_stored:
                await uncancellable(stored.end(end, is_left=log.is_left))
            if end is not None:
                log.append(end)
                self._logs.end(log)

    def _end_log(self, log: TurnLog, task: "asyncio.Task[None]") -> None:
        """End the log of a turn that a bug or the end of the server cut off."""
        if not task.cancelled() and (bug := task.exception()) is not None:
            _log.error("the turn %s failed", log.record.id, exc_info=bug)
            fault = _internal_fault()
            log.record.mark_failed(fault.message)
            log.append(Failed(log.turn.fault_after_tools(fault) if log.turn.calls_run else fault))
        self._logs.end(log)

    # --- renderings of a log

    async def _stream(self, log: TurnLog, reader: LogReader, wait: "_Wait") -> ChatRun:
        """Answer once the model does, or once the client has to be told that it does not answer yet."""
        try:
            first = await reader.wait_for_event()
        except BaseException:
            wait.leave(reader)
            raise
        if isinstance(first, Failed):
            reader.finish()
            wait.leave(reader)
            return self._to_failed_run(log.record.id, first.fault)
        headers = {"X-Toolyard-Cursor": str(log.begun)} if log.is_named else {}
        pieces = self._render(log, reader, wait)
        await anext(pieces)  # a generator that has not begun would not leave the log when it is closed
        return ChatRun(id=log.record.id, pieces=pieces, headers=headers)

    async def _follow(self, log: TurnLog, cursor: int) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._render(log, log.read(cursor), _Wait(None))) as pieces:
            await anext(pieces)
            async for piece in pieces:
                yield piece

    async def _render(self, log: TurnLog, reader: LogReader, wait: "_Wait") -> AsyncGenerator[bytes, None]:
        """Yield nothing once, then the events of a log as server-sent events: in a named chat with cursors as ids."""
        is_named = log.is_named
        try:
            yield b""
            while entries := await reader.next():
                pieces = [write_event(entry.head, entry.event) for entry in entries]
                if not is_named:
                    if piece := b"".join(pieces):
                        yield piece
                    continue
                for cursor, (entry, piece) in enumerate(
                    zip(entries, pieces, strict=True), reader.at - len(entries) + 1
                ):
                    if piece:
                        yield piece if isinstance(entry.event, Gap) else b"id: %d\n%b" % (cursor, piece)
        finally:
            wait.leave(reader)

    async def _answer(self, log: TurnLog, reader: LogReader, wait: "_Wait", *, is_early: bool) -> ChatRun:
        """Wait for the end of a turn; a client that would wait for an approval is answered early."""
        pause = self._approval_wait_s if is_early else None
        ended = asyncio.ensure_future(log.has_ended.wait())
        try:
            while not (await asyncio.wait({ended}, timeout=pause))[0]:
                waiting = await log.turn.pending_approvals() if log.is_running else []
                if waiting and log.is_running:
                    reader.patience_s = REPEATED_S
                    return self._answer_early(log, waiting)
                pause = _LOOK_S
            reader.finish()
            answer = JsonAnswer(log.head)
            for event in log.events():
                answer.take(event)
            return ChatRun(id=log.record.id, body=answer.body)
        except ChatFailed as failed:
            return self._to_failed_run(log.record.id, failed.fault)
        finally:
            ended.cancel()
            wait.leave(reader)

    def _answer_early(self, log: TurnLog, waiting: list[PendingApproval]) -> ChatRun:
        """Return the answer of a turn that continues: its text so far, and the pending approvals."""
        answer = JsonAnswer(log.head)
        for event in log.events():
            answer.take(event)
        note = write_approvals(waiting, answer.text) + _COME_BACK
        log.turn.note_early_answer(answer.text + note)
        return ChatRun(id=log.record.id, body=answer.close_early(note, approvals_extension(waiting)))

    def _to_failed_run(self, chat: str, fault: ChatFault) -> ChatRun:
        headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
        return ChatRun(
            id=chat, status=fault.status, body=fault.to_bytes(), headers=headers | (_NO_RETRY if fault.is_final else {})
        )


class _Wait:
    """The wait of a client. One that has waited as long as it said it would comes back."""

    def __init__(self, timeout_s: float | None) -> None:
        self._began, self._timeout_s = asyncio.get_running_loop().time(), timeout_s

    def leave(self, reader: LogReader) -> None:
        waited = asyncio.get_running_loop().time() - self._began
        if self._timeout_s is not None and waited >= self._timeout_s - 1:
            reader.patience_s = max(GRACE_S, reader.patience_s or 0.0)
        reader.close()


class _StoredLog:
    """The part of a log that is stored: see ``engine.turns``."""

    def __init__(self, turns: Turns, turn: Turn, request: bytes) -> None:
        self._turns, self._turn, self._request = turns, turn, request
        self._stored: StoredTurn | None = None

    @property
    def is_stored(self) -> bool:
        return self._stored is not None

    async def keep(self) -> None:
        turn = self._turn
        stored = self._stored or StoredTurn(
            id=f"turn_{uuid4().hex}", caller=turn.request.caller, request=self._request.hex(), chat=turn.record.id,
            created=turn.record.started, nonce=turn.request.nonce,
        )  # fmt: skip
        rounds = tuple(StoredRound(reply=one.reply, calls=tuple(one.calls)) for one in turn.played)
        self._stored = await self._turns.keep(replace(stored, rounds=rounds))

    async def end(self, end: Finished | Failed | None, *, is_left: bool) -> None:
        if self._stored is not None:
            is_done = isinstance(end, Finished) and not is_left
            state = TurnState.DONE if is_done else TurnState.FAILED
            self._stored = await self._turns.keep(replace(self._stored, state=state))


def fingerprint_request(raw: bytes, options: ChatOptions) -> bytes:
    """Return the digest by which a request that is sent again is known: its body, and what its headers ask for."""
    digest = sha256(f"{options.chat}\0{options.show.value}\0{options.offer or ''}\0".encode())
    digest.update(raw)
    return digest.digest()


_COME_BACK = "\nOnce it is allowed, send the same request again within 10 minutes: it goes on from here.\n"


def _internal_fault() -> ChatFault:
    message = Message("chat.bug", "This is a bug of Toolyard; the server's log has it")
    return ChatFault(status=HTTPStatus.INTERNAL_SERVER_ERROR, message=message, code="internal_error")
