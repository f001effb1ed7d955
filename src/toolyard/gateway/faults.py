"""Faults between client, gateway and model provider, as values in OpenAI's error shape.

Before the first byte of an answer a fault is an HTTP status and a body; later it is the last event of the stream. A
provider's own error body is kept; where it names no code, ours is added.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Final

import orjson

from toolyard.gateway.providers.diagnosis import Refusal, advise_on_break, read_refusal
from toolyard.message import Message, strip_period, to_fields
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_problem, json_value

OVERFLOW: Final = "context_length_exceeded"  # OpenAI's code, by which clients know to shorten a conversation
_EXCERPT = 500  # characters of an answer that is no JSON
_TRANSIENT = (
    "server_error",
    "rate_limit_exceeded",
    "api_error",
    "overloaded_error",
    "rate_limit_error",
    "timeout_error",
)
_TEMPORARY = re.compile(
    r"\d{3}|overload|unavailable|temporar|time|rate|limit|quota|exhaust|capacity|busy|too many|again|retr|network"
    r"|connect|internal|server",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatFault:
    status: int
    message: str
    code: str
    type: str = "upstream_error"
    own: JsonObject = field(default_factory=dict)  # the provider's error object
    words: str = ""  # all that the provider said, without advice of ours; never sent
    retry_after: str = ""
    is_final: bool = False  # the client must not repeat its request
    is_overflow: bool = False  # the conversation is too long for the model
    hint: str = ""  # how the client goes on
    param: str = ""  # the part of the request that is wrong, as ``input[2].content``

    @property
    def is_transient(self) -> bool:
        """Return whether asking the provider once more may help."""
        code = self.own.get("code")
        if self.code == "upstream_error":  # an error in place of an answer
            if isinstance(code, int):
                return code == HTTPStatus.TOO_MANY_REQUESTS or code >= 500
            return code in _TRANSIENT or self.own.get("type") in _TRANSIENT
        return self.code == "upstream_cut_off"

    def after_tools(self, *, is_shown: bool) -> "ChatFault":
        """Return the fault of a turn in which tools have run. Sending the same request again continues the turn.

        Some clients look for the digits and words of temporary errors in a message, and then repeat the request by
        themselves. A problem that has any is named only where it ``is_shown`` to a person; that a conversation is too
        long is always said, because clients shorten it then.
        """
        problem = self.message if self.is_overflow else _without_advice(self.message)  # which may be to try again
        own = self.own.get("message")
        if not is_shown and not self.is_overflow and isinstance(own, str):
            problem = own  # without the status
        message = (
            Message(
                "{problem}. Tools have already run in this turn, and their results are kept: send the same request "
                "again within 10 minutes, and it goes on from there without running them again.",
                problem=strip_period(problem),
            )
            if is_shown or self.is_overflow or not _TEMPORARY.search(problem)
            else Message(
                "The answer could not be completed. Tools have already run in this turn, and their results are kept: "
                "send the same request again within 10 minutes, and it goes on from there without running them again. "
                "The reason is on the status page of Toolyard."
            )
        )
        return replace(
            self,
            status=self.status if self.is_overflow else HTTPStatus.BAD_REQUEST,
            message=message,
            code=self.code if self.is_overflow else "tools_have_run",
            type="invalid_request_error",
            own={},
            retry_after="",
            is_final=True,
            hint=_continue_hint() if self.hint else "",
        )

    def to_json(self) -> JsonObject:
        fields: JsonObject = {
            "message": self.message,
            "type": self.type,
            "param": self.param or None,
            "code": self.code,
        }
        hint = to_fields("hint", self.hint) if self.hint else {}
        if self.own:  # the provider's words; where it names no code, ours says what it answered
            code = self.own.get("code")
            is_named = isinstance(code, str) if self.is_overflow else bool(code)
            own = self.own if is_named and code else self.own | {"code": self.code}
            return {"error": own | {"toolyard": to_fields("message", self.message)}}
        return {"error": fields | to_fields("message", self.message) | hint}

    def mask_secrets(self, mask: Callable[[str], str]) -> "ChatFault":
        """Return the fault with secrets masked: a provider may repeat the key that it refuses."""
        own = json_value(mask(json_bytes(self.own).decode())) if self.own else {}
        return replace(self, message=mask(self.message), own=own)

    def to_bytes(self) -> bytes:
        return json_bytes(self.to_json())

    def to_event(self) -> bytes:
        return b"data: " + self.to_bytes() + b"\n\n"


class ChatFailed(Exception):
    """Carries a fault to the end of the turn."""

    def __init__(self, fault: ChatFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def bad_request(
    message: str, code: str = "invalid_request", status: int = HTTPStatus.BAD_REQUEST, *, param: str = ""
) -> ChatFailed:
    return ChatFailed(ChatFault(status=status, message=message, code=code, type="invalid_request_error", param=param))


def server_stopping() -> ChatFault:
    """Return the fault of a turn that outlasts the grace period of a shutdown."""
    return ChatFault(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        message=Message("The server is shutting down and could not wait for this answer"),
        code="server_stopping",
        type="server_error",
        retry_after="5",
        hint=Message("No tool has run: send the same request again when the server is back."),
    )


def _continue_hint() -> Message:
    return Message("Send the same request again when the server is back.")


def changed_history() -> ChatFault:
    """Return the fault of a turn that cannot continue an earlier one."""
    return ChatFault(
        status=HTTPStatus.BAD_REQUEST,
        message=Message(
            "The tools of this request have run before, and what they are has changed since, so it cannot go on from "
            "there. Look at what was done, and send a new message"
        ),
        code="cannot_continue",
        type="invalid_request_error",
        is_final=True,
    )


def encode_request(body: JsonObject) -> bytes:
    """Return a request as JSON; integers of any length stay exact. Raises ChatFailed."""
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError as error:
        if problem := json_problem(body, "the request"):
            raise bad_request(Message("the request cannot be sent on: {problem}", problem=problem)) from error
        return json_bytes(body)


def describe_provider(name: str) -> Message:
    """Return the subject of a sentence about a provider; one without a name is only probed."""
    if not name:
        return Message("it")
    return Message("The model provider '{name}'", name=name)


def add_advice(problem: str, advice: str) -> str:
    """Return a problem and, if there is any, the advice as a sentence of its own."""
    if not advice:
        return problem
    return Message("{problem}. {advice}", problem=strip_period(problem), advice=advice)


def _without_advice(message: str) -> str:
    if isinstance(message, Message) and message.code == "provider.with_advice":
        return str(message.params["problem"])
    return message


def unreachable_provider(name: str, reason: str, advice: str = "") -> ChatFailed:
    message = Message("{provider} cannot be reached: {reason}", provider=describe_provider(name), reason=reason)
    return ChatFailed(
        ChatFault(status=HTTPStatus.BAD_GATEWAY, message=add_advice(message, advice), code="upstream_unreachable")
    )


def slow_provider(message: str, advice: str = "") -> ChatFailed:
    return ChatFailed(
        ChatFault(status=HTTPStatus.GATEWAY_TIMEOUT, message=add_advice(message, advice), code="upstream_timeout")
    )


def broken_answer(name: str, reason: str = "") -> ChatFailed:
    message: str = Message("{provider} broke off in the middle of its answer", provider=describe_provider(name))
    if reason:
        message = Message("{problem}: {reason}", problem=message, reason=reason)
    message = add_advice(message, advise_on_break())
    return ChatFailed(ChatFault(status=HTTPStatus.BAD_GATEWAY, message=message, code="upstream_cut_off"))


def unreadable_answer(message: str, body: bytes = b"") -> ChatFailed:
    message = _add_excerpt(message, body)
    return ChatFailed(ChatFault(status=HTTPStatus.BAD_GATEWAY, message=message, code="upstream_invalid_answer"))


def no_completion(name: str, body: bytes) -> ChatFailed:
    message = Message("{provider} sent something that is no chat completion", provider=describe_provider(name))
    return unreadable_answer(message, body)


def oversized_answer(name: str, limit: int) -> ChatFailed:
    return unreadable_answer(
        Message("{provider} sent more than {limit} bytes", provider=describe_provider(name), limit=limit)
    )


def describe_silence(name: str, seconds: float) -> Message:
    """Return the message for a provider that sends nothing any more."""
    return Message("{provider} fell silent for {seconds:g} s", provider=describe_provider(name), seconds=seconds)


def _add_excerpt(message: str, body: bytes) -> str:
    """Return the message with the beginning of the body that it is about."""
    excerpt = " ".join(body[: 4 * _EXCERPT].decode("utf-8", "replace").split())[:_EXCERPT]
    if not excerpt:
        return message
    return Message("{problem}: {excerpt}", problem=message, excerpt=excerpt)


def refused_request(name: str, status: int, body: bytes, retry_after: str = "") -> ChatFailed:
    """Return the fault for a status other than 200; a refused key of ours is a 502, not the client's fault."""
    refusal = read_refusal(status, body)
    ours = status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) or not 400 <= status < 600
    return ChatFailed(
        ChatFault(
            status=HTTPStatus.BAD_GATEWAY if ours else status,
            message=add_advice(describe_refusal(name, refusal), refusal.advice),
            code=OVERFLOW if refusal.is_about_context else f"upstream_{status}",
            own=refusal.own,
            is_overflow=refusal.is_about_context,
            words=f"{refusal.words} {orjson.dumps(refusal.own).decode()}",
            retry_after=retry_after,
        )
    )


def describe_refusal(name: str, refusal: Refusal) -> str:
    """Return the status, the code and the words of a refusal as one sentence."""
    provider, status = describe_provider(name), refusal.status
    message = (
        Message("{provider} answered {status} ({code})", provider=provider, status=status, code=refusal.code)
        if refusal.code
        else Message("{provider} answered {status}", provider=provider, status=status)
    )
    return _add_excerpt(message, refusal.words.encode())


def error_as_answer(name: str, error: Json) -> ChatFailed:
    """Return the fault for an error that a provider sent with a success status, in place of an answer."""
    refusal = read_refusal(HTTPStatus.OK, json_bytes({"error": error}))
    message = Message("{provider} sent an error", provider=describe_provider(name))
    if refusal.code:
        message = Message("{provider} sent an error ({code})", provider=describe_provider(name), code=refusal.code)
    described = add_advice(_add_excerpt(message, refusal.words.encode()), refusal.advice)
    return ChatFailed(
        ChatFault(
            status=HTTPStatus.BAD_GATEWAY,
            message=described,
            code=OVERFLOW if refusal.is_about_context else "upstream_error",
            own=refusal.own,
            is_overflow=refusal.is_about_context,
        )
    )
