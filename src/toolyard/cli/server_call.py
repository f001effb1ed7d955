"""Calls of the command line through the running server of the home."""

import asyncio
import os

from toolyard.app import Yard
from toolyard.cli.common_options import CommonOptions
from toolyard.cli.detach import AnswerSink
from toolyard.cli.output import json_text
from toolyard.cli.task_wait import StopSignals, wait_for_tasks
from toolyard.protocol.call import ToolCall
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.outcome import Outcome
from toolyard.web.server_client import ServerClient, find_server

_RETRY_S = 0.5


def choose_server(common: CommonOptions, yard: Yard) -> ServerClient | None:
    """Return the server to call through; None with ``--plugins``, which it does not know."""
    return None if common.plugins else find_server(yard.config, own_pid=os.getpid())


async def call_through_server(
    server: ServerClient,
    yard: Yard,
    call: ToolCall,
    say: AnswerSink,
    *,
    dialect: str,
    shown: bool,
    later: str | None,
    wait: bool,
    quiet: bool,
) -> int:
    """Run a call on the server, pass on its result, and return the exit code. ``yard`` only reads."""
    cancels: list[asyncio.Task[None]] = []
    stops = StopSignals(lambda: cancels.append(asyncio.create_task(_cancel_until_answered(server, call.id))))
    try:
        answered = await asyncio.to_thread(server.call, call, caller="cli", dialect=dialect, shown=shown, later=later)
    finally:
        for cancel in cancels:
            cancel.cancel()
    if not answered.tasks or not wait:
        say(json_text(answered.value), int(answered.failed))
        return int(answered.failed)
    receipt = Envelope.from_dict(await asyncio.to_thread(server.get_envelope, call.id))
    outcome = Outcome(envelope=receipt, root=str(yard.config.project.resolve()), arguments=call.arguments)
    outcome = await wait_for_tasks(yard, outcome, answered.tasks, stops, quiet=quiet)
    failed = int(outcome.envelope.error is not None)
    say(json_text(yard.express(call, outcome, dialect, shown=shown)), failed)
    return failed


async def _cancel_until_answered(server: ServerClient, call_id: str) -> None:
    """Cancel a call repeatedly, because the server may not have received it yet."""
    while True:
        await asyncio.to_thread(server.cancel, call_id)
        await asyncio.sleep(_RETRY_S)
