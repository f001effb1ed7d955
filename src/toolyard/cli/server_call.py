"""Calls of the command line through the running server of the home. Only a longer wait loads the engine."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, InvalidStateError
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import uuid4

from toolyard.cli.common_options import CommonOptions
from toolyard.cli.detach import AnswerSink
from toolyard.cli.output import json_text
from toolyard.cli.stop_signals import StopSignals
from toolyard.config import Config
from toolyard.errors import ServerUnreachable
from toolyard.web.server_client import ServerClient, find_server

if TYPE_CHECKING:
    from toolyard.cli.call import CallRequest
    from toolyard.protocol.json import JsonObject

T = TypeVar("T")
_RETRY_S = 0.5
_SHOW_AFTER_S = 1.0  # before it, the engine is not loaded to show the progress of a call


class _Call(NamedTuple):
    id: str
    tool: str
    arguments: Mapping[str, Any]
    force: bool


def choose_server(common: CommonOptions, config: Config) -> ServerClient | None:
    """Return the server to call through; None with ``--plugins``, which it does not know."""
    return None if common.plugins else find_server(config, own_pid=os.getpid())


async def call_through_server(
    server: ServerClient, request: "CallRequest", config: Config, say: AnswerSink, *, wait: bool
) -> int:
    """Run a call on the server, pass on its result, and return the exit code."""
    pairs: JsonObject = {}
    if request.pairs:
        pairs = await run_in_daemon_thread(lambda: _parse_pairs(server, request))
    else:
        await run_in_daemon_thread(server.check)  # before the signals are taken: Ctrl-C ends this wait
    arguments = {**request.written, **pairs}
    later = arguments.pop("timely_contact", None)
    call = _Call(f"call_{uuid4().hex}", request.tool, arguments, request.force)
    cancels: list[asyncio.Task[None]] = []
    stops = StopSignals(lambda: cancels.append(asyncio.create_task(_cancel_until_answered(server, call.id, stops))))
    telling = None if request.common.quiet else asyncio.create_task(_show_progress_later(config, call.id))
    running = run_in_daemon_thread(
        lambda: server.call(
            call,
            caller="cli",
            dialect=request.dialect,
            shown=request.shown,
            later=None if later is None else str(later),
        )
    )
    try:
        answered = await wait_unless_given_up(running, stops, call.id, request.common)
    finally:
        for task in (*cancels, *([telling] if telling else [])):
            task.cancel()
        if telling:
            await asyncio.gather(telling, return_exceptions=True)
    if not answered.tasks or not wait:
        say(json_text(answered.value), int(answered.failed))
        return int(answered.failed)
    from toolyard.cli.local_call import wait_for_server_tasks

    receipt = await run_in_daemon_thread(lambda: server.get_envelope(call.id))
    return await wait_for_server_tasks(request, config, call, receipt, answered.tasks, stops, say)


def _parse_pairs(server: ServerClient, request: "CallRequest") -> "JsonObject":
    from toolyard.cli.pairs import parse_pairs
    from toolyard.protocol.arguments import find_schema_in_json

    tool = server.find_tool(request.tool)
    return parse_pairs(request.pairs, lambda key: find_schema_in_json(tool, key))


async def _show_progress_later(config: Config, call_id: str) -> None:
    """Show what a call reports, once it takes so long that its user may wonder."""
    await asyncio.sleep(_SHOW_AFTER_S)
    from toolyard.cli.call_progress import show_server_progress

    await show_server_progress(config, call_id)


async def _cancel_until_answered(server: ServerClient, call_id: str, stops: StopSignals) -> None:
    """Cancel a call repeatedly, because the server may not have received it yet."""
    while True:
        try:
            await run_in_daemon_thread(lambda: server.cancel(call_id))
        except ServerUnreachable:
            stops.gave_up.set()
            return
        await asyncio.sleep(_RETRY_S)


async def wait_unless_given_up(
    work: Coroutine[Any, Any, T], stops: StopSignals, call_id: str, common: CommonOptions
) -> T:
    """Return the result of ``work``, which the server runs. Raises ServerUnreachable once its user gave up waiting."""
    running, given_up = asyncio.create_task(work), asyncio.create_task(stops.gave_up.wait())
    try:
        await asyncio.wait((running, given_up), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
        command = common.own_command.for_home.format("journal show", call_id)
        raise ServerUnreachable(
            f"stopped waiting for the server: the call {call_id} may still run or have run; see `{command}`"
        )
    finally:
        given_up.cancel()
        running.cancel()
        await asyncio.gather(running, given_up, return_exceptions=True)


async def run_in_daemon_thread(work: Callable[[], T]) -> T:
    """Run blocking ``work`` in a thread that does not keep the program from ending."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            value = work()
        except BaseException as error:  # noqa: BLE001 whoever waits gets it
            with contextlib.suppress(InvalidStateError):  # nobody waits any more
                result.set_exception(error)
        else:
            with contextlib.suppress(InvalidStateError):
                result.set_result(value)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(result)
