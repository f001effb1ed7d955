"""Quick calls: calls of a client on stdio that end at once, answered without the SDK.

The SDK takes longer to read a call and to write its result than most calls take to run (bench row "mcp"). So a call
with the same envelope as one that the SDK has accepted on this connection begins here. One that has not ended after
``QUICK_S``, that raises, or that is cancelled is handed over: the SDK gets its line, and attaches to the call that is
running. Approvals, progress, cancelling and errors stay with the SDK alone.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from mcp_types import SERVER_INFO_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolyard.dialects.mcp_messages import (
    RequestId,
    add_completion,
    parse_call,
    parse_cancelled_id,
    write_response,
)
from toolyard.mcp.calls import QUICK_S
from toolyard.mcp.early_results import CallRun
from toolyard.mcp.resources import build_task_links
from toolyard.mcp.server import McpServer
from toolyard.protocol.json import JsonObject

_OLDEST: Final = "2025-06-18"  # the SDK leaves parts of a result out for clients that are older


@dataclass(frozen=True, slots=True)
class _QuickCall:
    line: bytes
    run: CallRun
    version: str
    timer: asyncio.TimerHandle


class QuickCalls:
    def __init__(
        self, server: McpServer, write: Callable[[bytes], None], pass_on: Callable[[bytes], Awaitable[None]]
    ) -> None:
        """``pass_on`` gives a line to the SDK."""
        self._server, self._write, self._pass_on = server, write, pass_on
        self._running: dict[RequestId, _QuickCall] = {}
        self._handing: set[asyncio.Task[None]] = set()

    async def take(self, line: bytes) -> bool:
        """Begin the call of a line; False when the line is for the SDK."""
        if self._running and (cancelled := parse_cancelled_id(line)) is not None:
            await self._hand_over(cancelled)
            return False
        request = parse_call(line)
        if request is None or request[0] in self._running:
            return False
        id_, params = request
        run, version = self._begin(params)
        if run is None:
            return False
        timer = asyncio.get_running_loop().call_later(QUICK_S, self._hand_over_soon, id_)
        self._running[id_] = _QuickCall(line, run, version, timer)
        run.task.add_done_callback(lambda _: self._finish(id_))
        return True

    async def hand_over_all(self) -> None:
        """Give all calls that have not ended to the SDK, which answers them."""
        for id_ in [*self._running]:
            await self._hand_over(id_)
        await asyncio.gather(*self._handing)

    def _begin(self, params: JsonObject) -> tuple[CallRun | None, str]:
        version = self._server.find_accepted_version(params.get("_meta"))
        arguments = params.get("arguments")
        call = self._server.build_call(str(params["name"]), arguments if isinstance(arguments, dict) else {}, None)
        if version < _OLDEST or call is None or self._server.calls.is_repeated(call):
            return None, version
        return self._server.calls.start(call), version

    def _finish(self, id_: RequestId) -> None:
        """Answer a call that has ended."""
        call = self._running.get(id_)
        if call is None:
            return  # the SDK has it
        task = call.run.task
        if task.cancelled() or task.exception() is not None or build_task_links(task.result().envelope):
            self._hand_over_soon(id_)
            return
        del self._running[id_]
        call.timer.cancel()
        result = self._server.calls.express(call.run.call, task.result(), call.version)
        if call.version in MODERN_PROTOCOL_VERSIONS:
            result = add_completion(result, {SERVER_INFO_META_KEY: self._server.sdk.server_info_stamp})
        self._write(write_response(id_, result))

    def _hand_over_soon(self, id_: RequestId) -> None:
        handing = asyncio.ensure_future(self._hand_over(id_))
        self._handing.add(handing)
        handing.add_done_callback(self._handing.discard)

    async def _hand_over(self, id_: RequestId) -> None:
        call = self._running.pop(id_, None)
        if call is not None:
            call.timer.cancel()
            self._server.calls.hand_over(id_, call.run)
            await self._pass_on(call.line)
