"""The messages that a model gets after a round: its own reply, and the results of its requests.

Native calls are answered one by one by their ids; requests in text by one message for all of them. Media of native
calls go with a message of their own, where every provider takes them.
"""

from toolyard.gateway.tool_calls import text_calls
from toolyard.gateway.tool_calls.jobs import JobResult
from toolyard.gateway.vcp import PAYLOAD
from toolyard.protocol.json import Json, JsonObject


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
