"""A request of a Responses client, as one of chat.

The model is always asked for a stream. Fields that chat has no word for go along as ``native`` fields, for a provider
that speaks Responses; the others do not get them: ``include``, ``truncation``, ``prompt_cache_key``, ``service_tier``,
hosted tools such as ``web_search``, and whatever is not known here. ``metadata`` and what is about storing is ours.

An entry ``{"type": "mcp", "server_label": "toolyard"}`` in ``tools`` asks for our tools, and for questions to the
client where a call needs a person (``asks_approval``), unless its ``require_approval`` is ``never``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import orjson

from toolyard.gateway.chat_request import CHAT_HEADER, EXTENSION, SHOW_HEADER
from toolyard.gateway.faults import bad_request
from toolyard.gateway.offer_policy import split_alias
from toolyard.gateway.protocols.chat_body import as_list, as_object, objects
from toolyard.gateway.protocols.responses.input_items import (
    COMPACTION_TRIGGER,
    LABEL,
    PROTOCOL,
    InputReader,
    flat_name,
    is_reference,
    join_path,
    list_items,
    resolve_references,
)
from toolyard.gateway.tool_calls.rounds import CallKeys
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject

_SAME = ("temperature", "top_p", "parallel_tool_calls")
_OWN: Final = frozenset(
    {
        "model", "input", "instructions", "previous_response_id", "conversation", "store", "stream", "stream_options",
        "background", "generate", "tools", "tool_choice", "text", "max_output_tokens", "max_tool_calls", "metadata",
        "client_metadata", "top_logprobs", EXTENSION, *_SAME,
    }
)  # fmt: skip
_WISHES: Final = ("model", "tools", "tool_choice", "background", EXTENSION)
_INPUT: Final = (*_WISHES, "input", "instructions", "previous_response_id", "conversation")
_SUMMARY_PROMPT: Final = (
    "Summarise the conversation above for the assistant that goes on with it and does not see it: what the user wants, "
    "what was decided and why, what was done with which results, names, numbers and paths as they are, and what is "
    "left to do. Write the summary alone, in the language of the conversation."
)
_CONVERSATION: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LOGPROBS: Final = "message.output_text.logprobs"
TURN_HEADER: Final = "x-codex-turn-metadata"
_CHAT_HEADERS: Final = (SHOW_HEADER.lower(), CHAT_HEADER.lower())
SESSION_HEADERS: Final = ("session-id", "session_id", "thread-id", "conversation_id")


class ClientTurn(NamedTuple):
    """The turn that a request is of, as its client names it."""

    conversation: str = ""  # its name of it
    is_named: bool = False  # the same in all repeats of its requests
    is_side: bool = False  # the request is no step of it, such as one for a summary


class _Kind(NamedTuple):
    name: Message
    types: tuple[type, ...]


_NOT_IN_SUMMARIES = ("tools", "tool_choice", "parallel_tool_calls", "response_format", "verbosity", "max_tokens")
_TEXT, _FLAG = _Kind(Message("a text"), (str,)), _Kind(Message("true or false"), (bool,))
_COUNT, _OBJECT = _Kind(Message("a number, 0 or more"), (int,)), _Kind(Message("an object"), (dict,))
_KINDS: Final = {
    "model": _TEXT, "previous_response_id": _TEXT,
    "stream": _FLAG, "store": _FLAG, "background": _FLAG, "generate": _FLAG, "parallel_tool_calls": _FLAG,
    "max_output_tokens": _COUNT, "max_tool_calls": _COUNT, "top_logprobs": _COUNT,
    "text": _OBJECT, "reasoning": _OBJECT, "metadata": _OBJECT,
    "instructions": _Kind(Message("a text"), (str, list)),
    "conversation": _Kind(Message("an id of up to 64 letters, digits, '_' and '-', or an object with it"), (str, dict)),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ApprovalResponse:
    """The client's answer to a question whether a call may run."""

    request: str  # the id of the item that asked
    is_allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesRequest:
    body: JsonObject  # of the chat
    sent: JsonObject  # as the client sent it
    items: list[JsonObject]  # its input
    is_streamed: bool
    is_stored: bool
    is_background: bool
    is_warm_up: bool  # nothing is generated; the next request goes on from it
    compacts: bool  # the answer is a summary of the conversation
    max_calls: int | None  # of our tools
    conversation: str  # the id of the conversation that it is of
    said: list[Json]  # the messages of the chat that are neither the model's nor results of our tools
    own_calls: CallKeys | None
    asks_approval: bool
    answers: tuple[ApprovalResponse, ...]
    namespaces: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # and names of tools, by the names sent

    def identify(self, *, is_turn_named: bool) -> JsonObject:
        """Return the input of the request, by which it is known when it is sent again: clients may change their
        options.

        One that names its turn may send all items where it has named the response before, without those of the model.
        """
        keys = _WISHES if is_turn_named else _INPUT
        return {key: self.sent[key] for key in keys if key in self.sent} | (
            {"said": self.said} if is_turn_named else {}
        )


def read_turn(sent: JsonObject, headers: Mapping[str, str]) -> ClientTurn:
    """Return what a client says of its turn; on a socket it says so in each message."""
    session = next((value for name in SESSION_HEADERS if (value := headers.get(name))), "")
    told = as_object(sent.get("client_metadata")).get(TURN_HEADER) or headers.get(TURN_HEADER)
    try:
        turn = as_object(orjson.loads(told)) if isinstance(told, str) else {}
    except orjson.JSONDecodeError:
        turn = {}
    id_, is_side = turn.get("turn_id"), turn.get("request_kind", "turn") != "turn"
    is_named = isinstance(id_, str) and bool(id_)
    return ClientTurn(f"{session} {id_}" if is_named else session, is_named, is_side)


def strip_chat_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return headers without those that only chat completions have: how work is shown, and the name of the chat."""
    if not any(name in headers for name in _CHAT_HEADERS):
        return headers
    return {key: value for key, value in headers.items() if key.lower() not in _CHAT_HEADERS}


def check_request(sent: JsonObject) -> tuple[str, str]:
    """Return the ids of the response that a request follows, and of its conversation. Raises ChatFailed."""
    _check_fields(sent)
    conversation = sent.get("conversation")
    conversation = as_object(conversation).get("id") if isinstance(conversation, dict) else conversation
    return str(sent.get("previous_response_id") or ""), str(conversation or "")


def list_references(sent: JsonObject) -> list[str]:
    """Return the ids of earlier items that the input of a request names in place of them. Raises ChatFailed."""
    return [str(item.get("id")) for item in list_items(sent.get("input", [])) if is_reference(item)]


def parse_request(
    sent: JsonObject, before: list[JsonObject] | None = None, named: list[JsonObject] | None = None
) -> ResponsesRequest:
    """Read a request; ``before`` are the items of the conversation that it goes on with. Raises ChatFailed.

    ``named``: the items that its input may name.
    """
    _, conversation = check_request(sent)
    tools = _Tools(sent)
    items = resolve_references(list_items(sent.get("input", [])), [*(named or []), *(before or [])])
    reader = InputReader()
    if instructions := sent.get("instructions"):
        instructions = [{"role": "system", "content": instructions}] if isinstance(instructions, str) else instructions
        reader.read(list_items(instructions, "instructions"), "instructions")
    reader.read(before or [], "previous")
    reader.read(items)
    reader.finish()
    answers = tuple(_read_answers(items))
    compacts = bool(items) and items[-1].get("type") == COMPACTION_TRIGGER
    if not reader.messages and not answers:
        raise bad_request(Message("'input' is missing: a text, or a list of items"), param="input")
    body: JsonObject = {
        "model": tools.name_model(str(sent.get("model") or "")), "messages": reader.messages, "stream": True,
        "stream_options": {"include_usage": True},
    }  # fmt: skip
    body |= {key: sent[key] for key in _SAME if sent.get(key) is not None}
    body |= tools.to_fields() | _to_fields(sent)
    native = {key: value for key, value in sent.items() if key not in _OWN and value is not None} | tools.native_choice
    if compacts:
        native.pop("tool_choice", None)
        body["messages"] = [*reader.messages, {"role": "user", "content": _SUMMARY_PROMPT}]
        body = without_tools({key: value for key, value in body.items() if key not in _NOT_IN_SUMMARIES})
    body["native"] = {"protocol": PROTOCOL, "fields": native}
    return ResponsesRequest(
        body=body,
        sent=sent,
        items=items,
        is_streamed=sent.get("stream") is True,
        is_stored=sent.get("store") is not False,
        is_background=sent.get("background") is True,
        is_warm_up=sent.get("generate") is False,
        compacts=compacts,
        conversation=conversation,
        max_calls=_count(sent.get("max_tool_calls")),
        said=reader.list_said(),
        own_calls=reader.own_calls or (frozenset() if before else None),
        asks_approval=tools.asks_approval,
        answers=answers,
        namespaces=tools.namespaces,
    )


def without_tools(body: JsonObject) -> JsonObject:
    """Return a chat in which no tool of ours runs; what they said in earlier turns is recalled all the same."""
    return body | {EXTENSION: as_object(body.get(EXTENSION)) | {"tools": []}}


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) else None


def _check_fields(sent: JsonObject) -> None:
    for key, kind in _KINDS.items():
        value = sent.get(key)
        is_odd = not isinstance(value, kind.types) or (isinstance(value, bool) and bool not in kind.types)
        if value is not None and (is_odd or (isinstance(value, int) and value < 0)):
            raise bad_request(Message("'{key}' must be {kind}", key=key, kind=kind.name), param=key)
    conversation = sent.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    if conversation is not None and not (isinstance(conversation, str) and _CONVERSATION.fullmatch(conversation)):
        raise bad_request(
            Message("'{key}' must be {kind}", key="conversation", kind=_KINDS["conversation"].name),
            param="conversation",
        )
    if conversation and sent.get("previous_response_id"):
        message = Message("send either 'conversation' or 'previous_response_id', not both")
        raise bad_request(message, param="previous_response_id")
    if sent.get("background") is True and sent.get("store") is False:
        message = Message("a response in the background is stored: leave out 'store', or 'background'")
        raise bad_request(message, param="background")


def _to_fields(sent: JsonObject) -> JsonObject:
    made: JsonObject = {}
    if (limit := sent.get("max_output_tokens")) is not None:
        made["max_tokens"] = limit
    if (effort := as_object(sent.get("reasoning")).get("effort")) is not None:
        made["reasoning_effort"] = effort
    text = as_object(sent.get("text"))
    if text.get("verbosity") is not None:
        made["verbosity"] = text["verbosity"]
    wanted = as_object(text.get("format"))
    if wanted.get("type") == "json_schema":
        made["response_format"] = {
            "type": "json_schema",
            "json_schema": {key: value for key, value in wanted.items() if key != "type"},
        }
    elif wanted.get("type") == "json_object":
        made["response_format"] = {"type": "json_object"}
    if _LOGPROBS in as_list(sent.get("include")) or sent.get("top_logprobs"):
        made |= {"logprobs": True, "top_logprobs": sent.get("top_logprobs") or 0}
    return made


def _read_answers(items: list[JsonObject]) -> list[ApprovalResponse]:
    """Return the answers at the end; those before what a model wrote were given in an earlier request."""
    found, has_message = list[ApprovalResponse](), False
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        if item.get("type") == "mcp_approval_response":
            found.append(_read_answer(item, f"input[{at}]"))
        elif (item.get("type") or "message") == "message" and item.get("role") != "assistant":
            has_message = True
        else:
            break
    if found and has_message:
        message = Message("send an answer to an approval request alone: the turn that asked goes on with it")
        raise bad_request(message, param="input")
    return found[::-1]


def _read_answer(item: JsonObject, param: str) -> ApprovalResponse:
    request, allowed = item.get("approval_request_id"), item.get("approve")
    if not isinstance(request, str) or not isinstance(allowed, bool):
        message = Message("an answer has 'approval_request_id', a text, and 'approve', true or false")
        raise bad_request(message, param=param)
    return ApprovalResponse(request, allowed, str(item.get("reason") or "")[:1000])


class _Tools:
    """The tools of a request, and which of them may be called. Raises ChatFailed."""

    def __init__(self, sent: JsonObject) -> None:
        self.namespaces: dict[str, tuple[str, str]] = {}
        self.asks_approval = False
        self.native_choice: JsonObject = {}
        self._listed: list[tuple[str, JsonObject]] = []  # the name of each tool as the client knows it
        self._options = self._read_options(sent.get(EXTENSION))
        self._asks_for_ours = False
        self._choice: Json = None
        tools = sent.get("tools")
        if not isinstance(tools, list | None) or not all(isinstance(one, dict) for one in tools or []):
            raise bad_request(Message("'tools' is a list of objects"), param="tools")
        for at, tool in enumerate(objects(tools)):
            self._add(tool, f"tools[{at}]")
        self._choose(sent.get("tool_choice"))

    def name_model(self, model: str) -> str:
        """Return the model with the alias that asks for our tools, if an entry in ``tools`` does."""
        return f"{model}+tools" if self._asks_for_ours and split_alias(model)[1] is None else model

    def to_fields(self) -> JsonObject:
        made: JsonObject = {EXTENSION: self._options} if self._options else {}
        if self._listed:
            made["tools"] = [tool for _, tool in self._listed]
        if self._choice is not None and (self._listed or self._asks_for_ours or self._choice == "none"):
            made["tool_choice"] = self._choice
        return made

    def _read_options(self, options: Json) -> JsonObject:
        if not isinstance(options, dict | None):
            raise bad_request(Message("'{extension}' must be an object", extension=EXTENSION), param=EXTENSION)
        options = dict(options or {})
        for name in ("show", "reply", "chat"):
            if options.pop(name, None) is not None:
                message = Message("'{name}' is an option of chat completions", name=name)
                raise bad_request(message, param=join_path(EXTENSION, name))
        return options

    def _add(self, tool: JsonObject, param: str, namespace: str = "") -> None:
        match tool.get("type"):
            case "function":
                inner = _pick(tool, "description", "parameters", "strict")
                self._add_named(tool, "function", inner, param, namespace)
            case "custom":
                made = _pick(tool, "description")
                form = as_object(tool.get("format"))
                if form.get("type") == "grammar":
                    made["format"] = {"type": "grammar", "grammar": _pick(form, "syntax", "definition")}
                elif form:
                    made["format"] = form
                self._add_named(tool, "custom", made, param, namespace)
            case "namespace":
                for at, inner_tool in enumerate(objects(tool.get("tools"))):
                    self._add(inner_tool, f"{param}.tools[{at}]", str(tool.get("name") or ""))
            case "mcp" if tool.get("server_label") == LABEL:
                self._add_ours(tool)
            case kind if isinstance(kind, str):
                self._listed.append((kind, {"type": "native", "protocol": PROTOCOL, "tool": tool}))
            case _:
                raise bad_request(Message("a tool has a 'type'"), param=join_path(param, "type"))

    def _add_named(self, tool: JsonObject, kind: str, inner: JsonObject, param: str, namespace: str) -> None:
        name = tool.get("name")
        if not isinstance(name, str) or not name:
            raise bad_request(Message("a tool has a 'name'"), param=join_path(param, "name"))
        flat = flat_name(namespace, name)
        if namespace:
            self.namespaces[flat] = (namespace, name)
        self._listed.append((flat, {"type": kind, kind: {"name": flat, **inner}}))

    def _add_ours(self, tool: JsonObject) -> None:
        self._asks_for_ours = True
        self.asks_approval = tool.get("require_approval") != "never"
        allowed = tool.get("allowed_tools")
        names = allowed.get("tool_names") if isinstance(allowed, dict) else allowed
        if isinstance(names, list):
            self._options["tools"] = names
        if isinstance(allowed, dict) and allowed.get("read_only") is True:
            self._options["mode"] = "read-only"

    def _choose(self, choice: Json) -> None:
        if isinstance(choice, str | None):
            if choice not in (None, "auto", "none", "required"):
                raise bad_request(Message("'tool_choice' is auto, none, required or an object"), param="tool_choice")
            self._choice = choice
            return
        choice = as_object(choice)
        kind = choice.get("type")
        if kind in ("function", "custom"):
            name = flat_name(str(choice.get("namespace") or ""), str(choice.get("name") or ""))
            self._choice = {"type": kind, str(kind): {"name": name}}
        elif kind == "allowed_tools":
            self._allow(objects(choice.get("tools")))
            self._choice = "required" if choice.get("mode") == "required" else "auto"
        elif kind == "mcp" and choice.get("server_label") == LABEL:
            self._allow([choice])
            self._choice = "required"
        else:
            self.native_choice = {"tool_choice": choice}

    def _allow(self, allowed: list[JsonObject]) -> None:
        """Leave only these tools: the model gets no others, whatever its provider makes of the choice."""
        names = {
            flat_name(str(one.get("namespace") or ""), str(one.get("name") or ""))
            if one.get("type") in ("function", "custom")
            else str(one.get("type"))
            for one in allowed
        }
        self._listed = [(name, tool) for name, tool in self._listed if name in names]
        ours = [one for one in allowed if one.get("type") == "mcp" and one.get("server_label") == LABEL]
        if not ours:
            self._options["tools"] = []
        elif all(isinstance(one.get("name"), str) for one in ours):
            self._options["tools"] = [one["name"] for one in ours]


def _pick(tool: JsonObject, *keys: str) -> JsonObject:
    return {key: tool[key] for key in keys if tool.get(key) is not None}
