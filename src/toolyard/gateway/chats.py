"""Chats: the way from a client's request to its answer, and all that can be done to a chat from outside.

A request finds the log of a turn or begins one, and its answer is a rendering of that log, streamed or complete: see
``turns.turn_log`` for what a request that is sent again finds, and ``turns.rendering``. A streamed request that names
its chat survives its client: ``follow`` gives every later piece, and it ends when nobody has followed it for a while.
So does an idempotent request. Any other ends when its client leaves, with its model and its tools, unless the client
timed out and will retry, or was told that a call waits for approval.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from typing import Final

import orjson

from toolyard.engine.cancellation import uncancellable
from toolyard.engine.chats.idempotency import Started, StoredResponse
from toolyard.engine.chats.turns import REPEATED_S, Turns, TurnState
from toolyard.gateway.assistant_models import AssistantModels
from toolyard.gateway.chat_ports import PromptSources
from toolyard.gateway.chat_prompt import FilledPrompt, fill_prompt
from toolyard.gateway.chat_request import ChatOptions, ClientRequest, parse_options
from toolyard.gateway.faults import ChatFailed, ChatFault, bad_request, changed_history, server_stopping
from toolyard.gateway.offer import estimate_request
from toolyard.gateway.offer_policy import OfferPolicy, split_alias
from toolyard.gateway.protocols.chat import CHAT, ChatRendering, ChatWriter
from toolyard.gateway.providers.contact import Contact
from toolyard.gateway.providers.upstreams import Upstreams
from toolyard.gateway.turns.display import Show
from toolyard.gateway.turns.interruption import Interrupted
from toolyard.gateway.turns.rendering import (
    ClientAnswer,
    Rendering,
    render_early,
    render_failure,
    render_stream,
    write_stream,
)
from toolyard.gateway.turns.turn import Turn
from toolyard.gateway.turns.turn_events import End, Ended, Failed
from toolyard.gateway.turns.turn_keeper import AnswerKeeper, RepeatKeeper, SingleRun, TurnKeeper
from toolyard.gateway.turns.turn_log import LogNames, LogReader, Repeat, TurnLog, TurnLogs
from toolyard.gateway.turns.turn_plan import NO_HISTORY, History, PlayedRound, TurnPlanner, TurnPorts
from toolyard.message import Message
from toolyard.protocol.json import JsonObject

APPROVAL_WAIT_S: Final = 55.0  # many clients give up after a minute
FOLLOWED_S: Final = 1800.0
_LOOK_S = 1.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRules:
    """The decisions of the settings for all chats."""

    show: Show = Show.SUMMARY
    nonce: bool = False
    followed_s: float = FOLLOWED_S  # for which a chat that its client named goes on without a reader
    approval_wait_s: float = APPROVAL_WAIT_S


class Chat:
    def __init__(
        self,
        upstreams: Upstreams,
        texts: PromptSources,
        offer_policy: OfferPolicy,
        ports: TurnPorts,
        rules: ChatRules,
        turns: Turns | None = None,
        assistants: AssistantModels | None = None,
    ) -> None:
        """Without ``turns`` what has run is forgotten with this process. ``assistants`` are models as well."""
        self.upstreams, self.offer_policy, self.rules = upstreams, offer_policy, rules
        self._ports, self._turns, self._assistants, self.mask = ports, turns, assistants, ports.tools.mask
        self._planner = TurnPlanner(texts=texts, offer_policy=offer_policy, ports=ports, has_nonce=rules.nonce)
        self._logs = TurnLogs()
        self.is_stopping = False  # the server ends what still runs
        self._forwarded: set[Callable[[], None]] = set()  # each ends an answer that is passed through
        self._leaving: dict[asyncio.Task[None], Upstreams] = {}  # providers that only running turns still need

    # --- the answer to a request

    async def complete(
        self, asked: ClientRequest, single: SingleRun | None = None, rendering: Rendering | None = None
    ) -> ClientAnswer:
        """Answer a request, streamed or complete; faults are answers too. ``single``: of an idempotent one.

        ``rendering``: what its client gets, where that does not speak chat completions.
        """
        rendering = rendering or ChatRendering(asked.wants_stream)
        try:
            asked = await self._assistants.apply(asked) if self._assistants else asked
            options = parse_options(asked, self.rules.show)
            log = await self._find_or_begin(asked, options, single, rendering)
        except ChatFailed as failed:
            return render_failure(rendering, failed.fault.mask_secrets(self._ports.tools.mask))
        if isinstance(log, StoredResponse):
            return ClientAnswer.from_stored(log)
        if single is not None and not log.is_whole:
            raise single.refuse_late()
        return await self.read(log, rendering, options.timeout_s)

    async def read(self, log: TurnLog, rendering: Rendering, timeout_s: float | None = None) -> ClientAnswer:
        """Answer with the whole of a turn, as it is rendered."""
        reader = log.read(log.begun, timeout_s=timeout_s)
        if rendering.is_streamed:
            return await render_stream(rendering, log, reader)
        return await self._complete(rendering, log, reader)

    async def start(self, asked: ClientRequest, patience_s: float) -> TurnLog:
        """Return the log of a turn that nobody has to read: of one that this request repeats, or of a new one.

        After a reader has left it goes on for its patience, and its events are kept. Raises ChatFailed.
        """
        options = parse_options(asked, self.rules.show)
        log = await self._find_or_begin(asked, options, None, CHAT, patience_s)
        if isinstance(log, StoredResponse):
            raise TypeError("only a request with a key has a stored answer")
        log.is_kept = True
        return log

    async def estimate_tokens(self, asked: ClientRequest) -> int:
        """Return an upper estimate of the tokens that a request would send to its model. Raises ChatFailed."""
        options = parse_options(asked, self.rules.show)
        plan = await self._planner.plan(asked, options, NO_HISTORY, self.upstreams)
        return estimate_request(plan.request.body)

    def find_log(self, caller: str, chat: str) -> TurnLog | None:
        """Return the newest turn of a chat of this caller, while it is remembered."""
        return self._logs.get(caller, chat)

    async def _complete(self, rendering: Rendering, log: TurnLog, reader: LogReader) -> ClientAnswer:
        """Read a turn to its end; a client that would wait for an approval is answered early."""
        answer = rendering.begin_answer(log)
        look_at = asyncio.get_running_loop().time() + self.rules.approval_wait_s
        with reader:
            while True:
                if not reader.has_news:
                    try:
                        async with asyncio.timeout_at(look_at):
                            await reader.wait()
                    except TimeoutError:
                        if log.waiting and log.is_running:
                            reader.patience_s = REPEATED_S
                            return render_early(answer, log)
                        look_at += _LOOK_S
                        continue
                entries = await reader.next()
                try:
                    for entry in entries:
                        answer.take(entry.event)
                except ChatFailed as failed:
                    return render_failure(rendering, failed.fault, log.record.id)
                if answer.is_over and log.is_running:
                    reader.patience_s = REPEATED_S
                    return ClientAnswer(id=log.record.id, body=answer.body)
                if not entries:
                    return ClientAnswer(id=log.record.id, body=answer.body)

    def follow(self, chat: str, cursor: int, caller: str) -> AsyncGenerator[bytes, None] | None:
        """Return the events of a chat that its client has named after ``cursor``; None when there is no such chat."""
        log = self._logs.get(caller, chat)
        return self._follow(log.followed, cursor) if log and log.names.is_chat_named and log.followed else None

    async def _follow(self, log: TurnLog, cursor: int) -> AsyncGenerator[bytes, None]:
        writer = ChatWriter(is_streamed=log.is_streamed)
        async with aclosing(write_stream(writer, log, log.read(cursor))) as pieces:
            await anext(pieces)
            async for piece in pieces:
                yield piece

    # --- a request finds a log or begins one

    async def _find_or_begin(
        self,
        asked: ClientRequest,
        options: ChatOptions,
        single: SingleRun | None,
        rendering: Rendering,
        patience_s: float = 0.0,
    ) -> TurnLog | StoredResponse:
        """Return the log that this request reads: of the turn that it repeats, or of a new one. Raises ChatFailed."""
        if single is not None:
            begin = partial(self._begin_single, asked, options, single, rendering)
            return await single.find_or_start(self._logs.get_by_key, begin)
        request = fingerprint_request(asked, options)
        history = NO_HISTORY
        if (log := self._logs.find_repeated(asked.caller, request)) is not None:
            match log.judge_repeat(is_marked=options.is_retry):
                case Repeat.JOIN:
                    return log
                case Repeat.CONTINUE:
                    await log.wait_for_end()  # it was told to
                    history = log.history
        elif request:
            history = await self._find_stored(asked.caller, request, is_marked=options.is_retry)
        plan = await self._planner.plan(asked, options, history, self.upstreams, asked.turn)
        newer = self._logs.find_repeated(asked.caller, request) if history.rounds else None
        if newer is not None and newer is not log and newer.is_running:
            return newer  # another repetition was faster
        names = LogNames(request=request, handle=options.handle, is_chat_named=bool(options.chat))
        keeper = RepeatKeeper(self._turns, request) if request and self._turns else None
        patience_s = self.rules.followed_s if options.chat and plan.request.streams else patience_s
        return self._begin(Turn(plan, self._ports), names, keeper, patience_s)

    async def _begin_single(
        self, asked: ClientRequest, options: ChatOptions, single: SingleRun, rendering: Rendering, _: Started
    ) -> TurnLog:
        plan = await self._planner.plan(asked, options, NO_HISTORY, self.upstreams, single.chat)
        names = LogNames(key=single.key, handle=options.handle, is_chat_named=bool(options.chat))
        patience_s = self.rules.followed_s
        log = self._begin(Turn(plan, self._ports), names, AnswerKeeper(single, rendering), patience_s)
        log.expect_reader(max(patience_s, _LOOK_S))  # its client may have left already
        return log

    async def _find_stored(self, caller: str, request: bytes, *, is_marked: bool) -> History:
        """Return the rounds of a turn that an earlier process, or another host, has not ended. Raises ChatFailed."""
        stored = await self._turns.find(caller, request.hex()) if self._turns else None
        if stored is None or self._turns is None or (stored.state is TurnState.DONE and not is_marked):
            return NO_HISTORY
        if self._turns.is_running(stored):
            if not is_marked:
                return NO_HISTORY  # the same wish, twice
            message = Message("the first request still runs on another host: repeat it later")
            raise bad_request(message, "in_progress", HTTPStatus.CONFLICT)
        if not all(one.reply for one in stored.rounds):
            raise ChatFailed(changed_history())
        return History(tuple(PlayedRound(one.reply, [*one.calls]) for one in stored.rounds), stored.nonce)

    # --- a turn writes its log

    def _begin(self, turn: Turn, names: LogNames, keeper: TurnKeeper | None, patience_s: float) -> TurnLog:
        """Run a turn in a task of its own, which writes its log. Raises ChatFailed while another one of its chat runs.

        It goes on for its patience without a reader.
        """
        chat = turn.record.id
        before = self._logs.get(turn.record.caller, chat) if names.is_chat_named else None
        if before is not None and before.is_running:
            raise bad_request(
                Message("the chat '{chat}' is still running", chat=chat), "chat_busy", HTTPStatus.CONFLICT
            )
        log = TurnLog(turn, names, patience_s=patience_s, before=before)
        turn.connect(log.append, partial(keeper.keep_calls, turn) if keeper else None)
        self._logs.begin(log)
        log.task = asyncio.create_task(self._run(log, keeper))
        log.task.add_done_callback(partial(self._end_log, log))
        return log

    async def _run(self, log: TurnLog, keeper: TurnKeeper | None) -> None:
        """Run a turn to its end, and write its events to its log. Its end is kept before anybody reads it."""
        turn, end = log.turn, None
        try:
            await turn.open()
            end = await _write_events(turn, log)
        except ChatFailed as failed:  # before the model answered
            fault = failed.fault.mask_secrets(self._ports.tools.mask)
            turn.record.mark_failed(fault.message)
            end = Failed(fault)
        except asyncio.CancelledError:
            turn.is_cut = True
            turn.record.mark_failed(Message("It was stopped with the server."))
            raise
        finally:
            turn.record.ended = self._ports.now().timestamp()
            if keeper is not None and keeper.is_keeping:
                end = await uncancellable(keeper.keep_end(log, end))
            if end is not None:
                log.append(end)
                self._logs.end(log)

    def _end_log(self, log: TurnLog, task: "asyncio.Task[None]") -> None:
        """End the log of a turn that a bug or the end of the server cut off."""
        if not task.cancelled() and (bug := task.exception()) is not None:
            _log.error("the turn %s failed", log.record.id, exc_info=bug)
            if log.is_running:
                fault = _internal_fault()
                log.record.mark_failed(fault.message)
                log.append(Failed(log.turn.explain_fault(fault)))
        self._logs.end(log)

    # --- from outside

    def change_upstreams(self, upstreams: Upstreams) -> None:
        """Send turns from now on to these providers; a running turn stays with the provider it began with."""
        before, self.upstreams = self.upstreams, upstreams
        self._leaving[task := asyncio.create_task(self._close_when_unused(before))] = before
        task.add_done_callback(self._leaving.pop)

    async def _close_when_unused(self, upstreams: Upstreams) -> None:
        await self._logs.wait_for_running()
        await upstreams.idle()
        await upstreams.close()

    async def models(self, caller: str = "") -> list[JsonObject]:
        """Return the models of all providers, then the assistants that a caller may use."""
        models = self.offer_policy.list_models(await self.upstreams.models())
        return [*models, *(await self._assistants.list_models(caller) if self._assistants else ())]

    @property
    def has_installed_prompts(self) -> bool:
        """The prompts of an installation are filled, so no request is passed on as it came."""
        return self._planner.texts.installed is not None

    async def fill_prompt(self, text: str, model: str, caller: str) -> FilledPrompt:
        """Return a system message as its model would get it, for people who write one. Raises ChatFailed."""
        return await fill_prompt(
            [{"role": "system", "content": text}], self._planner.texts, caller,
            model=model or self.upstreams.default_model,
        )  # fmt: skip

    def unavailable_providers(self) -> list[str]:
        """Return the providers that did not answer when they were last asked for their models."""
        return self.upstreams.unavailable()

    async def model(self, id_: str, caller: str = "") -> JsonObject | None:
        """Return a model by its id, an alias included, or by the name of its provider as in ``name/model``."""
        if self._assistants and (assistant := await self._assistants.find_model(id_, caller)):
            return assistant
        name, _ = split_alias(id_)
        listed = next((model for model in await self.upstreams.models() if model.get("id") == name), None)
        model = listed or await self.upstreams.model(name)
        return None if model is None else {**model, "id": id_}

    def contacts(self) -> dict[str, Contact]:
        """Return the last contact with each model provider, since these providers were set."""
        return self.upstreams.contacts()

    def interrupt(self, *, caller: str, request_id: str = "", chat: str = "") -> bool:
        return self._logs.interrupt(caller, handle=request_id, chat=chat)

    def record(self, chat: str, caller: str) -> JsonObject | None:
        """Return the requests sent to the model in a chat of this caller, and the work of its tools."""
        log = self._logs.get(caller, chat)
        if log is None:
            return None
        followed = log.followed if log.names.is_chat_named else None
        return log.record.to_dict() | {"cursor": followed.cursor if followed else None}

    @contextmanager
    def ended_by_stop(self, end: Callable[[], None]) -> Iterator[None]:
        """Call ``end`` when running answers are stopped, for one that is passed through and no turn."""
        self._forwarded.add(end)
        try:
            yield
        finally:
            self._forwarded.discard(end)

    async def wait_for_keyed(self) -> None:
        """Wait until no idempotent request runs: it goes on without its client."""
        await self._logs.wait_for_running(keyed=True)

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

    async def close(self) -> None:
        await self._logs.close()
        await self.upstreams.close()
        for task, upstreams in (leaving := dict(self._leaving)).items():
            task.cancel()
            await upstreams.close()  # not by the task: it may not have had its first step
        if leaving:
            await asyncio.wait(leaving)


async def _write_events(turn: Turn, log: TurnLog) -> End | None:
    """Write the events of a turn to its log, at the pace of its readers; return the last one instead."""
    async with aclosing(turn.events()) as events:
        async for event in events:
            if isinstance(event, Ended | Failed):
                return event
            log.append(event)
            if log.is_far_ahead:
                with suppress(Interrupted), turn.interruption.guard():
                    await log.wait_for_readers()
    return None


_UNIMPORTANT: Final = ("stream", "stream_options")  # for whether a request is the same: a client may give up its stream


def fingerprint_request(asked: ClientRequest, options: ChatOptions) -> bytes:
    """Return the digest by which a request that is sent again is known: its input, and what its headers ask for.

    The order of keys does not count. A request of this process itself has none: nothing sends it again.
    """
    identity = asked.identity or (asked.body if asked.raw else None)
    if identity is None:
        return b""
    asks = (options.chat, options.show.value, options.offer or "", asked.conversation)
    digest = sha256("\0".join(asks).encode("utf-8", "surrogatepass"))
    body = {key: value for key, value in identity.items() if key not in _UNIMPORTANT}
    digest.update(orjson.dumps(body, option=orjson.OPT_SORT_KEYS))
    return digest.digest()


def _internal_fault() -> ChatFault:
    message = Message("This is a bug of Toolyard; the server's log has it")
    return ChatFault(status=HTTPStatus.INTERNAL_SERVER_ERROR, message=message, code="internal_error")
