"""A call of the command line through the server that runs on the same home."""

import asyncio
import os

from toolyard.app import Yard
from toolyard.cli.detach import Say
from toolyard.cli.options import Common
from toolyard.cli.output import json_text
from toolyard.cli.waiting import Stops, waited
from toolyard.protocol.call import ToolCall
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.outcome import Outcome
from toolyard.web.client import ServerClient, server_of

_AGAIN_S = 0.5


def server_for(common: Common, yard: Yard) -> ServerClient | None:
    """The server to go through. With plugins given for this run there is none: it does not know them."""
    return None if common.plugins else server_of(yard.config, own_pid=os.getpid())


async def run_through(
    server: ServerClient,
    yard: Yard,
    call: ToolCall,
    say: Say,
    *,
    dialect: str,
    shown: bool,
    later: str | None,
    wait: bool,
    quiet: bool,
) -> int:
    """Run ``call`` there, say its result, and give the exit code. ``yard`` only reads what the server stores."""
    cancels: list[asyncio.Task[None]] = []
    stops = Stops(lambda: cancels.append(asyncio.create_task(_cancel(server, call.id))))
    try:
        answered = await asyncio.to_thread(server.call, call, caller="cli", dialect=dialect, shown=shown, later=later)
    finally:
        for cancel in cancels:
            cancel.cancel()
    if not answered.tasks or not wait:
        say(json_text(answered.value), int(answered.failed))
        return int(answered.failed)
    receipt = Envelope.from_dict(await asyncio.to_thread(server.envelope, call.id))
    outcome = Outcome(envelope=receipt, root=str(yard.config.project.resolve()), arguments=call.arguments)
    outcome = await waited(yard, outcome, answered.tasks, stops, quiet=quiet)
    failed = int(outcome.envelope.error is not None)
    say(json_text(yard.express(call, outcome, dialect, shown=shown)), failed)
    return failed


async def _cancel(server: ServerClient, call_id: str) -> None:
    """Until it is answered: the server may not have got the call yet."""
    while True:
        await asyncio.to_thread(server.cancel, call_id)
        await asyncio.sleep(_AGAIN_S)
