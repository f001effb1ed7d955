"""A chat request as a request to a provider that speaks Messages.

The first system messages are its system prompt; later ones stay at their place. Messages of one role that follow one
another are one message, and the results of a round are in one, before anything else. Thinking goes back with its
signature. Models differ in what they take (``Allowances``): a request that is refused for its form is written once more
with less (``find_allowances``).

Left out: ``n``, ``seed``, ``logit_bias``, ``logprobs``, the penalties, ``verbosity``, sound, the format
``json_object``, the grammar of a custom tool, and reasoning of other formats or without a signature.
"""

import base64
import re
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from toolyard.gateway.faults import ChatFault
from toolyard.gateway.protocols.chat_body import (
    EMPTY_SCHEMA,
    CallIds,
    NativeRequest,
    ToolNames,
    answered_call,
    as_object,
    content_parts,
    find_origin,
    has_origin,
    is_native,
    list_functions,
    merge_fields,
    native_fields,
    native_item,
    objects,
    parallel_calls,
    place_details,
    split_call,
    split_data_url,
    text_of,
    tool_choice,
    wants_usage,
)
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.tool import parse_arguments

PROTOCOL: Final = "messages"
FORMAT: Final = "anthropic-claude-v1"  # of its reasoning
DEFAULT_TOKENS: Final = 32_000  # the limit of an answer, which a request must have
_MIN_BUDGET: Final = 1024
_BUDGETS: Final = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 24_576}
_EFFORTS: Final = {"minimal": "low", "xhigh": "max"}  # others have the same name
_SAMPLING: Final = ("temperature", "top_p", "top_k")
_OPENING: Final = "(The conversation begins.)"  # a request needs a message of the user, which comes first
_NO_RESULT: Final = "(no result)"
_SYSTEM: Final = ("system", "developer")


class Thinking(IntEnum):
    """The kinds of thinking, by which a model takes its effort."""

    NONE = 0
    BUDGET = 1
    ADAPTIVE = 2


@dataclass(frozen=True, slots=True)
class Allowances:
    """The kinds of fields that a model takes; the newest take all but the sampling."""

    max_tokens: int = DEFAULT_TOKENS
    thinking: Thinking = Thinking.ADAPTIVE
    system_messages: bool = True  # beside the system prompt
    sampling: bool = True


_CODES: Final = frozenset({"upstream_400", "upstream_422"})
_LIMIT = re.compile(r"max_tokens: \d+ > (\d+)")
_ABOUT_SYSTEM = re.compile(r"\brole\b.*\bsystem\b|\bsystem\b.*\brole\b", re.I | re.S)
_ABOUT_THINKING = re.compile(r"\badaptive\b|\beffort\b|\bthinking\b", re.I)
_ABOUT_SAMPLING = re.compile(r"\btemperature\b|\btop_[pk]\b", re.I)


def find_allowances(refusal: ChatFault, allowed: Allowances) -> Allowances:
    """Return what a model takes after it has refused a request; the same when its words tell nothing."""
    if refusal.code not in _CODES:
        return allowed
    if limit := _LIMIT.search(refusal.words):
        return replace(allowed, max_tokens=min(int(limit[1][:9]) or 1, allowed.max_tokens))
    if allowed.system_messages and _ABOUT_SYSTEM.search(refusal.words):
        return replace(allowed, system_messages=False)
    if allowed.thinking and _ABOUT_THINKING.search(refusal.words):
        return replace(allowed, thinking=Thinking(allowed.thinking - 1))
    if _ABOUT_SAMPLING.search(refusal.words):
        return replace(allowed, sampling=False)
    return allowed


def to_messages(body: JsonObject, allowed: Allowances = Allowances()) -> NativeRequest:  # noqa: B008 it is frozen
    """Return a chat request as one of Messages."""
    names = ToolNames()
    fields, headers, is_client_native = native_fields(body, PROTOCOL)
    made: JsonObject = {"model": body.get("model")}
    if body.get("stream") is not None:
        made["stream"] = body["stream"]
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    made["max_tokens"] = limit if isinstance(limit, int) else allowed.max_tokens
    system, rest = _split_system(objects(body.get("messages")))
    conversation = _Conversation(names)
    messages = conversation.write(rest, allowed)
    if system:
        is_plain = len(system) == 1 and system[0].keys() == {"type", "text"}
        made["system"] = system[0]["text"] if is_plain else [*system]
    made["messages"] = [*messages]
    tools, custom = _to_tools(body, names)
    if not tools and conversation.called:  # calls without tools are refused
        tools = [{"name": name, "input_schema": EMPTY_SCHEMA} for name in conversation.called]
        made["tool_choice"] = {"type": "none"}
    elif tools and (choice := _to_choice(body, names)):
        made["tool_choice"] = choice
    if tools:
        made["tools"] = [*tools]
    stop = body.get("stop")
    words = [word for word in (stop if isinstance(stop, list) else [stop]) if isinstance(word, str) and word.strip()]
    if words:
        made["stop_sequences"] = [*words]
    if isinstance(user := body.get("safety_identifier") or body.get("user"), str):
        made["metadata"] = {"user_id": user}
    if body.get("cache_control"):
        made["cache_control"] = body["cache_control"]
    made |= _to_output(body)
    if not is_client_native:  # whose own fields say it
        made = merge_fields(made, _to_thinking(body, made, allowed))
    made = merge_fields(made, fields)
    if allowed.sampling and as_object(made.get("thinking")).get("type") not in ("enabled", "adaptive"):
        made |= {key: body[key] for key in _SAMPLING if key in body and key not in made}
        if isinstance(temperature := made.get("temperature"), int | float):
            made["temperature"] = min(temperature, 1)  # chat goes to 2
    return NativeRequest(
        body=made if is_client_native else _mark_cache(made),
        headers=headers,
        names=names.originals,
        custom=custom,
        is_client_native=is_client_native,
        wants_usage=wants_usage(body),
    )


def _split_system(messages: list[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the blocks of the system prompt, and the messages after it."""
    at = next((at for at, one in enumerate(messages) if one.get("role") not in _SYSTEM), len(messages))
    blocks = [block for one in messages[:at] for block in _text_blocks(one)]
    return blocks, messages[at:]


def _text_blocks(message: JsonObject) -> list[JsonObject]:
    return [
        block
        for part in content_parts(message.get("content"))
        if (block := native_item(part, PROTOCOL) or _to_text(part))
    ]


def _to_output(body: JsonObject) -> JsonObject:
    wanted = as_object(body.get("response_format"))
    schema = as_object(wanted.get("json_schema")).get("schema")
    if wanted.get("type") != "json_schema" or not isinstance(schema, dict):
        return {}
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


def _to_thinking(body: JsonObject, made: JsonObject, allowed: Allowances) -> JsonObject:
    """Return how much the model is to think; a forced call, or calls without their thinking, rule it out."""
    effort = body.get("reasoning_effort")
    if not isinstance(effort, str) or not allowed.thinking:
        return {}
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    if as_object(made.get("tool_choice")).get("type") in ("any", "tool"):
        return {}
    if allowed.thinking is Thinking.ADAPTIVE:
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": _EFFORTS.get(effort, effort)}}
    limit = made["max_tokens"] if isinstance(made["max_tokens"], int) else DEFAULT_TOKENS
    budget = min(_BUDGETS.get(effort, _BUDGETS["medium"]), limit * 3 // 4)
    if budget < _MIN_BUDGET or _lacks_thinking(objects(made["messages"])):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _lacks_thinking(messages: list[JsonObject]) -> bool:
    """Return whether the calls of the turn that goes on stand without the thinking that led to them."""
    for message in reversed(messages):
        kinds = [block.get("type") for block in objects(message.get("content"))]
        if message.get("role") == "user" and "tool_result" not in kinds:
            return False
        if message.get("role") == "assistant" and "tool_use" in kinds:
            return kinds[0] not in ("thinking", "redacted_thinking")
    return False


# --- tools


def _to_tools(body: JsonObject, names: ToolNames) -> tuple[list[JsonObject], frozenset[str]]:
    """Return the tools that may be called, and the names of those that are custom ones."""
    allowed = as_object(as_object(tool_choice(body)).get("allowed_tools"))
    chosen = {_name_of(tool) for tool in objects(allowed.get("tools"))} if allowed else None
    made: list[JsonObject] = []
    custom = set()
    for tool in list_functions(body):
        if is_native(tool):
            made += [own] if (own := native_item(tool, PROTOCOL, "tool")) else []
        elif has_origin(tool, PROTOCOL) and not find_origin(tool, PROTOCOL):
            continue  # a message has it
        elif chosen is None or _name_of(tool) in chosen:
            made.append(_to_tool(tool, names.to_native(_name_of(tool))))
            if tool.get("type") == "custom":
                custom.add(str(made[-1]["name"]))
    return made, frozenset(custom)


def _name_of(tool: JsonObject) -> str:
    return str(as_object(tool.get(str(tool.get("type")))).get("name") or "")


def _to_tool(tool: JsonObject, name: str) -> JsonObject:
    if origin := find_origin(tool, PROTOCOL):
        return {**origin, "name": name}
    function = as_object(tool.get(str(tool.get("type"))))
    made: JsonObject = {"name": name}
    if description := function.get("description"):
        made["description"] = description
    if tool.get("type") == "custom":
        made["input_schema"] = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    else:
        made["input_schema"] = {"type": "object", **(as_object(function.get("parameters")) or EMPTY_SCHEMA)}
    if function.get("strict"):
        made["strict"] = True
    return made | _cache_control(tool) | _cache_control(function)


def _to_choice(body: JsonObject, names: ToolNames) -> JsonObject:
    choice, is_parallel = tool_choice(body), body.get("parallel_tool_calls") is not False
    made: JsonObject = {"type": "auto"}
    if isinstance(choice, dict):
        allowed = choice.get("allowed_tools")
        if choice.get("type") == "native":
            made = native_item(choice, PROTOCOL, "tool") or made
        elif isinstance(allowed, dict):
            made = {"type": "any" if allowed.get("mode") == "required" else "auto"}
        else:
            made = {"type": "tool", "name": names.to_native(_name_of(choice))}
    elif choice in ("required", "none"):
        made = {"type": "any" if choice == "required" else "none"}
    elif choice is None and is_parallel:
        return {}
    if not is_parallel and made["type"] != "none":
        made = {**made, "disable_parallel_tool_use": True}
    return made


_LOOKED_BACK = 16  # blocks; a cache is found at most 20 before a mark
_MARK: JsonObject = {"cache_control": {"type": "ephemeral"}}
_MARKABLE = ("text", "tool_use", "tool_result", "image", "document")


def _mark_cache(made: JsonObject) -> JsonObject:
    """Mark what the next request of the conversation begins with: tools and system prompt, and the messages so far.

    Other providers find that out by themselves. Without tools a conversation is short, and marks cost more than none.
    """
    if not made.get("tools") or b'"cache_control"' in json_bytes(made):
        return made
    messages = [as_object(message) for message in made["messages"]] if isinstance(made["messages"], list) else []
    places = [
        (number, at)
        for number, message in enumerate(messages)
        for at, block in enumerate(_list_blocks(message.get("content")))
        if block.get("type") in _MARKABLE
    ]
    for number, at in {*places[-1:], *places[-1 - _LOOKED_BACK : -_LOOKED_BACK]}:
        blocks = _list_blocks(messages[number].get("content"))
        blocks[at] = {**blocks[at], **_MARK}
        messages[number] = {**messages[number], "content": [*blocks]}
    marked: JsonObject = {**made, "messages": [*messages]}
    if system := _list_blocks(made.get("system")):
        marked["system"] = [*system[:-1], {**system[-1], **_MARK}]
    return marked


def _list_blocks(content: Json) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return objects(content)


def _cache_control(part: JsonObject) -> JsonObject:
    return {"cache_control": part["cache_control"]} if part.get("cache_control") else {}


# --- messages


class _Conversation:
    def __init__(self, names: ToolNames) -> None:
        self._names, self._ids = names, CallIds()
        self._turns: list[tuple[str, list[JsonObject]]] = []  # no two neighbours have the same role
        self._unanswered: list[str] = []  # ids of the calls of the last assistant
        self.called: dict[str, None] = {}  # names of tools, in their order

    def write(self, messages: list[JsonObject], allowed: Allowances) -> list[JsonObject]:
        for message in messages:
            match message.get("role"):
                case "assistant":
                    self._answer_missing()
                    self._ids.begin_round()
                    self._add("assistant", self._to_answer(message))
                case "tool" | "function":
                    self._add("user", [self._to_result(message)])
                case "system" | "developer":
                    self._add("system", _text_blocks(message))
                case _:
                    self._answer_missing()
                    self._add("user", _to_blocks(message))
        self._answer_missing()
        turns = _place_system(self._turns, keeps=allowed.system_messages)
        if not turns or turns[0][0] != "user":
            turns = _join_turns([("user", [{"type": "text", "text": _OPENING}]), *turns])
        last = turns[-1][1][-1]
        if turns[-1][0] == "assistant" and last.get("type") == "text":  # space at the end is refused
            turns[-1][1][-1] = {**last, "text": str(last["text"]).rstrip()}
        return [{"role": role, "content": [*blocks]} for role, blocks in turns]

    def _add(self, role: str, blocks: list[JsonObject]) -> None:
        if blocks and self._turns and self._turns[-1][0] == role:
            self._turns[-1][1].extend(blocks)
        elif blocks:
            self._turns.append((role, blocks))

    def _answer_missing(self) -> None:
        """Add a result for each call that has none: without it the conversation is refused."""
        missing, self._unanswered = self._unanswered, []
        results: list[JsonObject] = [
            {"type": "tool_result", "tool_use_id": id_, "content": _NO_RESULT, "is_error": True} for id_ in missing
        ]
        self._add("user", results)

    def _to_answer(self, message: JsonObject) -> list[JsonObject]:
        parts = content_parts(message.get("content"))
        if isinstance(refusal := message.get("refusal"), str) and refusal:
            parts.append({"type": "refusal", "refusal": refusal})
        others: list[JsonObject] = [{"type": "text", "parts": [*parts]}] if parts else []
        blocks: list[JsonObject] = []
        for placed in place_details(message, [*others, *parallel_calls(message)]):
            if "parts" in placed:
                blocks += [block for part in parts if (block := _to_block(part))]
            elif "function" in placed or "custom" in placed:
                blocks.append(self._to_use(placed))
            elif item := native_item(placed, PROTOCOL):
                blocks.append(item)
            elif placed.get("format") == FORMAT:
                blocks += _to_thought(placed)
        return blocks

    def _to_use(self, call: JsonObject) -> JsonObject:
        name, written, is_custom = split_call(call)
        arguments, problem = parse_arguments(written)
        given: JsonObject = {"written": written} if problem else arguments
        id_ = self._ids.add_call(str(call.get("id")))
        self._unanswered.append(id_)
        sent = self._names.to_native(name)
        self.called[sent] = None
        made: JsonObject = {"type": "tool_use", "input": {"input": written} if is_custom else given}
        return {**made, **find_origin(call, PROTOCOL), "id": id_, "name": sent}

    def _to_result(self, message: JsonObject) -> JsonObject:
        id_ = self._ids.find_answered(answered_call(message))
        if id_ in self._unanswered:
            self._unanswered.remove(id_)
        if origin := find_origin(message, PROTOCOL):
            return {**origin, "tool_use_id": id_}
        content = message.get("content")
        made: JsonObject = {"type": "tool_result", "tool_use_id": id_, **_cache_control(message)}
        if isinstance(content, list):
            return {**made, "content": [block for part in content_parts(content) if (block := _to_block(part))]}
        return {**made, "content": content} if content else made


_Turns = list[tuple[str, list[JsonObject]]]


def _place_system(turns: _Turns, *, keeps: bool) -> _Turns:
    """Return turns whose system messages are where they may be: after one of the user, and before none.

    ``keeps``: the model takes them; any other is a text of the user.
    """
    made: _Turns = []
    for at, (role, blocks) in enumerate(turns):
        follows_user = at > 0 and turns[at - 1][0] == "user"
        precedes_user = at + 1 < len(turns) and turns[at + 1][0] == "user"
        if role == "system" and not (keeps and follows_user and not precedes_user):
            texts = [block for block in blocks if "text" in block]
            made.append(("user", [{**block, "text": f"<system>\n{block['text']}\n</system>"} for block in texts]))
        else:
            made.append((role, blocks))
    return _join_turns(made)


def _join_turns(turns: _Turns) -> _Turns:
    """Return turns of which no two neighbours have the same role; results stand before anything else."""
    made: _Turns = []
    for role, blocks in turns:
        if made and made[-1][0] == role:
            made[-1][1].extend(blocks)
            made[-1][1].sort(key=lambda block: block.get("type") != "tool_result")
        else:
            made.append((role, [*blocks]))
    return made


def _to_blocks(message: JsonObject) -> list[JsonObject]:
    return [block for part in content_parts(message.get("content")) if (block := _to_block(part))]


def _to_block(part: JsonObject) -> JsonObject | None:
    """Return a part of a message as a block; None for one that is empty, of another protocol, or said already."""
    if has_origin(part, PROTOCOL):
        return find_origin(part, PROTOCOL) or None
    match part.get("type"):
        case "native":
            return native_item(part, PROTOCOL)
        case "image_url":
            image = part.get("image_url")
            url = image.get("url") if isinstance(image, dict) else image
            return {"type": "image", "source": _to_source(str(url)), **_cache_control(part)}
        case "file":
            file = as_object(part.get("file"))
            title: JsonObject = {"title": file["filename"]} if file.get("filename") else {}
            return {"type": "document", "source": _to_file_source(file), **title, **_cache_control(part)}
        case _:
            return _to_text(part)


def _to_text(part: JsonObject) -> JsonObject | None:
    text = text_of(part)
    return {"type": "text", "text": text, **_cache_control(part)} if text.strip() else None  # empty ones are refused


def _to_source(url: str) -> JsonObject:
    data = split_data_url(url)
    if data is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": data[0] or "image/png", "data": data[1]}


def _to_file_source(file: JsonObject) -> JsonObject:
    if file.get("file_id"):
        return {"type": "file", "file_id": file["file_id"]}
    if file.get("file_url"):
        return {"type": "url", "url": file["file_url"]}
    written = str(file.get("file_data") or "")
    kind, data = split_data_url(written) or ("application/pdf", written)
    if kind.startswith("text/"):
        try:
            return {"type": "text", "media_type": "text/plain", "data": base64.b64decode(data).decode()}
        except ValueError:
            pass  # the provider says what is wrong with it
    return {"type": "base64", "media_type": kind or "application/pdf", "data": data}


def _to_thought(detail: JsonObject) -> list[JsonObject]:
    """Return thinking as it came; without its signature it is refused."""
    if detail.get("type") == "reasoning.encrypted" and detail.get("data"):
        return [{"type": "redacted_thinking", "data": detail["data"]}]
    if detail.get("type") == "reasoning.text" and detail.get("signature"):
        return [{"type": "thinking", "thinking": detail.get("text") or "", "signature": detail["signature"]}]
    return []
