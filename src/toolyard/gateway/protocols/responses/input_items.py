"""Input items of Responses as the messages of a chat.

Items of a model that follow one another are one message: its reasoning, its text and the calls of the client's tools.
A call that ran here (``mcp_call`` with our label) comes with its result, so its message ends there. What chat has no
word for stays an item, for a provider that speaks Responses; others do not get it.

What reasoning has beside its text, such as signatures of another protocol, is in ``encrypted_content`` (``seal``):
clients send that back unread. The same holds for a summary of ours (``compaction``).
"""

import base64
import binascii
from http import HTTPStatus
from typing import Final

import orjson

from toolyard.dialects.plain_name import plain_name
from toolyard.gateway.faults import bad_request
from toolyard.gateway.protocols.chat_body import as_list, as_object, objects
from toolyard.gateway.tool_calls.rounds import CallKeys
from toolyard.gateway.vcp_blocks import PAYLOAD
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject

PROTOCOL: Final = "responses"
FORMAT: Final = "openai-responses-v1"  # of reasoning that a provider of this protocol wrote
LABEL: Final = "toolyard"  # the MCP server that our tools are of
_DETAILS: Final = "toolyard.reasoning."
_SUMMARY: Final = "toolyard.compaction."
_ASKS: Final = "mcpr_"  # begins the ids of our approval requests; the rest is that of the approval
_ROLES = ("user", "assistant", "system", "developer")
_TEXTS = ("input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text")
COMPACTION_TRIGGER: Final = "compaction_trigger"
_IGNORED = ("mcp_list_tools", "mcp_approval_request", "mcp_approval_response", COMPACTION_TRIGGER)


def join_path(param: str, key: str) -> str:
    """Return the path of a member of a part of the request."""
    return f"{param}.{key}"


def seal_details(details: list[JsonObject]) -> str:
    """Return reasoning details as a text that a client keeps and sends back."""
    return _DETAILS + base64.b64encode(orjson.dumps(details)).decode()


def seal_summary(text: str) -> str:
    return _SUMMARY + base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


def flat_name(namespace: str, name: str) -> str:
    """Return the name of a tool in a namespace as one name: chat has no namespaces."""
    if not namespace:
        return name
    return plain_name(f"{namespace}{name}" if namespace.endswith("__") else f"{namespace}__{name}")


def list_items(value: Json, param: str = "input") -> list[JsonObject]:
    """Return an ``input`` as items. Raises ChatFailed."""
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise bad_request(Message("'{param}' is a text or a list of items", param=param), param=param)
    return objects(value)


def is_reference(item: JsonObject) -> bool:
    """Return whether an item only names one of an earlier response."""
    return item.get("type") == "item_reference" or (item.get("type") is None and "role" not in item)


def response_of(item: str) -> str:
    """Return the id of the response that an item of ours is of."""
    return f"resp_{item.partition('_')[2].rpartition('_')[0]}"


def request_id(approval: str) -> str:
    """Return the id of the item that asks for an approval."""
    return f"{_ASKS}{approval.removeprefix('approval_')}"


def approval_of(request: str) -> str:
    """Return the id of the approval that an item asks for."""
    return f"approval_{request.removeprefix(_ASKS)}"


def resolve_references(items: list[JsonObject], known: list[JsonObject]) -> list[JsonObject]:
    """Return items with those of earlier responses in place of their names. Raises ChatFailed."""
    by_id: dict[Json, JsonObject] = {item["id"]: item for item in known if isinstance(item.get("id"), str)}
    return [_resolve(item, by_id, f"input[{at}]") if is_reference(item) else item for at, item in enumerate(items)]


def _resolve(item: JsonObject, by_id: dict[Json, JsonObject], param: str) -> JsonObject:
    id_ = item.get("id")
    found = by_id.get(id_) if isinstance(id_, str) else None
    if found is None and isinstance(id_, str) and id_.startswith(_ASKS):
        return {"type": "mcp_approval_request", "id": id_}  # no response is in its id, and it tells a model nothing
    if found is None:
        message = Message("Item with id '{id}' not found.", id=str(id_)[:100])
        raise bad_request(message, "item_not_found", HTTPStatus.NOT_FOUND, param=join_path(param, "id"))
    return found


class InputReader:
    """Reads items in their order; ``messages`` are those of the chat."""

    def __init__(self) -> None:
        self.messages: list[Json] = []
        self._open: JsonObject | None = None  # the assistant's message that the next items may belong to
        self._places = 0  # of text, reasoning, calls and native items in it
        self._media: list[Json] = []  # of results: no provider takes them beside those
        self._calls: set[str] = set()  # ids of calls of the client's tools
        self._own: set[tuple[str, str]] = set()

    @property
    def own_calls(self) -> CallKeys | None:
        """Our calls; None when there are none: some clients keep their own and leave ours out."""
        return frozenset(self._own) or None

    def list_said(self) -> list[Json]:
        """Return the messages that are neither the model's nor results of our tools."""
        ours = {id_ for id_, _ in self._own}
        return [
            message
            for message in objects(self.messages)
            if message["role"] != "assistant" and message.get("tool_call_id") not in ours
        ]

    def read(self, items: list[JsonObject], param: str = "input") -> None:
        """Add items. Raises ChatFailed."""
        for at, item in enumerate(items):
            self._read_item(item, f"{param}[{at}]")

    def finish(self) -> None:
        self._flush_media()
        self._open = None

    def _read_item(self, item: JsonObject, param: str) -> None:
        kind = item.get("type") or "message"
        match kind:
            case "message":
                self._add_message(item, param)
            case "reasoning":
                self._add_reasoning(item)
            case "function_call":
                call: JsonObject = {"type": "function", "function": {"name": _name(item, param)}}
                as_object(call["function"])["arguments"] = _text(item, "arguments", param)
                self._add_client_call(item, call, param)
            case "custom_tool_call":
                custom: JsonObject = {"name": _name(item, param), "input": _text(item, "input", param)}
                self._add_client_call(item, {"type": "custom", "custom": custom}, param)
            case "function_call_output" | "custom_tool_call_output":
                self._add_result(item, param)
            case "mcp_call" if item.get("server_label") == LABEL:
                self._add_own_call(item, param)
            case "compaction" if _unseal(item.get("encrypted_content"), _SUMMARY) is not None:
                text = (_unseal(item["encrypted_content"], _SUMMARY) or b"").decode("utf-8", "replace")
                self._add("user", f"{PAYLOAD}\nA summary of the conversation so far:\n\n{text}")
            case kind if kind not in _IGNORED:
                self._add_native(item)

    # --- messages

    def _add_message(self, item: JsonObject, param: str) -> None:
        role, content = item.get("role"), item.get("content")
        if role not in _ROLES:
            raise bad_request(
                Message("'role' is one of {names}", names=", ".join(_ROLES)), param=join_path(param, "role")
            )
        if not isinstance(content, str | list):
            raise bad_request(Message("'content' is a text or a list of parts"), param=join_path(param, "content"))
        parts: list[Json] = [content] if isinstance(content, str) else [_to_part(one, param) for one in content]
        if role == "assistant":
            message = self._open_message(needs_no_text=True)
            message["content"] = _join(parts)
            self._places += 1
            return
        self._add("system" if role == "developer" else str(role), _join(parts))

    def _add(self, role: str, content: Json) -> None:
        self.finish()
        last = self.messages[-1] if self.messages else None
        is_same = isinstance(last, dict) and last.get("role") == role == "system" and len(self.messages) == 1
        if (
            is_same
            and isinstance(last, dict)
            and isinstance(before := last["content"], str)
            and isinstance(content, str)
        ):
            last["content"] = f"{before}\n\n{content}"  # many models take no second one
        elif content:
            self.messages.append({"role": role, "content": content})

    def _open_message(self, *, needs_no_text: bool = False) -> JsonObject:
        """Return the assistant's message for its next item: another one once it has calls, or a second text."""
        self._flush_media()
        message = self._open
        if message is None or (needs_no_text and (message["content"] is not None or "tool_calls" in message)):
            message = self._open = {"role": "assistant", "content": None}
            self.messages.append(message)
            self._places = 0
        return message

    def _add_native(self, item: JsonObject) -> None:
        if str(item.get("type")).endswith("_output"):
            self._add("user", [_native(item)])
            return
        message = self._open_message()
        as_list(message.setdefault("native", [])).append({**_native(item), "index": self._places})
        self._places += 1

    def _add_reasoning(self, item: JsonObject) -> None:
        message = self._open_message(needs_no_text=True)
        details = as_list(message.setdefault("reasoning_details", []))
        text = "\n\n".join(str(part.get("text") or "") for part in objects(item.get("content")))
        summaries = [str(part.get("text") or "") for part in objects(item.get("summary"))]
        if readable := text or "\n\n".join(summaries):
            before = message.get("reasoning_content")
            message["reasoning_content"] = f"{before}\n\n{readable}" if before else readable
        sealed = item.get("encrypted_content")
        own = _unseal(sealed, _DETAILS)
        made: list[JsonObject] = []
        if own is not None:
            made = objects(orjson.loads(own))
        elif isinstance(sealed, str):
            id_: JsonObject = {"id": item["id"]} if isinstance(item.get("id"), str) else {}
            made = [{"type": "reasoning.summary", "summary": one, **id_, "format": FORMAT} for one in summaries]
            made.append({"type": "reasoning.encrypted", "data": sealed, **id_, "format": FORMAT})
        for detail in made:
            details.append({**detail, "index": self._places})
            self._places += 1
        if not details:
            del message["reasoning_details"]

    # --- calls

    def _add_call(self, call: JsonObject) -> None:
        message = self._open_message()
        as_list(message.setdefault("tool_calls", [])).append(call)
        self._places += 1

    def _add_client_call(self, item: JsonObject, call: JsonObject, param: str) -> None:
        id_ = _text(item, "call_id", param)
        self._calls.add(id_)
        self._add_call({"id": id_, **call})

    def _add_result(self, item: JsonObject, param: str) -> None:
        id_ = _text(item, "call_id", param)
        if id_ not in self._calls:
            message = Message("No tool call found for function call output with call_id {id}.", id=id_[:100])
            raise bad_request(message, param=join_path(param, "call_id"))
        output = item.get("output")
        if not isinstance(output, str | list):
            raise bad_request(Message("'output' is a text or a list of parts"), param=join_path(param, "output"))
        parts = [output] if isinstance(output, str) else [_to_part(one, param) for one in output]
        self._add_output(id_, "".join(map(_text_of, parts)), [one for one in parts if not _text_of(one)])

    def _add_output(self, id_: str, text: str, media: list[Json]) -> None:
        self._open = None
        self.messages.append({"role": "tool", "tool_call_id": id_, "content": text})
        self._media += [one for one in media if one]

    def _flush_media(self) -> None:
        if self._media:
            title: JsonObject = {"type": "text", "text": f"{PAYLOAD}\nMedia of the results above:"}
            self.messages.append({"role": "user", "content": [title, *self._media]})
            self._media, self._open = [], None

    def _add_own_call(self, item: JsonObject, param: str) -> None:
        """Add a call of ours with its result; one that has none was cut off."""
        if isinstance(self._open, dict) and "tool_calls" in self._open:
            self._open = None
        name, id_ = plain_name(_text(item, "name", param)), str(item.get("id") or f"mcp_{len(self.messages)}")
        arguments = item.get("arguments")
        function: JsonObject = {"name": name, "arguments": arguments if isinstance(arguments, str) else "{}"}
        self._add_call({"id": id_, "type": "function", "function": function})
        self._own.add((id_, name))
        output = item.get("output")
        self._add_output(id_, output if isinstance(output, str) else _error_text(item.get("error")), [])


def _native(item: JsonObject) -> JsonObject:
    return {"type": "native", "protocol": PROTOCOL, "item": item}


def _name(item: JsonObject, param: str) -> str:
    return flat_name(str(item.get("namespace") or ""), _text(item, "name", param))


def _text(item: JsonObject, key: str, param: str) -> str:
    value = item.get(key)
    if not isinstance(value, str):
        raise bad_request(Message("'{key}' of this item must be a text", key=key), param=join_path(param, key))
    return value


def _error_text(error: Json) -> str:
    if isinstance(error, str):
        return error
    error = as_object(error)
    content = "\n".join(str(part.get("text") or "") for part in objects(error.get("content")))
    return content or str(error.get("message") or "") or "The call was cut off, and its result is not known."


def _to_part(part: Json, param: str) -> Json:
    """Return a part of chat, a text as such."""
    if not isinstance(part, dict):
        raise bad_request(Message("a part of 'content' is an object"), param=join_path(param, "content"))
    match part.get("type"):
        case kind if kind in _TEXTS:
            text = part.get("refusal" if kind == "refusal" else "text")
            if not isinstance(text, str):
                raise bad_request(Message("the text of a part is missing"), param=join_path(param, "content"))
            return text
        case "input_image" if isinstance(part.get("image_url"), str):
            detail: JsonObject = {"detail": part["detail"]} if part.get("detail") else {}
            return {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
        case "input_file":
            keys = ("filename", "file_data", "file_id", "file_url")
            return {"type": "file", "file": {key: part[key] for key in keys if part.get(key)}}
        case "input_audio":
            return {"type": "input_audio", "input_audio": part.get("input_audio")}
        case _:
            return _native(part)


def _text_of(part: Json) -> str:
    return part if isinstance(part, str) else ""


def _join(parts: list[Json]) -> Json:
    """Return a content: a text where it is no more than one, or several."""
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return "\n".join(texts)
    return [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]


def _unseal(sealed: Json, kind: str) -> bytes | None:
    """Return what a client has kept for us; None when it is of somebody else."""
    if not isinstance(sealed, str) or not sealed.startswith(kind):
        return None
    try:
        data = base64.b64decode(sealed.removeprefix(kind), validate=True)
        if kind == _DETAILS:
            orjson.loads(data)
    except (binascii.Error, ValueError):
        return None
    return data
