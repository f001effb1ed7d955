"""Requests whose provider speaks their client's protocol, and that have no tools of ours: bytes pass unchanged.

Only the name of the model changes, where it has an alias or its provider knows another one, and secrets are masked.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

from toolyard.gateway.chats import Chat
from toolyard.gateway.client_request import EXTENSION, ClientRequest, parse_options
from toolyard.gateway.faults import ChatFailed, ChatFault, encode_request
from toolyard.gateway.offer_policy import choose_offer, split_alias
from toolyard.gateway.providers.forwarded_answer import ForwardedAnswer, Outgoing
from toolyard.gateway.turns.rendering import ClientAnswer
from toolyard.protocol.json import JsonObject
from toolyard.provider_settings import ProviderProtocol

_EVENTS: Final = "text/event-stream"
Listener = Callable[[bytes], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedRequest:
    """A request as its client sent it."""

    body: JsonObject
    raw: bytes
    path: str  # below the address of its provider
    protocol: ProviderProtocol
    headers: Mapping[str, str] = field(default_factory=dict)  # those of its client that belong to the protocol


async def forward(
    chat: Chat,
    asked: ClientRequest,
    request: ForwardedRequest,
    write_event: Callable[[ChatFault], bytes],
    listen: Listener | None = None,
) -> ClientAnswer | None:
    """Send a request on; None when it is a turn. ``asked``: the same as one of chat. Raises ChatFailed.

    ``write_event`` writes the error of a stream that breaks off, ``listen`` hears each piece of the answer.
    """
    if not await _is_forwarded(chat, asked, request):
        return None
    model, alias = split_alias(str(asked.body.get("model") or ""))

    def outgoing(name: str) -> Outgoing:
        body = {key: value for key, value in request.body.items() if key != EXTENSION}
        is_same = name == model and alias is None and EXTENSION not in request.body and bool(request.raw)
        raw = request.raw if is_same else encode_request({**body, "model": name})
        text = raw.decode("utf-8", "replace")
        masked = chat.mask(text)
        return Outgoing(
            path=request.path, body=raw if masked is text else masked.encode(), content_type="application/json",
            accept=asked.headers.get("accept", ""), more=request.headers,
        )  # fmt: skip

    forwarded = await chat.upstreams.forward(model, outgoing, request.protocol)
    if not forwarded.content_type.startswith(_EVENTS):
        return await _read_whole(chat, forwarded, listen)
    pieces = _read_pieces(chat, forwarded, write_event, listen)
    await anext(pieces)  # a generator that has not begun would not close the answer
    return ClientAnswer(pieces=pieces)


async def _is_forwarded(chat: Chat, asked: ClientRequest, request: ForwardedRequest) -> bool:
    options = parse_options(asked, chat.rules.show)
    model, alias = split_alias(str(asked.body.get("model") or ""))
    choice = choose_offer(options.offer, alias, asked.key_offer, chat.offer_policy.default_mode)
    messages = asked.body.get("messages")
    if not choice.forbids_tools(messages if isinstance(messages, list) else []) or chat.upstreams.is_tour(model):
        return False
    return await chat.upstreams.protocol(model) is request.protocol


async def _read_whole(chat: Chat, forwarded: ForwardedAnswer, listen: Listener | None) -> ClientAnswer:
    with closing(forwarded), chat.ended_by_stop(forwarded.close):
        body = b"".join([piece async for piece in forwarded.pieces()])
    if listen is not None:
        listen(body)
    return ClientAnswer(status=forwarded.status, body=body)


async def _read_pieces(
    chat: Chat, forwarded: ForwardedAnswer, write_event: Callable[[ChatFault], bytes], listen: Listener | None
) -> AsyncGenerator[bytes, None]:
    with closing(forwarded), chat.ended_by_stop(forwarded.close):
        yield b""
        try:
            async for piece in forwarded.pieces():
                if listen is not None:
                    listen(piece)
                yield piece
        except ChatFailed as failed:
            yield write_event(failed.fault.mask_secrets(chat.mask))
