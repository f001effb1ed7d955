"""The messages that a model gets after a round: its own reply, and the results of its requests.

Native calls are answered one by one by their ids; requests in text by one message for all of them. Media of native
calls go with a message of their own, where every provider takes them.
"""

from toolyard.gateway.tool_calls import text_calls
from toolyard.gateway.tool_calls.jobs import JobResult
from toolyard.gateway.vcp import PAYLOAD
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool_text import CHINESE

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
