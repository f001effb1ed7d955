"""A request of a client that speaks Messages, as a chat request.

System texts keep their order, wherever they stand. The results of the client's tools become messages of their own, with
their pictures in a message after them; text that an assistant wrote after a call stands before it, because chat has no
other place. Calls of ours that the client was shown, and sends back, are calls with their results again.

What chat has no word for is kept as ``native``: blocks, the tools that Anthropic defines, fields and beta headers. A
provider that speaks Messages gets it back unchanged, any other never sees it. So are tools that the client defers:
they are offered to another provider once a search has named them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from toolyard.gateway.client_request import EXTENSION, OFFER_HEADER
from toolyard.gateway.faults import ChatFailed, bad_request
from toolyard.gateway.offer_policy import ALIASES, split_alias
from toolyard.gateway.tool_calls.rounds import CallKeys
from toolyard.gateway.vcp_blocks import PAYLOAD
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject, json_bytes

PROTOCOL: Final = "messages"
FORMAT: Final = "anthropic-claude-v1"  # of its reasoning
SERVER: Final = "toolyard"  # the MCP server that a client lists to see our calls as blocks
SESSION_HEADER: Final = "x-claude-code-session-id"
BETA_HEADER: Final = "anthropic-beta"
_LONG_CONTEXT: Final = "[1m]"  # which Claude Code appends to the name of a model
_BILLING: Final = "x-anthropic-billing-header:"  # differs in each request, and would spoil another provider's cache
_NO_RESULT: Final = "(no result)"
_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
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


def read_messages_request(body: JsonObject, headers: Mapping[str, str]) -> MessagesRequest:
    """Read a request; the names of ``headers`` are in lower case. Raises ChatFailed, with the place that is wrong."""
    is_streamed = body.get("stream")
    if not isinstance(is_streamed, bool | None):
        raise bad_request(Message("'stream' must be true or false"))
    servers = _list_servers(body)
    thinking = _object(body.get("thinking"), "thinking")
    conversation = _Conversation(body)
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
    """Return what stays the same when a client sends its request again, streamed or not."""
    system = body.get("system")
    known = {key: value for key, value in body.items() if key != "stream"}
    if isinstance(system, list):
        known["system"] = [one for one in system if not _is_billing(one)]
    return known


def _to_chat_body(
    body: JsonObject, headers: Mapping[str, str], servers: list[JsonObject], conversation: "_Conversation"
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
    if words := _list(body.get("stop_sequences"), "stop_sequences"):
        made["stop"] = words
    made |= _to_tools(body, conversation.referenced)
    output = _object(body.get("output_config"), "output_config")
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
    return [_object(one, f"mcp_servers[{at}]") for at, one in enumerate(_list(body.get("mcp_servers"), "mcp_servers"))]


def _is_ours(server: JsonObject) -> bool:
    return server.get("name") == SERVER


def _is_billing(block: Json) -> bool:
    text = block.get("text") if isinstance(block, dict) else None
    return isinstance(text, str) and text.startswith(_BILLING)


def _to_response_format(body: JsonObject, output: JsonObject) -> JsonObject:
    wanted = output.get("format") or body.get("output_format")  # as it was called at first
    wanted = _object(wanted, "output_config.format")
    if wanted.get("type") != "json_schema":
        return {}
    schema = _object(wanted.get("schema"), "output_config.format.schema")
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}


# --- tools


def _to_tools(body: JsonObject, referenced: set[str]) -> JsonObject:
    tools: list[Json] = []
    for at, given in enumerate(_list(body.get("tools"), "tools")):
        tool = _object(given, f"tools[{at}]")
        if tool.get("type") == "mcp_toolset" and tool.get("mcp_server_name") == SERVER:
            continue
        tools.append(_to_tool(tool, f"tools[{at}]", referenced))
    made: JsonObject = {"tools": tools} if tools else {}
    choice = _object(body.get("tool_choice"), "tool_choice")
    if not choice:
        return made
    kind = choice.get("type")
    if kind == "tool":
        name = _text(choice.get("name"), "tool_choice.name")
        made["tool_choice"] = {"type": "function", "function": {"name": name}}
    elif isinstance(kind, str) and kind in _CHOICES:
        made["tool_choice"] = _CHOICES[kind]
    else:
        raise _not_one_of("tool_choice.type", *_CHOICES, "tool")
    if choice.get("disable_parallel_tool_use") is True:
        made["parallel_tool_calls"] = False
    return made


def _to_tool(tool: JsonObject, place: str, referenced: set[str]) -> JsonObject:
    is_deferred = tool.get("defer_loading") is True and tool.get("name") not in referenced
    if is_deferred or tool.get("type") not in (None, "custom"):
        return {"type": "native", "protocol": PROTOCOL, "tool": tool}
    function: JsonObject = {"name": _text(tool.get("name"), f"{place}.name")}
    if tool.get("description") is not None:
        function["description"] = _text(tool.get("description"), f"{place}.description")
    function["parameters"] = _object(tool.get("input_schema"), f"{place}.input_schema")
    if tool.get("strict") is not None:
        function["strict"] = tool["strict"]
    return {"type": "function", "function": function, **_cache_control(tool)}


# --- messages


class _Conversation:
    """Writes the messages of chat, in ``messages``."""

    def __init__(self, body: JsonObject) -> None:
        self.messages: list[Json] = []
        self.referenced: set[str] = set()  # the tools that searches of the client have found
        self.ours: dict[str, str] = {}  # the tools of our calls that the client sends back, by their ids
        self._add_system(body.get("system"), "system")
        given = _list(body.get("messages"), "messages")
        if not given:
            raise bad_request(Message("'messages' must be a list with at least one message"))
        for at, one in enumerate(given):
            place = f"messages[{at}]"
            message = _object(one, place)
            match message.get("role"):
                case "user":
                    self._add_user(_blocks(message.get("content"), f"{place}.content"))
                case "assistant":
                    self._add_assistant(_blocks(message.get("content"), f"{place}.content"))
                case "system" | "developer":
                    self._add_system(message.get("content"), f"{place}.content")
                case _:
                    raise _not_one_of(f"{place}.role", "user", "assistant", "system")

    def _add_system(self, content: Json, place: str) -> None:
        parts: list[JsonObject] = []
        for block, at in _blocks(content, place) if content is not None else ():
            text = _text(block.get("text"), f"{at}.text")
            if _is_billing(block):
                parts.append(_native(block))
            elif text:
                parts.append(_to_text(block, text))
        if parts:
            self.messages.append({"role": "system", "content": _content(parts, between="\n\n")})

    def _add_user(self, blocks: list[tuple[JsonObject, str]]) -> None:
        """Add what the user says; before it the results of tools, each as a message, and after these their media."""
        media: list[JsonObject] = []
        parts: list[JsonObject] = []
        for block, place in blocks:
            if block.get("type") == "tool_result":
                texts, more = self._to_result(block, place)
                self.messages.append(
                    {
                        "role": "tool",
                        "tool_call_id": _text(block.get("tool_use_id"), f"{place}.tool_use_id"),
                        "content": texts,
                        **_cache_control(block),
                    }
                )
                media += more
            else:
                parts += _to_parts(block, place)
        if media:
            parts = [{"type": "text", "text": f"{PAYLOAD}\nMedia of the results above:"}, *media, *parts]
        if parts or not blocks:
            self.messages.append({"role": "user", "content": _content(parts)})

    def _to_result(self, block: JsonObject, place: str) -> tuple[str, list[JsonObject]]:
        """Return the text of a result, and its media."""
        texts: list[str] = []
        media: list[JsonObject] = []
        content = block.get("content")
        for inner, at in _blocks(content, f"{place}.content") if content is not None else ():
            if inner.get("type") == "tool_reference":
                name = _text(inner.get("tool_name"), f"{at}.tool_name")
                self.referenced.add(name)
                texts.append(f"The tool {name} can be called now.")
                continue
            for part in _to_parts(inner, at):
                if part["type"] == "text":
                    texts.append(str(part["text"]))
                else:
                    media.append(part)
        text = "\n".join(texts)
        if block.get("is_error") is True and not text.lower().startswith("error"):
            text = f"Error: {text}" if text else "Error"
        return text or ("(see the media below)" if media else _NO_RESULT), media

    def _add_assistant(self, blocks: list[tuple[JsonObject, str]]) -> None:
        said = _Assistant()
        for block, place in blocks:
            kind = block.get("type")
            if kind == "mcp_tool_use" and block.get("server_name") == SERVER:
                said = self._end_round(said)
                id_ = _text(block.get("id"), f"{place}.id")
                self.ours[id_] = _text(block.get("name"), f"{place}.name")
                said.results[id_] = ""
                said.add_call(id_, block, place)
            elif kind == "mcp_tool_result" and block.get("tool_use_id") in self.ours:
                id_ = str(block["tool_use_id"])
                said.results[id_] = self._to_result(block, place)[0]
            else:
                said = self._end_round(said)
                said.add(block, place)
        self.messages += said.to_messages()

    def _end_round(self, said: "_Assistant") -> "_Assistant":
        """Return where the next block goes: after the results of our calls a new message begins."""
        if not any(said.results.values()):
            return said
        self.messages += said.to_messages()
        return _Assistant()


class _Assistant:
    """One message of the assistant, and the results of the calls in it that were ours."""

    def __init__(self) -> None:
        self._parts: list[JsonObject] = []
        self._calls: list[JsonObject] = []
        self._details: list[JsonObject] = []
        self._thoughts: list[str] = []  # without a signature: of a provider that speaks chat
        self._number = 0  # of the next thought, text or call
        self.results: dict[str, str] = {}

    def add(self, block: JsonObject, place: str) -> None:
        match block.get("type"):
            case "thinking":
                self._add_thinking(block, place)
            case "redacted_thinking":
                data = _text(block.get("data"), f"{place}.data")
                self._add_detail({"type": "reasoning.encrypted", "data": data})
            case "tool_use":
                self.add_call(_text(block.get("id"), f"{place}.id"), block, place)
            case _:
                parts = _to_parts(block, place)
                self._number += 1 if parts and not self._parts else 0
                self._parts += parts

    def _add_thinking(self, block: JsonObject, place: str) -> None:
        text = _text(block.get("thinking"), f"{place}.thinking")
        signature = block.get("signature")
        if isinstance(signature, str) and signature:
            self._add_detail({"type": "reasoning.text", "text": text, "signature": signature})
        elif text:
            self._thoughts.append(text)

    def _add_detail(self, detail: JsonObject) -> None:
        self._details.append({**detail, "format": FORMAT, "index": self._number})
        self._number += 1

    def add_call(self, id_: str, block: JsonObject, place: str) -> None:
        name = _text(block.get("name"), f"{place}.name")
        arguments = json_bytes(_object(block.get("input"), f"{place}.input")).decode()
        call: JsonObject = {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        self._calls.append(call | _cache_control(block))
        self._number += 1

    def to_messages(self) -> list[JsonObject]:
        message: JsonObject = {"role": "assistant", "content": _content(self._parts)}
        if self._thoughts and not self._details:
            message["reasoning_content"] = "\n\n".join(self._thoughts)
        if self._details:
            message["reasoning_details"] = [*self._details]
        if self._calls:
            message["tool_calls"] = [*self._calls]
        results: list[JsonObject] = [
            {"role": "tool", "tool_call_id": id_, "content": text or _NO_RESULT} for id_, text in self.results.items()
        ]
        return [message, *results]


# --- blocks


def _to_parts(block: JsonObject, place: str) -> list[JsonObject]:
    """Return a block as parts of a chat message."""
    match _text(block.get("type"), f"{place}.type"):
        case "text":
            text = _text(block.get("text"), f"{place}.text")
            return [_to_text(block, text)] if text else []
        case "image":
            return [_to_image(block, place)]
        case "document":
            return _to_document(block, place)
        case _:
            return [_native(block)]


def _to_text(block: JsonObject, text: str) -> JsonObject:
    return {"type": "text", "text": text, **_cache_control(block)}


def _native(block: JsonObject) -> JsonObject:
    return {"type": "native", "protocol": PROTOCOL, "item": block}


def _to_image(block: JsonObject, place: str) -> JsonObject:
    source = _object(block.get("source"), f"{place}.source")
    match _text(source.get("type"), f"{place}.source.type"):
        case "base64":
            data = _text(source.get("data"), f"{place}.source.data")
            url = f"data:{_text(source.get('media_type'), f'{place}.source.media_type')};base64,{data}"
        case "url":
            url = _text(source.get("url"), f"{place}.source.url")
        case _:
            return _native(block)
    return {"type": "image_url", "image_url": {"url": url}, **_cache_control(block)}


def _to_document(block: JsonObject, place: str) -> list[JsonObject]:
    source = _object(block.get("source"), f"{place}.source")
    title = block.get("title")
    file: JsonObject = {"filename": title} if isinstance(title, str) and title else {}
    match source.get("type"):
        case "text":
            text = _text(source.get("data"), f"{place}.source.data")
            return [_to_text(block, f"{title}\n\n{text}" if file else text)] if text else []
        case "content":
            inner = _blocks(source.get("content"), f"{place}.source.content")
            return [part for one, at in inner for part in _to_document_parts(one, at)]
        case "base64":
            data = _text(source.get("data"), f"{place}.source.data")
            kind = _text(source.get("media_type"), f"{place}.source.media_type")
            file = {"filename": "document.pdf", **file, "file_data": f"data:{kind};base64,{data}"}
        case "url":
            file["file_url"] = _text(source.get("url"), f"{place}.source.url")
        case "file":
            file["file_id"] = _text(source.get("file_id"), f"{place}.source.file_id")
        case _:
            raise _not_one_of(f"{place}.source.type", "base64", "text", "content", "url", "file")
    return [{"type": "file", "file": file, **_cache_control(block)}]


def _to_document_parts(block: JsonObject, place: str) -> list[JsonObject]:
    """Return a block inside a document, which has texts and pictures only."""
    return _to_parts(block, place) if block.get("type") in ("text", "image") else [_native(block)]


def _cache_control(block: JsonObject) -> JsonObject:
    return {"cache_control": block["cache_control"]} if block.get("cache_control") else {}


def _content(parts: list[JsonObject], *, between: str = "") -> Json:
    """Return parts as one text where nothing is lost by it: not every server takes parts."""
    if all(part.keys() == {"type", "text"} for part in parts) and (between or len(parts) < 2):
        return between.join([str(part["text"]) for part in parts])
    return [*parts]


# --- checks


def _blocks(content: Json, place: str) -> list[tuple[JsonObject, str]]:
    """Return the blocks of a content, each with its place. Raises ChatFailed."""
    if isinstance(content, str):
        return [({"type": "text", "text": content}, place)]
    if not isinstance(content, list):
        raise bad_request(Message("'{place}' must be a text or a list of blocks", place=place))
    return [(_object(one, f"{place}[{at}]"), f"{place}[{at}]") for at, one in enumerate(content)]


def _text(value: Json, place: str) -> str:
    if not isinstance(value, str):
        raise bad_request(Message("'{place}' must be a text", place=place))
    return value


def _list(value: Json, place: str) -> list[Json]:
    if not isinstance(value, list | None):
        raise bad_request(Message("'{place}' must be a list", place=place))
    return value or []


def _object(value: Json, place: str) -> JsonObject:
    if value is None and "[" not in place:
        return {}
    if not isinstance(value, dict):
        raise _not_an_object(place)
    return value


def _not_one_of(place: str, *names: str) -> ChatFailed:
    return bad_request(Message("'{place}' must be one of {names}", place=place, names=", ".join(names)))


def _not_an_object(place: str) -> ChatFailed:
    return bad_request(Message("'{place}' must be an object", place=place))
