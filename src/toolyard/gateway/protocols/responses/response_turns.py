"""The turns of Responses clients: created, and rendered as responses."""

from collections.abc import Callable

from toolyard.gateway.chats import Chat
from toolyard.gateway.client_request import ClientRequest
from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.protocols.chat import CHAT
from toolyard.gateway.protocols.responses.client_request import ResponsesRequest, parse_request, read_turn, without_show
from toolyard.gateway.protocols.responses.rendering import ResponsesRendering
from toolyard.gateway.turns.display import Show
from toolyard.gateway.turns.rendering import ClientAnswer, render_failure
from toolyard.gateway.turns.turn_keeper import SingleRun


class ResponseTurns:
    def __init__(self, chat: Chat, now: Callable[[], float]) -> None:
        self._chat, self._now = chat, now

    async def create(self, sent: ClientRequest, single: SingleRun | None = None) -> ClientAnswer:
        """Answer a request; ``sent.body`` is as its client sent it. Faults are answers too."""
        try:
            asked = parse_request(sent.body)
        except ChatFailed as failed:
            return render_failure(CHAT, failed.fault)
        rendering = ResponsesRendering(asked=asked, now=self._now, is_streamed=asked.is_streamed)
        return await self._chat.complete(_to_chat(sent, asked), single, rendering)


def _to_chat(sent: ClientRequest, asked: ResponsesRequest) -> ClientRequest:
    conversation, is_repeat = read_turn(sent.headers)
    return ClientRequest(
        asked.body,
        caller=sent.caller,
        headers=without_show(sent.headers),
        show=Show.EVENTS,
        may_approve=sent.may_approve,
        key_offer=sent.key_offer,
        identity=asked.identity,
        conversation=conversation,
        is_repeat=is_repeat,
        own_calls=asked.own_calls,
    )
