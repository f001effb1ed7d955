"""The translations for providers that speak another protocol than chat, and the paths of all protocols.

Models of one protocol differ in what they take. A request that is refused for its form is written once more with less,
and so are the next ones for its model (``MAX_MODELS`` are remembered).
"""

from collections import OrderedDict
from typing import Final, Protocol

from toolyard.gateway.faults import ChatFault
from toolyard.gateway.protocols.chat_body import NativeRequest
from toolyard.gateway.protocols.chat_chunks import AnswerReader
from toolyard.gateway.protocols.messages.provider_answer import MessagesReader
from toolyard.gateway.protocols.messages.provider_request import Allowances, find_allowances, to_messages
from toolyard.gateway.protocols.responses.provider_answer import ResponsesReader
from toolyard.gateway.protocols.responses.provider_request import to_responses
from toolyard.protocol.json import JsonObject
from toolyard.provider_settings import ProviderProtocol

MAX_MODELS: Final = 256
PATHS: Final = {
    ProviderProtocol.CHAT: "/chat/completions",
    ProviderProtocol.RESPONSES: "/responses",
    ProviderProtocol.ANTHROPIC: "/messages",
}


class Translation(Protocol):
    def write(self, body: JsonObject) -> NativeRequest:
        """Return a chat request as one of the provider's."""
        ...

    def rewrite(self, body: JsonObject, sent: NativeRequest, refusal: ChatFault) -> NativeRequest | None:
        """Return a refused request in another form; None when there is none."""
        ...

    def read(self, provider: str, request: NativeRequest, created: int) -> AnswerReader:
        """Return the reader of the answer; ``created`` is its time, for a protocol that tells none."""
        ...


class ResponsesTranslation:
    def write(self, body: JsonObject) -> NativeRequest:
        return to_responses(body)

    def rewrite(self, body: JsonObject, sent: NativeRequest, refusal: ChatFault) -> NativeRequest | None:  # noqa: ARG002
        return None

    def read(self, provider: str, request: NativeRequest, created: int) -> AnswerReader:
        return ResponsesReader(provider, request, created)


class MessagesTranslation:
    def __init__(self) -> None:
        self._allowed: OrderedDict[str, Allowances] = OrderedDict()  # by model, of those that take less

    def write(self, body: JsonObject) -> NativeRequest:
        return to_messages(body, self._find(body))

    def rewrite(self, body: JsonObject, sent: NativeRequest, refusal: ChatFault) -> NativeRequest | None:
        allowed = find_allowances(refusal, self._find(body))
        written = to_messages(body, allowed)
        if written.body == sent.body:  # it was refused for something else
            return None
        model = str(body.get("model"))
        self._allowed[model] = allowed
        self._allowed.move_to_end(model)
        if len(self._allowed) > MAX_MODELS:
            self._allowed.popitem(last=False)
        return written

    def read(self, provider: str, request: NativeRequest, created: int) -> AnswerReader:
        return MessagesReader(provider, request, created)

    def _find(self, body: JsonObject) -> Allowances:
        return self._allowed.get(str(body.get("model")), Allowances())


def make_translation(protocol: ProviderProtocol) -> Translation | None:
    """Return the translation from and to chat; None for chat itself."""
    match protocol:
        case ProviderProtocol.RESPONSES:
            return ResponsesTranslation()
        case ProviderProtocol.ANTHROPIC:
            return MessagesTranslation()
        case ProviderProtocol.CHAT:
            return None
