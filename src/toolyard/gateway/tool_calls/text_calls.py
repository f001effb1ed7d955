"""Tool requests written as text: turned into jobs, and their results into the message that answers them (contract §4).

A block that cannot be read fails like a call: it is reported and recorded, the first ``MAX_KEPT`` of a reply with their
text. The others are only reported.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from toolyard.gateway.ports import ToolPort
from toolyard.gateway.tool_calls.jobs import Job, JobResult
from toolyard.gateway.vcp import MARK_HISTORY, PAYLOAD
from toolyard.protocol.call import SIGNERS
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.markers import Call, Malformed

_LAST = re.compile(r"last(?::(\d{1,4}))?")
_FEW = 10  # messages, when ``last`` has no number
_MAX_SEEN = 2000  # characters of a block that cannot be read
MAX_KEPT: Final = 32


def make_jobs(
    requests: Iterable[Call | Malformed], tools: ToolPort, caller: str, messages: list[Json], text: str
) -> list[Job]:
    """Return the jobs of these requests; ``text`` is the complete reply, in which they stand."""
    jobs, broken = list[Job](), 0
    for request in requests:
        if isinstance(request, Call):
            jobs.append(_make_job(request, tools, caller, messages))
            continue
        broken += 1
        job = Job(tool=request.tool or "?", problem=request.problem)
        jobs.append(_make_failed_job(job, request, tools, caller, text) if broken <= MAX_KEPT else job)
    return jobs


def build_result_message(results: list[JobResult]) -> JsonObject:
    """Return one user message with the results in order; its content is a list of parts as soon as there are media."""
    texts, media = [], []
    for number, ran in enumerate(results, 1):
        lines = [str(part.get("text")) for part in ran.content if isinstance(part, dict) and part.get("type") == "text"]
        media += [part for part in ran.content if isinstance(part, dict) and part.get("type") != "text"]
        texts.append(f"[{number}] {ran.job.tool}: {ran.state.value}\n" + "\n".join(lines or [ran.text]))
    text = "\n\n".join([PAYLOAD, *texts]) if texts else PAYLOAD
    if not media:
        return {"role": "user", "content": text}
    return {"role": "user", "content": [{"type": "text", "text": text}, *media]}


def select_context(scope: str, messages: list[Json]) -> list[Json] | None:
    """Return the part of the conversation that a call requests; None for an unknown request."""
    if scope == "full":
        return messages
    if scope == "text":
        return [{"role": message.get("role"), "content": _message_text(message)} for message in _list_objects(messages)]
    match = _LAST.fullmatch(scope)
    return messages[-(int(match[1] or _FEW) or len(messages)) :] if match else None


def _make_job(request: Call, tools: ToolPort, caller: str, messages: list[Json]) -> Job:
    spec = tools.spec(request.tool)
    arguments: JsonObject = dict(request.args)
    if spec is not None and not spec.verbatim:  # only a plugin gets the signer's name
        arguments = {name: value for name, value in arguments.items() if name not in SIGNERS}
    flows = select_context(request.river, messages) if request.river else None
    metadata: JsonObject = {} if flows is None else {"river_context": flows}
    return Job(
        tool=request.tool,
        call=tools.request(request.tool, arguments, caller=caller, maid=request.maid, metadata=metadata),
        at=request.timely_contact or "",
        is_detached=request.fire_and_forget and not request.timely_contact,
        shows_result=request.ink == MARK_HISTORY,
    )


def _make_failed_job(job: Job, request: Malformed, tools: ToolPort, caller: str, text: str) -> Job:
    start, end = request.span
    written: JsonObject = {"written": text[start : min(end, start + _MAX_SEEN)]}
    call = tools.request(job.tool, written, caller=caller, maid=None, metadata={})
    return replace(job, call=replace(call, unreadable=request.problem))


def _list_objects(messages: list[Json]) -> list[JsonObject]:
    return [message for message in messages if isinstance(message, dict)]


def _message_text(message: JsonObject) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
    return content if isinstance(content, str) else ""
