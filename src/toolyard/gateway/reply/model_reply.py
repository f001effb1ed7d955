"""One reply of a model: its text, its tool calls, and the part that the client sees.

A reply comes in pieces (``StreamedReply``) or in one (``UnstreamedReply``). Either way the first native call decides
who acts next: when it is one of the client's tools, the reply is handed over with the client's calls alone; else our
calls run, and the model is asked again for those of the client.
"""

from dataclasses import dataclass
from typing import Protocol

from toolyard.gateway.faults import describe_provider, error_as_answer, no_completion, unreadable_answer
from toolyard.gateway.providers.provider_json import MAX_PARTS, MAX_UNSTREAMED_PARTS, parse_provider_json
from toolyard.gateway.reply.chunks import Head, add_usage, read_text
from toolyard.gateway.reply.request_filter import RequestFilter
from toolyard.gateway.tool_calls.native_calls import Ownership, call_name
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyContext:
    """The values with which a reply is read."""

    head: Head  # of the answer that it is part of
    request_filter: RequestFilter
    provider: str
    round: int  # from 1
    owners: Ownership
    looks: bool  # for tool requests; otherwise the reply is only passed on, requests included
    kept: int = 0  # bytes that the replies before it have kept


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
            "{provider} sent {what} that cannot be read: {error}",
            provider=describe_provider(name),
            what=what,
            error=error,
        )
        raise unreadable_answer(message, data) from error
    if not isinstance(body, dict):
        message = Message("{provider} sent {what} that is not an object", provider=describe_provider(name), what=what)
        raise unreadable_answer(message, data)
    if fault := body.get("error"):
        raise error_as_answer(name, fault)
    return body


def is_client_first(names: list[str], request_filter: RequestFilter, owners: Ownership) -> bool:
    """Return whether the first request of a reply is a call of the client's tools."""
    return bool(names) and not request_filter.has_request and owners.is_client(names[0])


_WHAT = Message("an answer")


class UnstreamedReply:
    """The parsed reply ``raw``. Raises ChatFailed when it is no chat completion."""

    def __init__(self, raw: bytes, context: ReplyContext) -> None:
        self.raw, self.request_filter = raw, context.request_filter
        self._head, self._owners = context.head, context.owners
        self.is_first, self.kept_bytes = context.round == 1, context.kept + len(raw)
        self.body = parse_object(context.provider, raw, _WHAT, most=MAX_UNSTREAMED_PARTS)
        if "choices" not in self.body:
            raise no_completion(context.provider, raw)
        self.choice, message = _first_choice(self.body)
        self._message = message or {}
        usage = self.body.get("usage")
        self.usage: JsonObject = usage if isinstance(usage, dict) else {}
        self.looks = context.looks and message is not None
        self.text = read_text(self._message.get("content"))
        self.visible_text = self.request_filter.filter_text(self.text) if self.looks else self.text
        self.visible_tail = self.visible_text
        finish = self.choice.get("finish_reason")
        self.finish = finish if isinstance(finish, str) else None

    @property
    def calls(self) -> list[JsonObject]:
        calls = self._message.get("tool_calls")
        return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []

    @property
    def is_handed_over(self) -> bool:
        return not self.looks or is_client_first(
            [call_name(call) for call in self.calls], self.request_filter, self._owners
        )

    @property
    def is_unchanged(self) -> bool:
        """Return whether the client may have the reply as it came."""
        return not self.looks or (self.visible_text == self.text and len(self._client_calls()) == len(self.calls))

    def message(self) -> JsonObject:
        return self._message | {"content": self.text}

    def message_for_client(self) -> JsonObject:
        """Return its message with the client's calls only."""
        calls: list[Json] = [*self._client_calls()]
        if len(calls) == len(self.calls):
            return self._message
        rest = {key: value for key, value in self._message.items() if key != "tool_calls"}
        return rest | ({"tool_calls": calls} if calls else {})

    def total_usage(self) -> JsonObject:
        return add_usage(self._head.usage, self.usage)

    def _client_calls(self) -> list[JsonObject]:
        return [call for call in self.calls if not self.looks or self._owners.is_client(call_name(call))]


def _first_choice(body: JsonObject) -> tuple[JsonObject, JsonObject | None]:
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    return (choice if isinstance(choice, dict) else {}), (message if isinstance(message, dict) else None)
