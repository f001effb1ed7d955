"""A refusal of a model provider, an answer with a status other than 2xx: its code, its words, and what to do then."""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from toolyard.gateway.providers.provider_json import parse_provider_json
from toolyard.message import Message
from toolyard.protocol.json import JsonObject

_MAX_CODE = 100
_CONTEXT_CODES = ("context_length_exceeded", "exceed_context_size_error", "string_above_max_length")
_ABOUT_CONTEXT = re.compile(
    r"context[ _-](length|window|size)|maximum context|(input|prompt) (is|was) too (long|large)", re.I
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    status: int
    own: JsonObject  # the provider's error object; empty: it sent none
    code: str  # the provider's, such as context_length_exceeded; empty: it sent none
    words: str  # the provider's, or the body as it is

    @property
    def advice(self) -> str:
        """Return what to do about a refused chat request; empty: the provider's words must do."""
        if self.is_about_context:
            return Message(
                "provider.hint_context",
                "The conversation is too long for this model: start a new chat, shorten the message or its "
                "attachments, choose fewer tools, or a model with a larger context.",
            )
        match self.status:
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
                return Message("provider.hint_check_key", "Check the key of this provider in the settings.")
            case HTTPStatus.PAYMENT_REQUIRED | HTTPStatus.TOO_MANY_REQUESTS:
                return Message("provider.hint_used_up", "The credit or the rate limit of its key is used up.")
            case _:
                return advise_on_status(self.status)

    @property
    def is_about_context(self) -> bool:
        """Return whether the conversation is too long for the model."""
        if self.code in _CONTEXT_CODES or self.own.get("type") in _CONTEXT_CODES:
            return True
        return self.status != HTTPStatus.TOO_MANY_REQUESTS and _ABOUT_CONTEXT.search(self.words) is not None


def read_refusal(status: int, body: bytes) -> Refusal:
    """Read the body of a refusal: OpenAI's error object, or what other servers send in its place."""
    try:
        answer = parse_provider_json(body)
    except ValueError:
        answer = None
    answer = answer if isinstance(answer, dict) else {}
    error = answer.get("error")
    own: JsonObject = error if isinstance(error, dict) else {}
    if isinstance(error, str):
        own = {"message": error, "type": "upstream_error", "param": None, "code": None}
    words = own.get("message") or answer.get("message") or answer.get("detail")
    return Refusal(
        status=int(status),
        own=own,
        code=_read_code(own.get("code"), status),
        words=words if isinstance(words, str) else body.decode("utf-8", "replace"),
    )


def advise_on_status(status: int) -> str:
    """Return what to do about a status that needs no look at the request."""
    if 300 <= status < 400:
        return Message("provider.hint_moved", "The provider has moved: enter its new address.")
    if status >= 500:
        return Message("provider.hint_fault", "The provider itself has a problem: try again later.")
    return ""


def _read_code(code: Any, status: int) -> str:
    text = str(code) if isinstance(code, str | int) and not isinstance(code, bool) else ""
    return "" if text == str(int(status)) else text[:_MAX_CODE]
