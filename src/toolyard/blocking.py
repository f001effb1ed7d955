"""The Yard for programs without an event loop: the same calls, blocking, from any thread."""

import asyncio
import ctypes
import os
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Any, overload

import uvloop

from toolyard.config import Config
from toolyard.protocol.envelope import Envelope
from toolyard.web.server_client import ServerClient, find_server
from toolyard.yard.yard import Yard, require_dialect

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT = 2**24  # bytes that stay with the process when a call has freed them
_LARGEST = 2**22  # bytes of one piece of them
_TELL_S = 5.0  # for the calls of a Yard that was closed to tell their threads how they ended


class BlockingYard:
    """Owns a thread that runs the event loop of one Yard. Calls from several threads run at the same time."""

    def __init__(self, config: Config) -> None:
        _keep_freed_memory()
        self._yard = Yard(config)
        self._server = find_server(config, own_pid=os.getpid())
        self.tools = self._yard.tools
        self._loop = uvloop.new_event_loop()  # a call goes from thread to thread several times, which takes less on it
        self._thread = threading.Thread(target=self._loop.run_forever, name="toolyard", daemon=True)
        self._thread.start()
        self._guard = threading.RLock()  # between a call that begins and the end of all, which a signal may ask for
        self._calls: set[Future[Envelope | dict[str, Any]]] = set()  # that threads wait for
        self._closed = False
        self._process = os.getpid()  # a fork has the object but not the thread

    @overload
    def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Envelope: ...

    @overload
    def call(self, tool: str, arguments: Mapping[str, Any] | None = None, *, dialect: str) -> dict[str, Any]: ...

    def call(
        self, tool: str, arguments: Mapping[str, Any] | None = None, *, dialect: str | None = None
    ) -> Envelope | dict[str, Any]:
        """Run a tool; the full envelope, or a dict in ``dialect``."""
        if os.getpid() != self._process:
            raise RuntimeError("this Yard was opened by another process: open one of your own with toolyard.open()")
        if self._server is not None:
            self._require_open()
            return self._call_server(self._server, tool, arguments or {}, dialect)
        running = self._submit(tool, arguments, dialect)
        try:
            return running.result()
        except BaseException:  # Ctrl-C among them: a call that nobody waits for is stopped
            running.cancel()
            raise

    def _submit(
        self, tool: str, arguments: Mapping[str, Any] | None, dialect: str | None
    ) -> "Future[Envelope | dict[str, Any]]":
        with self._guard:
            self._require_open()
            work: Coroutine[Any, Any, Envelope | dict[str, Any]] = (
                self._yard.call(tool, arguments)
                if dialect is None
                else self._yard.call(tool, arguments, dialect=dialect)
            )
            running = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._calls.add(running)
        running.add_done_callback(self._calls.discard)
        return running

    def _require_open(self) -> None:
        if self._closed:
            raise RuntimeError("this Yard is closed: open another one with toolyard.open()")

    def _call_server(
        self, server: ServerClient, tool: str, arguments: Mapping[str, Any], dialect: str | None
    ) -> Envelope | dict[str, Any]:
        """Call through the server that runs on this home, so that one process runs all calls."""
        require_dialect(dialect or "envelope")
        call = self._yard.request(tool, arguments)
        try:
            value = server.call(call, caller=call.caller, dialect=dialect or "envelope").value
        except BaseException:
            server.cancel(call.id)
            raise
        return Envelope.from_dict(value) if dialect is None else value

    def close(self) -> None:
        """Cancel what still runs and end the thread. Closing twice is harmless."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
        asyncio.run_coroutine_threadsafe(self._yard.close(), self._loop).result()
        for stuck in wait(list(self._calls), timeout=_TELL_S).not_done:
            stuck.cancel()  # its thread would wait for ever
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


def _keep_freed_memory() -> None:
    """Keep freed memory in the process: the next call needs it, and fresh pages cost more than reading a file."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # only the GNU library has it
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST)
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
