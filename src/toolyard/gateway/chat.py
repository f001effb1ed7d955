"""Chat: the port between HTTP and the model providers.

A streamed request that names its chat survives its client: it continues, its reply is recorded, and ``follow`` gives
every later piece; it ends when nobody has followed it for a while. Any other streamed request ends when its
client leaves, with its model and its tools. So does one that is not streamed, unless its client timed out and
will retry, or was told that a call waits for approval: see ``shared_turns``.

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
from http import HTTPStatus
from typing import Final

from toolyard.gateway.chat_record import ChatRecord
from toolyard.gateway.chats import Chats, Entry, RecordedReply
from toolyard.gateway.faults import ChatFailed, ChatFault, bad_request, encode_request, server_stopping
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
from toolyard.gateway.shared_turns import SharedTurn, SharedTurns
from toolyard.gateway.sinks.display import Show, approvals_extension, write_approvals
from toolyard.gateway.sinks.events import CallUpdate
from toolyard.gateway.sinks.json_answer import JsonAnswer
from toolyard.gateway.sinks.sse_writer import SseWriter
from toolyard.gateway.tool_calls.native_calls import Ownership
from toolyard.gateway.tool_calls.rounds import write_as_text
from toolyard.gateway.turn import Turn
from toolyard.gateway.vcp import EXTRAS
from toolyard.message import Message
from toolyard.protocol.chat_mode import ReplyForm
from toolyard.protocol.json import Json, JsonObject
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
        show: Show = Show.SUMMARY,
        nonce: bool = False,
        followed_s: float = FOLLOWED_S,
        approval_wait_s: float = APPROVAL_WAIT_S,
    ) -> None:
        """``followed_s``: seconds for which a chat with an id continues without a reader. Without ``memory`` tool
        rounds are forgotten with their turn.
        """
        self._upstreams, self._tools, self._texts, self._now = upstreams, tools, texts, now
        self._show, self._nonce = show, nonce
        self._memory, self._refusals = memory, refusals
        self.offer_policy = offer_policy
        self._followed_s, self._approval_wait_s = followed_s, approval_wait_s
        self._chats = Chats()
        self._shared = SharedTurns()
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
        request, and the id of its chat unless it names one: it always starts its own turn, and its answer comes
        when the turn has ended. See ``wait_early``.
        """
        try:
            options = parse_options(body, headers, may_approve=may_approve, vcp=vcp, usual=self._show)
            if not run_id and (joined := await self._join(body, raw, caller, options)) is not None:
                return joined
            turn = await self._make_turn(body, raw, caller, options, key_offer, run_id)
            entry = self._begin(turn, raw, options)
        except ChatFailed as failed:
            return self._to_failed_run("", failed)
        try:
            if run_id and not turn.request.streams:
                entry.answer = JsonAnswer(turn.head)
                return await self._finish(entry, turn, entry.answer)
            if not turn.request.streams:
                return await self._run_shared(entry, turn, raw, options)
            if entry.recorded is not None:
                return await self._stream_recorded(entry, turn, entry.recorded)
            return await self._stream(entry, turn)
        except ChatFailed as failed:
            return self._to_failed_run(turn.record.id, failed, turn.record)

    async def wait_early(self, chat: str, caller: str) -> ChatRun:
        """Return the answer for a client that cannot wait, once a call of an idempotent request waits for approval.

        That may never happen: then the waiting client gets the answer of the request, and this is cancelled.
        """
        await asyncio.sleep(self._approval_wait_s)
        while (early := await self._answer_early(self._chats.get(caller, chat))) is None:  # noqa: ASYNC110 nobody tells
            await asyncio.sleep(_LOOK_S)
        return early

    async def _answer_early(self, entry: Entry | None) -> ChatRun | None:
        if entry is None or entry.turn is None or entry.answer is None:
            return None
        turn, answer = entry.turn, entry.answer
        waiting = await turn.pending_approvals()
        return _early_answer(turn, answer, waiting) if waiting else None

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
        return self._chats.interrupt(caller, handle=request_id, chat=chat)

    def record(self, chat: str, caller: str) -> JsonObject | None:
        """Return the requests sent to the model in a chat of this caller, and the work of its tools."""
        entry = self._chats.get(caller, chat)
        if entry is None:
            return None
        cursor: Json = entry.recorded.cursor if entry.recorded else None
        return entry.record.to_dict() | {"cursor": cursor}

    def follow(self, chat: str, cursor: int, caller: str) -> AsyncGenerator[bytes, None] | None:
        """Return the events of a surviving chat after ``cursor``; None when there is no such chat."""
        entry = self._chats.get(caller, chat)
        return entry.recorded.follow(cursor) if entry and entry.recorded else None

    async def stop_running(self, seconds: float) -> None:
        """End every running turn with an error that says how to go on; wait for that up to ``seconds``."""
        self.is_stopping = True
        for end in list(self._forwarded):
            end()
        await self._chats.stop_running(server_stopping(), seconds)

    @contextmanager
    def ended_by_stop(self, end: Callable[[], None]) -> Iterator[None]:
        """Call ``end`` when running answers are stopped, for one that is passed through and no turn."""
        self._forwarded.add(end)
        try:
            yield
        finally:
            self._forwarded.discard(end)

    async def close(self) -> None:
        await self._chats.close()
        await self._upstreams.close()
        for task, upstreams in (leaving := dict(self._leaving)).items():
            task.cancel()
            await upstreams.close()  # not by the task: it may not have had its first step
        if leaving:
            await asyncio.wait(leaving)

    async def _close_when_unused(self, upstreams: Upstreams) -> None:
        await self._chats.wait_for_running()
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
    ) -> Turn:
        sent = body["messages"]
        sent = sent if isinstance(sent, list) else []
        model = str(body.get("model") or "")
        base_model, alias = split_alias(model)
        choice = choose_offer(options.offer, alias, key_offer, self.offer_policy.default_mode)
        is_plain = choice.forbids_tools(sent) and not self._upstreams.is_tour(base_model)  # its script names its tools
        nonce = secrets.token_hex(4) if self._nonce and not is_plain else None
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
        )

    def _begin(self, turn: Turn, raw: bytes, options: ChatOptions) -> Entry:
        """Register the turn. Raises ChatFailed while another one of its chat runs."""
        before = self._chats.get(turn.request.caller, options.chat)
        if before is not None and before.turn is not None:
            raise bad_request(
                Message("chat.chat_still_running", "the chat '{chat}' is still running", chat=options.chat),
                "chat_busy",
                HTTPStatus.CONFLICT,
            )
        entry = Entry(turn.record, options.handle, turn, request=raw)
        entry.recorded = before.recorded if before else None
        if options.chat and turn.request.streams:
            entry.recorded = entry.recorded or RecordedReply()
            entry.begun = entry.recorded.begin()
        self._chats.begin(entry)
        return entry

    async def _join(self, body: JsonObject, raw: bytes, caller: str, options: ChatOptions) -> ChatRun | None:
        """Return the answer of the turn that this request repeats; None when it repeats none."""
        if not raw:
            return None
        if body.get("stream") is not True:
            shared = self._shared.find(caller, raw, is_retry=options.is_retry)
            return None if shared is None else await self._answer(shared, options)
        entry = self._chats.get(caller, options.chat) if options.is_retry and options.chat else None
        if entry is None or entry.recorded is None or entry.request != raw:
            return None
        return _follow(entry, entry.recorded)

    async def _run_shared(self, entry: Entry, turn: Turn, raw: bytes, options: ChatOptions) -> ChatRun:
        shared = SharedTurn(raw, turn, JsonAnswer(turn.head))
        shared.task = entry.task = asyncio.create_task(self._finish(entry, turn, shared.answer))
        self._shared.add(shared)
        return await self._answer(shared, options)

    async def _finish(self, entry: Entry, turn: Turn, answer: JsonAnswer) -> ChatRun:
        """Run a turn whose answer comes in one piece."""
        try:
            await turn.open()
            async with aclosing(turn.events()) as events:
                async for event in events:
                    answer.take(event)
            return ChatRun(id=turn.record.id, body=answer.body)
        except ChatFailed as failed:
            return self._to_failed_run(turn.record.id, failed, turn.record)
        except asyncio.CancelledError:
            turn.record.mark_failed("the client left")
            raise
        finally:
            self._chats.end(entry)

    async def _answer(self, shared: SharedTurn, options: ChatOptions) -> ChatRun:
        """Wait for the answer of a shared turn; a client that would wait for an approval is told so early."""
        loop = asyncio.get_running_loop()
        began, pause = loop.time(), self._approval_wait_s
        shared.clients += 1
        try:
            while not (await asyncio.wait({shared.task}, timeout=pause))[0]:
                if waiting := await shared.turn.pending_approvals():
                    self._shared.answer_early(shared)
                    return _early_answer(shared.turn, shared.answer, waiting)
                pause = _LOOK_S
        except asyncio.CancelledError:
            waited = loop.time() - began
            self._shared.leave(shared, timed_out=options.timeout_s is not None and waited >= options.timeout_s - 1)
            raise
        self._shared.deliver(shared)
        calls = shared.turn.calls_run
        if calls and not shared.task.cancelled() and (error := shared.task.exception()):
            _log.error("the turn %s failed after tools had run", shared.turn.record.id, exc_info=error)
            return self._to_failed_run(
                shared.turn.record.id, ChatFailed(_internal_fault().after_tools(calls)), shared.turn.record
            )
        if shared.task.cancelled():
            fault = bad_request(Message("chat.turn_interrupted", "the turn was interrupted"), "interrupted").fault
            return self._to_failed_run(shared.turn.record.id, ChatFailed(fault.after_tools(calls) if calls else fault))
        return shared.task.result()

    async def _stream(self, entry: Entry, turn: Turn) -> ChatRun:
        try:
            await turn.open()
        except BaseException:
            self._chats.end(entry)
            raise
        passing = self._stream_events(entry, turn)
        await anext(passing)  # a generator that has not begun would not end its turn when closed
        return ChatRun(id=turn.record.id, pieces=passing)

    async def _stream_events(self, entry: Entry, turn: Turn) -> AsyncGenerator[bytes, None]:
        writer = SseWriter(turn.head)
        try:
            yield b""
            async with aclosing(turn.events()) as events:
                async for event in events:
                    if piece := writer.write(event):
                        yield piece
        except (asyncio.CancelledError, GeneratorExit):
            turn.record.mark_failed("the client left")
            raise
        finally:
            self._chats.end(entry)

    async def _stream_recorded(self, entry: Entry, turn: Turn, recorded: RecordedReply) -> ChatRun:
        """Answer once the model does, or once the client has to be told that it does not answer yet."""
        writer, is_begun = SseWriter(turn.head), asyncio.Event()

        def tell(update: CallUpdate) -> None:
            recorded.put(writer.write(update))
            is_begun.set()

        turn.tell = tell
        opening = entry.opening = asyncio.create_task(turn.open())
        opening.add_done_callback(lambda _: self._start_recording(entry, turn, recorded, opening))
        opening.add_done_callback(lambda _: is_begun.set())
        await is_begun.wait()  # the client may disconnect before
        if opening.done():
            await opening
        return _follow(entry, recorded)

    def _start_recording(self, entry: Entry, turn: Turn, recorded: RecordedReply, opening: asyncio.Task[None]) -> None:
        entry.opening = None
        failed = asyncio.CancelledError() if opening.cancelled() else opening.exception()
        if failed is None:
            entry.task = asyncio.create_task(self._record(entry, turn, recorded))
            recorded.on_abandoned(self._followed_s, turn.interrupt)
            return
        if isinstance(failed, ChatFailed):
            fault = failed.fault.mask_secrets(self._tools.mask)
            turn.record.mark_failed(fault.message)
            recorded.put(fault.to_event())
        else:
            stopped = Message("chat.stopped_before_asked", "It was stopped before the model was asked.")
            turn.record.mark_failed(str(failed) or stopped)
            if not opening.cancelled():
                _log.error("the turn %s could not begin", turn.record.id, exc_info=failed)
        self._chats.end(entry)

    async def _record(self, entry: Entry, turn: Turn, recorded: RecordedReply) -> None:
        try:
            writer = SseWriter(turn.head)
            async with aclosing(turn.events()) as events:
                async for event in events:
                    recorded.put(writer.write(event))
                    with suppress(Interrupted), turn.interruption.guard():
                        await recorded.wait_for_room()
        finally:
            self._chats.end(entry)

    def _to_failed_run(self, chat: str, failed: ChatFailed, record: ChatRecord | None = None) -> ChatRun:
        fault = failed.fault.mask_secrets(self._tools.mask)
        if record is not None:
            record.mark_failed(fault.message)
        headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
        return ChatRun(
            id=chat, status=fault.status, body=fault.to_bytes(), headers=headers | (_NO_RETRY if fault.is_final else {})
        )


_COME_BACK = "\nOnce it is allowed, send the same request again within 10 minutes: it goes on from here.\n"


def _internal_fault() -> ChatFault:
    message = Message("chat.bug", "This is a bug of Toolyard; the server's log has it")
    return ChatFault(status=HTTPStatus.INTERNAL_SERVER_ERROR, message=message, code="internal_error")


def _early_answer(turn: Turn, answer: JsonAnswer, waiting: list[PendingApproval]) -> ChatRun:
    """Build the answer of a turn that continues: its text so far, and the pending approvals."""
    note = write_approvals(waiting, answer.text) + _COME_BACK
    return ChatRun(id=turn.record.id, body=answer.close_early(note, approvals_extension(waiting)))


def _follow(entry: Entry, recorded: RecordedReply) -> ChatRun:
    headers = {"X-Toolyard-Cursor": str(entry.begun)}
    return ChatRun(id=entry.record.id, pieces=recorded.follow(entry.begun), headers=headers)
