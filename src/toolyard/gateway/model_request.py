"""A chat request as it goes to the model, and the forms in which it is sent again.

Clients and most providers say ``max_tokens``. OpenAI's reasoning models refuse that and name ``max_completion_tokens``,
which others do not know: a request that is refused so is sent again under the other name. Clients of Messages say their
effort with every request, whatever model it is for: one that knows none is asked again without.
"""

from dataclasses import dataclass, replace
from typing import Final

from toolyard.gateway.faults import ChatFault, encode_request
from toolyard.gateway.offer import NO_OFFER, Offer
from toolyard.gateway.tool_calls.native_calls import Ownership
from toolyard.gateway.tool_calls.rounds import CallKeys
from toolyard.gateway.turns.display import Show
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.assistant_record import ReplyForm


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A chat request as it goes to the model: placeholders filled, host options removed."""

    caller: str
    body: JsonObject
    raw: bytes  # the same as JSON
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


_USUAL: Final = "max_tokens"
_OTHER: Final = "max_completion_tokens"
_CODES: Final = frozenset({"upstream_400", "upstream_422"})


def is_effort_refusal(fault: ChatFault, body: JsonObject) -> bool:
    """Return whether a provider does not know the effort of a request whose client speaks another protocol."""
    return fault.code in _CODES and "reasoning_effort" in body and "native" in body and "reasoning" in fault.words


def drop_effort(ask: ModelRequest) -> ModelRequest:
    body = {key: value for key, value in ask.body.items() if key != "reasoning_effort"}
    return replace(ask, body=body, raw=encode_request(body))


def is_token_limit_refusal(fault: ChatFault, body: JsonObject) -> bool:
    """Return whether a provider wants the token limit of this request under its other name."""
    return fault.code in _CODES and _USUAL in body and _OTHER not in body and _OTHER in fault.words


def rename_token_limit(ask: ModelRequest) -> ModelRequest:
    """Return the request with its token limit under the other name."""
    body = {_OTHER if key == _USUAL else key: value for key, value in ask.body.items()}
    return replace(ask, body=body, raw=encode_request(body))
