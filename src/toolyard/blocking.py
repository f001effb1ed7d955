"""The Yard for programs without an event loop: the same calls, blocking, from any thread."""

import asyncio
import ctypes
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar, overload

import uvloop

from toolyard.config import Config
from toolyard.dialects import require_dialect
from toolyard.errors import ServerUnreachable
from toolyard.hosts.open_yard import open_yard
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.tool import ToolCall
from toolyard.web.server.running_server import ServerClient, find_server
from toolyard.yard.calls import Arguments

T = TypeVar("T")
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT = 2**24  # bytes that stay with the process when a call has freed them
_LARGEST = 2**22  # bytes of one piece of them
_TELL_S = 5.0  # for the calls of a Yard that was closed to tell their threads how they ended


class BlockingYard:
    """Owns a thread that runs the event loop of one Yard. Calls from several threads run at the same time."""

    def __init__(self, config: Config) -> None:
        _keep_freed_memory()
        self._server = find_server(config, own_pid=os.getpid())
        self._loop = uvloop.new_event_loop()  # a call goes from thread to thread several times, which takes less on it
        self._thread = threading.Thread(target=self._loop.run_forever, name="toolyard", daemon=True)
        self._thread.start()
        self._guard = threading.RLock()  # between a call that begins and the end of all, which a signal may ask for
        self._calls: set[Future[Envelope | dict[str, Any]]] = set()  # that threads wait for
        self._closed = False
        self._process = os.getpid()  # a fork has the object but not the thread
        self._opened = open_yard(config, serves=False)
        try:
            self._yard = self._run(self._opened.__aenter__())
        except BaseException:
            self._end_thread()
            raise
        self.tools = self._yard.tools

    @overload
    def call(
        self, tool: str, arguments: Arguments | None = None, *, dialect: None = None, shown: bool = False
    ) -> Envelope: ...

    @overload
    def call(
        self,
        tool: str,
        arguments: Arguments | None = None,
        *,
        dialect: str,
        shown: bool = False,
        tool_call_id: str | None = None,
    ) -> dict[str, Any]: ...

    def call(
        self,
        tool: str,
        arguments: Arguments | None = None,
        *,
        dialect: str | None = None,
        shown: bool = False,
        tool_call_id: str | None = None,
    ) -> Envelope | dict[str, Any]:
        """Run a tool; the envelope, or a dict in ``dialect``. A failed tool is an envelope, no exception.

        ``arguments`` may be the JSON text that a model wrote. ``shown``: the result as a model sees it, not the full
        one. ``tool_call_id``: the model's id of the call, which the message in ``dialect`` answers.
        """
        if os.getpid() != self._process:
            raise RuntimeError("this Yard was opened by another process: open one of your own with toolyard.open()")
        if self._server is not None:
            self._require_open()
            require_dialect(dialect or "envelope", tool_call_id)
            call = self._yard.calls.request(tool, arguments or {}, tool_call_id=tool_call_id or "")
            if not call.unreadable:  # one that cannot run needs no server
                return _call_server(self._server, call, dialect, shown=shown)
        running = self._submit(tool, arguments, dialect, shown=shown, tool_call_id=tool_call_id)
        try:
            return running.result()
        except BaseException:  # Ctrl-C among them: a call that nobody waits for is stopped
            running.cancel()
            raise

    def _submit(
        self, tool: str, arguments: Arguments | None, dialect: str | None, *, shown: bool, tool_call_id: str | None
    ) -> "Future[Envelope | dict[str, Any]]":
        with self._guard:
            self._require_open()
            work = self._yard.call(tool, arguments, dialect=dialect, shown=shown, tool_call_id=tool_call_id)
            running = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._calls.add(running)
        running.add_done_callback(self._calls.discard)
        return running

    def _require_open(self) -> None:
        if self._closed:
            raise RuntimeError("this Yard is closed: open another one with toolyard.open()")

    def close(self) -> None:
        """Cancel what still runs and end the thread. Closing twice is harmless."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
        try:
            self._run(self._opened.__aexit__(None, None, None))
            for stuck in wait(list(self._calls), timeout=_TELL_S).not_done:
                stuck.cancel()  # its thread would wait for ever
        finally:
            self._end_thread()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def __enter__(self) -> "BlockingYard":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _call_server(
    server: ServerClient, call: ToolCall, dialect: str | None, *, shown: bool
) -> Envelope | dict[str, Any]:
    """Call through the server that runs on this home, so that one process runs all calls."""
    try:
        value = server.call(
            call, caller=call.caller, dialect=dialect or "envelope", shown=shown, tool_call_id=call.use_id
        ).value
    except ServerUnreachable:
        raise
    except BaseException:  # Ctrl-C among them
        with suppress(ServerUnreachable):
            server.cancel(call.id)
        raise
    return Envelope.from_dict(value) if dialect is None else value


def _keep_freed_memory() -> None:
    """Keep freed memory in the process: the next call needs it, and fresh pages cost more than reading a file."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # only the GNU library has it
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST)
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
