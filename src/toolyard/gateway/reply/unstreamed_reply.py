"""A reply that came in one piece."""

from toolyard.gateway.faults import no_completion
from toolyard.gateway.providers.provider_json import MAX_UNSTREAMED_PARTS
from toolyard.gateway.reply.chunks import Head, add_usage, read_text
from toolyard.gateway.reply.reply import is_client_first, parse_object
from toolyard.gateway.reply.request_filter import RequestFilter
from toolyard.gateway.tool_calls.native_calls import Ownership, call_name
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject

_WHAT = Message("provider.an_answer", "an answer")


class UnstreamedReply:
    """The parsed reply ``raw``. Raises ChatFailed when it is no chat completion."""

    def __init__(
        self,
        raw: bytes,
        head: Head,
        request_filter: RequestFilter,
        name: str,
        number: int,
        owners: Ownership,
        *,
        looks: bool,
        kept: int = 0,
    ) -> None:
        self.raw, self.request_filter, self._head, self._owners = raw, request_filter, head, owners
        self.is_first, self.kept_bytes = number == 1, kept + len(raw)
        self.body = parse_object(name, raw, _WHAT, most=MAX_UNSTREAMED_PARTS)
        if "choices" not in self.body:
            raise no_completion(name, raw)
        self.choice, message = _first_choice(self.body)
        self._message = message or {}
        usage = self.body.get("usage")
        self.usage: JsonObject = usage if isinstance(usage, dict) else {}
        self.looks = looks and message is not None
        self.text = read_text(self._message.get("content"))
        self.visible_text = request_filter.filter_text(self.text) if self.looks else self.text
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
