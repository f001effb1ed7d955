"""The tool work of a turn: the calls that its replies ask for, their approvals, and what comes of them.

In a turn that continues an earlier one the calls of that one keep their ids, and those that had begun are not run
again: their results are in the journal.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import Any

from toolyard.gateway.chat_ports import PendingApproval
from toolyard.gateway.chat_prompt import detect_language
from toolyard.gateway.faults import ChatFailed, changed_history
from toolyard.gateway.media_links import publish_all
from toolyard.gateway.reply.model_reply import Reply
from toolyard.gateway.tool_calls import native_calls, text_calls
from toolyard.gateway.tool_calls.jobs import Job, JobResult, JobRunner, JobState, host_result
from toolyard.gateway.tool_calls.rounds import build_round_messages
from toolyard.gateway.tool_calls.text_calls import refuse_echoes
from toolyard.gateway.turns.dialogue import Dialogue
from toolyard.gateway.turns.display import call_event, list_actions, write_approvals, write_results
from toolyard.gateway.turns.turn_events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallBegun,
    CallEnded,
    Note,
    SpecialActions,
    TurnEvent,
)
from toolyard.gateway.turns.turn_plan import PlayedRound, TurnPlan, TurnPorts
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_value
from toolyard.protocol.tool import Risk

_FILTERED = "content_filter"
_LOOK_S = 1.0  # interval of looking for approvals that running calls wait for


class ToolWork:
    def __init__(self, plan: TurnPlan, ports: TurnPorts, dialogue: Dialogue) -> None:
        self._dialogue, self._tools, self._now = dialogue, ports.tools, ports.now
        self._bounds, self._chat, self._interruption = plan.bounds, plan.record.id, dialogue.interruption
        self._language = detect_language(dialogue.request.messages)
        self._runner = JobRunner(ports.tools, self._language)
        self._updates: asyncio.Queue[CallBegun | CallEnded | None] | None = None
        self._jobs: list[Job] = []  # of the current round
        self._results: list[JobResult] = []
        self._running: set[str] = set()  # ids of calls
        self._is_replaying = False  # the current round is one of an earlier turn
        self.calls_run: list[str] = []  # ids of the calls that were started
        self.played: list[PlayedRound] = []  # the rounds with calls so far
        self.before_calls: Callable[[], Awaitable[None]] | None = None  # called before calls that may have effects
        self.on_result: Callable[[], None] | None = None  # called when a call has ended

    def list_jobs(self, reply: Reply) -> list[Job]:
        """Return the jobs of a reply; none when it hands over to the client."""
        if reply.is_handed_over or reply.finish == _FILTERED:
            return []
        request, messages = self._dialogue.request, self._dialogue.messages
        text = reply.text if reply.request_filter.requests else ""
        requests = refuse_echoes(reply.request_filter.requests, text, messages)
        written = text_calls.make_jobs(requests, self._tools, request.caller, messages, text, request.offer)
        ours = native_calls.make_jobs(
            self._own_calls(reply),
            self._tools,
            request.caller,
            offer=request.offer,
            cut=reply.finish == native_calls.CUT,
        )
        jobs = [self._bounds.apply(job, self._tools.spec).with_chat(self._chat) for job in (*ours, *written)]
        return self._bounds.limit(jobs, len(self.calls_run))

    def _own_calls(self, reply: Reply) -> list[JsonObject]:
        """Return the native calls of a reply that are ours to answer."""
        owners = self._dialogue.request.owners
        own = [call for call in reply.calls if not owners.is_client(native_calls.call_name(call))]
        return own[: native_calls.MAX_REPORTED]

    async def run(self, jobs: list[Job], reply: Reply) -> AsyncGenerator[TurnEvent, None]:
        """Run the jobs of a reply, and yield what is to be told of it."""
        jobs = await self._begin_round(jobs, reply)
        updates = self._updates = asyncio.Queue()
        task = asyncio.create_task(self._runner.run_all(jobs, self._note_work, self._find_result))
        task.add_done_callback(lambda _: updates.put_nowait(None))
        waiting: dict[str, PendingApproval] = {}
        try:
            while not (task.done() and updates.empty()):
                with self._interruption.guard():
                    update = await _next_update(updates)
                    pending = waiting if update or task.done() else await self._find_pending()
                if update is not None:
                    yield update
                for event in self._compare_approvals(waiting, pending, reply):
                    yield event
                waiting = pending
            for event in self._compare_approvals(waiting, {}, reply):
                yield event
            self._results = await task
        finally:
            task.cancel()
            await asyncio.wait({task})
        for told in await self._describe_results(reply):
            yield told

    async def stop(self) -> None:
        """Also cancel calls that were started and not waited for."""
        await self._runner.stop()

    def build_round(self, reply: Reply) -> list[Json]:
        """Return the messages that a round adds."""
        return build_round_messages(reply.message(), self._own_calls(reply), self._results)

    def build_round_so_far(self, reply: Reply) -> list[Json]:
        """Return the same for a round that has not ended: calls without a result wait."""
        known, waits = self.played[-1].results, Message("It waits for approval and has not run.")
        results = [
            known.get(job.call.id if job.call else "") or host_result(job, JobState.BACKGROUND, waits, self._language)
            for job in self._jobs
        ]
        return build_round_messages(reply.message(), self._own_calls(reply), results)

    async def _begin_round(self, jobs: list[Job], reply: Reply) -> list[Job]:
        """Note the calls of a round before any of them begins. In a round that is played again they keep their ids."""
        played = PlayedRound.from_reply(reply, jobs)
        history = self._dialogue.history
        self._is_replaying = bool(history)
        if self._is_replaying:
            earlier = history.pop(0)
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
        return None if outcome is None else self._runner.to_result(job, job.call, outcome)

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
                if self.on_result is not None:
                    self.on_result()
            self._dialogue.record.add_work(job.tool, ran.state.value, ran.text)
        if self._updates is not None and self._dialogue.head.draws_work:
            at: JsonObject = {"at": round(self._now().timestamp(), 3)}  # for a client that reads it later
            data = self._mask_json(call_event(job, ran) | at)
            self._updates.put_nowait(CallBegun(data) if ran is None else CallEnded(data, ran.output))

    async def _find_pending(self) -> dict[str, PendingApproval]:
        """Return the running calls that wait for an approval, by their ids."""
        pending = await self._tools.list_pending(frozenset(self._running)) if self._running else []
        return {approval.call_id: approval for approval in pending}

    def _compare_approvals(
        self, before: dict[str, PendingApproval], now: dict[str, PendingApproval], reply: Reply
    ) -> list[TurnEvent]:
        """Return what has changed of the approvals that calls wait for; clients of a stream read it as a text too."""
        request = self._dialogue.request
        asked = [approval for id_, approval in now.items() if id_ not in before]
        told: list[TurnEvent] = [ApprovalAnswered(id_) for id_ in before if id_ not in now]
        told += [ApprovalAsked(approval) for approval in asked]
        if asked and request.streams and request.show.shows_progress and not self._dialogue.head.draws_work:
            text = write_approvals(asked, reply.visible_tail)
            reply.visible_tail = text[-2:]
            told.append(Note(text))
        return told

    async def _describe_results(self, reply: Reply) -> list[TurnEvent]:
        """Return what the client gets of the results of a round: a text, and what it is asked to do."""
        show, told = self._dialogue.request.show, list[TurnEvent]()
        if text := write_results(show, self._results, reply.visible_tail, await self._publish()):
            told.append(Note(text))
        if actions := list_actions(show, self._results):
            told.append(SpecialActions(self._mask_json(actions)))
        return told

    async def _publish(self) -> list[str]:
        """Return the media of the results as Markdown, for a client that shows no more than text."""
        if not self._dialogue.request.shows_media:
            return []
        media = [(ran.job.tool, part) for ran in self._results for part in ran.media]
        with self._interruption.guard():
            return await publish_all(media, self._tools.publish)

    def _mask_json(self, value: Any) -> Any:
        return json_value(self._tools.mask(json_bytes(value).decode()))


async def _next_update(updates: "asyncio.Queue[CallBegun | CallEnded | None]") -> CallBegun | CallEnded | None:
    """Return the next update; none when there is none for a while, or no more."""
    try:
        async with asyncio.timeout(_LOOK_S):
            return await updates.get()
    except TimeoutError:
        return None
