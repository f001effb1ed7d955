"""Calls of the command line through the running server of the home. Only a longer wait loads the engine."""

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from toolyard.cli.common_options import CommonOptions
from toolyard.cli.detach import AnswerSink
from toolyard.cli.output import json_text
from toolyard.cli.stop_signals import StopSignals
from toolyard.config import Config
from toolyard.web.server_client import ServerClient, find_server

if TYPE_CHECKING:
    from toolyard.cli.call import CallRequest
    from toolyard.protocol.json import JsonObject

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
    pairs = await asyncio.to_thread(_parse_pairs, server, request) if request.pairs else {}
    arguments = {**request.written, **pairs}
    later = arguments.pop("timely_contact", None)
    call = _Call(f"call_{uuid4().hex}", request.tool, arguments, request.force)
    cancels: list[asyncio.Task[None]] = []
    stops = StopSignals(lambda: cancels.append(asyncio.create_task(_cancel_until_answered(server, call.id))))
    telling = None if request.common.quiet else asyncio.create_task(_show_progress_later(config, call.id))
    try:
        answered = await asyncio.to_thread(
            server.call, call, caller="cli", dialect=request.dialect, shown=request.shown,
            later=None if later is None else str(later),
        )  # fmt: skip
    finally:
        for task in (*cancels, *([telling] if telling else [])):
            task.cancel()
        if telling:
            await asyncio.gather(telling, return_exceptions=True)
    if not answered.tasks or not wait:
        say(json_text(answered.value), int(answered.failed))
        return int(answered.failed)
    from toolyard.cli.local_call import wait_for_server_tasks

    receipt = await asyncio.to_thread(server.get_envelope, call.id)
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


async def _cancel_until_answered(server: ServerClient, call_id: str) -> None:
    """Cancel a call repeatedly, because the server may not have received it yet."""
    while True:
        await asyncio.to_thread(server.cancel, call_id)
        await asyncio.sleep(_RETRY_S)
