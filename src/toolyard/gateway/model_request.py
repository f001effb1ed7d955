"""A chat request as it goes to the model."""

from dataclasses import dataclass

from toolyard.gateway.offers.offer import NO_OFFER, Offer
from toolyard.gateway.sinks.display import Show
from toolyard.gateway.tool_calls.native_calls import Ownership
from toolyard.protocol.chat_mode import ReplyForm
from toolyard.protocol.json import Json, JsonObject


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

    @property
    def streams(self) -> bool:
        return self.body.get("stream") is True

    @property
    def messages(self) -> list[Json]:
        messages = self.body.get("messages")
        return messages if isinstance(messages, list) else []

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
