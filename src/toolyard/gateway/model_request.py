"""A chat request as it goes to the model."""

from dataclasses import dataclass

from toolyard.gateway.offers.offer import NO_OFFER, Offer
from toolyard.gateway.sinks.display import Show
from toolyard.gateway.tool_calls.native_calls import Ownership
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
    offer: Offer = NO_OFFER  # our tools that are offered to its model
    owners: Ownership = Ownership()  # noqa: RUF009 it is frozen

    @property
    def streams(self) -> bool:
        return self.body.get("stream") is True

    @property
    def messages(self) -> list[Json]:
        messages = self.body.get("messages")
        return messages if isinstance(messages, list) else []
