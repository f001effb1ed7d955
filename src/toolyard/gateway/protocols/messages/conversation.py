"""The conversation of a Messages request, as messages of chat: what each of its blocks becomes.

System texts keep their order, wherever they stand; the tools that they add or remove are noted. The results of the
client's tools become messages of their own, with their pictures in a message after them; text that an assistant wrote
after a call stands before it, because chat has no other place. Calls of ours that the client was shown, and sends back,
are calls with their results again. A block that chat has no word for is ``native``, and one that says more than chat
can stands beside what it becomes, as its origin. What is malformed is named with its place.
"""

from typing import Final

from toolyard.gateway.faults import ChatFailed, bad_request
from toolyard.gateway.protocols.chat_body import with_origin
from toolyard.gateway.protocols.messages.provider_request import FORMAT, PROTOCOL
from toolyard.gateway.vcp_blocks import PAYLOAD
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject, json_bytes

SERVER: Final = "toolyard"  # the MCP server that a client lists to see our calls as blocks
_BILLING: Final = "x-anthropic-billing-header:"  # differs in each request, and would spoil another provider's cache
_NO_RESULT: Final = "(no result)"
_SAID: Final = {
    "text": {"type", "text", "cache_control"},
    "document": {"type", "source", "title", "cache_control"},
    "tool_use": {"type", "id", "name", "input", "cache_control"},
    "tool": {"type", "name", "description", "input_schema", "strict", "cache_control"},
}  # what chat has a word for, by the kind of block


class Conversation:
    """Writes the messages of chat, in ``messages``."""

    def __init__(self, body: JsonObject) -> None:
        self.messages: list[Json] = []
        self.referenced: set[str] = set()  # the tools that searches of the client have found, or that were added
        self.defined: dict[str, tuple[JsonObject, str]] = {}  # tools that were added whole, and their places
        self.removed: set[str] = set()
        self.ours: dict[str, str] = {}  # the tools of our calls that the client sends back, by their ids
        self._add_system(body.get("system"), "system")
        given = read_list(body.get("messages"), "messages")
        if not given:
            raise bad_request(Message("'messages' must be a list with at least one message"))
        for at, one in enumerate(given):
            place = f"messages[{at}]"
            message = read_object(one, place)
            match message.get("role"):
                case "user":
                    self._add_user(_blocks(message.get("content"), f"{place}.content"))
                case "assistant":
                    self._add_assistant(_blocks(message.get("content"), f"{place}.content"))
                case "system" | "developer":
                    self._add_system(message.get("content"), f"{place}.content")
                case _:
                    raise not_one_of(f"{place}.role", "user", "assistant", "system")

    def _add_system(self, content: Json, place: str) -> None:
        parts: list[JsonObject] = []
        for block, at in _blocks(content, place) if content is not None else ():
            if (kind := block.get("type", "text")) != "text":
                if kind in ("tool_addition", "tool_removal"):
                    self._change_tools(block, at)
                parts.append(_native(block))
                continue
            text = read_text(block.get("text"), f"{at}.text")
            if is_billing(block):
                parts.append(_native(block))
            elif text:
                parts.append(_to_text(block, text))
        if parts:
            self.messages.append({"role": "system", "content": _content(parts, between="\n\n")})

    def _change_tools(self, block: JsonObject, place: str) -> None:
        tool = read_object(block.get("tool"), f"{place}.tool")
        given = tool.get("definition")
        definition = read_object(given, f"{place}.tool.definition") if given is not None else {}
        name = read_text((definition or tool).get("name"), f"{place}.tool.name")
        if block["type"] == "tool_removal":
            self.removed.add(name)
            self.defined.pop(name, None)
            return
        self.removed.discard(name)
        self.referenced.add(name)
        if definition:
            self.defined[name] = (definition, f"{place}.tool.definition")

    def _add_user(self, blocks: list[tuple[JsonObject, str]]) -> None:
        """Add what the user says; before it the results of tools, each as a message, and after these their media."""
        media: list[JsonObject] = []
        parts: list[JsonObject] = []
        for block, place in blocks:
            if block.get("type") == "tool_result":
                texts, more = self._to_result(block, place)
                id_ = read_text(block.get("tool_use_id"), f"{place}.tool_use_id")
                result: JsonObject = {"role": "tool", "tool_call_id": id_, "content": texts, **cache_control(block)}
                is_less = isinstance(block.get("content"), list) or block.get("is_error") is True
                self.messages.append(with_origin(result, PROTOCOL, block) if is_less else result)
                media += [with_origin(part, PROTOCOL, None) for part in more]
            else:
                parts += _to_parts(block, place)
        if media:
            named: JsonObject = {"type": "text", "text": f"{PAYLOAD}\nMedia of the results above:"}
            parts = [with_origin(named, PROTOCOL, None), *media, *parts]
        if parts or not blocks:
            self.messages.append({"role": "user", "content": _content(parts)})

    def _to_result(self, block: JsonObject, place: str) -> tuple[str, list[JsonObject]]:
        """Return the text of a result, and its media."""
        texts: list[str] = []
        media: list[JsonObject] = []
        content = block.get("content")
        for inner, at in _blocks(content, f"{place}.content") if content is not None else ():
            if inner.get("type") == "tool_reference":
                name = read_text(inner.get("tool_name"), f"{at}.tool_name")
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
        """Add what the assistant said, as a message for each round of our calls.

        A call without a result was still waiting: nothing is said of it, as the memory may know what came of it.
        """
        results = {
            str(block.get("tool_use_id")): self._to_result(block, place)[0]
            for block, place in blocks
            if block.get("type") == "mcp_tool_result"
        }
        said, has_ended = _Assistant(), False
        for block, place in blocks:
            is_ours = block.get("type") == "mcp_tool_use" and block.get("server_name") == SERVER
            if block.get("type") == "mcp_tool_result" and block.get("tool_use_id") in self.ours:
                has_ended = bool(said.results)
                continue
            if has_ended:
                self.messages += said.to_messages()
                said, has_ended = _Assistant(), False
            if not is_ours:
                said.add(block, place)
            elif (id_ := read_text(block.get("id"), f"{place}.id")) in results:
                said.add_call(id_, block, place)
                said.results[id_] = results[id_]
                self.ours[id_] = str(block["name"])
        self.messages += said.to_messages()


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
                data = read_text(block.get("data"), f"{place}.data")
                self._add_detail({"type": "reasoning.encrypted", "data": data})
            case "tool_use":
                self.add_call(read_text(block.get("id"), f"{place}.id"), block, place)
            case _:
                parts = _to_parts(block, place)
                self._number += 1 if parts and not self._parts else 0
                self._parts += parts

    def _add_thinking(self, block: JsonObject, place: str) -> None:
        text = read_text(block.get("thinking"), f"{place}.thinking")
        signature = block.get("signature")
        if isinstance(signature, str) and signature:
            self._add_detail({"type": "reasoning.text", "text": text, "signature": signature})
        elif text:
            self._thoughts.append(text)

    def _add_detail(self, detail: JsonObject) -> None:
        self._details.append({**detail, "format": FORMAT, "index": self._number})
        self._number += 1

    def add_call(self, id_: str, block: JsonObject, place: str) -> None:
        name = read_text(block.get("name"), f"{place}.name")
        arguments = json_bytes(read_object(block.get("input"), f"{place}.input")).decode()
        call: JsonObject = {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        call |= cache_control(block)
        self._calls.append(keep_origin(call, block) if block.get("type") == "tool_use" else call)
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
            {"role": "tool", "tool_call_id": id_, "content": text} for id_, text in self.results.items()
        ]
        return [message, *results]


# --- blocks


def _to_parts(block: JsonObject, place: str) -> list[JsonObject]:
    """Return a block as parts of a chat message."""
    match read_text(block.get("type"), f"{place}.type"):
        case "text":
            text = read_text(block.get("text"), f"{place}.text")
            return [_to_text(block, text)] if text else []
        case "image":
            return [_to_image(block, place)]
        case "document":
            return _to_document(block, place)
        case _:
            return [_native(block)]


def _to_text(block: JsonObject, text: str) -> JsonObject:
    return keep_origin({"type": "text", "text": text, **cache_control(block)}, block)


def keep_origin(part: JsonObject, block: JsonObject, kind: str = "") -> JsonObject:
    """Return a part with its block as its origin, if that says more than chat can."""
    said = _SAID.get(kind or str(block.get("type")), set[str]())
    is_more = any(value not in (None, [], {}) for key, value in block.items() if key not in said)
    return with_origin(part, PROTOCOL, block) if is_more else part


def _native(block: JsonObject) -> JsonObject:
    return {"type": "native", "protocol": PROTOCOL, "item": block}


def _to_image(block: JsonObject, place: str) -> JsonObject:
    source = read_object(block.get("source"), f"{place}.source")
    match read_text(source.get("type"), f"{place}.source.type"):
        case "base64":
            data = read_text(source.get("data"), f"{place}.source.data")
            url = f"data:{read_text(source.get('media_type'), f'{place}.source.media_type')};base64,{data}"
        case "url":
            url = read_text(source.get("url"), f"{place}.source.url")
        case _:
            return _native(block)
    return {"type": "image_url", "image_url": {"url": url}, **cache_control(block)}


def _to_document(block: JsonObject, place: str) -> list[JsonObject]:
    source = read_object(block.get("source"), f"{place}.source")
    title = block.get("title")
    file: JsonObject = {"filename": title} if isinstance(title, str) and title else {}
    match source.get("type"):
        case "text":
            text = read_text(source.get("data"), f"{place}.source.data")
            part = _to_text(block, f"{title}\n\n{text}" if file else text)
            return [with_origin(part, PROTOCOL, block)] if text else []
        case "content":
            inner = _blocks(source.get("content"), f"{place}.source.content")
            parts = [part for one, at in inner for part in _to_document_parts(one, at)]
            return [with_origin(part, PROTOCOL, None if at else block) for at, part in enumerate(parts)]
        case "base64":
            data = read_text(source.get("data"), f"{place}.source.data")
            kind = read_text(source.get("media_type"), f"{place}.source.media_type")
            file = {"filename": "document.pdf", **file, "file_data": f"data:{kind};base64,{data}"}
        case "url":
            file["file_url"] = read_text(source.get("url"), f"{place}.source.url")
        case "file":
            file["file_id"] = read_text(source.get("file_id"), f"{place}.source.file_id")
        case _:
            raise not_one_of(f"{place}.source.type", "base64", "text", "content", "url", "file")
    return [keep_origin({"type": "file", "file": file, **cache_control(block)}, block)]


def _to_document_parts(block: JsonObject, place: str) -> list[JsonObject]:
    """Return a block inside a document, which has texts and pictures only."""
    return _to_parts(block, place) if block.get("type") in ("text", "image") else [_native(block)]


def cache_control(block: JsonObject) -> JsonObject:
    return {"cache_control": block["cache_control"]} if block.get("cache_control") else {}


def _content(parts: list[JsonObject], *, between: str = "") -> Json:
    """Return parts as one text where nothing is lost by it: not every server takes parts."""
    if all(part.keys() == {"type", "text"} for part in parts) and (between or len(parts) < 2):
        return between.join([str(part["text"]) for part in parts])
    return [*parts]


def is_billing(block: Json) -> bool:
    text = block.get("text") if isinstance(block, dict) else None
    return isinstance(text, str) and text.startswith(_BILLING)


# --- checks


def _blocks(content: Json, place: str) -> list[tuple[JsonObject, str]]:
    """Return the blocks of a content, each with its place. Raises ChatFailed."""
    if isinstance(content, str):
        return [({"type": "text", "text": content}, place)]
    if not isinstance(content, list):
        raise bad_request(Message("'{place}' must be a text or a list of blocks", place=place))
    return [(read_object(one, f"{place}[{at}]"), f"{place}[{at}]") for at, one in enumerate(content)]


def read_text(value: Json, place: str) -> str:
    if not isinstance(value, str):
        raise bad_request(Message("'{place}' must be a text", place=place))
    return value


def read_list(value: Json, place: str) -> list[Json]:
    if not isinstance(value, list | None):
        raise bad_request(Message("'{place}' must be a list", place=place))
    return value or []


def read_object(value: Json, place: str) -> JsonObject:
    if value is None and "[" not in place:
        return {}
    if not isinstance(value, dict):
        raise _not_an_object(place)
    return value


def not_one_of(place: str, *names: str) -> ChatFailed:
    return bad_request(Message("'{place}' must be one of {names}", place=place, names=", ".join(names)))


def _not_an_object(place: str) -> ChatFailed:
    return bad_request(Message("'{place}' must be an object", place=place))
