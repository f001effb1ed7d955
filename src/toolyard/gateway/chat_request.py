"""A chat request as its client sent it, with its options for the host, and as it goes to the model.

The options are in its ``toolyard`` object and in headers. Clients and most providers say ``max_tokens``. OpenAI's
reasoning models refuse that and name ``max_completion_tokens``, which others do not know: a request that is refused so
is sent again under the other name. Clients of Messages say their effort with every request, whatever model it is for:
one that knows none is asked again without.
"""

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from hashlib import blake2b
from typing import Final, NamedTuple

from toolyard.gateway.faults import ChatFault, bad_request, encode_request
from toolyard.gateway.offer import NO_OFFER, Offer
from toolyard.gateway.protocols.chat_body import drop_native
from toolyard.gateway.reply.chunks import read_text
from toolyard.gateway.tool_calls.jobs import Bounds, parse_bounds
from toolyard.gateway.tool_calls.native_calls import Ownership
from toolyard.gateway.tool_calls.rounds import CallKeys
from toolyard.gateway.turns.display import Show
from toolyard.gateway.vcp_blocks import find_handle
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.assistant_record import ReplyForm
from toolyard.settings import OfferMode

EXTENSION: Final = "toolyard"  # for what OpenAI has no word for
CHAT_HEADER: Final = "X-Toolyard-Chat"
SHOW_HEADER: Final = "X-Toolyard-Show"
OFFER_HEADER: Final = "X-Toolyard-Offer"
RETRY_HEADER: Final = "x-stainless-retry-count"  # OpenAI's SDKs count their own retries in it
TIMEOUT_HEADERS: Final = ("x-stainless-read-timeout", "x-stainless-timeout")  # and say how long they wait
_FIELDS: Final = frozenset({"chat", "show", "tools", "mode", "offer", "reply"})
_ID = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,9})?")


@dataclass(frozen=True, slots=True)
class ClientRequest:
    body: JsonObject
    _: KW_ONLY
    caller: str
    raw: bytes = b""  # the body as received, if it came as bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    show: Show | None = None  # what it sees of the work unless it says so, where that is not the setting's to say
    may_approve: bool = False
    key_offer: OfferMode | None = None  # the offer mode of its API key, if it has one
    identity: JsonObject | None = None  # by which it is known when it is sent again; None: its body
    conversation: str = ""  # the client's name of the conversation, where it has one
    is_repeat: bool = False  # the client names its turn, so another request like it is the same one
    turn: str = ""  # the id of the turn that it begins, where that is known already
    max_calls: int | None = None  # of our tools in one turn
    own_calls: CallKeys | None = None  # the calls of earlier turns that it carries itself; None: it may have left them

    @property
    def wants_stream(self) -> bool:
        return self.body.get("stream") is True


@dataclass(frozen=True, slots=True)
class ChatOptions:
    chat: str  # the client's id of the chat; empty: it has none
    show: Show
    handle: str  # the client interrupts the request by this
    bounds: Bounds
    offer: OfferMode | None  # how tools are to be offered; None: the request does not say
    reply: ReplyForm
    is_retry: bool  # the client has sent the same request before, and got no answer
    timeout_s: float | None  # after which the client gives up and sends it again


def parse_options(asked: ClientRequest, usual: Show) -> ChatOptions:
    """Read the options of a request; it shows work as is ``usual`` unless it says how. Raises ChatFailed."""
    body, headers = asked.body, asked.headers
    _check_body(body)
    fields = {} if body.get(EXTENSION) is None else body[EXTENSION]
    if not isinstance(fields, dict) or not fields.keys() <= _FIELDS:
        odd = f", not of '{min(fields.keys() - _FIELDS)[:50]}'" if isinstance(fields, dict) else ""
        raise bad_request(
            Message(
                "'{extension}' is an object of {names}{odd}",
                extension=EXTENSION,
                names=", ".join(sorted(_FIELDS)),
                odd=odd,
            )
        )
    chat = name_of_chat(body, headers)
    if chat and not _ID.fullmatch(chat):
        raise bad_request(Message("the id of a chat has 1 to 128 letters, digits, '_', '.' or '-'"))
    form = str(fields.get("show") or headers.get(SHOW_HEADER.lower(), "").lower())
    if form and form not in list(Show):
        raise bad_request(Message("'show' is one of {names}, not '{form}'", names=", ".join(Show), form=form[:50]))
    usual = asked.show or usual
    reply = _parse_reply(fields.get("reply"), body)
    if asked.show is None and usual is not Show.EVENTS and (wants_json(body) or reply is ReplyForm.JSON):
        usual = Show.HIDDEN  # a line about a call would make it no JSON
    return ChatOptions(
        chat=chat,
        show=Show(form) if form else usual,
        handle=find_handle(body),
        bounds=parse_bounds(fields, may_approve=asked.may_approve, max_calls=asked.max_calls),
        offer=_offer(fields.get("offer") or headers.get(OFFER_HEADER.lower(), "").lower()),
        reply=reply,
        is_retry=asked.is_repeat or _number(headers.get(RETRY_HEADER, "")) not in (None, 0),
        timeout_s=next((seconds for name in TIMEOUT_HEADERS if (seconds := _number(headers.get(name, "")))), None),
    )


def name_of_chat(body: JsonObject, headers: Mapping[str, str]) -> str:
    """Return the client's id of the chat, good or bad; empty when the request has none."""
    fields = body.get(EXTENSION)
    own = fields.get("chat") if isinstance(fields, dict) else None
    return str(own or headers.get(CHAT_HEADER.lower(), ""))


def _offer(value: Json) -> OfferMode | None:
    if not value:
        return None
    if value not in list(OfferMode):
        raise bad_request(
            Message("'offer' is one of {names}, not '{value}'", names=", ".join(OfferMode), value=str(value)[:50])
        )
    return OfferMode(str(value))


def _parse_reply(value: Json, body: JsonObject) -> ReplyForm:
    if value is None:
        return ReplyForm.TEXT
    if value == ReplyForm.JSON and body.get("n") not in (None, 1):
        raise bad_request(Message("a structured reply is one: leave out 'n', or 'reply' of 'toolyard'"))
    if value not in list(ReplyForm):
        raise bad_request(
            Message("'reply' is one of {names}, not '{value}'", names=", ".join(ReplyForm), value=str(value)[:50])
        )
    return ReplyForm(str(value))


def wants_json(body: JsonObject) -> bool:
    """Return whether the answer must be JSON."""
    response_format = body.get("response_format")
    return isinstance(response_format, dict) and response_format.get("type") in ("json_object", "json_schema")


def _check_body(body: JsonObject) -> None:
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        raise bad_request(Message("'messages' must be a list with at least one message"))
    if not isinstance(body.get("model", ""), str):
        raise bad_request(Message("'model' must be a text"))
    if not isinstance(body.get("stream"), bool | None):
        raise bad_request(Message("'stream' must be true or false"))


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


class SentBytes(NamedTuple):
    """A request as JSON. It ends with our tools where it has no others: thousands of them share one offer."""

    own: bytes
    tools: bytes = b""

    def join(self) -> bytes:
        return self.own[:-1] + b',"tools":' + self.tools + b"}" if self.tools else self.own


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A chat request as it goes to the model: placeholders filled, host options removed."""

    caller: str
    body: JsonObject
    raw: bytes = b""  # the same as its client wrote it, our tools excepted; empty when anything else was changed
    show: Show
    runs_tools: bool = True  # whether its replies may ask for tools
    nonce: str | None = None
    question: str = ""  # the user's last message
    shows_media: bool = False  # whether the text of the answer has the pictures of tools in it
    reply: ReplyForm = ReplyForm.TEXT  # of the answer
    offer: Offer = NO_OFFER  # our tools that are offered to its model
    owners: Ownership = Ownership()  # noqa: RUF009 it is frozen
    calls: CallKeys = frozenset()  # our native calls in its messages

    @property
    def streams(self) -> bool:
        return self.body.get("stream") is True

    @property
    def messages(self) -> list[Json]:
        messages = self.body.get("messages")
        return messages if isinstance(messages, list) else []

    @property
    def answer_tokens(self) -> int:
        """The limit of the answer, as far as the client has said it."""
        limits = (self.body.get(name) for name in (_USUAL, _OTHER))
        return next((limit for limit in limits if isinstance(limit, int) and limit > 0), 0)

    def encode(self, body: JsonObject, *, takes_native: bool) -> SentBytes:
        """Return a form of the body as JSON, without what its provider has no word for. Raises ChatFailed."""
        sent = body if takes_native else drop_native(body)
        raw = self.raw if sent is self.body else b""
        if self.offer.tools and sent.get("tools") is self.offer.tools:
            own = raw or encode_request({key: value for key, value in sent.items() if key != "tools"})
            return SentBytes(own, self.offer.tools_json)
        return SentBytes(raw or encode_request(sent))

    def with_free_choice(self) -> JsonObject:
        """Return the body for a model that has made the call it had to make: it may answer now."""
        body, choice = dict(self.body), self.body.get("tool_choice")
        for key in ("tool_choice", "function_call"):
            if body.get(key) not in ("auto", "none"):
                body.pop(key, None)
        allowed = choice.get("allowed_tools") if isinstance(choice, dict) else None
        if isinstance(choice, dict) and isinstance(allowed, dict):  # which tools it may use still holds
            body["tool_choice"] = {**choice, "allowed_tools": {**allowed, "mode": "auto"}}
        return body

    def without_tools(self) -> JsonObject:
        """Return the body for a model that gets no more tools of ours; the client's stay."""
        tools = self.body.get("tools")
        if not isinstance(tools, list):
            return self.body
        theirs = [tool for tool in tools if tool not in self.offer.tools]
        # With calls in the conversation, providers want the tools to be listed.
        return self.with_free_choice() | ({"tools": theirs} if theirs else {"tool_choice": "none"})


def identify_conversation(caller: str, messages: list[Json]) -> bytes:
    """Return what all requests of one conversation have in common: who asks, and the first thing that was said."""
    first = next((one for one in messages if isinstance(one, dict) and one.get("role") == "user"), {})
    said = f"{caller}\0{read_text(first.get('content'))}"
    return blake2b(said.encode(errors="replace"), digest_size=16).digest()


_USUAL: Final = "max_tokens"
_OTHER: Final = "max_completion_tokens"
_CODES: Final = frozenset({"upstream_400", "upstream_422"})


def is_effort_refusal(fault: ChatFault, body: JsonObject) -> bool:
    """Return whether a provider does not know the effort of a request whose client speaks another protocol."""
    return fault.code in _CODES and "reasoning_effort" in body and "native" in body and "reasoning" in fault.words


def drop_effort(ask: ModelRequest) -> ModelRequest:
    return replace(ask, body={key: value for key, value in ask.body.items() if key != "reasoning_effort"}, raw=b"")


def is_token_limit_refusal(fault: ChatFault, body: JsonObject) -> bool:
    """Return whether a provider wants the token limit of this request under its other name."""
    return fault.code in _CODES and _USUAL in body and _OTHER not in body and _OTHER in fault.words


def rename_token_limit(ask: ModelRequest) -> ModelRequest:
    """Return the request with its token limit under the other name."""
    return replace(ask, body={_OTHER if key == _USUAL else key: value for key, value in ask.body.items()}, raw=b"")
