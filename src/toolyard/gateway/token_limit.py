"""The limit of a reply's tokens under the name that a model takes.

Clients and most providers say ``max_tokens``. OpenAI's reasoning models refuse that and name ``max_completion_tokens``,
which others do not know: a request that is refused so is sent again under the other name.
"""

from dataclasses import replace
from typing import Final

from toolyard.gateway.faults import ChatFault, encode_request
from toolyard.gateway.model_request import ModelRequest
from toolyard.protocol.json import JsonObject

_USUAL: Final = "max_tokens"
_OTHER: Final = "max_completion_tokens"
_CODES: Final = frozenset({"upstream_400", "upstream_422"})


def is_token_limit_refusal(fault: ChatFault, body: JsonObject) -> bool:
    """Return whether a provider wants the token limit of this request under its other name."""
    return fault.code in _CODES and _USUAL in body and _OTHER not in body and _OTHER in fault.words


def rename_token_limit(ask: ModelRequest) -> ModelRequest:
    """Return the request with its token limit under the other name."""
    body = {_OTHER if key == _USUAL else key: value for key, value in ask.body.items()}
    return replace(ask, body=body, raw=encode_request(body))
