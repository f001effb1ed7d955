"""One chat turn, from the request to the final answer: rounds of asking the model and running its tool calls.

``events`` is its only loop; a sink turns the events into an answer. Tools run only after a reply that ended normally:
one that broke off runs nothing. The client sees one answer: one id, one finish reason, one end, the usage of
all rounds. A round is asked again while nothing of it was sent to the client, which repeats no tool. After the
provider's number of tool rounds the model is asked for its answer without tools; a reply that asks for more ends the
turn with a note.

A turn can continue an earlier one that was cut off (``history``): the replies of that one are read in place of asking
the model, and the calls that had begun are not run again, their results are those in the journal. When a turn fails
after a tool has run, its fault says so, and the same request continues it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from toolyard.gateway.chat_record import ChatRecord
from toolyard.gateway.faults import (
    ChatFailed,
    ChatFault,
    broken_answer,
    changed_history,
    encode_request,
    oversized_answer,
)
from toolyard.gateway.interruption import Interrupted, Interruption
from toolyard.gateway.language import detect_language
from toolyard.gateway.media.media import part_kinds, replace_parts
from toolyard.gateway.media.media_link import publish_all
from toolyard.gateway.media.media_refusals import NOTE, MediaRefusals, Model, may_refuse_media
from toolyard.gateway.memory import FinishedTurn, TurnMemory
from toolyard.gateway.model_request import ModelRequest
from toolyard.gateway.offers.offer_policy import TextForm
from toolyard.gateway.offers.tool_refusals import is_tool_refusal
from toolyard.gateway.ports import PendingApproval, ToolPort
from toolyard.gateway.providers.answer import MAX_UNSTREAMED, Answer
from toolyard.gateway.providers.upstream import Upstream
from toolyard.gateway.providers.wait import ProviderWait
from toolyard.gateway.reply.chunks import Chunk, Head, to_events
from toolyard.gateway.reply.reply import Reply
from toolyard.gateway.reply.request_filter import RequestFilter
from toolyard.gateway.reply.streamed_reply import StreamedReply
from toolyard.gateway.reply.unstreamed_reply import UnstreamedReply
from toolyard.gateway.sinks.display import (
    Show,
    approval_event,
    call_event,
    limit_note,
    list_actions,
    write_approvals,
    write_results,
)
from toolyard.gateway.sinks.events import (
    CallUpdate,
    Delta,
    Ending,
    Failed,
    Finished,
    Note,
    ReplyEnded,
    ReplyParsed,
    SpecialActions,
    TurnEvent,
)
from toolyard.gateway.token_limit import is_token_limit_refusal, rename_token_limit
from toolyard.gateway.tool_calls import native_calls, text_calls
from toolyard.gateway.tool_calls.bounds import Bounds
from toolyard.gateway.tool_calls.echo import refuse_echoes
from toolyard.gateway.tool_calls.jobs import Job, JobResult, JobRunner, JobState, host_result
from toolyard.gateway.tool_calls.round_messages import ask_for_answer, build_round_messages
from toolyard.gateway.tool_calls.rounds import Rounds
from toolyard.message import Message
from toolyard.protocol.chat_mode import ReplyForm
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_value
from toolyard.protocol.reply import ReplyError, parse_reply
from toolyard.protocol.tool import Risk

MAX_ROUNDS: Final = 10
_MAX_BREAKS = 2  # retries of a round whose answer broke off
_FILTERED = "content_filter"
_CALLING = ("tool_calls", "function_call")  # finish reasons
_LOOK_S = 1.0  # interval of looking for approvals that running calls wait for


@dataclass(slots=True)
class PlayedRound:
    """A reply that asked for tools, the id and tool of each call that was made for it, and the results so far."""

    reply: JsonObject  # ``message``, ``finish_reason`` and ``usage``
    calls: list[tuple[str, str]]
    results: dict[str, JobResult] = field(default_factory=dict)

    @classmethod
    def from_reply(cls, reply: Reply, jobs: list[Job]) -> "PlayedRound":
        message = reply.message() | ({"tool_calls": [*reply.calls]} if reply.calls else {})
        written: JsonObject = {"message": message, "finish_reason": reply.finish, "usage": reply.usage}
        return cls(written, [(job.call.id, job.tool) if job.call else ("", job.tool) for job in jobs])


@dataclass(frozen=True, slots=True)
class History:
    """The rounds of a turn that another one continues."""

    rounds: tuple[PlayedRound, ...] = ()
    nonce: str | None = None


NO_HISTORY: Final = History()


class _PlayedAnswer:
    """The recorded reply of an earlier turn, as an answer of the provider."""

    def __init__(self, head: Head, reply: JsonObject, name: str) -> None:
        choice: JsonObject = {"index": 0, "message": reply["message"], "finish_reason": reply["finish_reason"]}
        usage: JsonObject = {"usage": reply["usage"]} if reply.get("usage") else {}
        body = head.stamp({"choices": [choice]}) | {"object": "chat.completion"} | usage
        self._body, self._name = json_bytes(body), name

    async def events(self) -> list[bytes]:
        body, self._body = self._body, b""
        return to_events(self._name, body) if body else []

    async def read_all(self) -> bytes:
        return self._body

    def close(self) -> None:
        pass


class Turn:
    def __init__(
        self,
        ask: ModelRequest,
        upstream: Upstream,
        tools: ToolPort,
        record: ChatRecord,
        created: int,
        refusals: MediaRefusals,
        *,
        now: Callable[[], datetime],
        memory: TurnMemory | None = None,
        bounds: Bounds = Bounds(),  # noqa: B008 it is frozen
        text_form: TextForm | None = None,
        history: Sequence[PlayedRound] = (),
    ) -> None:
        """``text_form``: the same request for a model that refuses native tools; ``history``: of a turn to continue."""
        self.request, self._upstream, self._tools, self.record = ask, upstream, tools, record
        self._bounds, self._now = bounds, now
        self.head = Head(f"chatcmpl-{record.id}", created, str(ask.body.get("model", "")))
        self._text_form = text_form
        self._messages = ask.messages
        self._refusals, self._memory = refusals, memory
        self._rounds: Rounds = []  # the messages that each round has added
        self._visible_texts: list[str] = []  # the text that the client sees, up to the current reply
        self._kept = 0  # bytes of the replies before the current one
        self._round = 0
        self._is_last_round = False  # the model was asked for an answer without tools
        self._last_words = ""  # in the next turn, where they are not the text of the last reply
        self._breaks = 0  # of the current round
        self._request_bytes = ask.raw  # of the current round
        self._answer: Answer | None = None
        self._streamed = self._new_reply()
        self._reply: Reply = self._streamed  # the current reply
        self._updates: asyncio.Queue[CallUpdate | None] | None = None  # for a client that draws the work
        self._work = JobRunner(tools)
        self._results: list[JobResult] = []
        self._running: set[str] = set()  # ids of calls
        self.tell: Callable[[CallUpdate], None] | None = None  # tells a client of waits, between two events
        self.interruption = Interruption()
        self._stop_fault: ChatFault | None = None  # of an interruption that is no wish of the client
        self.calls_run: list[str] = []  # ids of the calls that were started
        self.played: list[PlayedRound] = []  # the rounds with calls so far
        self._history = deque(history)  # the rounds to play before the model is asked again
        self.continues = bool(history)  # an earlier turn
        self._is_replaying = False  # the current round is one of them
        self._is_left = False  # interrupted because its client left
        self.before_calls: Callable[[], Awaitable[None]] | None = None  # called before calls that may have effects
        self._early_texts: list[str] = []  # answers that were given before the turn ended
        self._jobs: list[Job] = []  # of the current round

    async def open(self) -> None:
        """Ask the model for the first time. Raises ChatFailed, and then nothing has happened."""
        with suppress(Interrupted):  # the answer will report it
            try:
                await self._send(self._request_bytes)
            except ChatFailed as failed:
                if is_token_limit_refusal(failed.fault, self.request.body):
                    self._use_request(rename_token_limit(self.request))
                    return await self.open()
                if self._text_form is None or not is_tool_refusal(failed.fault):
                    raise
                self._use_request(self._text_form.make())
                await self._send(self._request_bytes)
                self._text_form.remember()

    def _use_request(self, ask: ModelRequest) -> None:
        """Ask in another form from now on; nothing was answered yet."""
        self.request, self._request_bytes, self._messages = ask, ask.raw, ask.messages
        self.record.offer = ask.offer.to_json()
        self._streamed = self._new_reply()

    @property
    def history(self) -> History:
        """The rounds with calls so far, for a turn that continues this one."""
        return History(tuple(self.played), self.request.nonce) if self.played else NO_HISTORY

    def interrupt(self, fault: ChatFault | None = None) -> None:
        """Stop the turn. With ``fault`` it fails with that, else its answer ends as interrupted."""
        if not self.interruption.is_requested:
            self._stop_fault = fault
        if not self.interruption.request():
            self.close()  # it is at no wait, because the client reads slowly

    def leave(self) -> None:
        """Stop the turn because its client left: calls that nobody waits for go on."""
        self._is_left = not self.interruption.is_requested
        self.interrupt()

    async def pending_approvals(self) -> list[PendingApproval]:
        """Return its running calls that wait for an approval."""
        return await self._tools.list_pending(frozenset(self._running)) if self._running else []

    async def events(self) -> AsyncGenerator[TurnEvent, None]:
        """Run the turn: yield its events in order, until it has finished or failed."""
        try:
            while True:
                self._round, self._breaks = self._round + 1, 0
                self._streamed = self._new_reply()
                while chunks := await self._read():
                    yield Delta(chunks)
                reply = self._reply
                self._visible_texts.append(reply.visible_text)
                self._kept = reply.kept_bytes
                yield ReplyEnded(reply, self._describe_use(reply))
                jobs = self._list_jobs(reply)
                if not (end := await self._find_end(reply, jobs)):
                    async with aclosing(self._work_on(jobs, reply)) as updates:
                        async for update in updates:
                            yield update
                    end = await self._go_on(reply, jobs)
                for event in end:
                    yield event
                if end:
                    return
        except ChatFailed as failed:
            self.close()  # at once: the client may take its time with the rest
            if rest := self._streamed.end():
                yield Delta(rest)  # held text is delivered, although it might have become a request
            yield Failed(self._record_fault(failed))
        except Interrupted:
            for event in await self._end_interrupted():
                yield event
        finally:
            self.close()
            self._streamed = self._reply = self._new_reply()  # the turn may be kept, and its replies are large
            self._visible_texts.clear()

    async def _describe_results(self, reply: Reply) -> list[TurnEvent]:
        """Return what the client gets of the results of a round: a text, and what it is asked to do."""
        show, told = self.request.show, list[TurnEvent]()
        if text := write_results(show, self._results, reply.visible_tail, await self._publish()):
            told.append(self._make_note(text))
        if actions := list_actions(show, self._results):
            told.append(SpecialActions(self._mask_json(actions)))
        return told

    def _describe_use(self, reply: Reply) -> JsonObject:
        """Return the tokens of a round for a client that draws them; an empty object when nothing is known."""
        offer = self.request.offer
        if self.request.show is not Show.EVENTS or not (reply.usage or offer.tokens):
            return {}
        offered: JsonObject = {"tools": len(offer.names), "tokens": offer.tokens}
        return {"type": "round.ended", "usage": reply.usage, "offer": offered}

    async def _end_interrupted(self) -> list[TurnEvent]:
        if not self._is_left:
            await self._work.stop()  # fire-and-forget calls as well
        if self._stop_fault is None:
            self.record.mark_failed("the client left" if self._is_left else "interrupted")
            return [self._build_end(Ending.INTERRUPTED, None)]
        rest = self._streamed.end()
        return [*([Delta(rest)] if rest else []), Failed(self._fail(self._stop_fault))]

    def close(self) -> None:
        """Close the current answer, complete or not."""
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    @property
    def _max_rounds(self) -> int:
        return MAX_ROUNDS if self._upstream.max_rounds is None else self._upstream.max_rounds

    async def _find_end(self, reply: Reply, jobs: list[Job]) -> list[TurnEvent]:
        """Return the end of the turn, if this reply is its last: it asks for no tools, or gets none."""
        if jobs:
            return self._stop_at_limit(reply, reply.visible_text) if self._round > self._max_rounds else []
        is_limited = self._is_last_round and not reply.is_handed_over and reply.finish != native_calls.CUT
        parsed = await self._parse(reply)
        return [*parsed, self._finish(reply, Ending.ROUND_LIMIT if is_limited else Ending.DONE)]

    async def _parse(self, reply: Reply) -> list[TurnEvent]:
        """Return the structured reply that the client asked for. In an answer in one piece it is all of the text."""
        is_for_client = self.request.runs_tools and reply.is_handed_over
        if self.request.reply is not ReplyForm.JSON or is_for_client or reply.finish in _CALLING:
            return []
        found = await asyncio.to_thread(parse_reply, reply.visible_text)
        if isinstance(found, ReplyError):
            return [ReplyParsed({key: value for key, value in found.to_dict().items() if key != "raw"})]
        text = None
        if not self.request.streams:
            text = found.to_text() if found.repairs else reply.visible_text.strip()
            self._visible_texts = [text]
            self._last_words = text
        return [ReplyParsed(found.to_dict(), text)]

    async def _go_on(self, reply: Reply, jobs: list[Job]) -> list[TurnEvent]:
        """Ask the model again after its tools have run; return the end of the turn if there is no further reply."""
        if all(job.is_detached for job in jobs):
            return [*await self._parse(reply), self._finish(reply)]  # with calls of the client's own tools, if any
        self._is_last_round = self._round >= self._max_rounds
        if not await self._ask_next(reply):
            return self._stop_at_limit(reply, "")
        self.head.usage = reply.total_usage()
        return []

    def _stop_at_limit(self, reply: Reply, last_text: str) -> list[TurnEvent]:
        """End the turn with a note: its model got no further tools. ``last_text`` is what it wrote last."""
        note = self._make_note(limit_note(self._max_rounds, detect_language(self.request.messages)))
        self._last_words = last_text + note.text
        return [note, self._finish(reply, Ending.ROUND_LIMIT)]

    def _make_note(self, text: str) -> Note:
        self._visible_texts.append(text)
        return Note(text)

    def _build_end(self, ending: Ending, reply: Reply | None) -> Finished:
        """Return the end of a turn: a stream still gets the end of the last reply, or says how the turn ended."""
        last: list[Chunk] = []
        if isinstance(reply, StreamedReply) and ending is Ending.DONE:
            last = reply.take_held()
        elif self.request.streams:
            spent: JsonObject = reply.total_usage() if reply is not None else {}
            stop = self.head.chunk({}, "stop") | {"toolyard": {"type": ending.value}}
            last = [Chunk(stop | ({"usage": spent} if spent else {}))]
        return Finished(ending, reply, last)

    def _finish(self, reply: Reply, ending: Ending = Ending.DONE) -> Finished:
        """End the turn; its rounds are remembered for the next request."""
        if self._memory is not None and self._rounds:
            for answer in ("".join(self._visible_texts), *self._early_texts):
                self._remember(answer, self._rounds, self._last_words or reply.text)
        return self._build_end(ending, reply)

    def note_early_answer(self, text: str) -> None:
        """Note an answer that was given before the turn has ended: its model learns from it what happened since."""
        self._early_texts.append(text)
        self._remember_early()

    def _remember_early(self) -> None:
        """Remember for early answers what each call has come to so far."""
        if self._memory is None or not self._early_texts:
            return
        known, waits = self.played[-1].results, Message("chat.not_run_yet", "It waits for approval and has not run.")
        results = [
            known.get(job.call.id if job.call else "") or host_result(job, JobState.BACKGROUND, waits)
            for job in self._jobs
        ]
        for text in self._early_texts:
            self._remember(text, [*self._rounds, self._build_round(self._reply, results)], self._reply.text)

    def _remember(self, answer: str, rounds: Rounds, last_words: str) -> None:
        if self._memory is not None:
            turn = FinishedTurn(
                question=self.request.question,
                answer=answer,
                rounds=rounds,
                last_words=last_words,
                nonce=self.request.nonce,
            )
            self._memory.remember(self.request.caller, turn)

    # --- asking and reading

    def _new_reply(self) -> StreamedReply:
        return StreamedReply(
            self.head,
            self._make_filter(),
            self._upstream.name,
            self._round,
            self.request.owners,
            looks=self.request.runs_tools,
            kept=self._kept,
        )

    def _make_filter(self) -> RequestFilter:
        return RequestFilter(hides=self.request.show.hides_requests, nonce=self.request.nonce)

    async def _read(self) -> list[Chunk]:
        """Return the next visible chunks of the current reply; none at its end. Raises ChatFailed."""
        while True:
            try:
                return await (self._read_streamed(self._streamed) if self.request.streams else self._read_whole())
            except ChatFailed as failed:
                if self._streamed.is_passed or not self._may_repeat(failed):
                    raise
                attempt, attempts = self._breaks + 1, _MAX_BREAKS + 1
                self._tell_wait(
                    ProviderWait(provider=self._upstream.name, fault=failed.fault, attempt=attempt, attempts=attempts)
                )
            await self._send(self._request_bytes)
            self._streamed = self._new_reply()

    async def _read_streamed(self, reply: StreamedReply) -> list[Chunk]:
        self._reply = reply
        while not reply.is_complete:
            try:
                with self.interruption.guard():
                    events = await self._open_answer.events()
            except ChatFailed as failed:
                reply.fail(failed.fault)
                break
            if not events:
                reply.fail(broken_answer(self._upstream.name).fault)
            if chunks := reply.take(events):
                return chunks
        if reply.failure is not None:
            raise ChatFailed(reply.failure)  # a new one: its frames must not keep the reply until the next collection
        return reply.end()

    async def _read_whole(self) -> list[Chunk]:
        with self.interruption.guard():
            raw = await self._open_answer.read_all()
        if self._kept + len(raw) > MAX_UNSTREAMED:
            raise oversized_answer(self._upstream.name, MAX_UNSTREAMED)
        self._reply = UnstreamedReply(
            raw,
            self.head,
            self._make_filter(),
            self._upstream.name,
            self._round,
            self.request.owners,
            looks=self.request.runs_tools,
            kept=self._kept,
        )
        return []

    def _may_repeat(self, failed: ChatFailed) -> bool:
        """Return whether to ask the round again, although its answer had begun; the client has nothing of it."""
        self._breaks += 1
        return failed.fault.is_transient and self._breaks <= _MAX_BREAKS

    async def _ask_next(self, reply: Reply) -> bool:
        """Ask the model once more, with the results of its requests.

        Return whether there is an answer: a provider may refuse to answer without tools. Raises ChatFailed.
        """
        added = self._build_round(reply, self._results)
        self._rounds.append(added)
        added = replace_parts(added, self._refusals.find(self._model_key), NOTE)
        if self._is_last_round:
            added = ask_for_answer(added, self._max_rounds, detect_language(self.request.messages))
        self._messages = [*self._messages, *added]
        try:
            await self._send_messages()
        except ChatFailed as failed:
            if may_refuse_media(failed.fault, is_new=bool(part_kinds(added))):
                await self._send_without_media(failed)
            elif self._is_last_round and _refuses_form(failed.fault):
                return False
            else:
                raise
        return True

    def _build_round(self, reply: Reply, results: list[JobResult]) -> list[Json]:
        """Return the messages that a round adds."""
        return build_round_messages(reply.message(), self._own_calls(reply), results)

    async def _send_without_media(self, failed: ChatFailed) -> None:
        """Send the same request with a marker for each piece of our media. Raises ChatFailed."""
        theirs, ours = self.request.messages, self._messages[len(self.request.messages) :]
        kinds = part_kinds(ours)
        if not kinds:
            raise failed
        self._messages = [*theirs, *replace_parts(ours, kinds, NOTE)]
        await self._send_messages()
        if not failed.fault.is_overflow:
            self._refusals.note(self._model_key, kinds, failed.fault)

    async def _send_messages(self) -> None:
        body = self.request.without_tools() if self._is_last_round else self.request.with_free_choice()
        await self._send(encode_request({**body, "messages": self._messages}))

    @property
    def _model_key(self) -> Model:
        return self._upstream.name, self.record.model

    async def _send(self, body: bytes) -> None:
        """Ask the provider, which retries by itself while there is no answer. Raises ChatFailed."""
        self.close()
        self._request_bytes = body
        if self._history:
            self._answer = _PlayedAnswer(self.head, self._history[0].reply, self._upstream.name)
            return
        body = self._mask(body)
        self.record.add_round(body)
        with self.interruption.guard():
            self._answer = await self._upstream.ask(
                body, stream=self.request.streams, retry=True, on_wait=self._tell_wait
            )

    def _tell_wait(self, wait: ProviderWait) -> None:
        if self.tell is not None and self.request.show is Show.EVENTS:
            self.tell(CallUpdate(wait.to_event() | self._stamp_time()))

    def _stamp_time(self) -> JsonObject:
        """Return the time for a client that reads an event later, because it follows the chat again."""
        return {"at": round(self._now().timestamp(), 3)}

    def _mask(self, body: bytes) -> bytes:
        text = body.decode("utf-8", "replace")
        masked = self._tools.mask(text)
        return body if masked is text else masked.encode()

    def _record_fault(self, failed: ChatFailed) -> ChatFault:
        """Record the failure; return the fault for the client."""
        self._upstream.note_failure(failed)
        return self._fail(failed.fault)

    def _fail(self, fault: ChatFault) -> ChatFault:
        fault = fault.mask_secrets(self._tools.mask)
        self.record.mark_failed(fault.message)
        is_known = fault.code == "cannot_continue"
        return fault if is_known or not self.calls_run else self.fault_after_tools(fault)

    def fault_after_tools(self, fault: ChatFault) -> ChatFault:
        return fault.after_tools(is_shown=self.request.show is Show.EVENTS)

    @property
    def _open_answer(self) -> Answer:
        if self._answer is None:
            raise RuntimeError("a turn is opened first")
        return self._answer

    # --- tool work

    def _list_jobs(self, reply: Reply) -> list[Job]:
        """Return the jobs of a reply; none when it hands over to the client."""
        if reply.is_handed_over or reply.finish == _FILTERED:
            return []
        text = reply.text if reply.request_filter.requests else ""
        requests = refuse_echoes(reply.request_filter.requests, text, self._messages)
        written = text_calls.make_jobs(requests, self._tools, self.request.caller, self._messages, text)
        ours = native_calls.make_jobs(
            self._own_calls(reply),
            self._tools,
            self.request.caller,
            names=self.request.offer.names,
            cut=reply.finish == native_calls.CUT,
        )
        return [self._bounds.apply(job, self._tools.spec).with_chat(self.record.id) for job in (*ours, *written)]

    def _own_calls(self, reply: Reply) -> list[JsonObject]:
        """Return the native calls of a reply that are ours to answer."""
        own = [call for call in reply.calls if not self.request.owners.is_client(native_calls.call_name(call))]
        return own[: native_calls.MAX_REPORTED]

    async def _work_on(self, jobs: list[Job], reply: Reply) -> AsyncGenerator[TurnEvent, None]:
        """Run the jobs of a reply, and yield what the client sees of that."""
        async with aclosing(self._run_jobs(jobs, reply)) as updates:
            async for update in updates:
                yield update
        for event in await self._describe_results(reply):
            yield event

    async def _run_jobs(self, jobs: list[Job], reply: Reply) -> AsyncGenerator[Note | CallUpdate, None]:
        """Run the jobs and yield their progress for the client; their results are in ``_results``."""
        jobs = await self._begin_round(jobs, reply)
        if not (self.request.streams and self.request.show.shows_progress):
            with self.interruption.guard():
                self._results = await self._work.run_all(jobs, self._note_work, self._find_result)
            return
        updates = self._updates = asyncio.Queue()
        task = asyncio.create_task(self._work.run_all(jobs, self._note_work, self._find_result))
        task.add_done_callback(lambda _: updates.put_nowait(None))
        announced: set[str] = set()
        try:
            while not (task.done() and updates.empty()):
                with self.interruption.guard():
                    update = await _next_update(updates)
                    waiting = [] if update or task.done() else await self.pending_approvals()
                if update is not None:
                    yield update
                for event in self._announce_approvals([one for one in waiting if one.call_id not in announced], reply):
                    yield event
                announced |= {one.call_id for one in waiting}
            self._results = await task
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _begin_round(self, jobs: list[Job], reply: Reply) -> list[Job]:
        """Note the calls of a round before any of them begins. In a round that is played again they keep their ids."""
        played = PlayedRound.from_reply(reply, jobs)
        self._is_replaying = bool(self._history)
        if self._is_replaying:
            earlier = self._history.popleft()
            if [tool for _, tool in earlier.calls] != [job.tool for job in jobs]:
                raise ChatFailed(changed_history())
            played = replace(played, calls=earlier.calls, results=earlier.results)
            jobs = [
                replace(job, call=replace(job.call, id=id_)) if job.call and id_ else job
                for job, (id_, _) in zip(jobs, earlier.calls, strict=True)
            ]
        self.played.append(played)
        self._jobs = jobs
        if self.before_calls is not None and any(map(self._may_have_effect, jobs)):
            await self.before_calls()
        return jobs

    def _may_have_effect(self, job: Job) -> bool:
        spec = self._tools.spec(job.call.tool) if job.call else None
        return spec is not None and spec.risk is not Risk.READ

    async def _find_result(self, job: Job) -> JobResult | None:
        """Return the result of a call that had begun before this turn; None: it is to run now."""
        if not self._is_replaying or job.call is None:
            return None
        if (known := self.played[-1].results.get(job.call.id)) is not None:
            return replace(known, job=job)
        outcome = await self._tools.find_outcome(job.call)
        return None if outcome is None else self._work.to_result(job, job.call, outcome)

    async def _publish(self) -> list[str]:
        """Return the media of the results as Markdown, for a client that shows no more than text."""
        if not self.request.shows_media:
            return []
        media = [(ran.job.tool, one) for ran in self._results for one in ran.media]
        with self.interruption.guard():
            return await publish_all(media, self._tools.publish)

    def _announce_approvals(self, waiting: list[PendingApproval], reply: Reply) -> list[Note | CallUpdate]:
        """Return the notice to the client about calls that wait for an approval."""
        if self.request.show is Show.EVENTS:
            return [CallUpdate(approval_event(one)) for one in waiting]
        if not waiting:
            return []
        text = write_approvals(waiting, reply.visible_tail)
        reply.visible_tail = text[-2:]
        return [self._make_note(text)]

    def _note_work(self, job: Job, ran: JobResult | None) -> None:
        """Record that a job has begun or, with ``ran``, its result."""
        if job.call is not None and ran is None:
            self.calls_run.append(job.call.id)
            self._running.add(job.call.id)
        elif job.call is not None:
            self._running.discard(job.call.id)
        if ran is not None:
            if job.call is not None and not job.is_detached:
                self.played[-1].results[job.call.id] = ran
                self._remember_early()
            self.record.add_work(job.tool, ran.state.value, ran.text)
        if self._updates is not None and self.request.show is Show.EVENTS:
            self._updates.put_nowait(CallUpdate(self._mask_json(call_event(job, ran) | self._stamp_time())))

    def _mask_json(self, value: Any) -> Any:
        return json_value(self._tools.mask(json_bytes(value).decode()))


def _refuses_form(fault: ChatFault) -> bool:
    """Return whether a provider rejects a request for its form."""
    return fault.code in ("upstream_400", "upstream_422") and not fault.is_overflow


async def _next_update(updates: "asyncio.Queue[CallUpdate | None]") -> CallUpdate | None:
    """Return the next update; none when there is none for a while, or no more."""
    try:
        async with asyncio.timeout(_LOOK_S):
            return await updates.get()
    except TimeoutError:
        return None
