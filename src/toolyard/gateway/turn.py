"""One chat turn, from the request to the final answer: rounds of asking the model and running its tool calls.

``events`` is its only loop; a sink turns the events into an answer. Tools run only after a reply that ended normally:
one that broke off runs nothing. The client sees one answer: one id, one finish reason, one end, the usage of
all rounds. A round is asked again while nothing of it was sent to the client, which repeats no tool. After the
provider's number of tool rounds the model is asked for its answer without tools; a reply that asks for more ends the
turn with a note. When a turn fails after a tool has run, its fault tells every client not to repeat the request.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Final

from toolyard.gateway.chat_record import ChatRecord
from toolyard.gateway.faults import ChatFailed, ChatFault, broken_answer, encode_request, oversized_answer
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
from toolyard.gateway.reply.chunks import Chunk, Head
from toolyard.gateway.reply.reply import Reply
from toolyard.gateway.reply.request_filter import RequestFilter
from toolyard.gateway.reply.streamed_reply import StreamedReply
from toolyard.gateway.reply.unstreamed_reply import UnstreamedReply
from toolyard.gateway.sinks.display import Show, approval_event, call_event, limit_note, write_approvals, write_results
from toolyard.gateway.sinks.events import (
    CallUpdate,
    Delta,
    Ending,
    Failed,
    Finished,
    Note,
    ReplyEnded,
    ReplyParsed,
    TurnEvent,
)
from toolyard.gateway.token_limit import is_token_limit_refusal, rename_token_limit
from toolyard.gateway.tool_calls import native_calls, text_calls
from toolyard.gateway.tool_calls.bounds import Bounds
from toolyard.gateway.tool_calls.echo import refuse_echoes
from toolyard.gateway.tool_calls.jobs import Job, JobResult, JobRunner
from toolyard.gateway.tool_calls.round_messages import ask_for_answer, build_round_messages
from toolyard.gateway.tool_calls.rounds import Rounds
from toolyard.protocol.chat_mode import ReplyForm
from toolyard.protocol.json import JsonObject, json_bytes, json_value
from toolyard.protocol.reply import ReplyError, parse_reply

MAX_ROUNDS: Final = 10
_MAX_BREAKS = 2  # retries of a round whose answer broke off
_FILTERED = "content_filter"
_CALLING = ("tool_calls", "function_call")  # finish reasons
_LOOK_S = 1.0  # interval of looking for approvals that running calls wait for


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
    ) -> None:
        """``text_form``: the same request for a model that refuses native tools."""
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

    def interrupt(self, fault: ChatFault | None = None) -> None:
        """Stop the turn. With ``fault`` it fails with that, else its answer ends as interrupted."""
        if not self.interruption.is_requested:
            self._stop_fault = fault
        if not self.interruption.request():
            self.close()  # it is at no wait, because the client reads slowly

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
            await self._work.stop()  # fire-and-forget calls as well
            for event in self._end_interrupted():
                yield event
        finally:
            self.close()
            self._streamed = self._reply = self._new_reply()  # the turn may be kept, and its replies are large
            self._visible_texts.clear()

    def _describe_use(self, reply: Reply) -> JsonObject:
        """Return the tokens of a round for a client that draws them; an empty object when nothing is known."""
        offer = self.request.offer
        if self.request.show is not Show.EVENTS or not (reply.usage or offer.tokens):
            return {}
        offered: JsonObject = {"tools": len(offer.names), "tokens": offer.tokens}
        return {"type": "round.ended", "usage": reply.usage, "offer": offered}

    def _end_interrupted(self) -> list[TurnEvent]:
        if self._stop_fault is None:
            self.record.mark_failed("interrupted")
            return [Finished(Ending.INTERRUPTED)]
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

    def _finish(self, reply: Reply, ending: Ending = Ending.DONE) -> Finished:
        """End the turn; its rounds are remembered for the next request."""
        if self._memory is not None and self._rounds:
            turn = FinishedTurn(
                question=self.request.question,
                answer="".join(self._visible_texts),
                rounds=self._rounds,
                last_words=self._last_words or reply.text,
                nonce=self.request.nonce,
            )
            self._memory.remember(self.request.caller, turn)
        return Finished(ending, reply)

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
        added = build_round_messages(reply.message(), self._own_calls(reply), self._results)
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
        fault = fault.after_tools(self.calls_run) if self.calls_run else fault
        fault = fault.mask_secrets(self._tools.mask)
        self.record.mark_failed(fault.message)
        return fault

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

    async def _work_on(self, jobs: list[Job], reply: Reply) -> AsyncGenerator[Note | CallUpdate, None]:
        """Run the jobs of a reply, and yield what the client sees of that."""
        async with aclosing(self._run_jobs(jobs, reply)) as updates:
            async for update in updates:
                yield update
        if text := write_results(self.request.show, self._results, reply.visible_tail, await self._publish()):
            yield self._make_note(text)

    async def _run_jobs(self, jobs: list[Job], reply: Reply) -> AsyncGenerator[Note | CallUpdate, None]:
        """Run the jobs and yield their progress for the client; their results are in ``_results``."""
        if not (self.request.streams and self.request.show.shows_progress):
            with self.interruption.guard():
                self._results = await self._work.run_all(jobs, self._note_work)
            return
        updates = self._updates = asyncio.Queue()
        task = asyncio.create_task(self._work.run_all(jobs, self._note_work))
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
            self.record.add_work(job.tool, ran.state.value, ran.text)
        if self._updates is not None and self.request.show is Show.EVENTS:
            update = json_bytes(call_event(job, ran) | self._stamp_time()).decode()
            self._updates.put_nowait(CallUpdate(json_value(self._tools.mask(update))))


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
