"""Assistants as models: clients see each one that they may use as ``assistant/NAME``, and name it as ``model``.

The assistant's instructions come before all else that the client's system message says; its model takes the place of
the one that was named, and its other options count wherever the request does not say otherwise.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from toolyard.gateway.chat_prompt import SYSTEM
from toolyard.gateway.chat_request import EXTENSION, ClientRequest
from toolyard.gateway.faults import bad_request
from toolyard.gateway.offer_policy import split_alias
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.assistant_record import AssistantOptions, Mode, ReplyForm

PREFIX: Final = "assistant/"
ListAssistants = Callable[[str], Awaitable[list[AssistantOptions]]]  # those of a caller, of two with one name the first


class AssistantModels:
    def __init__(self, list_assistants: ListAssistants) -> None:
        self._list = list_assistants

    async def list_models(self, caller: str) -> list[JsonObject]:
        """Return the assistants of a caller as models."""
        names = dict.fromkeys(one.name for one in await self._list(caller))
        return [_model(f"{PREFIX}{name}") for name in names]

    async def find_model(self, id_: str, caller: str) -> JsonObject | None:
        """Return an assistant of a caller as a model; None: the id names none."""
        name = split_alias(id_)[0]
        return _model(id_) if name.startswith(PREFIX) and await self._find(name, caller) else None

    async def apply(self, asked: ClientRequest) -> ClientRequest:
        """Return the request as its assistant asks it; the same one when it names none. Raises ChatFailed."""
        sent = asked.body
        model, messages = sent.get("model"), sent.get("messages")
        if not isinstance(model, str) or not model.startswith(PREFIX) or not isinstance(messages, list):
            return asked
        name, alias = split_alias(model)
        assistant = await self._find(name, asked.caller)
        if assistant is None:
            raise bad_request(
                Message("there is no assistant '{name}' for this key", name=name.removeprefix(PREFIX)[:100]),
                "model_not_found",
                HTTPStatus.NOT_FOUND,
            )
        suffix = model.removeprefix(name) if alias and not split_alias(assistant.model)[1] else ""
        body = sent | {
            "model": f"{assistant.model}{suffix}",
            "messages": _add_instructions(messages, assistant.instructions),
        }
        for key, value in _list_options(assistant):
            body.setdefault(key, value)
        own = _list_own_options(assistant)
        given = body.get(EXTENSION)
        if own and (given is None or isinstance(given, dict)):
            body[EXTENSION] = own | (given or {})
        # Sent again it is known by what its client sent, whatever the assistant is by then.
        identity = asked.identity or (sent if asked.raw else None)
        return replace(asked, body=body, raw=b"", identity=identity)

    async def _find(self, name: str, caller: str) -> AssistantOptions | None:
        wanted = name.removeprefix(PREFIX)
        return next((one for one in await self._list(caller) if one.name == wanted), None)


def _add_instructions(messages: list[Json], text: str) -> list[Json]:
    """Return the messages with a text before that of their first message, if it is a system message."""
    if not text:
        return messages
    first = messages[0] if messages else None
    if isinstance(first, dict) and first.get("role") in SYSTEM:
        content = first.get("content")
        if isinstance(content, str):
            return [{**first, "content": f"{text}\n\n{content}" if content else text}, *messages[1:]]
        if isinstance(content, list):
            return [{**first, "content": [{"type": "text", "text": text}, *content]}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def _list_options(assistant: AssistantOptions) -> list[tuple[str, Json]]:
    effort = assistant.reasoning_effort
    options: list[tuple[str, Json]] = [
        ("temperature", assistant.temperature),
        ("max_tokens", assistant.max_tokens),
        ("reasoning_effort", effort.value if effort else None),
    ]
    return [(key, value) for key, value in options if value is not None]


def _list_own_options(assistant: AssistantOptions) -> JsonObject:
    """Return what the ``toolyard`` object of a request says of it."""
    own: JsonObject = {}
    if assistant.tools is not None:
        own["tools"] = list(assistant.tools)
    if assistant.mode is not Mode.ASK:
        own["mode"] = assistant.mode.value
    if assistant.reply is not ReplyForm.TEXT:
        own["reply"] = assistant.reply.value
    return own


def _model(id_: str) -> JsonObject:
    return {"id": id_, "object": "model", "created": 0, "owned_by": "toolyard"}
