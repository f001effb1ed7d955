"""The view that a client gets of tool work.

``summary``: the model's text without its request blocks, and one quoted line per call. ``hidden``: the text alone.
``events``: the text, and each call as a chunk of its own with the key ``toolyard``, for clients that draw it. ``raw``:
everything the model wrote, and VCPToolBox's information blocks. A call that is marked (``ink``) shows its block in
every mode. A result is one short line without markup; a failure is its complete reason, so that the words of a person
who denied a call are seen.
"""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

from toolyard.gateway.chat_ports import PendingApproval
from toolyard.gateway.tool_calls.jobs import Job, JobResult, JobState
from toolyard.gateway.vcp_blocks import fitting_media, to_html, write_information_block, write_summary_block
from toolyard.message import cut_message, to_fields
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.requests.scanner import neutralise
from toolyard.protocol.tool_text import CHINESE, ENGLISH


class Show(StrEnum):
    SUMMARY = "summary"
    RAW = "raw"
    HIDDEN = "hidden"
    EVENTS = "events"

    @property
    def hides_requests(self) -> bool:
        return self is not Show.RAW

    @property
    def shows_progress(self) -> bool:
        """Return whether the client sees work that has not ended."""
        return self is not Show.HIDDEN


_MARKS = {
    JobState.SUCCESS: "✓",
    JobState.PARTIAL: "◐",
    JobState.ERROR: "✗",
    JobState.SCHEDULED: "⏲",
    JobState.BACKGROUND: "↗",
}
_LINE = 160
_FAULT = 600  # a person who refuses a call may say why at some length, and a hint is of use when it is whole
_BLOCK = 4000
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s|$)|[。！？]|$)")
_PROGRESS = re.compile(r"> [✓◐✗⏲↗] [^\n:]{1,80}: [^\n]*|> ⏸ [^\n]{1,800}: [^\n]*`")
_NO_MARKUP = str.maketrans("[]<>`", "()‹›'")


def write_results(show: Show, results: Iterable[JobResult], before: str, media: Sequence[str] = ()) -> str:
    """Return the text between two rounds; ``before`` is the text that the client has so far, ``media`` Markdown."""
    text = _write_calls(show, list(results), before)
    return "".join([text, _paragraph_break(before + text), *(f"{one}\n\n" for one in media)]) if media else text


def _write_calls(show: Show, results: list[JobResult], before: str) -> str:
    blocks = [_write_block(ran) for ran in results if show is Show.RAW or ran.job.shows_result]
    if show is Show.RAW:
        return "".join([*blocks, write_summary_block([(ran.job.tool, ran.is_failure) for ran in results]), "\n"])
    lines = [_write_line(ran) for ran in results if show is Show.SUMMARY and not ran.job.shows_result]
    if not lines and not blocks:
        return "" if not before or before.endswith("\n") else "\n"
    return "".join([_paragraph_break(before), "\n".join(lines), "\n" if lines else "", *blocks, "\n"])


def write_approvals(approvals: Iterable[PendingApproval], before: str) -> str:
    """Return the text about calls that wait for an approval."""
    return _paragraph_break(before) + "".join(map(_write_approval, approvals))


def _write_approval(one: PendingApproval) -> str:
    page = f"[allow it here]({one.url}) or run " if one.url else ""
    about = f" ({neutralise(_strip_markup(one.about))})" if one.about else ""
    return f"> ⏸ {_strip_markup(one.tool)}{about} waits for approval: {page}`{one.command}`\n"


def strip_progress(messages: list[Json]) -> list[Json]:
    """Return messages without our lines in the answers of the model, which it would take for its own words.

    The very same list if there are none.
    """
    made = [_strip_progress(message) for message in messages]
    return made if any(new is not old for new, old in zip(made, messages, strict=True)) else messages


def _strip_progress(message: Json) -> Json:
    content = message.get("content") if isinstance(message, dict) and message.get("role") == "assistant" else None
    if not isinstance(message, dict) or not isinstance(content, str) or "> " not in content:
        return message
    lines = content.split("\n")
    kept = [line for line in lines if not _PROGRESS.fullmatch(line)]
    if len(kept) == len(lines):
        return message
    return {**message, "content": "\n".join(kept).strip() or "…"}  # which providers take; an empty text they do not


def approval_event(one: PendingApproval) -> JsonObject:
    event: JsonObject = {"type": "approval.requested", "id": one.approval, "call_id": one.call_id, "tool": one.tool}
    if one.about:
        event["about"] = one.about
    return event | {"command": one.command} | ({"url": one.url} if one.url else {})


def approvals_extension(approvals: Iterable[PendingApproval]) -> JsonObject:
    """Return the same for a program that cannot wait."""
    return {"type": "approval_required", "approvals": [approval_event(one) for one in approvals]}


def limit_note(rounds: int, language: str = ENGLISH) -> str:
    """Return the end of a reply whose model asked for tools too often, in the language of the conversation."""
    if language == CHINESE:
        return f"\n\n[Toolyard 在此停止：模型请求工具超过 {rounds} 轮。]\n"
    return f"\n\n[Toolyard stopped here: the model asked for tools in more than {rounds} rounds.]\n"


def call_event(job: Job, ran: JobResult | None) -> JsonObject:
    """Return a call as the event of its start or, with its result, of its end."""
    event: JsonObject = {
        "type": "call.started" if ran is None else "call.finished",
        "id": job.call.id if job.call else "",
        "tool": job.tool,
    }
    if ran is None:
        return event | {"arguments": dict(job.call.arguments) if job.call else {}}
    media, left_out = fitting_media(ran.content)
    more: JsonObject = {"media": [*media], "media_left_out": left_out}
    if ran.reason:
        more["reason"] = ran.reason
    if ran.tasks:
        more["tasks"] = [{"plugin": task.plugin, "task_id": task.task_id} for task in ran.tasks]
    text = to_fields("text", cut_message(ran.text, _BLOCK))
    return event | {"state": ran.state.value, **text, "time_ms": ran.time_ms} | more | ran.action


def list_actions(show: Show, results: Iterable[JobResult]) -> list[JsonObject]:
    """Return the special actions of a round for a client of VCPToolBox; one that draws calls has them in its events."""
    asked = [ran for ran in results if ran.action] if show is Show.RAW else []
    return [{"id": ran.job.call.id if ran.job.call else "", "tool": ran.job.tool, **ran.action} for ran in asked]


def _write_line(ran: JobResult) -> str:
    flat, most = " ".join((ran.brief or ran.text).split()), _FAULT if ran.brief else _LINE
    sentence = None if ran.brief else _SENTENCE.match(flat)
    line = (sentence[0] if sentence else flat).translate(_NO_MARKUP)
    cut = line if len(line) <= most else line[: most - 1] + "…"
    return f"> {_MARKS[ran.state]} {_strip_markup(ran.job.tool)}: {neutralise(cut)}"


def _paragraph_break(before: str) -> str:
    """Return the line breaks that begin a new paragraph after ``before``."""
    return "" if not before or before.endswith("\n\n") else "\n" if before.endswith("\n") else "\n\n"


def _strip_markup(tool: str) -> str:
    return tool.translate(_NO_MARKUP)[:80]


def _write_block(ran: JobResult) -> str:
    texts = [str(part["text"]) for part in ran.content if isinstance(part, dict) and part.get("type") == "text"]
    text = "\n".join(texts) or ran.text
    cut = text if len(text) <= _BLOCK else text[:_BLOCK] + "…"
    media = to_html(ran.content)
    return write_information_block(neutralise(ran.job.tool), f"{cut}\n{media}" if media else cut, failed=ran.is_failure)
