"""The tool work of one reply: its calls run at the same time, their results keep the order of the reply.

At most ``AT_ONCE`` calls of one reply run together. A fire-and-forget call is started and not waited for; it has no
result, and it outlives its round. A call with a time is scheduled instead of run. A block that cannot be run is
reported to the model like a result. Cancelling ``run_all`` cancels the calls it started.

A request may narrow what its calls do (``Bounds``). The owner's rules and mode apply in any case. ``auto-safe`` is the
only mode that permits more, so it takes a key that may answer approvals; it never applies to a call that runs later.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from http import HTTPStatus
from typing import Final, TypedDict

from toolyard.engine.rules import PermissionRequest
from toolyard.gateway.chat_ports import ToolPort
from toolyard.gateway.faults import bad_request
from toolyard.gateway.reply.chunks import read_text
from toolyard.message import Message, add_hint, read_hint
from toolyard.protocol.content import Media
from toolyard.protocol.envelope import Envelope, Status
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.assistant_record import Mode
from toolyard.protocol.requests.scanner import neutralise
from toolyard.protocol.tool import Outcome, ToolCall, ToolSpec
from toolyard.protocol.tool_text import CHINESE, ENGLISH

AT_ONCE: Final = 8
_STOP_S = 1.0


class JobState(StrEnum):
    SUCCESS = "success"
    PARTIAL = "partial"
    ERROR = "error"
    SCHEDULED = "scheduled"
    BACKGROUND = "background"  # fire and forget: started, and not waited for


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One request of a reply, native or text, that is to be worked on."""

    tool: str
    call: ToolCall | None = None  # none: it cannot be run, for ``problem``
    problem: str = ""
    at: str = ""  # time at which it is to run, if not now
    is_detached: bool = False
    shows_result: bool = False  # its complete result is shown to the client
    native_id: str = ""  # of a native tool call

    def with_chat(self, chat: str) -> "Job":
        return replace(self, call=replace(self.call, chat=chat)) if self.call else self


@dataclass(frozen=True, slots=True)
class TaskName:
    """A task as its placeholder names it."""

    plugin: str
    task_id: str

    @property
    def placeholder(self) -> str:
        return f"{{{{VCP_ASYNC_RESULT::{self.plugin}::{self.task_id}}}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    job: Job
    state: JobState
    text: str  # what happened, for people
    brief: str = ""  # the reason of a failure, and what to do next
    reason: str = ""  # the same as a code, such as DENIED
    content: list[Json] = field(default_factory=list)  # parts for the model, inert
    native: JsonObject = field(default_factory=dict)  # the ``role: tool`` message
    media: tuple[Media, ...] = ()  # for people
    action: JsonObject = field(default_factory=dict)  # the special action that the client is asked for
    tasks: tuple[TaskName, ...] = ()  # what goes on after the call
    time_ms: float = 0.0

    @property
    def is_failure(self) -> bool:
        return self.state is JobState.ERROR

    @property
    def output(self) -> str:
        """The text that the model reads."""
        return read_text(self.native.get("content") if self.native else self.content)


Listener = Callable[[Job, "JobResult | None"], None]  # called when a job begins, and when it has ended
FindResult = Callable[[Job], Awaitable["JobResult | None"]]  # of a job that was run before; None: it is to run


class JobRunner:
    def __init__(self, tools: ToolPort, language: str = ENGLISH) -> None:
        """``language``: of the conversation."""
        self._tools, self._language = tools, language
        self._room: asyncio.Semaphore | None = None
        self._background: list[asyncio.Task[JobResult]] = []

    async def run_all(self, jobs: list[Job], listen: Listener, find: FindResult) -> list[JobResult]:
        tasks = [asyncio.create_task(self._run_limited(job, listen, find)) for job in jobs if not job.is_detached]
        for job in jobs:
            if job.is_detached:
                self._background.append(task := asyncio.create_task(self._run_limited(job, listen, find)))
                task.add_done_callback(self._background.remove)
        waited = iter(tasks)
        try:
            return [self._to_detached(job) if job.is_detached else await next(waited) for job in jobs]
        except BaseException:
            await _cancel_all(tasks)
            raise

    async def stop(self) -> None:
        """Also cancel calls that were started and not waited for."""
        await _cancel_all([*self._background])

    async def _run_limited(self, job: Job, listen: Listener, find: FindResult) -> JobResult:
        self._room = self._room or asyncio.Semaphore(AT_ONCE)
        async with contextlib.nullcontext() if job.is_detached else self._room:
            listen(job, None)
            ran = await find(job) or await self._run(job)
            listen(job, ran)
            return ran

    async def _run(self, job: Job) -> JobResult:
        if job.call is None:
            return host_result(job, JobState.ERROR, job.problem, self._language)
        if job.at:
            receipt = await self._tools.schedule(job.call, job.at)
            ran = self.to_result(job, job.call, receipt)
            return ran if ran.is_failure else replace(ran, state=JobState.SCHEDULED)
        return self.to_result(job, job.call, await self._tools.settle(job.call))

    def _to_detached(self, job: Job) -> JobResult:
        return host_result(job, JobState.BACKGROUND, Message("Started; nobody waits for its result."), self._language)

    def to_result(self, job: Job, call: ToolCall, outcome: Outcome) -> JobResult:
        envelope = outcome.envelope
        state = JobState(envelope.status.value if envelope.status is not Status.ERROR else "error")
        tasks = _list_tasks(envelope)
        inert = _OutputCleaner(self._tools.mask, tasks)
        message = self._tools.express(call, outcome, self._language)
        said, media = _split_content(inert.clean_json(message.get("content")))
        time_ms = envelope.stats["time_ms"]
        error, reason = envelope.error, envelope.context.get("reason")
        brief = inert.clean_text(add_hint(error.message, read_hint(envelope.text))) if error else ""
        return JobResult(
            job=job, state=state, text=inert.clean_text(envelope.text), brief=brief,
            reason=reason if isinstance(reason, str) else "", **_to_content(job, said, media),
            media=_list_media(outcome), action=outcome.extras.summarize_action(), tasks=tasks, time_ms=float(time_ms),
        )  # fmt: skip


class _OutputCleaner:
    """Makes tool output unable to act when a model repeats it; placeholders of the call's own tasks stay active."""

    def __init__(self, mask: Callable[[str], str], tasks: Iterable[TaskName]) -> None:
        self._mask = mask
        self._live = [task.placeholder for task in tasks]

    def clean_text(self, text: str) -> str:
        return text.map_text(self._clean) if isinstance(text, Message) else self._clean(text)

    def _clean(self, text: str) -> str:
        made = neutralise(self._mask(text))
        for live in self._live:
            for more in (2, 1, 0):  # it may be written with up to four braces
                written = "{" * more + live + "}" * more
                made = made.replace(neutralise(written), live)
        return made

    def clean_json(self, value: Json) -> Json:
        if isinstance(value, str):
            return value if value.startswith("data:") else self.clean_text(value)
        if isinstance(value, list):
            return [self.clean_json(item) for item in value]
        return {key: self.clean_json(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def _split_content(content: Json) -> tuple[str, list[Json]]:
    """Split the content of a tool message into text and media."""
    parts = content if isinstance(content, list) else []
    return read_text(content), [part for part in parts if isinstance(part, dict) and part.get("type") != "text"]


class _Content(TypedDict):
    native: JsonObject
    content: list[Json]


def _to_content(job: Job, text: str, media: list[Json]) -> _Content:
    """Return what the model reads: of a native call its own message, and the media apart, as every provider wants."""
    if job.native_id:
        native: JsonObject = {"role": "tool", "tool_call_id": job.native_id, "content": text}
        return _Content(native=native, content=media)
    return _Content(native={}, content=[{"type": "text", "text": text}, *media])


def _list_tasks(envelope: Envelope) -> tuple[TaskName, ...]:
    tasks = envelope.data.get("tasks")
    return tuple(
        TaskName(str(task.get("plugin")), str(task.get("task_id")))
        for task in (tasks if isinstance(tasks, list) else [])
        if isinstance(task, dict)
    )


def _list_media(outcome: Outcome) -> tuple[Media, ...]:
    outcomes = [item.outcome for item in outcome.batch] or [outcome]
    return tuple(part for one in outcomes for part in one.extras.parts if isinstance(part, Media))


def host_result(job: Job, state: JobState, text: str, language: str = ENGLISH) -> JobResult:
    """Return a result that the host itself writes for a job."""
    safe = text.map_text(neutralise) if isinstance(text, Message) else neutralise(text)
    said = safe.chinese if language == CHINESE and isinstance(safe, Message) else safe
    return JobResult(job=job, state=state, text=safe, **_to_content(job, said, []))


async def _cancel_all(tasks: "list[asyncio.Task[JobResult]]") -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_STOP_S)


_MOST = 1000  # tools that a client may name


@dataclass(frozen=True, slots=True)
class Bounds:
    tools: frozenset[str] | None = None  # their names; None: all
    mode: Mode = Mode.ASK
    max_calls: int | None = None  # in one turn

    def limit(self, jobs: "list[Job]", before: int) -> "list[Job]":
        """Return the jobs; those over the number of calls tell the model so. ``before`` of them have run."""
        if self.max_calls is None:
            return jobs
        problem = Message("This request allows {most} calls, and they have run: answer now.", most=self.max_calls)
        left = max(0, self.max_calls - before)
        return [*jobs[:left], *(replace(job, call=None, problem=problem) for job in jobs[left:])]

    def apply(self, job: Job, spec_of: Callable[[str], ToolSpec | None]) -> Job:
        """Return the job, or one that tells the model why it was refused."""
        if job.call is None or job.call.unreadable:
            return job
        if self.tools is not None and job.call.tool not in self.tools:
            problem = Message(
                "This chat may not use {tool}. The tools it may use: {names}.",
                tool=job.tool,
                names=", ".join(sorted(self.tools)) or Message("none"),
            )
            return replace(job, call=None, problem=problem)
        if self.mode is Mode.READ_ONLY:
            spec = spec_of(job.call.tool)
            if spec is None or not PermissionRequest(call=job.call, spec=spec).is_read_only:
                problem = Message(
                    "{tool} would change something, and this chat may only look. Say what you would do instead.",
                    tool=job.tool,
                )
                return replace(job, call=None, problem=problem)
        if self.mode is Mode.AUTO_SAFE and not job.at:
            return replace(job, call=replace(job.call, auto_safe=True))
        return job


def parse_bounds(fields: JsonObject, *, may_approve: bool = False, max_calls: int | None = None) -> Bounds:
    """Read the bounds from a request's options. Raises ChatFailed. ``may_approve``: the caller may answer approvals."""
    tools, mode = fields.get("tools"), fields.get("mode", Mode.ASK)
    if mode not in list(Mode):
        raise bad_request(Message("'mode' is one of {names}, not '{mode}'", names=", ".join(Mode), mode=str(mode)[:50]))
    if mode == Mode.AUTO_SAFE and not may_approve:
        raise bad_request(
            Message(
                "'auto-safe' lets calls run that would ask, so it takes a key that may answer them: one with the "
                "scope 'approve'"
            ),
            "forbidden",
            HTTPStatus.FORBIDDEN,
        )
    if tools is not None and not _are_names(tools):
        raise bad_request(Message("'tools' of 'toolyard' is a list of names, at most {most}", most=_MOST))
    names = frozenset(str(name) for name in tools) if isinstance(tools, list) else None
    return Bounds(names, Mode(str(mode)), max_calls)


def _are_names(tools: Json) -> bool:
    return isinstance(tools, list) and len(tools) <= _MOST and all(isinstance(name, str) for name in tools)
