"""The plan of a turn: everything that is decided before its model is asked.

``TurnPlanner`` makes it of a client's request: whether tools are offered and how, what is recalled of earlier turns,
the filled prompt, and the provider. Its record is what may be looked up of the turn later: the requests sent to the
model in each round, and the work of the tools.
"""

import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from typing import Final

import orjson

from toolyard.gateway.chat_ports import PromptSources, ToolPort
from toolyard.gateway.chat_prompt import ask_for_structured_reply, fill_prompt
from toolyard.gateway.chat_request import (
    EXTENSION,
    ChatOptions,
    ClientRequest,
    ModelRequest,
    SentBytes,
    identify_conversation,
    wants_json,
)
from toolyard.gateway.media_parts import MediaRefusals, replace_published_messages
from toolyard.gateway.offer import NO_OFFER
from toolyard.gateway.offer_policy import OfferPolicy, TextForm, choose_offer, declines_tools, split_alias
from toolyard.gateway.providers.upstream import Upstream
from toolyard.gateway.providers.upstreams import TOUR, Upstreams
from toolyard.gateway.reply.model_reply import Reply
from toolyard.gateway.tool_calls.jobs import Bounds, Job, JobResult
from toolyard.gateway.tool_calls.native_calls import Ownership
from toolyard.gateway.tool_calls.rounds import write_as_text
from toolyard.gateway.turns.context_window import ContextWindows
from toolyard.gateway.turns.display import Show, strip_progress
from toolyard.gateway.turns.turn_memory import RecalledMessages, TurnMemory, last_question
from toolyard.gateway.vcp_blocks import EXTRAS
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.assistant_record import ReplyForm


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPorts:
    """The parts of the program that every turn needs."""

    tools: ToolPort
    refusals: MediaRefusals
    memory: TurnMemory | None  # None: tool rounds are forgotten with their turn
    windows: ContextWindows
    now: Callable[[], datetime]


@dataclass(slots=True, kw_only=True)
class ChatRecord:
    id: str
    caller: str
    model: str
    started: float
    ended: float = 0.0  # while it runs
    state: str = "running"
    error: str = ""
    offer: JsonObject = field(default_factory=NO_OFFER.to_json)  # the tools that were offered to the model
    unfilled: tuple[str, ...] = ()  # the names of placeholders in the prompt that nothing fills
    rounds: list[SentBytes] = field(default_factory=list)  # secrets are masked already
    work: list[JsonObject] = field(default_factory=list)

    def add_round(self, sent: SentBytes) -> None:
        self.rounds.append(sent if len(sent.own) <= MAX_SENT else SentBytes(sent.own[:MAX_SENT]))

    def add_work(self, tool: str, state: str, text: str) -> None:
        if len(self.work) < _MAX_WORK:
            self.work.append({"round": len(self.rounds), "tool": tool, "state": state, "text": text[:500]})

    def mark_failed(self, why: str) -> None:
        self.state, self.error = "failed", why

    @property
    def size(self) -> int:
        return sum(len(sent.own) for sent in self.rounds) + 600 * len(self.work)

    def to_dict(self) -> JsonObject:
        return {
            "id": self.id,
            "model": self.model,
            "started": self.started,
            "state": self.state,
            "error": self.error or None,
            "offer": self.offer,
            "unfilled": list(self.unfilled),
            "rounds": [{"sent": _parse_round(sent.join())} for sent in self.rounds],
            "work": list(self.work),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPlan:
    request: ModelRequest
    upstream: Upstream
    record: ChatRecord
    bounds: Bounds
    text_form: TextForm | None  # the same request for a model that refuses native tools
    history: tuple[PlayedRound, ...]  # of a turn to continue


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPlanner:
    texts: PromptSources
    offer_policy: OfferPolicy
    ports: TurnPorts
    has_nonce: bool  # requests in text carry a word that no text from outside knows
    _nonce_key: bytes = field(default_factory=lambda: secrets.token_bytes(32), init=False, repr=False)

    async def plan(
        self, asked: ClientRequest, options: ChatOptions, history: History, upstreams: Upstreams, chat: str = ""
    ) -> TurnPlan:
        """Return the plan of a turn; ``chat`` is its id unless the client names one. Raises ChatFailed.

        Nothing is awaited between the choice of the provider and the end, so that it cannot be closed meanwhile.
        """
        body, raw = asked.body, asked.raw
        sent = body["messages"]
        sent = sent if isinstance(sent, list) else []
        model = str(body.get("model") or "")
        base_model, alias = split_alias(model)
        choice = choose_offer(options.offer, alias, asked.key_offer, self.offer_policy.default_mode)
        is_off = choice.forbids_tools(sent, has_installed_prompts=self.texts.installed is not None)
        is_plain = is_off and not upstreams.is_tour(base_model)  # its script names its tools
        nonce = history.nonce or (self._make_nonce(asked.caller, sent) if self.has_nonce and not is_plain else None)
        recalled = RecalledMessages(sent, asked.own_calls or frozenset())
        await upstreams.learn(base_model, is_long=len(raw or b"") > _LONG)
        if not is_plain:
            writer, name = upstreams.pick(base_model)
            memory = self.ports.memory if asked.own_calls is None else None
            recalled = memory.recall(asked.caller, sent, nonce, f"{writer.name}/{name}") if memory else recalled
            shown = strip_progress(replace_published_messages(recalled.messages))
            recalled = RecalledMessages(shown, recalled.calls)
        prompt = await fill_prompt(
            recalled.messages, self.texts, asked.caller, nonce, model=base_model or upstreams.default_model,
            is_plain=is_plain,
        )  # fmt: skip
        runs_tools = not (is_plain or prompt.forbids_tools or declines_tools(body))
        if options.reply is ReplyForm.JSON:
            prompt = replace(prompt, messages=ask_for_structured_reply(prompt.messages, has_tools=runs_tools))
        messages = prompt.messages if body.get("tools") else write_as_text(prompt.messages, recalled.calls, nonce)
        upstream, name = upstreams.pick(base_model)
        changes: JsonObject = {"messages": messages} if messages is not sent else {}
        changes |= {"model": name} if name != model else {}
        ours = [key for key in (*EXTRAS, EXTENSION) if key in body]
        if changes or ours:
            body, raw = {key: value for key, value in body.items() if key not in ours} | changes, b""
        answers_json = wants_json(body) or options.reply is ReplyForm.JSON
        request = ModelRequest(
            caller=asked.caller,
            body=body,
            raw=raw,
            show=options.show,
            runs_tools=runs_tools,
            nonce=nonce,
            question=last_question(sent),
            shows_media=options.show in (Show.SUMMARY, Show.HIDDEN) and not answers_json,
            reply=options.reply,
            owners=Ownership.from_body(body),
            calls=recalled.calls,
        )
        text_form = None
        if name != TOUR and request.runs_tools:
            request, text_form = self.offer_policy.add_offer(request, prompt, choice, options.bounds, upstream, name)
        own = chat or f"chat_{random.getrandbits(128):032x}"  # need not be secret: only its caller reads it
        record = ChatRecord(
            id=options.chat or own, caller=asked.caller, model=name, started=self.ports.now().timestamp(),
            offer=request.offer.to_json(), unfilled=prompt.unfilled,
        )  # fmt: skip
        return TurnPlan(
            request=request, upstream=upstream, record=record, bounds=options.bounds, text_form=text_form,
            history=history.rounds,
        )  # fmt: skip

    def _make_nonce(self, caller: str, messages: list[Json]) -> str:
        """Return the nonce of a conversation: the same in each of its requests, so that they begin alike."""
        return blake2b(identify_conversation(caller, messages), key=self._nonce_key, digest_size=4).hexdigest()


_LONG: Final = 16 * 1024  # bytes of a request from which the window of its model counts
MAX_SENT: Final = 256 * 1024  # bytes of one round that are kept
_MAX_WORK = 400


def _parse_round(body: bytes) -> Json:
    """Return the request of a round; as a text when it was cut for its length."""
    try:
        value: Json = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace") + "…"
    return value
