"""One chat request until its final answer: rounds of asking the model and doing the tool work it asks for.

Work is done only after a reply ended as it should: one that broke off runs nothing. The client sees one answer: one
id, one finish reason, one end, the usage of all rounds. At most ``MAX_ROUNDS`` rounds of tool work: a reply that asks
for more ends the turn with the finish reason ``length`` and a note. Nothing is asked twice after a tool has run.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Final

from toolyard.gateway import native, requests
from toolyard.gateway.answer import Answer
from toolyard.gateway.ask import Ask
from toolyard.gateway.bounds import Bounds
from toolyard.gateway.chunks import Head
from toolyard.gateway.faults import ChatFailed, cut_off, written
from toolyard.gateway.feedback import answered
from toolyard.gateway.host import Tools, Waiting
from toolyard.gateway.interruption import Interrupted, Interruption
from toolyard.gateway.records import ChatRecord
from toolyard.gateway.reply import Reply
from toolyard.gateway.shown import Show, call_event, limit_note, waiting_event, waiting_text, work_text
from toolyard.gateway.sse import DONE, event_of
from toolyard.gateway.upstream import Upstream
from toolyard.gateway.view import View
from toolyard.gateway.work import Job, Ran, Work
from toolyard.protocol.json import Json, JsonObject

MAX_ROUNDS: Final = 10
_FILTERED = "content_filter"
_LOOK_S = 1.0  # how often running work is looked at for approvals that it waits for


class Turn:
    def __init__(
        self,
        ask: Ask,
        upstream: Upstream,
        tools: Tools,
        record: ChatRecord,
        created: int,
        *,
        bounds: Bounds = Bounds(),  # noqa: B008 it is frozen
    ) -> None:
        self._bounds = bounds
        self.ask, self._upstream, self._tools, self.record = ask, upstream, tools, record
        self.head = Head(f"chatcmpl-{record.id}", created, str(ask.body.get("model", "")))
        self._clients = native.client_tools(ask.body)
        self._messages = ask.messages
        self._answer: Answer | None = None
        self._events: asyncio.Queue[bytes | None] | None = None  # for a client that draws the work
        self._work = Work(tools)
        self._results: list[Ran] = []
        self.interruption = Interruption()
        self.round = 0

    async def open(self) -> None:
        """Ask the model for the first time. Raises ChatFailed, and then nothing has happened."""
        with suppress(Interrupted):  # the answer will say so
            await self._next(self.ask.raw, retry=True)

    @property
    def upstream_name(self) -> str:
        return self._upstream.name

    def failed(self, failed: ChatFailed) -> None:
        """What the provider sent is no answer, or not the whole of one."""
        self._upstream.failed(failed)

    def interrupt(self) -> None:
        if not self.interruption.ask():
            self.close()  # nobody waits for it, because the client is slow

    async def stop_work(self) -> None:
        """Also of what nobody waits for."""
        await self._work.stop()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The answer as events, ready to be sent."""
        try:
            while True:
                reply = self._reply()
                while piece := await self._passed(reply):
                    yield piece
                if rest := reply.end():
                    yield rest
                jobs = self._jobs(reply)
                if not jobs:
                    yield reply.closing() + DONE
                    return
                if self.round > MAX_ROUNDS:
                    yield self._limit(reply.spent())
                    return
                async with aclosing(self._done(jobs, reply)) as done:
                    async for piece in done:
                        yield piece
                results = self._results
                if text := work_text(self.ask.show, results, reply.seen):
                    yield event_of(self.head.chunk({"content": text}))
                if all(job.forgets for job in jobs):
                    yield reply.closing() + DONE
                    return
                self.head.usage = reply.spent()
                await self._again(reply, results)
        except ChatFailed as failed:
            self.failed(failed)
            fault = failed.fault.masked(self._tools.mask)
            self.record.failed(fault.message)
            yield fault.event()
        except Interrupted:
            await self.stop_work()
            self.record.failed("interrupted")
            yield event_of(self.head.chunk({}, "stop") | {"toolyard": {"type": "interrupted"}}) + DONE
        finally:
            self.close()

    def _reply(self) -> Reply:
        self.round += 1
        view = View(hides=self.ask.show.hides_requests, nonce=self.ask.nonce)
        return Reply(
            self.head, view, name=self._upstream.name, number=self.round, clients=self._clients, looks=self.ask.looks
        )

    async def _passed(self, reply: Reply) -> bytes:
        """The next that the client sees of a reply; empty at its end. Raises ChatFailed unless it ends as it should."""
        try:
            while not reply.done:
                with self.interruption.stops():
                    events = await self.answer.events()
                if not events:
                    break
                if piece := reply.take(events):
                    return piece
        except ChatFailed:
            if not reply.ended:
                raise
        if not reply.ended:
            raise cut_off(self._upstream.name)
        return b""

    def _jobs(self, reply: Reply) -> list[Job]:
        """What this reply asks of us; nothing when it hands over to the client."""
        if not self.ask.looks or reply.passed_calls:
            return []
        text = "".join(reply.text) if reply.view.requests else ""
        return self.jobs(reply.view, reply.calls.all(), reply.finish, text)

    def jobs(self, view: View, calls: list[JsonObject], finish: Json, text: str) -> list[Job]:
        """``text`` is what ``view`` has seen."""
        if finish == _FILTERED:
            return []
        written = requests.jobs_of(view.requests, self._tools, self.ask.caller, self._messages, text)
        ours = native.jobs_of(self._ours(calls), self._tools, self.ask.caller, cut=finish == native.CUT)
        return [self._bounds.within(job, self._tools.spec).of_chat(self.record.id) for job in (*ours, *written)]

    async def _done(self, jobs: list[Job], reply: Reply) -> AsyncGenerator[bytes, None]:
        """Do the work; meanwhile what the client is told of it."""
        if not self.ask.show.tells:
            self._results = await self.work(jobs)
            return
        events = self._events = asyncio.Queue()
        task = asyncio.create_task(self._work.do(jobs, self._tell))
        task.add_done_callback(lambda _: events.put_nowait(None))
        calls = {job.call.id for job in jobs if job.call is not None}
        try:
            while True:
                with self.interruption.stops():
                    event = await _soon(events)
                    asked = await self._tools.waiting(calls) if event == b"" else []
                if event is None:
                    break
                if event := event or self._asked(asked, reply):
                    yield event
                calls -= {one.call_id for one in asked}
            self._results = await task
        finally:
            task.cancel()
            await asyncio.wait({task})

    def _asked(self, asked: list[Waiting], reply: Reply) -> bytes:
        """Calls that wait until somebody allows them."""
        if not asked:
            return b""
        if self.ask.show is Show.EVENTS:
            told = [self.head.stamp({"choices": [], "toolyard": waiting_event(one)}) for one in asked]
            return b"".join(map(event_of, told))
        return reply.says(waiting_text(asked, reply.seen))

    async def work(self, jobs: list[Job]) -> list[Ran]:
        with self.interruption.stops():
            return await self._work.do(jobs, self._tell)

    def _tell(self, job: Job, ran: Ran | None) -> None:
        if ran is not None:
            self.record.worked(job.tool, ran.state.value, ran.text)
        if self._events is not None and self.ask.show is Show.EVENTS:
            told = self.head.stamp({"choices": [], "toolyard": call_event(job, ran)})
            self._events.put_nowait(self._tools.mask(event_of(told).decode()).encode())

    async def _again(self, reply: Reply, results: list[Ran]) -> None:
        said: JsonObject = {"role": "assistant", "content": "".join(reply.text)}
        await self.again(said | (reply.more() if reply.calls else {}), reply.calls.all(), results)

    async def again(self, message: JsonObject, calls: list[JsonObject], results: list[Ran]) -> None:
        """Ask the model once more, with what its requests came to."""
        self._messages = [*self._messages, *answered(message, self._ours(calls), results)]
        await self._next(written({**self.ask.body, "messages": self._messages}), retry=False)

    def _ours(self, calls: list[JsonObject]) -> list[JsonObject]:
        return [call for call in calls if native.name_of(call) not in self._clients]

    async def _next(self, body: bytes, *, retry: bool) -> None:
        self.close()
        body = self._masked(body)
        self.record.sent(body)
        with self.interruption.stops():
            self._answer = await self._upstream.ask(body, stream=self.ask.streams, retry=retry)

    def _masked(self, body: bytes) -> bytes:
        text = body.decode("utf-8", "replace")
        masked = self._tools.mask(text)
        return body if masked is text else masked.encode()

    def _limit(self, spent: JsonObject) -> bytes:
        note = event_of(self.head.chunk({"content": limit_note(MAX_ROUNDS)}))
        usage: JsonObject = {"usage": spent} if spent else {}
        return note + event_of(self.head.chunk({}, "length") | usage) + DONE

    def close(self) -> None:
        """Let go of the answer at hand, whether it has ended or not."""
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    @property
    def answer(self) -> Answer:
        if self._answer is None:
            raise RuntimeError("a turn is opened first")
        return self._answer


async def _soon(events: "asyncio.Queue[bytes | None]") -> bytes | None:
    """The next event; none for a while is empty."""
    try:
        async with asyncio.timeout(_LOOK_S):
            return await events.get()
    except TimeoutError:
        return b""
