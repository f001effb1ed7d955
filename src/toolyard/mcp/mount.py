"""``/mcp`` inside a web server. The SDK takes more than a second to load, so the first request loads it, in a thread.

What the SDK keeps open lives in one task from that moment until ``close``. When the server begins to end, streams that
only wait for news are ended, so that they hold up nobody; calls have the server's grace.
"""

import asyncio
import contextlib
import gc
import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from toolyard.yard.yard import Yard

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOK_S: Final = 0.5
_APP = "toolyard.mcp.server"


class McpMount:
    """An ASGI app for one event loop.

    ``caller_of`` gives the caller for an HTTP request, ``may_rule`` whether they may make rules for approvals,
    ``address`` where people reach the console.
    """

    def __init__(
        self,
        yard: Yard,
        caller_of: Callable[[Any], str],
        may_rule: Callable[[Any], bool],
        ending: Callable[[], bool],
        address: Callable[[], str],
    ) -> None:
        self._yard, self._caller_of, self._may_rule, self._ending = yard, caller_of, may_rule, ending
        self._address = address
        self._living: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[ASGIApp] | None = None
        self._stop, self._ends = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if self._opened is None:
            self._opened = asyncio.get_running_loop().create_future()
            self._living = asyncio.create_task(self._run_server(self._opened))
            self._living.add_done_callback(lambda task: task.cancelled() or task.exception())  # those who wait hear it
        app = await asyncio.shield(self._opened)
        if scope.get("method") == "GET":
            await self._serve_stream(app, scope, receive, send)
        else:
            await app(scope, receive, send)

    async def close(self) -> None:
        self._stop.set()
        if self._living is not None:
            await asyncio.wait({self._living})

    async def _run_server(self, opened: "asyncio.Future[ASGIApp]") -> None:
        try:
            await self._serve(opened)
        except BaseException as error:
            if not opened.done():  # whoever waits for it hears why, and the next request tries again
                self._opened = None
                opened.set_exception(RuntimeError(f"the MCP server does not start: {error}"))
            raise

    async def _serve(self, opened: "asyncio.Future[ASGIApp]") -> None:
        is_new = _APP not in sys.modules
        module = await asyncio.to_thread(importlib.import_module, _APP)
        if is_new:
            gc.freeze()  # a full collection, which stops every chat, skips it (bench row "freeze after loading MCP")
        mounted = module.build_mcp_app(self._yard, self._caller_of, self._may_rule, address=self._address)
        async with mounted.lifespan():
            opened.set_result(mounted.app)
            while not self._stop.is_set():
                if self._ending() and not self._ends.is_set():
                    self._ends.set()
                    mounted.server.changes.listen.close()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), LOOK_S)

    async def _serve_stream(self, app: "ASGIApp", scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve a notification stream, which would stay open forever, until the mount closes.

        Its events have no ids, so there is none to resume it after: a client that names one gets a new stream. The SDK
        would give no answer at all.
        """
        scope = {**scope, "headers": [header for header in scope["headers"] if header[0] != b"last-event-id"]}
        streaming = asyncio.ensure_future(app(scope, receive, send))
        ends = asyncio.ensure_future(self._ends.wait())
        try:
            await asyncio.wait({streaming, ends}, return_when=asyncio.FIRST_COMPLETED)
            if streaming.done():
                streaming.result()
        finally:
            for one in (streaming, ends):
                one.cancel()
            await asyncio.gather(streaming, ends, return_exceptions=True)
