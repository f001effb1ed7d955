"""A chat request as a request to a provider that speaks Responses.

Nothing is stored there, and ``previous_response_id`` is not used: the conversation goes along. Reasoning goes back
where the provider can read it: encrypted, or its own text.

Left out: ``stop``, ``n``, ``seed``, ``logit_bias``, the penalties, sound, and reasoning of other formats.
"""

from collections.abc import Callable
from typing import Final

from toolyard.gateway.protocols.chat_body import (
    EMPTY_SCHEMA,
    CallIds,
    NativeRequest,
    ToolNames,
    answered_call,
    as_list,
    as_object,
    content_parts,
    is_native,
    list_functions,
    merge_fields,
    native_fields,
    native_item,
    objects,
    parallel_calls,
    place_details,
    split_call,
    text_of,
    tool_choice,
    wants_usage,
)
from toolyard.protocol.json import Json, JsonObject

PROTOCOL: Final = "responses"
FORMAT: Final = "openai-responses-v1"  # of its reasoning
_SAME = (
    "model", "stream", "temperature", "top_p", "metadata", "parallel_tool_calls", "prompt_cache_key",
    "prompt_cache_retention", "safety_identifier", "service_tier", "user", "store",
)  # fmt: skip
_ENCRYPTED: Final = "reasoning.encrypted_content"
_LOGPROBS: Final = "message.output_text.logprobs"
_MIN_TOKENS: Final = 16  # OpenAI refuses a lower limit
_ToPart = Callable[[JsonObject], JsonObject | None]
_CONTENT = ("input_text", "input_image", "input_file", "input_audio", "output_text", "refusal")


def to_responses(body: JsonObject) -> NativeRequest:
    """Return a chat request as one of Responses."""
    names = ToolNames()
    fields, headers, is_client_native = native_fields(body, PROTOCOL)
    made: JsonObject = {"store": False} | {key: body[key] for key in _SAME if body.get(key) is not None}
    tools = [tool for one in list_functions(body) if (tool := _to_tool(one, names))]
    made["input"] = [*_Input(names).write(body.get("messages"))]
    if tools:
        made["tools"] = [*tools]
        if (choice := _to_choice(tool_choice(body), names)) is not None:
            made["tool_choice"] = choice
    else:
        made.pop("parallel_tool_calls", None)
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    if isinstance(limit, int):
        made["max_output_tokens"] = max(limit, _MIN_TOKENS)
    made |= _reasoning(body) | _text(body)
    include = [_ENCRYPTED] if "reasoning" in made else []  # other models may refuse it, and some send it unasked
    if body.get("logprobs"):
        include.append(_LOGPROBS)
        made["top_logprobs"] = body.get("top_logprobs") or 0
    asked = as_list(fields.get("include"))
    if include or asked:
        made["include"] = list(dict.fromkeys([*map(str, asked), *include]))
    made = merge_fields(made, {key: value for key, value in fields.items() if key != "include"})
    return NativeRequest(
        body=made,
        headers=headers,
        names=names.originals,
        is_client_native=is_client_native,
        wants_usage=wants_usage(body),
    )


def _reasoning(body: JsonObject) -> JsonObject:
    effort = body.get("reasoning_effort")
    return {"reasoning": {"effort": effort}} if effort is not None else {}


def _text(body: JsonObject) -> JsonObject:
    made: JsonObject = {}
    wanted = as_object(body.get("response_format"))
    if wanted.get("type") == "json_schema":
        made["format"] = {"type": "json_schema", **as_object(wanted.get("json_schema"))}
    elif wanted.get("type"):
        made["format"] = {"type": wanted["type"]}
    if body.get("verbosity") is not None:
        made["verbosity"] = body["verbosity"]
    return {"text": made} if made else {}


def _to_tool(tool: JsonObject, names: ToolNames) -> JsonObject | None:
    if is_native(tool):
        return native_item(tool, PROTOCOL, "tool")
    function, custom = tool.get("function"), tool.get("custom")
    if isinstance(custom, dict):
        made: JsonObject = {key: custom[key] for key in ("description", "format") if key in custom}
        grammar = as_object(made.get("format"))
        if isinstance(inner := grammar.get("grammar"), dict):  # in chat it is an object of its own
            made["format"] = {"type": "grammar", **inner}
        return {"type": "custom", "name": names.to_native(str(custom.get("name"))), **made}
    if not isinstance(function, dict):
        return None
    return {
        "type": "function",
        "name": names.to_native(str(function.get("name"))),
        "description": function.get("description"),
        "parameters": function.get("parameters") or EMPTY_SCHEMA,
        "strict": bool(function.get("strict")),  # absent means true here, and false in chat
    }


def _to_choice(choice: Json, names: ToolNames) -> Json:
    if not isinstance(choice, dict):
        return choice
    if choice.get("type") == "native":
        return native_item(choice, PROTOCOL, "tool")
    if isinstance(allowed := choice.get("allowed_tools"), dict):
        listed = [one for tool in objects(allowed.get("tools")) if isinstance(one := _to_choice(tool, names), dict)]
        return {"type": "allowed_tools", "mode": allowed.get("mode") or "auto", "tools": [*listed]}
    kind = str(choice.get("type"))
    inner = as_object(choice.get(kind))
    return {"type": kind, "name": names.to_native(str(inner.get("name")))}


class _Input:
    """The items of a conversation."""

    def __init__(self, names: ToolNames) -> None:
        self._names, self._ids = names, CallIds()
        self._custom: set[str] = set()  # ids of calls of custom tools
        self._items: list[JsonObject] = []

    def write(self, messages: Json) -> list[JsonObject]:
        for message in objects(messages):
            match message.get("role"):
                case "assistant":
                    self._add_assistant(message)
                case "tool" | "function":
                    self._add_result(message)
                case role:
                    self._add_message(str(role), content_parts(message.get("content")), _to_input_part)
        return [item for item in self._items if _is_readable(item)]

    def _add_message(self, role: str, parts: list[JsonObject], to_part: _ToPart) -> None:
        """Add a message; native items among its parts stand at their place, between two parts of it."""
        content: list[Json] = []
        for part in parts:
            item = native_item(part, PROTOCOL) if is_native(part) else to_part(part)
            if item is None:
                continue
            if item.get("type") in _CONTENT:
                content.append(item)
                continue
            self._close_message(role, content)
            content = []
            self._items.append(item)
        self._close_message(role, content)

    def _close_message(self, role: str, content: list[Json]) -> None:
        if content:
            self._items.append({"type": "message", "role": role, "content": content})

    def _add_assistant(self, message: JsonObject) -> None:
        self._ids.begin_round()
        parts = content_parts(message.get("content"))
        if isinstance(refusal := message.get("refusal"), str) and refusal:
            parts.append({"type": "refusal", "refusal": refusal})
        others: list[JsonObject] = [{"type": "text", "parts": [*parts]}] if parts else []
        for placed in place_details(message, [*others, *parallel_calls(message)]):
            if "parts" in placed:
                self._add_message("assistant", parts, _to_output_part)
            elif "function" in placed or "custom" in placed:
                self._items.append(self._to_call(placed))
            elif item := native_item(placed, PROTOCOL):
                self._items.append(item)
            elif placed.get("format") == FORMAT:
                self._add_reasoning(placed)

    def _to_call(self, call: JsonObject) -> JsonObject:
        name, written, is_custom = split_call(call)
        id_ = self._ids.add_call(str(call.get("id")))
        named: JsonObject = {"call_id": id_, "name": self._names.to_native(name)}
        if is_custom:
            self._custom.add(id_)
            return {"type": "custom_tool_call", **named, "input": written}
        return {"type": "function_call", **named, "arguments": written or "{}"}

    def _add_reasoning(self, detail: JsonObject) -> None:
        """Add a part of a reasoning item: its parts follow one another and have its id."""
        last, id_ = (self._items[-1] if self._items else {}), detail.get("id")
        if last.get("type") != "reasoning" or last.get("id") != id_:
            last = {"type": "reasoning", **({"id": id_} if id_ else {}), "summary": []}
            self._items.append(last)
        match detail.get("type"):
            case "reasoning.summary":
                as_list(last["summary"]).append({"type": "summary_text", "text": detail.get("summary")})
            case "reasoning.text":
                as_list(last.setdefault("content", [])).append({"type": "reasoning_text", "text": detail.get("text")})
            case "reasoning.encrypted":
                last["encrypted_content"] = detail.get("data")

    def _add_result(self, message: JsonObject) -> None:
        id_ = self._ids.find_answered(answered_call(message))
        content = message.get("content")
        output: Json = content if isinstance(content, str) else ""
        if isinstance(content, list):
            output = [part for one in content_parts(content) if (part := _to_input_part(one))]
        kind = "custom_tool_call_output" if id_ in self._custom else "function_call_output"
        self._items.append({"type": kind, "call_id": id_, "output": output})


def _is_readable(item: JsonObject) -> bool:
    """Return whether the provider can read an item: nothing is stored there, so a summary alone leads to nothing."""
    return item.get("type") != "reasoning" or "encrypted_content" in item or "content" in item


def _to_input_part(part: JsonObject) -> JsonObject | None:
    match part.get("type"):
        case "image_url":
            image = part["image_url"] if isinstance(part.get("image_url"), dict) else {"url": part.get("image_url")}
            image = as_object(image)
            return {"type": "input_image", "image_url": image.get("url"), "detail": image.get("detail") or "auto"}
        case "file":
            file = as_object(part.get("file"))
            named = {key: file[key] for key in ("filename", "file_data", "file_id", "file_url") if file.get(key)}
            return {"type": "input_file", **named}
    text = text_of(part)
    return {"type": "input_text", "text": text} if text else None


def _to_output_part(part: JsonObject) -> JsonObject | None:
    text = text_of(part)
    if part.get("type") == "refusal":
        return {"type": "refusal", "refusal": text} if text else None
    return {"type": "output_text", "text": text, "annotations": []} if text else None
