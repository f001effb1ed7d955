"""The script of the built-in guide: picks a topic by the user's words, calls tools, and comments on their results."""

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from toolyard.gateway.tour.texts import CHOOSE_MODEL, CONNECT_MODEL, MENU, STRUCTURED, TEXTS
from toolyard.protocol.placeholders import Kind, find_placeholders
from toolyard.protocol.request_text import format_request
from toolyard.protocol.requests.marks import CLOSE, END, OPEN

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_SUM = re.compile(
    r"(?:integral|derivative|solve|sqrt|sum|det)\([^\n]{1,200}\)|[\d(][\d\s.()+\-*/^%×÷]*[+\-*/^%×÷][\d\s.()+\-*/^%×÷]*[\d)]"
)
_CURVE = re.compile(r"\b(?:sin|cos|tan|exp|sqrt|ln|abs)\([^()\n]{1,40}\)(?:\s*[+\-*/]\s*[\w.()]{1,40})?|x\^\d")
_RESULT = re.compile(r"^\[(\d+)\] (\S+): (\w+)$", re.MULTILINE)
_SHORT: Final = 600
_MOST_NAMES: Final = 20


class Topic(StrEnum):
    STRUCTURED = "structured"
    SCHEDULE = "schedule"
    TASK = "task"
    STATUS = "status"
    APPROVAL = "approval"
    PLOT = "plot"
    SUM = "sum"
    FILES = "files"
    EVERYTHING = "everything"
    MENU = "menu"


_WORDS: Final = (  # the first match counts
    (Topic.STRUCTURED, r"structured|diagram|formula|table|latex|mermaid|结构化|流程图|公式|表格"),
    (Topic.SCHEDULE, r"schedul|remind|later|tomorrow|定时|提醒|稍后|明天"),
    (Topic.STATUS, r"\b(is it done|finished|ready|status|result of)\b|好了吗|完成了吗|结果呢|进度"),
    (Topic.TASK, r"async|background|animation|video|long|异步|后台|动画|视频"),
    (Topic.APPROVAL, r"approv|permission|write|create|edit|审批|批准|写|创建|修改"),
    (Topic.PLOT, r"plot|chart|graph|draw|picture|画|图"),
    (Topic.SUM, r"calc|comput|how much|integral|solve|算|积分|方程"),
    (Topic.FILES, r"file|folder|list|read|project|文件|目录|项目|读"),
    (Topic.EVERYTHING, r"everything|all|tour|demo|全部|演示|所有|导览"),
)


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    text: str
    thought: str = ""


def write_reply(
    question: str, results: str | None, before: str, now: datetime, *, has_provider: bool = False
) -> ScriptedReply:
    """Return the next reply. ``results`` are those of the tools that were just called."""
    language = "zh" if _CHINESE.search(question) else "en"
    topic = find_topic(question)
    texts = TEXTS[language]
    if results is not None:
        return ScriptedReply(_comment_results(topic, results, language))
    match topic:
        case Topic.MENU:
            next_step = CHOOSE_MODEL if has_provider else CONNECT_MODEL
            return ScriptedReply(MENU[language] + next_step[language], texts["thought"])
        case Topic.STATUS:
            return ScriptedReply(_status(before, texts))
        case Topic.STRUCTURED:
            return ScriptedReply(json.dumps(STRUCTURED[language], ensure_ascii=False, indent=1), texts["thought"])
        case _:
            blocks = "\n\n".join(_requests(topic, question, now, language))
            return ScriptedReply(f"{texts[topic]}\n\n{blocks}\n", texts["thought"])


def find_topic(question: str) -> Topic:
    if _SUM.search(question) and not re.search(r"plot|draw|画|图|schedul|定时|later|稍后", question, re.IGNORECASE):
        return Topic.SUM
    topics = (topic for topic, words in _WORDS if re.search(words, question, re.IGNORECASE))
    return next(topics, Topic.MENU)


def _requests(topic: Topic, question: str, now: datetime, language: str) -> list[str]:
    formula = _SUM.search(question)
    expression = formula[0].strip() if formula else "integral(x^2, x, 0, 1) + sqrt(16)"
    curves = "; ".join(curve[0] for curve in _CURVE.finditer(question))
    plot = format_request("Plotter", {"functions": curves or "sin(x); cos(x)/2", "range": "-6,6"})
    calculation = format_request("SciCalculator", {"expression": expression})
    listing = format_request("LS", {"path": "."})
    match topic:
        case Topic.SUM:
            return [calculation]
        case Topic.PLOT:
            return [plot]
        case Topic.TASK:
            return [format_request("Timelapse", {"command": "render", "scene": "life", "frames": "12", "seed": "7"})]
        case Topic.SCHEDULE:
            due = f"{now + timedelta(minutes=2):%Y-%m-%d-%H:%M}"
            timed = f",\ntimely_contact:{OPEN}{due}{CLOSE}\n{END}"
            return [calculation.replace(f"\n{END}", timed)]
        case Topic.APPROVAL:
            return [format_request("Write", {"path": "tour/hello.md", "content": TEXTS[language]["file"]})]
        case Topic.EVERYTHING:
            return [listing, calculation, plot]
        case _:
            return [listing, format_request("Glob", {"pattern": "**/*.md", "limit": "5"})]


def _comment_results(topic: Topic, results: str, language: str) -> str:
    """Return the guide's comment on the results."""
    texts = TEXTS[language]
    heads = list(_RESULT.finditer(results))
    ends = [*(head.start() for head in heads[1:]), len(results)]
    quotes = []
    for head, end in zip(heads, ends, strict=True):
        body = results[head.end() : end].strip()
        mark = "✗" if head[3] == "error" else "✓"
        shown = _list_names(body, texts["nothing"]) or _quote(body)
        quotes.append(f"{mark} **{head[2]}**\n\n{shown}")
    task = next((one for one in find_placeholders(results) if one.kind is Kind.ASYNC_RESULT), None)
    lines = [texts["after"], *quotes]
    if topic is Topic.TASK and task:
        lines.append(f"{texts['task_after']} {{{{{task.name}}}}}")
    return "\n\n".join([*lines, texts["next"]])


def _list_names(body: str, nothing: str) -> str:
    """Return the files of a listing as a list for people; empty if the result is no listing."""
    try:
        entries = json.loads(body.partition("\n")[2])
    except ValueError:
        return ""
    if not isinstance(entries, list):
        return ""
    if not entries:
        return nothing
    names = [str(one.get("path", "") if isinstance(one, dict) else one).replace("`", "'") for one in entries]
    lines = [f"- `{name}`" for name in names[:_MOST_NAMES]]
    return "\n".join([*lines, *(["- …"] if len(names) > _MOST_NAMES else [])])


def _quote(body: str) -> str:
    short = body if len(body) <= _SHORT else body[:_SHORT] + "…"
    return "\n".join(f"    {line}" for line in short.split("\n"))


def _status(before: str, texts: dict[str, str]) -> str:
    """Return the state of the task, whose result has replaced the placeholder in the guide's last message."""
    _, mark, rest = before.partition(texts["task_after"])
    result = rest.partition("\n")[0].strip() if mark else ""
    return f"{texts['status']} {result}\n\n{texts['next']}" if result else f"{texts['no_task']}\n\n{texts['next']}"
