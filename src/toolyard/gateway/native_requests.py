"""Requests that go to their provider as they came, because it speaks the protocol of their client.

A request for a chat does so when no tool is involved: the request, its model's alias, its key or the settings turn
tools off. Then no turn is needed, and bytes pass unchanged both ways.
"""

from collections.abc import Callable, Mapping

from toolyard.gateway.assistant_models import PREFIX
from toolyard.gateway.chat_request import ClientRequest, parse_options
from toolyard.gateway.chats import Chat
from toolyard.gateway.faults import encode_request
from toolyard.gateway.offer_policy import choose_offer, split_alias
from toolyard.gateway.providers.forwarded_answer import Outgoing
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.assistant_record import ReplyForm
from toolyard.provider_settings import ProviderProtocol


async def is_plain(chat: Chat, request: ClientRequest, protocol: ProviderProtocol) -> bool:
    """Return whether a request needs no turn: it involves no tool, and its provider speaks ``protocol``.

    Raises ChatFailed.
    """
    options = parse_options(request, chat.rules.show)
    model, alias = split_alias(str(request.body.get("model") or ""))
    choice = choose_offer(options.offer, alias, request.key_offer, chat.offer_policy.default_mode)
    messages = request.body.get("messages")
    needs_turn = bool(options.chat or options.handle) or options.reply is not ReplyForm.TEXT
    if needs_turn or model.startswith(PREFIX) or chat.has_installed_prompts:
        return False
    if not choice.forbids_tools(messages if isinstance(messages, list) else [], has_installed_prompts=False):
        return False
    return await speaks(chat, model, protocol)


async def speaks(chat: Chat, model: str, protocol: ProviderProtocol) -> bool:
    """Return whether the provider of a model speaks a protocol. Raises ChatFailed."""
    return not chat.upstreams.is_tour(model) and await chat.upstreams.protocol(model) is protocol


def make_outgoing(
    path: str, raw: bytes, body: JsonObject, mask: Callable[[str], str], headers: Mapping[str, str]
) -> Callable[[str], Outgoing]:
    """Return what makes the request for a model: ``raw``, unless its provider knows the model by another name.

    ``raw`` is empty where ``body`` is no longer what came.
    """

    def outgoing(name: str) -> Outgoing:
        data = raw if raw and body.get("model") == name else encode_request({**body, "model": name})
        text = data.decode("utf-8", "replace")
        masked = mask(text)
        data = data if masked is text else masked.encode()
        return Outgoing(path=path, body=data, content_type="application/json", more=headers)

    return outgoing
