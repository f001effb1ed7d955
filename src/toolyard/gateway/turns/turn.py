"""One chat turn, from the request to the final answer: rounds of asking the model and running its tool calls.

``events`` is its only loop; its events go into the log of the turn (``turn_log``). ``Dialogue`` asks the model,
``ToolWork`` runs the calls. Tools run only after a reply that ended normally: one that broke off runs nothing. The
client sees one answer: one id, one finish reason, one end, the usage of all rounds. After the provider's number of tool
rounds the model is asked for its answer without tools; a reply that asks for more ends the turn with a note.

When a turn fails after a tool has run, its fault says so, and the same request continues it.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

from toolyard.gateway.chat_prompt import detect_language
from toolyard.gateway.chat_request import ModelRequest
from toolyard.gateway.faults import ChatFailed, ChatFault
from toolyard.gateway.reply.chunks import Chunk, Head
from toolyard.gateway.reply.model_reply import Reply, UnstreamedReply
from toolyard.gateway.reply.streamed_reply import StreamedReply
from toolyard.gateway.tool_calls import native_calls
from toolyard.gateway.tool_calls.jobs import Job
from toolyard.gateway.tool_calls.rounds import Rounds
from toolyard.gateway.turns.dialogue import Dialogue
from toolyard.gateway.turns.display import Show, limit_note
from toolyard.gateway.turns.interruption import Interrupted
from toolyard.gateway.turns.tool_work import ToolWork
from toolyard.gateway.turns.turn_events import (
    Delta,
    Ended,
    Ending,
    Failed,
    Note,
    ReplyEnded,
    ReplyParsed,
    RoundBegun,
    TurnEvent,
    Usage,
)
from toolyard.gateway.turns.turn_memory import FinishedTurn
from toolyard.gateway.turns.turn_plan import NO_HISTORY, History, PlayedRound, TurnPlan, TurnPorts
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.assistant_record import ReplyForm
from toolyard.protocol.reply import ReplyError, parse_reply

_CALLING: Final = ("tool_calls", "function_call")  # finish reasons


class Turn:
    def __init__(self, plan: TurnPlan, ports: TurnPorts) -> None:
        self.record = plan.record
        draws_work = plan.request.show is Show.EVENTS
        model = str(plan.request.body.get("model", ""))
        self.head = Head(f"chatcmpl-{plan.record.id}", int(plan.record.started), model, draws_work=draws_work)
        self._mask = ports.tools.mask
        self._memory = ports.memory if plan.request.show is not Show.RAW else None  # a raw answer has its rounds in it
        self._dialogue = Dialogue(plan, ports, self.head)
        self._work = ToolWork(plan, ports, self._dialogue)
        self._work.on_result = self._remember_early
        self.continues = bool(plan.history)  # an earlier turn
        self.interruption = self._dialogue.interruption
        self._stop_fault: ChatFault | None = None  # of an interruption that is no wish of the client
        self._is_left = False  # interrupted because its client left
        self.is_cut = False  # by the end of the server
        self._visible_texts: list[str] = []  # the text that the client sees, up to the current reply
        self._last_words = ""  # in the next turn, where they are not the text of the last reply
        self._early_texts: list[str] = []  # answers that were given before the turn ended

    # --- the ways in from its log

    def connect(self, tell: Callable[[TurnEvent], None], before_calls: Callable[[], Awaitable[None]] | None) -> None:
        """``tell`` takes events that happen between two others, ``before_calls`` is awaited before effects."""
        self._dialogue.tell, self._work.before_calls = tell, before_calls

    def disconnect(self) -> None:
        self.close()
        self._dialogue.tell = self._work.before_calls = self._work.on_result = None

    async def open(self) -> None:
        """Ask the model for the first time. Raises ChatFailed, and then nothing has happened."""
        await self._dialogue.open()

    @property
    def request(self) -> ModelRequest:
        return self._dialogue.request

    @property
    def played(self) -> list[PlayedRound]:
        """The rounds with calls so far."""
        return self._work.played

    @property
    def calls_run(self) -> list[str]:
        """The ids of the calls that were started."""
        return self._work.calls_run

    @property
    def history(self) -> History:
        """The rounds with calls so far, for a turn that continues this one."""
        return History(tuple(self.played), self.request.nonce) if self.played else NO_HISTORY

    def interrupt(self, fault: ChatFault | None = None) -> None:
        """Stop the turn. With ``fault``, which the end of the server has, it fails, else its answer ends early."""
        if not self.interruption.is_requested:
            self._stop_fault, self.is_cut = fault, fault is not None
        if not self.interruption.request():
            self.close()  # it is at no wait, because the client reads slowly

    def leave(self) -> None:
        """Stop the turn because its client left: calls that nobody waits for go on."""
        self._is_left = not self.interruption.is_requested
        self.interrupt()

    def close(self) -> None:
        self._dialogue.close()

    # --- the loop

    async def events(self) -> AsyncGenerator[TurnEvent, None]:
        """Run the turn: yield its events in order, until it has ended or failed."""
        dialogue = self._dialogue
        try:
            while True:
                dialogue.begin_round()
                yield RoundBegun(dialogue.round)
                while chunks := await dialogue.read():
                    yield Delta(chunks)
                reply = dialogue.reply
                dialogue.end_round()
                for event in self._describe_reply(reply):
                    yield event
                jobs = self._work.list_jobs(reply)
                end = await self._find_end(reply, jobs)
                if not end:
                    async with aclosing(self._work.run(jobs, reply)) as updates:
                        async for event in updates:
                            yield self._note_text(event)
                    end = await self._go_on(reply, jobs)
                for event in end:
                    yield event
                if end:
                    return
        except ChatFailed as failed:
            self.close()  # at once: the client may take its time with the rest
            dialogue.record_failure(failed)
            for event in self._end_failed(failed.fault):
                yield event
        except Interrupted:
            for event in await self._end_interrupted():
                yield event
        finally:
            dialogue.forget()
            self._visible_texts.clear()

    def _describe_reply(self, reply: Reply) -> list[TurnEvent]:
        self._visible_texts.append(reply.visible_text)
        told: list[TurnEvent] = [ReplyEnded(reply)] if isinstance(reply, UnstreamedReply) else []
        offer = self.request.offer
        return [*told, Usage(reply.usage, len(offer.names), offer.tokens)] if reply.usage or offer.tokens else told

    def _note_text(self, event: TurnEvent) -> TurnEvent:
        if isinstance(event, Note):
            self._visible_texts.append(event.text)
        return event

    async def _find_end(self, reply: Reply, jobs: list[Job]) -> list[TurnEvent]:
        """Return the end of the turn, if this reply is its last: it asks for no tools, or gets none."""
        dialogue = self._dialogue
        if jobs:
            return self._stop_at_limit(reply, reply.visible_text) if dialogue.round > dialogue.max_rounds else []
        is_limited = dialogue.is_last_round and not reply.is_handed_over and reply.finish != native_calls.CUT
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
        added = self._work.build_round(reply)
        if not await self._dialogue.ask_next(added):
            return self._stop_at_limit(reply, "")
        self.head.usage = reply.total_usage()
        return []

    # --- its ends

    def _stop_at_limit(self, reply: Reply, last_text: str) -> list[TurnEvent]:
        """End the turn with a note: its model got no further tools. ``last_text`` is what it wrote last."""
        note = Note(limit_note(self._dialogue.max_rounds, detect_language(self.request.messages)))
        self._note_text(note)
        self._last_words = last_text + note.text
        return [note, self._finish(reply, Ending.ROUND_LIMIT)]

    def _finish(self, reply: Reply, ending: Ending = Ending.DONE) -> Ended:
        """End the turn; its rounds are remembered for the next request."""
        if rounds := self._dialogue.rounds:
            own = (call for call in reply.calls if self.request.owners.is_client(native_calls.call_name(call)))
            call = str(next(own, {}).get("id") or "")
            for answer in ("".join(self._visible_texts), *self._early_texts):
                self._remember(answer, rounds, self._last_words or reply.text, call)
        return self._build_end(ending, reply)

    async def _end_interrupted(self) -> list[TurnEvent]:
        if not self._is_left:
            await self._work.stop()  # fire-and-forget calls as well
        if self._stop_fault is None:
            self.record.mark_failed("the client left" if self._is_left else "interrupted")
            return [self._build_end(Ending.INTERRUPTED, None)]
        return self._end_failed(self._stop_fault)

    def _end_failed(self, fault: ChatFault) -> list[TurnEvent]:
        rest = self._dialogue.take_rest()
        return [*([Delta(rest)] if rest else []), Failed(self._fail(fault))]

    def _build_end(self, ending: Ending, reply: Reply | None) -> Ended:
        """Return the end of a turn: a stream still gets the end of the last reply, or says how the turn ended."""
        last: list[Chunk] = []
        if isinstance(reply, StreamedReply) and ending is Ending.DONE:
            last = reply.take_held()
        elif self.request.streams:
            spent: JsonObject = reply.total_usage() if reply is not None else {}
            stop = self.head.chunk({}, "stop") | {"toolyard": {"type": ending.value}}
            last = [Chunk(stop | ({"usage": spent} if spent else {}))]
        return Ended(ending, reply if isinstance(reply, UnstreamedReply) else None, last)

    def _fail(self, fault: ChatFault) -> ChatFault:
        fault = fault.mask_secrets(self._mask)
        self.record.mark_failed(fault.message)
        return fault if fault.code == "cannot_continue" else self.explain_fault(fault)

    def explain_fault(self, fault: ChatFault) -> ChatFault:
        """Return the fault as the client gets it: once a tool has run, it says so."""
        return fault.after_tools(is_shown=self.head.draws_work) if self.calls_run else fault

    # --- its memory

    def note_early_answer(self, text: str) -> None:
        """Note an answer that was given before the turn has ended: its model learns from it what happened since."""
        self._early_texts.append(text)
        self._remember_early()

    def _remember_early(self) -> None:
        """Remember for early answers what each call has come to so far."""
        if not self._early_texts:
            return
        reply = self._dialogue.reply
        rounds = [*self._dialogue.rounds, self._work.build_round_so_far(reply)]
        for text in self._early_texts:
            self._remember(text, rounds, reply.text)

    def _remember(self, answer: str, rounds: Rounds, last_words: str, call: str = "") -> None:
        if self._memory is not None:
            request = self.request
            turn = FinishedTurn(
                question=request.question,
                answer=answer,
                rounds=rounds,
                last_words=last_words,
                nonce=request.nonce,
                model=self._dialogue.model_name,
                call=call,
            )
            self._memory.remember(request.caller, turn)
