"""A request of a client that speaks Messages, as a chat request.

What chat has no word for is kept as ``native``: blocks, the tools that Anthropic defines, fields and beta headers. A
provider that speaks Messages gets it back unchanged, any other never sees it. So are tools that the client defers:
they are offered to another provider once a search or a system message has named them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from toolyard.gateway.chat_request import EXTENSION, OFFER_HEADER
from toolyard.gateway.faults import bad_request
from toolyard.gateway.offer_policy import ALIASES, split_alias
from toolyard.gateway.protocols.chat_body import objects, with_origin
from toolyard.gateway.protocols.messages.conversation import (
    SERVER,
    Conversation,
    cache_control,
    is_billing,
    keep_origin,
    not_one_of,
    read_list,
    read_object,
    read_text,
)
from toolyard.gateway.protocols.messages.provider_request import PROTOCOL
from toolyard.gateway.tool_calls.rounds import CallKeys
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject

SESSION_HEADER: Final = "x-claude-code-session-id"
BETA_HEADER: Final = "anthropic-beta"
_LONG_CONTEXT: Final = "[1m]"  # which Claude Code appends to the name of a model
_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
_INPUT: Final = ("model", "system", "messages", "tools", "tool_choice", "mcp_servers", EXTENSION)
_EFFORTS: Final = {"xhigh": "high", "max": "high"}  # others have the same name
_TAKEN: Final = frozenset(
    {
        *("model", "messages", "system", "max_tokens", "stream", "temperature", "top_p", "stop_sequences"),
        *("tools", "tool_choice", "mcp_servers", EXTENSION),
    }
)  # fields that chat has a word for; all others are native


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesRequest:
    body: JsonObject  # of the chat request
    native_body: JsonObject  # the request as it came, without what is for us
    identity: JsonObject  # by which it is known when it is sent again
    conversation: str
    is_streamed: bool
    lists_server: bool  # calls of ours are to be blocks
    hides_thinking: bool  # it asks for none that it could read
    own_calls: CallKeys | None  # the calls of ours that it sends back; None: there are none

    @property
    def model(self) -> str:
        return str(self.body.get("model") or "")


def read_messages_request(body: JsonObject, headers: Mapping[str, str]) -> MessagesRequest:
    """Read a request; the names of ``headers`` are in lower case. Raises ChatFailed, with the place that is wrong."""
    is_streamed = body.get("stream")
    if not isinstance(is_streamed, bool | None):
        raise bad_request(Message("'stream' must be true or false"))
    servers = _list_servers(body)
    thinking = read_object(body.get("thinking"), "thinking")
    conversation = Conversation(body)
    return MessagesRequest(
        body=_to_chat_body(body, headers, servers, conversation),
        native_body=_without_ours(body, servers),
        identity={PROTOCOL: _identify(body)},
        conversation=headers.get(SESSION_HEADER, ""),
        is_streamed=is_streamed is True,
        lists_server=any(map(_is_ours, servers)),
        hides_thinking=thinking.get("type") == "disabled" or thinking.get("display") == "omitted",
        own_calls=frozenset(conversation.ours.items()) or None,
    )


def _without_ours(body: JsonObject, servers: list[JsonObject]) -> JsonObject:
    if EXTENSION not in body and not any(map(_is_ours, servers)):
        return body
    made = {key: value for key, value in body.items() if key not in (EXTENSION, "mcp_servers")}
    others: list[Json] = [one for one in servers if not _is_ours(one)]
    return made | ({"mcp_servers": others} if others else {})


def _identify(body: JsonObject) -> JsonObject:
    """Return the input of a request, which stays the same when a client sends it again.

    Claude Code gives up its stream then, allows fewer tokens, and leaves out options that may have been refused.
    """
    known: JsonObject = {key: body[key] for key in _INPUT if key in body}
    if isinstance(system := body.get("system"), list):
        known["system"] = [one for one in system if not is_billing(one)]
    return known


def _to_chat_body(
    body: JsonObject, headers: Mapping[str, str], servers: list[JsonObject], conversation: Conversation
) -> JsonObject:
    made: JsonObject = {"messages": conversation.messages, "stream": True}
    made["stream_options"] = {"include_usage": True}
    if name := _model(body, lists_server=any(map(_is_ours, servers))):
        made["model"] = name
    if (limit := body.get("max_tokens")) is not None:
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise bad_request(Message("'{place}' must be a whole number above 0", place="max_tokens"))
        made["max_tokens"] = limit
    made |= {key: body[key] for key in ("temperature", "top_p") if body.get(key) is not None}
    if words := read_list(body.get("stop_sequences"), "stop_sequences"):
        made["stop"] = words
    made |= _to_tools(body, conversation)
    output = read_object(body.get("output_config"), "output_config")
    if isinstance(effort := output.get("effort"), str):
        made["reasoning_effort"] = _EFFORTS.get(effort, effort)
    made |= _to_response_format(body, output)
    fields: JsonObject = {key: value for key, value in body.items() if key not in _TAKEN and value is not None}
    if others := [one for one in servers if not _is_ours(one)]:
        fields["mcp_servers"] = [*others]
    native: JsonObject = {"protocol": PROTOCOL, "fields": fields}
    if beta := headers.get(BETA_HEADER):
        native["headers"] = {BETA_HEADER: beta}
    made["native"] = native
    return made | _to_extension(body, headers)


def _model(body: JsonObject, *, lists_server: bool) -> str:
    """Return the name of the model. A client that lists our server among its own tools asks for ours beside them."""
    name = body.get("model")
    if not isinstance(name, str | None):
        raise bad_request(Message("'model' must be a text"))
    base, _ = split_alias(name or "")
    alias = (name or "")[len(base) :]
    base = base.removesuffix(_LONG_CONTEXT)
    if not alias:  # it may stand before the suffix
        base, alias = split_alias(base)[0], base[len(split_alias(base)[0]) :]
    if lists_server and not alias and body.get("tools"):
        alias = next(iter(ALIASES))
    return base + alias


def _to_extension(body: JsonObject, headers: Mapping[str, str]) -> JsonObject:
    """Return our own options. An empty list of tools, and an answer of one token, are requests for no tools."""
    own = body.get(EXTENSION)
    declines = body.get("tools") == [] or body.get("max_tokens") == 1
    if declines and isinstance(own, dict | None) and "offer" not in (own or {}) and OFFER_HEADER.lower() not in headers:
        return {EXTENSION: {**(own or {}), "offer": "none"}}
    return {EXTENSION: own} if own is not None else {}


def _list_servers(body: JsonObject) -> list[JsonObject]:
    return [
        read_object(one, f"mcp_servers[{at}]")
        for at, one in enumerate(read_list(body.get("mcp_servers"), "mcp_servers"))
    ]


def _is_ours(server: JsonObject) -> bool:
    return server.get("name") == SERVER


def _to_response_format(body: JsonObject, output: JsonObject) -> JsonObject:
    wanted = output.get("format") or body.get("output_format")  # as it was called at first
    wanted = read_object(wanted, "output_config.format")
    if wanted.get("type") != "json_schema":
        return {}
    schema = read_object(wanted.get("schema"), "output_config.format.schema")
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}


# --- tools


def _to_tools(body: JsonObject, conversation: Conversation) -> JsonObject:
    tools: list[Json] = []
    for at, given in enumerate(read_list(body.get("tools"), "tools")):
        tool = read_object(given, f"tools[{at}]")
        if tool.get("type") == "mcp_toolset" and tool.get("mcp_server_name") == SERVER:
            continue
        tools.append(_to_tool(tool, f"tools[{at}]", conversation))
    for name, (tool, place) in conversation.defined.items():
        if all(given.get("name") != name for given in objects(body.get("tools"))):  # its own provider has it already
            tools.append(with_origin(_to_tool(tool, place, conversation), PROTOCOL, None))
    made: JsonObject = {"tools": tools} if tools else {}
    choice = read_object(body.get("tool_choice"), "tool_choice")
    if not choice:
        return made
    kind = choice.get("type")
    if kind == "tool":
        name = read_text(choice.get("name"), "tool_choice.name")
        made["tool_choice"] = {"type": "function", "function": {"name": name}}
    elif isinstance(kind, str) and kind in _CHOICES:
        made["tool_choice"] = _CHOICES[kind]
    else:
        raise not_one_of("tool_choice.type", *_CHOICES, "tool")
    if choice.get("disable_parallel_tool_use") is True:
        made["parallel_tool_calls"] = False
    return made


def _to_tool(tool: JsonObject, place: str, conversation: Conversation) -> JsonObject:
    is_deferred = tool.get("defer_loading") is True and tool.get("name") not in conversation.referenced
    is_hidden = is_deferred or tool.get("name") in conversation.removed
    if is_hidden or tool.get("type") not in (None, "custom"):
        return {"type": "native", "protocol": PROTOCOL, "tool": tool}
    function: JsonObject = {"name": read_text(tool.get("name"), f"{place}.name")}
    if tool.get("description") is not None:
        function["description"] = read_text(tool.get("description"), f"{place}.description")
    function["parameters"] = read_object(tool.get("input_schema"), f"{place}.input_schema")
    if tool.get("strict") is not None:
        function["strict"] = tool["strict"]
    return keep_origin({"type": "function", "function": function, **cache_control(tool)}, tool, "tool")
