"""``tour``: the built-in model, for a server without a provider. Deterministic: the same words get the same answer.

It speaks the same protocol as any provider, so its tool requests really run. It reads the user's last message, calls
tools, and comments on their results. It answers in Chinese when the user writes Chinese; its sentences are below.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import orjson

from toolyard.engine.step_limiter import StepLimiter
from toolyard.gateway.faults import ChatFailed, bad_request
from toolyard.gateway.providers.answer import Answer, WaitListener, ignore_wait
from toolyard.gateway.providers.forwarded_answer import ForwardedAnswer, Outgoing
from toolyard.gateway.sse import DONE
from toolyard.gateway.vcp_blocks import PAYLOAD
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.placeholders import Kind, find_placeholders
from toolyard.protocol.requests.marks import CLOSE, END, OPEN
from toolyard.protocol.requests.scanner import format_request
from toolyard.provider_settings import ProviderProtocol

_PIECE = re.compile(r"\s*\S{1,12}\s?|\s+")  # a word, or a few characters of a text without blanks
_CREATED: Final = 1_700_000_000


class Tour:
    name = "tour"
    max_rounds = None
    takes_native = False
    protocol = ProviderProtocol.CHAT

    def __init__(self, now: Callable[[], datetime], *, pause_s: float = 0.0, has_provider: bool = False) -> None:
        self._now, self._pause_s, self._has_provider = now, pause_s, has_provider
        self._fair = StepLimiter()

    def window(self, model: str) -> None:
        """Return nothing: it reads no more than it needs."""

    async def ask(
        self,
        body: bytes,
        *,
        stream: bool,  # noqa: ARG002 it can do both
        retry: bool,  # noqa: ARG002 it never fails
        on_wait: WaitListener = ignore_wait,  # noqa: ARG002
    ) -> Answer:
        request = orjson.loads(body)
        messages = [message for message in request.get("messages", []) if isinstance(message, dict)]
        reply = write_reply(
            _last_user_text(messages),
            _results(messages),
            _last_own_text(messages),
            self._now(),
            has_provider=self._has_provider,
        )
        words = sum(len(_text(message)) for message in messages) // 4
        usage: JsonObject = {
            "prompt_tokens": words,
            "completion_tokens": len(reply.text) // 4,
            "total_tokens": words + len(reply.text) // 4,
        }
        counts = isinstance(request.get("stream_options"), dict) and bool(
            request["stream_options"].get("include_usage")
        )
        return _ScriptedAnswer(reply, usage, self._fair, counts=counts, pause_s=self._pause_s)

    async def forward(self, request: Outgoing) -> ForwardedAnswer:  # noqa: ARG002
        raise bad_request(Message("the built-in guide 'tour' can only chat: name a model of a provider"), "no_provider")

    async def models(self) -> list[JsonObject]:
        return [{"id": self.name, "object": "model", "created": _CREATED, "owned_by": "toolyard"}]

    def note_failure(self, failed: ChatFailed) -> None:
        """Do nothing: it never fails."""

    async def close(self) -> None:
        """Do nothing: it holds no resources."""


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    text: str
    thought: str = ""


class _ScriptedAnswer:
    def __init__(
        self, reply: ScriptedReply, usage: JsonObject, fair: StepLimiter, *, counts: bool, pause_s: float
    ) -> None:
        self._reply, self._usage, self._fair, self._counts, self._pause_s = reply, usage, fair, counts, pause_s
        self._pending = self._batches()
        self._begun = False

    async def events(self) -> list[bytes]:
        if self._begun:
            await asyncio.sleep(self._pause_s)
        self._begun = True
        await self._fair.step()  # very many pauses may end at the same moment
        return next(self._pending, [])

    def _batches(self) -> Iterator[list[bytes]]:
        yield [_event({"role": "assistant", "content": ""})]
        for piece in _PIECE.findall(self._reply.thought):
            yield [_event({"reasoning_content": piece})]
        for piece in _PIECE.findall(self._reply.text):
            yield [_event({"content": piece})]
        last = [_event({}, "stop")]
        if self._counts:
            last.append(
                b"data: " + orjson.dumps(_shell("chat.completion.chunk") | {"choices": [], "usage": self._usage})
            )
        yield [*last, DONE.strip()]

    async def read_all(self) -> bytes:
        message: JsonObject = {"role": "assistant", "content": self._reply.text}
        if self._reply.thought:
            message["reasoning_content"] = self._reply.thought
        choice: JsonObject = {"index": 0, "message": message, "finish_reason": "stop"}
        return orjson.dumps(_shell("chat.completion") | {"choices": [choice], "usage": self._usage})

    def close(self) -> None:
        """Do nothing: it holds no resources."""


def _shell(kind: str) -> JsonObject:
    return {"id": "chatcmpl-tour", "object": kind, "created": _CREATED, "model": "tour"}


def _event(delta: JsonObject, finish: str | None = None) -> bytes:
    choices: list[Json] = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + orjson.dumps(_shell("chat.completion.chunk") | {"choices": choices})


def _text(message: JsonObject) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _last_user_text(messages: list[JsonObject]) -> str:
    """Return the user's last message."""
    texts = (_text(message) for message in reversed(messages) if message.get("role") == "user")
    return next((text for text in texts if not text.startswith(PAYLOAD)), "")


def _results(messages: list[JsonObject]) -> str | None:
    """Return the tools' results; None when the last message has none."""
    last = _text(messages[-1]) if messages else ""
    return last.removeprefix(PAYLOAD).strip() if last.startswith(PAYLOAD) else None


def _last_own_text(messages: list[JsonObject]) -> str:
    """Return the guide's own last message, with the results that have arrived since."""
    texts = (_text(message) for message in reversed(messages) if message.get("role") == "assistant")
    return next(texts, "")


_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_SUM = re.compile(
    r"(?:integral|derivative|solve|sqrt|sum|det)\([^\n]{1,200}\)|[\d(][\d\s.()+\-*/^%×÷]*[+\-*/^%×÷][\d\s.()+\-*/^%×÷]*[\d)]"
)
_CURVE = re.compile(r"\b(?:sin|cos|tan|exp|sqrt|ln|abs)\([^()\n]{1,40}\)(?:\s*[+\-*/]\s*[\w.()]{1,40})?|x\^\d")
_RESULT = re.compile(r"^\[(\d+)\] (\S+): ", re.MULTILINE)
_FAILURE = re.compile(r"[A-Z]+(?:_[A-Z]+)*: ")  # with which a failure begins
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
        failed = _FAILURE.match(body) is not None
        mark = "✗" if failed else "✓"
        is_listing = head[2] in ("LS", "Glob") and not failed
        shown = _list_names(body, texts["nothing"]) if is_listing else _quote(body)
        quotes.append(f"{mark} **{head[2]}**\n\n{shown}")
    task = next((one for one in find_placeholders(results) if one.kind is Kind.ASYNC_RESULT), None)
    lines = [texts["after"], *quotes]
    if topic is Topic.TASK and task:
        lines.append(f"{texts['task_after']} {{{{{task.name}}}}}")
    return "\n\n".join([*lines, texts["next"]])


def _list_names(body: str, nothing: str) -> str:
    """Return the files of a listing as a list for people."""
    names = [line.partition("\t")[0].replace("`", "'") for line in body.split("\n")[1:]]
    if not names:
        return nothing
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


MENU: Final = {
    "en": """Hello! I am **tour**, Toolyard's built-in guide. I am no language model:
I follow a script, but every tool I call really runs.

Ask me for one of these:

- **files**: I list this project
- **12 * (3 + 4)**: I calculate, with the SciCalculator plugin
- **plot sin(x)**: I draw, and the picture comes with the call
- **a background animation**: an asynchronous task; ask "is it done?" later
- **schedule a calculation**: it runs in two minutes
- **write a file**: you are asked for your approval first
- **a structured reply**: diagram, formula, code and table
- **everything**: several tools at the same time

""",
    "zh": """你好！我是 **tour**，Toolyard 自带的向导。我不是语言模型，只按脚本回答，但我调用的每个工具都会真的运行。

你可以这样说：

- **列出文件**：我会列出这个项目
- **12 * (3 + 4)**：我用 SciCalculator 插件计算
- **画 sin(x)**：我会作图，图片随调用一起显示
- **后台动画**：一个异步任务，稍后可以问“好了吗”
- **定时计算**：两分钟后运行
- **写一个文件**：会先请你批准
- **结构化回复**：流程图、公式、代码和表格
- **全部**：同时调用几个工具

""",
}

CONNECT_MODEL: Final = {
    "en": (
        "To talk to a real model, connect a provider in the console: choose **Manage providers…** in the list of\n"
        "models."
    ),
    "zh": "想和真正的模型对话，请在控制台接入模型服务：在模型列表中选择**管理模型服务…**。",
}
CHOOSE_MODEL: Final = {
    "en": (
        "A model provider is configured: to talk to a real model, choose one of its models. If there is none to\n"
        "choose, **Manage providers…** in the console's list of models shows what is wrong."
    ),
    "zh": (
        "已配置模型服务：想和真正的模型对话，请选择它的模型。如果没有可选的模型，\n"
        "请在控制台的模型列表中选择**管理模型服务…**查看原因。"
    ),
}

TEXTS: Final = {
    "en": {
        "thought": "The user said something. I look for a word I know and pick the matching page of my script.",
        "files": "Let me look at this project: one tool lists it, another finds its Markdown files.",
        "sum": "I do not calculate in my head: SciCalculator does it exactly.",
        "plot": "I ask the Plotter for a picture.",
        "task": "This takes a while, so it runs in the background: Timelapse gives a receipt at once.",
        "schedule": "I ask for the same calculation in two minutes.",
        "approval": "I want to write a file. Unless this chat may write on its own, you are asked first.",
        "everything": "Three tools at the same time: their results keep this order.",
        "after": "This is what the tools found:",
        "nothing": "nothing",
        "task_after": "The result will be here:",
        "status": "The task says:",
        "no_task": "I have not started a task yet. Ask me for a background animation.",
        "next": "What next? Say **help** to see everything I can show.",
        "file": "# Hello from the tour\n\nA person approved this file.\n",
    },
    "zh": {
        "thought": "用户说了一句话。我找一个认识的词，翻到脚本里对应的一页。",
        "files": "我来看看这个项目：一个工具列出目录，另一个查找 Markdown 文件。",
        "sum": "我不心算，交给 SciCalculator 精确计算。",
        "plot": "我请 Plotter 画一张图。",
        "task": "这需要一点时间，所以放到后台：Timelapse 会马上给出回执。",
        "schedule": "我请它两分钟后再做同样的计算。",
        "approval": "我想写一个文件。除非本对话获准自行写入，否则会先问你。",
        "everything": "同时调用三个工具，结果按这个顺序返回。",
        "after": "工具的结果：",
        "nothing": "没有内容",
        "task_after": "结果会出现在这里：",
        "status": "任务的情况：",
        "no_task": "还没有任务。你可以说“后台动画”。",
        "next": "接下来做什么？说“帮助”可以看到我会的一切。",
        "file": "# 来自向导的问候\n\n这个文件经人批准后写入。\n",
    },
}

_FLOW = """flowchart LR
    U[{you}] --> G[Toolyard]
    G --> M[{model}]
    M -->|{asks}| T[{tools}]
    T -->|{results}| M
    M --> G
    G --> U"""
_CODE = 'import toolyard\n\nwith toolyard.open(project=".") as yard:\n    print(yard.call("LS", {"path": "."}).text)\n'
_FORMULA = r"\int_0^1 x^2\,dx = \frac{1}{3}"


def _make_structured_reply(
    think: str, content: str, flow: str, table: list[str], rows: list[list[str]]
) -> dict[str, Any]:
    return {
        "think": think,
        "content": content,
        "attachments": {
            "flow": {"type": "mermaid", "content": flow},
            "formula": {"type": "latex", "content": _FORMULA},
            "example": {"type": "code", "language": "python", "content": _CODE},
            "tools": {"type": "table", "content": {"columns": table, "rows": rows}},
        },
    }


STRUCTURED: Final = {
    "en": _make_structured_reply(
        "A structured reply has think, content and attachments.",
        "# A structured reply\n\nHow a chat runs:\n\n{{mermaid:flow}}\n\nA formula:\n\n{{latex:formula}}\n\n"
        "The same from Python:\n\n{{code:example}}\n\nSome tools:\n\n{{table:tools}}",
        _FLOW.format(you="You", model="Model", asks="requests", tools="Tools", results="results"),
        ["tool", "what it does"],
        [["LS", "lists a folder"], ["Edit", "changes a file exactly"], ["Plotter", "draws"]],
    ),
    "zh": _make_structured_reply(
        "结构化回复有 think、content 和 attachments。",
        "# 结构化回复\n\n一次对话的流程：\n\n{{mermaid:flow}}\n\n一个公式：\n\n{{latex:formula}}\n\n"
        "用 Python 也一样：\n\n{{code:example}}\n\n几个工具：\n\n{{table:tools}}",
        _FLOW.format(you="你", model="模型", asks="请求", tools="工具", results="结果"),
        ["工具", "作用"],
        [["LS", "列出目录"], ["Edit", "精确修改文件"], ["Plotter", "作图"]],
    ),
}
