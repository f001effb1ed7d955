"""What a client sees of tool work.

``summary``: the model's text without its request blocks, and one quoted line per call. ``hidden``: the text alone.
``events``: the text, and each call as a chunk of its own with the key ``toolyard``, for clients that draw it. ``raw``:
everything the model wrote, and VCPToolBox's information blocks. A call that is marked (``ink``) shows its block in
every form. What a tool said is one short line here, and no markup; why it failed is the whole reason, so that what a
person said who refused a call is seen.
"""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

from toolyard.gateway.host import Waiting
from toolyard.gateway.vcp import digest, information
from toolyard.gateway.vcp_media import fitting_media, to_html
from toolyard.gateway.work import Job, Ran, State
from toolyard.protocol.json import JsonObject
from toolyard.protocol.request_text import neutralise


class Show(StrEnum):
    SUMMARY = "summary"
    RAW = "raw"
    HIDDEN = "hidden"
    EVENTS = "events"

    @property
    def hides_requests(self) -> bool:
        return self is not Show.RAW

    @property
    def tells(self) -> bool:
        """Whether something is told of work that has not ended."""
        return self is not Show.HIDDEN


_MARKS = {
    State.SUCCESS: "✓",
    State.PARTIAL: "◐",
    State.ERROR: "✗",
    State.SCHEDULED: "⏲",
    State.BACKGROUND: "↗",
}
_LINE = 160
_FAULT = 400  # a person who refuses a call may say why at some length
_BLOCK = 4000
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s|$)|[。！？]|$)")
_NO_MARKUP = str.maketrans("[]<>`", "()‹›'")


def work_text(show: Show, results: Iterable[Ran], before: str, media: Sequence[str] = ()) -> str:
    """What stands between the text of two rounds; ``before`` is what the client has seen so far, ``media`` Markdown."""
    text = _calls_text(show, list(results), before)
    return "".join([text, _gap(before + text), *(f"{one}\n\n" for one in media)]) if media else text


def _calls_text(show: Show, told: list[Ran], before: str) -> str:
    blocks = [_block(ran) for ran in told if show is Show.RAW or ran.job.marked]
    if show is Show.RAW:
        return "".join([*blocks, digest([(ran.job.tool, ran.failed) for ran in told]), "\n"])
    lines = [_line(ran) for ran in told if show is Show.SUMMARY and not ran.job.marked]
    if not lines and not blocks:
        return "" if not before or before.endswith("\n") else "\n"
    return "".join([_gap(before), "\n".join(lines), "\n" if lines else "", *blocks, "\n"])


def waiting_text(asked: Iterable[Waiting], before: str) -> str:
    """What is seen of calls that wait for a person."""
    return _gap(before) + "".join(map(_waiting_line, asked))


def _waiting_line(one: Waiting) -> str:
    page = f"[allow it here]({one.url}) or run " if one.url else ""
    return f"> ⏸ {_plain(one.tool)} waits for approval: {page}`toolyard approval allow {one.approval}`\n"


def waiting_event(one: Waiting) -> JsonObject:
    told: JsonObject = {"type": "approval.requested", "id": one.approval, "call_id": one.call_id, "tool": one.tool}
    return told | {"command": f"toolyard approval allow {one.approval}"} | ({"url": one.url} if one.url else {})


def waiting_extension(asked: Iterable[Waiting]) -> JsonObject:
    """What a program is told that cannot wait for them."""
    return {"type": "approval_required", "approvals": [waiting_event(one) for one in asked]}


def limit_note(rounds: int) -> str:
    return f"\n\n[Toolyard stopped here: the model asked for tools in more than {rounds} rounds.]\n"


def call_event(job: Job, ran: Ran | None) -> JsonObject:
    """A call as clients that draw it see it: when it begins, and when it has ended."""
    told: JsonObject = {
        "type": "call.started" if ran is None else "call.finished",
        "id": job.call.id if job.call else "",
        "tool": job.tool,
    }
    if ran is None:
        return told | {"arguments": dict(job.call.arguments) if job.call else {}}
    media, left_out = fitting_media(ran.content)
    more: JsonObject = {"media": [*media], "media_left_out": left_out}
    return told | {"state": ran.state.value, "text": ran.text[:_BLOCK], "time_ms": ran.time_ms} | more


def _line(ran: Ran) -> str:
    flat, most = " ".join((ran.brief or ran.text).split()), _FAULT if ran.brief else _LINE
    sentence = None if ran.brief else _SENTENCE.match(flat)
    said = (sentence[0] if sentence else flat).translate(_NO_MARKUP)
    cut = said if len(said) <= most else said[: most - 1] + "…"
    return f"> {_MARKS[ran.state]} {_plain(ran.job.tool)}: {neutralise(cut)}"


def _gap(before: str) -> str:
    """What makes a new paragraph of what follows."""
    return "" if not before or before.endswith("\n\n") else "\n" if before.endswith("\n") else "\n\n"


def _plain(tool: str) -> str:
    return tool.translate(_NO_MARKUP)[:80]


def _block(ran: Ran) -> str:
    texts = [str(part["text"]) for part in ran.content if isinstance(part, dict) and part.get("type") == "text"]
    text = "\n".join(texts) or ran.text
    cut = text if len(text) <= _BLOCK else text[:_BLOCK] + "…"
    media = to_html(ran.content)
    return information(neutralise(ran.job.tool), f"{cut}\n{media}" if media else cut, failed=ran.failed)
