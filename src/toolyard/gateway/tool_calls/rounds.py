"""Rounds of tool work as messages: made small enough to keep, and native ones written as text.

A round is the model's reply and the results of its requests. Providers take native calls and their results only beside
``tools``, so a request without any carries such rounds as request blocks and one message with the results.

Native calls are answered one by one by their ids; requests in text by one message for all of them. Media of native
calls go with a message of their own, where every provider takes them.
"""

import json
from collections.abc import Iterable
from typing import Final

import orjson

from toolyard.gateway.media_parts import ALL_KINDS, replace_parts
from toolyard.gateway.reply.chunks import read_text
from toolyard.gateway.tool_calls import text_calls
from toolyard.gateway.tool_calls.jobs import JobResult
from toolyard.gateway.tool_calls.native_calls import call_name
from toolyard.gateway.vcp_blocks import PAYLOAD
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.requests.scanner import format_request
from toolyard.protocol.tool_text import CHINESE

Rounds = list[list[Json]]
"""The messages that each round added."""
CallKeys = frozenset[tuple[str, str]]
"""Native calls by their id and the name of their tool: some providers give every first call the same id."""
_VALUE: Final = "「始"
_VALUE_END: Final = "「末"
_CUTS: Final = (16_384, 8_192, 4_096, 2_048, 1_024, 512)  # characters of one text that are left, tried in this order
_COMMON_KEYS = ("role", "content", "tool_calls", "tool_call_id", "name")


def fit_rounds(rounds: Rounds, max_bytes: int) -> Rounds:
    """Return as much of the rounds as fits: media as markers, long texts cut, then the oldest rounds left out."""
    plain: Rounds = [replace_parts(one, ALL_KINDS) for one in rounds]
    made = plain
    for most in _CUTS:
        if _size(made) <= max_bytes:
            return made
        made = [[_cut(message, most) for message in one] for one in plain]
    while made and _size(made) > max_bytes:
        made = made[1:]
    return made


def call_keys(messages: Iterable[Json]) -> CallKeys:
    """Return the native calls in messages."""
    return frozenset(call_key(call) for message in messages for call in list_calls(message))


def write_as_text(messages: list[Json], calls: CallKeys, nonce: str | None = None) -> list[Json]:
    """Return messages in which these native calls, and their results, are text."""
    if not calls:
        return messages
    made: list[Json] = []
    names: dict[str, str] = {}
    for message in messages:
        if not isinstance(message, dict):
            made.append(message)
        elif ours := [call for call in list_calls(message) if call_key(call) in calls]:
            names |= dict(map(call_key, ours))
            blocks = "\n".join(_block(call, nonce) for call in ours)
            text = read_text(message.get("content"))
            made.append({"role": "assistant", "content": f"{text}\n{blocks}" if text else blocks})
        elif message.get("role") == "tool" and (name := names.get(str(message.get("tool_call_id")))) is not None:
            _add_result(made, f"{name}:\n{read_text(message.get('content'))}")
        elif names and is_payload(message) and is_payload(made[-1]):
            _add_result(made, read_text(message.get("content")).removeprefix(PAYLOAD).strip())
        else:
            made.append(message)
    return made


def _size(rounds: Rounds) -> int:
    return len(orjson.dumps(rounds))


def drop_reasoning(message: Json) -> Json:
    """Return a message without the reasoning that its model signed: another model refuses it."""
    return {key: message[key] for key in _COMMON_KEYS if key in message} if isinstance(message, dict) else message


def list_calls(message: Json) -> list[JsonObject]:
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def call_key(call: JsonObject) -> tuple[str, str]:
    return str(call.get("id")), call_name(call)


def _cut(message: Json, most: int) -> Json:
    """Return a message whose texts, and the texts in the arguments of its calls, are cut in the middle."""
    if not isinstance(message, dict):
        return message
    made = {**message, "content": _cut_texts(message.get("content"), most)}
    if calls := list_calls(message):
        made["tool_calls"] = [_cut_call(call, most) for call in calls]
    return made


def cut_arguments(message: JsonObject, most: int, id_: str) -> JsonObject:
    """Return a message in which the long arguments of one native call are cut."""
    calls: list[Json] = [_cut_call(call, most) if call.get("id") == id_ else call for call in list_calls(message)]
    return {**message, "tool_calls": calls}


def cut_blocks(message: JsonObject, most: int) -> JsonObject:
    """Return a message in which the long values of requests in text are cut."""
    first, *pieces = read_text(message.get("content")).split(_VALUE)
    parted = (piece.partition(_VALUE_END) for piece in pieces)
    cut = [(_cut_text(value, most) if end else value) + end + rest for value, end, rest in parted]
    return {**message, "content": _VALUE.join([first, *cut])}


def split_rounds(messages: list[Json]) -> Rounds:
    """Return the messages of rounds one by one: each begins with the model's reply."""
    rounds: Rounds = []
    for message in messages:
        if not rounds or (isinstance(message, dict) and message.get("role") == "assistant"):
            rounds.append([])
        rounds[-1].append(message)
    return rounds


def _cut_call(call: JsonObject, most: int) -> JsonObject:
    function = call.get("function")
    written = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(written, str) or len(written) <= most:
        return call
    try:
        arguments = json.loads(written)
    except (ValueError, RecursionError):
        arguments = {"written": written}
    cut = json.dumps(_cut_texts(arguments, most), ensure_ascii=False)
    return {**call, "function": {**function, "arguments": cut}}


def _cut_texts(value: Json, most: int) -> Json:
    if isinstance(value, str):
        return _cut_text(value, most)
    if isinstance(value, list):
        return [_cut_texts(item, most) for item in value]
    return {key: _cut_texts(inner, most) for key, inner in value.items()} if isinstance(value, dict) else value


def _cut_text(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n[… {len(text) - most} characters left out …]\n{text[-(most // 2) :]}"


def _block(call: JsonObject, nonce: str | None) -> str:
    function = call.get("function")
    written = function.get("arguments") if isinstance(function, dict) else None
    try:
        arguments = json.loads(written) if isinstance(written, str) and written.strip() else {}
        texts = {name: _write_value(value) for name, value in arguments.items()}
        return format_request(call_name(call), texts, nonce=nonce)
    except (ValueError, AttributeError, RecursionError):  # no object, or a name that no block can carry
        return f"{call_name(call)} {written}"


def _write_value(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def is_payload(message: Json) -> bool:
    is_user = isinstance(message, dict) and message.get("role") == "user"
    return is_user and isinstance(message, dict) and read_text(message.get("content")).startswith(PAYLOAD)


def _add_result(messages: list[Json], text: str) -> None:
    """Add a result to the message with results that is the last, or to a new one: roles have to alternate."""
    last = messages[-1] if messages else None
    if isinstance(last, dict) and is_payload(last):
        messages[-1] = {**last, "content": f"{read_text(last.get('content'))}\n\n{text}"}
    else:
        messages.append({"role": "user", "content": f"{PAYLOAD}\n\n{text}"})


_LAST = (
    "{payload}\nThis was the last of {rounds} rounds of tool calls. Call no more tools: answer with what you have, and "
    "say what is left to do."
)
_LAST_CHINESE = (
    "{payload}\n工具调用已达到 {rounds} 轮的上限。请不要再调用工具：根据已有的结果回答，并说明还有什么没有完成。"
)


def build_round_messages(message: JsonObject, calls: list[JsonObject], results: list[JobResult]) -> list[Json]:
    """Return the messages that follow; ``calls`` are the native calls, in the order of their results."""
    natives = [ran for ran in results if ran.job.native_id]
    written = [ran for ran in results if not ran.job.native_id and not ran.job.is_detached]
    reply = {key: value for key, value in message.items() if key != "tool_calls"}
    if calls:
        named = zip(calls, natives, strict=True)
        reply["tool_calls"] = [{"type": "function", **call, "id": ran.job.native_id} for call, ran in named]
    made: list[Json] = [reply, *(ran.native for ran in natives)]
    if media := [part for ran in natives for part in ran.content]:
        title: JsonObject = {"type": "text", "text": f"{PAYLOAD}\nMedia of the results above:"}
        made.append({"role": "user", "content": [title, *media]})
    if written:
        made.append(text_calls.build_result_message(written))
    return made


def ask_for_answer(messages: list[Json], rounds: int, language: str) -> list[Json]:
    """Return the messages of the last round, with the request to answer now."""
    text = (_LAST_CHINESE if language == CHINESE else _LAST).format(payload=PAYLOAD, rounds=rounds)
    last = messages[-1]
    if not isinstance(last, dict) or last.get("role") != "user":
        return [*messages, {"role": "user", "content": text}]
    content = last.get("content")  # roles have to alternate
    added: Json = f"{content}\n\n{text}"
    if isinstance(content, list):
        added = [*content, {"type": "text", "text": text}]
    return [*messages[:-1], {**last, "content": added}]
