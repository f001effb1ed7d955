"""One running bridge process: messages to it and from it, and what it prints.

Its messages go over descriptors of their own, so nothing that a plugin prints can be taken for one; a line that is no
message goes into the log. One that does not answer a ping within ``BLOCKED_S`` is stuck in a plugin's code and is
stopped. When it ends, however that happens, everything that waits for it fails, and says what ran.
"""

import asyncio
import base64
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

from toolyard.message import Message, join_messages
from toolyard.plugins.process.child import DRAIN_S
from toolyard.plugins.process.children import Children
from toolyard.plugins.process.launch import ChildProcess
from toolyard.plugins.process.pipes import PipeReader
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.json import Json, JsonObject, json_bytes

START_S: Final = 60.0  # modules of a hundred megabytes on a slow disk
BLOCKED_S: Final = 30.0
STOP_S: Final = 6.0  # its plugins save what they have
MAX_LINE: Final = 64 * 2**20
_PING_S = 10.0
_MAX_PROBLEM = 500  # characters
_MAX_ASKS = 64  # questions of plugins at the same time
_LARGE = 256 * 1024  # bytes from which a message is parsed in a thread
AnswerAsk: TypeAlias = Callable[[JsonObject], Awaitable[Json]]
"""Answers what a plugin asks of the server. Raises Failure."""
TakePush: TypeAlias = Callable[[JsonObject], None]


@dataclass(frozen=True, slots=True)
class LoadedPlugin:
    name: str
    folder: str
    is_loaded: bool
    is_tool: bool
    is_preprocessor: bool
    problem: str  # why it was not loaded or initialised, in the words of the plugin


@dataclass(frozen=True, slots=True)
class Inventory:
    """The plugins that the process has loaded."""

    plugins: Mapping[str, LoadedPlugin] = field(default_factory=dict)
    preprocessors: tuple[str, ...] = ()  # in their order
    problems: Mapping[str, str] = field(default_factory=dict)  # by plugin, or by part of VCPToolBox


class Answer(NamedTuple):
    value: Json
    refused: tuple[str, ...] = ()  # the files that the call was kept from, also where its code said nothing


class BridgeError(Exception):
    """An error of a plugin's code, in its words."""

    def __init__(self, text: str, refused: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.refused = refused


class HttpRequest(NamedTuple):
    method: str
    path: str  # with its query
    headers: Mapping[str, str]
    body: bytes

    def to_json(self) -> JsonObject:
        body = base64.b64encode(self.body).decode()
        return {"method": self.method, "path": self.path, "headers": dict(self.headers), "body": body}


class HttpHead(NamedTuple):
    status: int
    headers: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class HostServices:
    """The server around the plugins: it answers them, and takes their words."""

    answer: AnswerAsk
    push: TakePush
    log: Callable[[bytes], None]


class Connection:
    """A process that was started. ``ended`` is done when it is over."""

    def __init__(self, child: ChildProcess, children: Children, services: HostServices) -> None:
        self._child, self._children, self._services = child, children, services
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._responses: dict[int, asyncio.Queue[JsonObject]] = {}
        self._running: dict[int, str] = {}  # the tools of calls
        self._asks: set[asyncio.Task[None]] = set()
        self._ready: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._writing = asyncio.Lock()
        self._writer: asyncio.StreamWriter | None = None
        self._opened = asyncio.Event()  # its pipes, or it has ended
        self._is_stopping = self._is_blocked = False
        self.inventory = Inventory()
        self.idle = asyncio.Event()
        self.idle.set()
        self.ended = asyncio.create_task(self._run())

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def has_crashed(self) -> bool:
        """It ended, and nobody had asked it to."""
        return self.ended.done() and not self._is_stopping

    async def start(self, folders: Sequence[str]) -> None:
        """Let it load these folders of ``Plugin``. Raises Failure, and then it is closed."""
        try:
            async with asyncio.timeout(START_S):
                await self._send({"type": "start", "plugins": list(folders)})
                ready = await asyncio.shield(self._ready)
        except TimeoutError:
            await self.close()
            message = Message("The plugins of VCPToolBox did not start within {seconds:g} s.", seconds=START_S)
            raise Failure(Reason.START_FAILED, message) from None
        except BaseException:
            await self.close()
            raise
        if "error" in ready:
            await self.close()
            message = Message("The code of VCPToolBox cannot be loaded: {error}.", error=str(ready["error"])[:500])
            raise Failure(Reason.START_FAILED, message)
        self.inventory = _read_inventory(ready)

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Answer:
        """Return what a tool returns. Raises BridgeError or Failure; when it is cancelled, so is the tool."""
        id_ = next(self._ids)
        self._running[id_] = tool
        self.idle.clear()
        try:
            return await self._request(id_, {"type": "call", "tool": tool, "args": dict(arguments)})
        finally:
            del self._running[id_]
            if not self._running:
                self.idle.set()

    async def preprocess(self, names: Sequence[str], messages: Sequence[Json], config: JsonObject) -> list[Json]:
        """Return messages as these preprocessors leave them. Raises BridgeError or Failure."""
        request: JsonObject = {
            "type": "preprocess",
            "names": list(names),
            "messages": list(messages),
            "config": config,
        }
        value = (await self._request(next(self._ids), request)).value
        if not isinstance(value, list):
            raise BridgeError("the message preprocessors returned no list of messages")
        return value

    async def list_placeholders(self) -> dict[str, Json]:
        """Return the values that the plugins give to placeholders now, by name without braces."""
        value = (await self._request(next(self._ids), {"type": "placeholders"})).value
        return value if isinstance(value, dict) else {}

    @contextlib.asynccontextmanager
    async def request_http(self, request: HttpRequest) -> AsyncIterator[tuple[HttpHead, AsyncIterator[bytes]]]:
        """Send a request to the routes of the plugins: the head of the response and its body. Raises Failure."""
        id_ = next(self._ids)
        queue = self._responses[id_] = asyncio.Queue()
        is_over = False

        async def take() -> JsonObject:
            nonlocal is_over
            part = await queue.get()
            is_over = part["type"] == "end"
            if is_over and "error" in part:
                message = Message("The route of the plugin failed: {error}.", error=str(part["error"])[:500])
                raise Failure(Reason.CRASHED, message)
            return part

        async def read_body() -> AsyncIterator[bytes]:
            while (part := await take())["type"] == "chunk":
                await self._send({"type": "taken", "id": id_})
                yield base64.b64decode(str(part["data"]))

        try:
            await self._send({"type": "http", "id": id_, **request.to_json()})
            yield _read_head(await take()), read_body()
        finally:
            del self._responses[id_]
            if not is_over:
                self._send_soon({"type": "cancel", "id": id_})

    async def close(self) -> None:
        """Let its plugins save what they have, then end it; bounded."""
        if not self._is_stopping and not self.ended.done():
            self._is_stopping = True
            with contextlib.suppress(Failure, TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await self._send({"type": "stop"})
                    await asyncio.shield(self.ended)
            await asyncio.wait({self._children.stop(self._child)})
        await asyncio.wait({self.ended})

    # --- what comes from it ---

    async def _run(self) -> None:
        """Serve the process until it has ended, and then fail whatever waits for it."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MAX_LINE)
        stdout, stdin = os.fdopen(self._child.stdout, "rb", 0), os.fdopen(self._child.stdin, "wb", 0)
        errors = PipeReader(self._child.stderr, self._services.log)
        work: list[asyncio.Task[None]] = []
        try:
            reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), stdout)
            transport, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, stdin)
            self._writer = asyncio.StreamWriter(transport, flow, None, loop)
            self._opened.set()
            work = [asyncio.create_task(self._read(reader)), asyncio.create_task(self._watch())]
            await self._child.wait()
            await asyncio.wait(work[:1], timeout=DRAIN_S)  # for its last messages
        finally:
            for task in (*work, *self._asks):
                task.cancel()
            self._children.end(self._child.pid)
            if self._writer is not None:
                self._writer.close()
                reading.close()
            errors.read_rest()
            errors.close()
            self._opened.set()
            self._fail_all()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while True:
                try:
                    line = await reader.readline()
                except ValueError:  # longer than any message
                    self._kill()
                    return
                if not line:
                    return
                try:
                    message = json.loads(line) if len(line) < _LARGE else await asyncio.to_thread(json.loads, line)
                    self._take(message)
                except (ValueError, KeyError, TypeError, RecursionError):
                    self._services.log(b"[not a message] " + line[:2000])

    def _take(self, message: JsonObject) -> None:
        match message["type"]:
            case "answer":
                self._settle(int(str(message["id"])), message)
            case "head" | "chunk" | "end":
                if (queue := self._responses.get(int(str(message["id"])))) is not None:
                    queue.put_nowait(message)
            case "ready" if not self._ready.done():
                self._ready.set_result(message)
            case "ask":
                self._keep(asyncio.create_task(self._answer(message)))
            case "push":
                self._services.push(message)

    def _settle(self, id_: int, message: JsonObject) -> None:
        waiting = self._waiting.get(id_)
        if waiting is None or waiting.done():
            return
        listed = message.get("refused")
        refused = tuple(str(file) for file in listed) if isinstance(listed, list) else ()
        if "error" in message:
            waiting.set_exception(BridgeError(str(message["error"]), refused))
        else:
            waiting.set_result(Answer(message.get("value"), refused))

    async def _answer(self, ask: JsonObject) -> None:
        """Answer a question of a plugin; of too many at the same time, the last ones are refused."""
        reply: JsonObject = {"type": "reply", "id": ask["id"]}
        if len(self._asks) > _MAX_ASKS:
            reply["error"] = "too many calls at the same time"
        else:
            try:
                reply["value"] = await self._services.answer(ask)
            except Failure as failure:
                reply["error"] = failure.message
        await self._send(reply)

    async def _watch(self) -> None:
        """Stop the process when it does not answer: code of a plugin does not let go of it."""
        await asyncio.wait({self._ready})
        while True:
            try:
                async with asyncio.timeout(BLOCKED_S):
                    await self._request(next(self._ids), {"type": "ping"})
            except (Failure, BridgeError):
                return
            except TimeoutError:
                self._is_blocked = True
                self._kill()
                return
            await asyncio.sleep(_PING_S)

    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._child.pid, signal.SIGKILL)

    def _fail_all(self) -> None:
        failure = self._build_failure()
        waits: list[asyncio.Future[Any]] = [self._ready, *self._waiting.values()]
        for waiting in waits:
            if not waiting.done():
                waiting.set_exception(failure)
                waiting.exception()  # it has been seen, whether or not somebody waits
        for queue in self._responses.values():
            queue.put_nowait({"type": "end", "error": failure.message})

    def _build_failure(self) -> Failure:
        """Return why a process that has ended, or is about to, does not answer."""
        if self._is_stopping:
            return Failure(Reason.CANCELLED, Message("The plugins of VCPToolBox were stopped."))
        tools = join_messages(sorted(set(self._running.values())))
        if self._is_blocked:
            message = Message(
                "The process of VCPToolBox's plugins did not answer for {seconds:g} s.", seconds=BLOCKED_S
            )
        else:
            message = Message("The process of VCPToolBox's plugins ended.")
        if tools:
            message = Message("{message} These calls ran in it: {tools}.", message=message, tools=tools)
        return Failure(Reason.CRASHED, message, hint=Message("It is started again by the next call."))

    # --- what goes to it ---

    async def _request(self, id_: int, message: JsonObject) -> Answer:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[id_] = answer
        try:
            await self._send({**message, "id": id_})
            return await answer
        except asyncio.CancelledError:
            self._send_soon({"type": "cancel", "id": id_})
            raise
        finally:
            del self._waiting[id_]

    async def _send(self, message: JsonObject) -> None:
        """Write a message. Raises Failure when it is too large, or the process is gone."""
        line = json_bytes(message) + b"\n"
        if len(line) > MAX_LINE:
            too_large = Message(
                "It is more than the plugins of VCPToolBox take at once, {most} MiB.", most=MAX_LINE >> 20
            )
            raise Failure(Reason.TOO_LARGE, too_large)
        async with self._writing:
            await self._opened.wait()
            if self._writer is None or self.ended.done():
                raise self._build_failure()
            try:
                self._writer.write(line)
                await self._writer.drain()
            except OSError:
                raise self._build_failure() from None

    def _send_soon(self, message: JsonObject) -> None:
        if not self.ended.done():
            self._keep(asyncio.create_task(self._send(message)))

    def _keep(self, task: "asyncio.Task[None]") -> None:
        self._asks.add(task)

        def forget(_: object) -> None:
            self._asks.discard(task)
            if not task.cancelled():
                task.exception()  # the process is gone

        task.add_done_callback(forget)


def _read_inventory(ready: JsonObject) -> Inventory:
    listed, problems = ready.get("plugins"), ready.get("problems")
    plugins = {
        str(one["name"]): LoadedPlugin(
            name=str(one["name"]),
            folder=str(one["folder"]),
            is_loaded=bool(one["loaded"]),
            is_tool=bool(one["tool"]),
            is_preprocessor=bool(one["preprocessor"]),
            problem=str(one["problem"])[:_MAX_PROBLEM],
        )
        for one in (listed if isinstance(listed, list) else [])
        if isinstance(one, dict)
    }
    order = ready.get("order")
    return Inventory(
        plugins=plugins,
        preprocessors=tuple(str(name) for name in order) if isinstance(order, list) else (),
        problems={name: str(why)[:_MAX_PROBLEM] for name, why in problems.items()}
        if isinstance(problems, dict)
        else {},
    )


def _read_head(part: JsonObject) -> HttpHead:
    pairs, status = part.get("headers"), part.get("status")
    listed = [pair for pair in pairs if isinstance(pair, list)] if isinstance(pairs, list) else []
    headers = tuple((str(pair[0]), str(pair[1])) for pair in listed)
    return HttpHead(status if isinstance(status, int) else 502, headers)
