"""One reply of a model: its text, its tool calls, and the part that the client sees.

A reply comes in pieces (``StreamedReply``) or in one (``WholeReply``). Either way the first native call decides who
acts next: when it is one of the client's tools, the reply is handed over with the client's calls alone; else our calls
run, and the model is asked again for those of the client.
"""

from typing import Protocol

from toolyard.gateway.faults import describe_provider, error_as_answer, unreadable_answer
from toolyard.gateway.providers.provider_json import MAX_PARTS, parse_provider_json
from toolyard.gateway.reply.request_filter import RequestFilter
from toolyard.gateway.tool_calls.native_calls import Ownership
from toolyard.message import Message
from toolyard.protocol.json import JsonObject


class Reply(Protocol):
    request_filter: RequestFilter
    finish: str | None  # the provider's finish reason
    visible_tail: str  # the last characters that the client sees

    @property
    def visible_text(self) -> str:
        """The text that the client sees."""
        ...

    @property
    def text(self) -> str: ...

    @property
    def calls(self) -> list[JsonObject]:
        """The native calls, complete, in the order of the reply."""
        ...

    @property
    def kept_bytes(self) -> int:
        """The bytes that this reply and those before it have kept."""
        ...

    @property
    def is_handed_over(self) -> bool:
        """Return whether the client acts next."""
        ...

    def message(self) -> JsonObject:
        """Return the reply as a message of the conversation; its calls may be left out."""
        ...

    @property
    def usage(self) -> JsonObject:
        """The usage of this round alone; empty when the provider sent none."""
        ...

    def total_usage(self) -> JsonObject:
        """Return the usage of all rounds up to this one."""
        ...


def parse_object(name: str, data: bytes, what: str, *, most: int = MAX_PARTS) -> JsonObject:
    """Parse an object that a provider sent. Raises ChatFailed when it is no object, or an error."""
    try:
        body = parse_provider_json(data, most=most)
    except ValueError as error:
        message = Message(
            "provider.unreadable_json",
            "{provider} sent {what} that cannot be read: {error}",
            provider=describe_provider(name),
            what=what,
            error=error,
        )
        raise unreadable_answer(message, data) from error
    if not isinstance(body, dict):
        message = Message(
            "provider.not_an_object",
            "{provider} sent {what} that is not an object",
            provider=describe_provider(name),
            what=what,
        )
        raise unreadable_answer(message, data)
    if fault := body.get("error"):
        raise error_as_answer(name, fault)
    return body


def is_client_first(names: list[str], request_filter: RequestFilter, owners: Ownership) -> bool:
    """Return whether the first request of a reply is a call of the client's tools."""
    return bool(names) and not request_filter.has_request and owners.is_client(names[0])
