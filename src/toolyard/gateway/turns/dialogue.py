"""The dialogue of a turn with its model: asking, reading its replies, and asking again what came to nothing.

A round is asked again while nothing of it was sent to the client, which repeats no tool. A request that is refused for
its form is sent in another one: with the other name of the token limit, with the offer of tools as text, without media.
The rounds of a turn that this one continues are read in place of asking (``history``). A request that its model finds
too long is sent once more with less (``context_window``).
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from toolyard.gateway.chat_prompt import detect_language
from toolyard.gateway.chat_request import (
    ModelRequest,
    SentBytes,
    drop_effort,
    identify_conversation,
    is_effort_refusal,
    is_token_limit_refusal,
    rename_token_limit,
)
from toolyard.gateway.faults import ChatFailed, ChatFault, broken_answer, oversized_answer
from toolyard.gateway.media_parts import NOTE, Model, may_refuse_media, part_kinds, replace_parts
from toolyard.gateway.offer_policy import is_tool_refusal
from toolyard.gateway.providers.answer import MAX_UNSTREAMED, Answer, ProviderWait
from toolyard.gateway.reply.chunks import Chunk, Head, to_events
from toolyard.gateway.reply.model_reply import Reply, ReplyContext, UnstreamedReply
from toolyard.gateway.reply.request_filter import RequestFilter
from toolyard.gateway.reply.streamed_reply import StreamedReply
from toolyard.gateway.tool_calls.rounds import Rounds, ask_for_answer, split_rounds
from toolyard.gateway.turns.context_window import Prompt
from toolyard.gateway.turns.interruption import Interrupted, Interruption
from toolyard.gateway.turns.turn_events import ProviderRetried, TurnEvent
from toolyard.gateway.turns.turn_plan import PlayedRound, TurnPlan, TurnPorts
from toolyard.protocol.json import Json, JsonObject, json_bytes

MAX_ROUNDS: Final = 10
_MAX_BREAKS = 2  # retries of a round whose answer broke off


class Dialogue:
    def __init__(self, plan: TurnPlan, ports: TurnPorts, head: Head) -> None:
        self.request, self.record, self.head = plan.request, plan.record, head
        self._text_form, self._ports, self._upstream = plan.text_form, ports, plan.upstream
        self.history = list(plan.history)  # the rounds to play before the model is asked again
        self.messages = plan.request.messages
        self.round = 0
        self.is_last_round = False  # the model was asked for an answer without tools
        self.interruption = Interruption()
        self.tell: Callable[[TurnEvent], None] | None = None  # between two events of the turn
        self._kept = 0  # bytes of the replies before the current one
        self._breaks = 0  # of the current round
        self._sent = SentBytes(b"")  # in the current round
        self._answer: Answer | None = None
        self._streamed: StreamedReply  # of the current round, if it is streamed
        self.reply: Reply  # the current one, from the first round on

    @property
    def max_rounds(self) -> int:
        return MAX_ROUNDS if self._upstream.max_rounds is None else self._upstream.max_rounds

    # --- asking

    async def open(self) -> None:
        """Ask the model for the first time. Raises ChatFailed, and then nothing has happened."""
        with suppress(Interrupted):  # the answer will report it
            try:
                await self._send_messages()
            except ChatFailed as failed:
                text_form = self._text_form
                if is_token_limit_refusal(failed.fault, self.request.body):
                    self._use_request(rename_token_limit(self.request))
                    return await self.open()
                if is_effort_refusal(failed.fault, self.request.body):
                    self._use_request(drop_effort(self.request))
                    return await self.open()
                if text_form is None or not is_tool_refusal(failed.fault):
                    raise
                self._use_request(text_form.make())
                await self._send_messages()
                text_form.remember()

    def _use_request(self, request: ModelRequest) -> None:
        """Ask in another form from now on; nothing was answered yet."""
        self.request, self.messages = request, request.messages
        self.record.offer = request.offer.to_json()

    async def ask_next(self, added: list[Json]) -> bool:
        """Ask the model once more, with the messages that its last round has added.

        Return whether there is an answer: a provider may refuse to answer without tools. Raises ChatFailed.
        """
        self.is_last_round = self.round >= self.max_rounds
        added = replace_parts(added, self._ports.refusals.find(self._model), NOTE)
        if self.is_last_round:
            added = ask_for_answer(added, self.max_rounds, detect_language(self.request.messages))
        self.messages = [*self.messages, *added]
        try:
            await self._send_messages()
        except ChatFailed as failed:
            if may_refuse_media(failed.fault, is_new=bool(part_kinds(added))):
                await self._send_without_media(failed)
            elif self.is_last_round and _refuses_form(failed):
                return False
            else:
                raise
        return True

    async def _send_without_media(self, failed: ChatFailed) -> None:
        """Send the same request with a marker for each piece of our media. Raises ChatFailed."""
        theirs, ours = self.request.messages, self.messages[len(self.request.messages) :]
        kinds = part_kinds(ours)
        if not kinds:
            raise failed
        self.messages = [*theirs, *replace_parts(ours, kinds, NOTE)]
        await self._send_messages()
        if not failed.fault.is_overflow:
            self._ports.refusals.note(self._model, kinds, failed.fault)

    async def _send_messages(self) -> None:
        self._sent = self._encode()
        await self._send_fitting()

    def _encode(self) -> SentBytes:
        if self.rounds:
            body = self.request.without_tools() if self.is_last_round else self.request.with_free_choice()
        else:
            body = self.request.body
        if self.messages is not body.get("messages"):
            body = {**body, "messages": self.messages}
        return self.request.encode(body, takes_native=self._upstream.takes_native)

    async def _send_fitting(self) -> None:
        """Send the request as far as it fits the model, and once more with less if that was too long."""
        self._shorten()
        try:
            await self._send(self._sent)
        except ChatFailed as failed:
            if not (failed.fault.is_overflow and self._shorten(failed.fault)):
                raise
            await self._send(self._sent)

    def _shorten(self, refusal: ChatFault | None = None) -> bool:
        """Leave out what does not fit the model; with its ``refusal``, more. Return whether there was any."""
        windows, model = self._ports.windows, self._model
        if refusal is not None:
            windows.note_overflow(model, self._sent.join(), refusal)
        prompt = Prompt(
            conversation=identify_conversation(self.request.caller, self.request.messages),
            model=model, window=self._upstream.window(self.record.model), messages=self.messages, sent=self._sent,
            first=len(self.request.messages), ours=self.request.calls, answer_tokens=self.request.answer_tokens,
            language=detect_language(self.request.messages),
        )  # fmt: skip
        fitting = windows.fit(prompt, is_refused=refusal is not None)
        if fitting is self.messages:
            return False
        self.messages = fitting
        self._sent = self._encode()
        return True

    async def _send(self, sent: SentBytes) -> None:
        """Ask the provider, which retries by itself while there is no answer. Raises ChatFailed."""
        self.close()
        self._sent = sent
        if self.history:
            self._answer = _PlayedAnswer(self.head, self.history[0], self._upstream.name)
            return
        sent = self._mask(sent)
        self.record.add_round(sent)
        with self.interruption.guard():
            self._answer = await self._upstream.ask(
                sent.join(), stream=self.request.streams, retry=True, on_wait=self._tell_wait
            )

    def _tell_wait(self, wait: ProviderWait) -> None:
        if self.tell is not None and self.head.draws_work:
            self.tell(ProviderRetried(wait, round(self._ports.now().timestamp(), 3)))

    def _mask(self, sent: SentBytes) -> SentBytes:
        text = sent.own.decode("utf-8", "replace")
        masked = self._ports.tools.mask(text)
        return sent if masked is text else sent._replace(own=masked.encode())

    @property
    def _model(self) -> Model:
        return self._upstream.name, self.record.model

    @property
    def model_name(self) -> str:
        """The provider and its model, for the memory of the replies."""
        return "/".join(self._model)

    @property
    def rounds(self) -> Rounds:
        """The messages that each round has added, as they were sent."""
        return split_rounds(self.messages[len(self.request.messages) :])

    # --- reading

    def begin_round(self) -> None:
        self.round, self._breaks = self.round + 1, 0
        self._text_form = None  # it holds the request once more
        self.reply = self._streamed = self._new_reply()

    def end_round(self) -> None:
        self._kept = self.reply.kept_bytes
        self._ports.windows.note_usage(self._model, self._sent.join(), self.reply.usage.get("prompt_tokens"))

    async def read(self) -> list[Chunk]:
        """Return the next visible chunks of the current reply; none at its end. Raises ChatFailed."""
        while True:
            try:
                return await (self._read_streamed(self._streamed) if self.request.streams else self._read_whole())
            except ChatFailed as failed:
                if self._streamed.is_passed:
                    raise
                if failed.fault.is_overflow and not self._breaks and self._shorten(failed.fault):
                    self._breaks += 1
                elif not self._may_repeat(failed):
                    raise
                attempt, attempts = self._breaks + 1, _MAX_BREAKS + 1
                self._tell_wait(
                    ProviderWait(provider=self._upstream.name, fault=failed.fault, attempt=attempt, attempts=attempts)
                )
            await self._send(self._sent)
            self._streamed = self._new_reply()

    def take_rest(self) -> list[Chunk]:
        """Return held text of a reply that ends early, although it might have become a request."""
        return self._streamed.end()

    def close(self) -> None:
        """Close the current answer, complete or not."""
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def forget(self) -> None:
        """Drop the replies: the turn may be kept, and they are large."""
        self.close()
        self._streamed = self.reply = self._new_reply()

    def record_failure(self, failed: ChatFailed) -> None:
        self._upstream.note_failure(failed)

    async def _read_streamed(self, reply: StreamedReply) -> list[Chunk]:
        self.reply = reply
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
        self.reply = UnstreamedReply(raw, self._make_context())
        return []

    def _may_repeat(self, failed: ChatFailed) -> bool:
        """Return whether to ask the round again, although its answer had begun; the client has nothing of it."""
        self._breaks += 1
        return failed.fault.is_transient and self._breaks <= _MAX_BREAKS

    def _new_reply(self) -> StreamedReply:
        return StreamedReply(self._make_context())

    def _make_context(self) -> ReplyContext:
        request = self.request
        return ReplyContext(
            head=self.head,
            request_filter=RequestFilter(hides=request.show.hides_requests, nonce=request.nonce),
            provider=self._upstream.name,
            round=self.round,
            owners=request.owners,
            looks=request.runs_tools,
            kept=self._kept,
        )

    @property
    def _open_answer(self) -> Answer:
        if self._answer is None:
            raise RuntimeError("a turn is opened first")
        return self._answer


class _PlayedAnswer:
    """The recorded reply of an earlier turn, as an answer of the provider."""

    def __init__(self, head: Head, played: PlayedRound, name: str) -> None:
        reply = played.reply
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


def _refuses_form(failed: ChatFailed) -> bool:
    """Return whether a provider rejects a request for its form."""
    return failed.fault.code in ("upstream_400", "upstream_422") and not failed.fault.is_overflow
