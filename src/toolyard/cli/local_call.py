"""Calls of the command line that run in this process."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from toolyard.cli.detach import AnswerSink
from toolyard.cli.output import json_text
from toolyard.cli.server_call import wait_unless_given_up
from toolyard.cli.stop_signals import StopSignals
from toolyard.cli.task_ids import list_background_ids, list_task_ids
from toolyard.config import Config
from toolyard.hosts.open_yard import open_yard
from toolyard.protocol.arguments import find_schema
from toolyard.protocol.call import Origin, ToolCall
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.outcome import Outcome
from toolyard.web.server_client import RequestedCall, cli_caller
from toolyard.yard.plugin_source import HostOptions
from toolyard.yard.yard import Yard

if TYPE_CHECKING:
    from toolyard.cli.call import CallRequest

_SHOW_AFTER_S = 0.3


async def call_locally(request: "CallRequest", config: Config, say: AnswerSink, *, wait: bool) -> int:
    """Run a call here, pass on its result, and return the exit code."""
    quiet = request.common.quiet
    async with open_yard(config, outside=HostOptions(warm=False), serves=False) as yard:
        if request.common.plugins:
            from toolyard.cli.plugin_targets import warn_about_broken

            warn_about_broken(request.common, yard.plugins)
        arguments = {**request.written, **parse_tool_pairs(yard, request.tool, request.pairs)}
        later = arguments.pop("timely_contact", None)
        call = make_call(yard, request.tool, arguments, force=request.force)
        stops = StopSignals(lambda: yard.cancel(call.id))
        telling = None if quiet else asyncio.create_task(_show_progress_later(yard, call.id))
        try:
            outcome = await (yard.settle(call) if later is None else yard.submit(call, at=str(later)))
        finally:
            if telling is not None:
                telling.cancel()
                await asyncio.gather(telling, return_exceptions=True)
        tasks = list_task_ids(outcome.envelope)
        if tasks and wait:
            outcome = await _wait_for_tasks(yard, outcome, tasks, stops, quiet=quiet)
        failed = int(outcome.envelope.error is not None)
        say(json_text(yard.express(call, outcome, request.dialect, shown=request.shown)), failed)
        goes_on = list_background_ids(outcome.envelope)
        if goes_on or (tasks and not wait):  # this process looks after the task
            await _wait_for_tasks(yard, outcome, goes_on or tasks, stops, quiet=not wait or quiet)
        return failed


async def wait_for_server_tasks(
    request: "CallRequest",
    config: Config,
    call: RequestedCall,
    receipt: JsonObject,
    tasks: tuple[str, ...],
    stops: StopSignals,
    say: AnswerSink,
) -> int:
    """Wait for the tasks of a call that the server runs, pass on their result, and return the exit code."""
    async with open_yard(config, outside=HostOptions(warm=False), serves=False) as yard:
        envelope, root = Envelope.from_dict(receipt), str(config.project.resolve())
        receipt_outcome = Outcome(envelope=envelope, root=root, arguments=dict(call.arguments))
        waiting = _wait_for_tasks(yard, receipt_outcome, tasks, stops, quiet=request.common.quiet)
        outcome = await wait_unless_given_up(waiting, stops, call.id, request.common)
        failed = int(outcome.envelope.error is not None)
        own = replace(make_call(yard, call.tool, dict(call.arguments), force=call.force), id=call.id)
        say(json_text(yard.express(own, outcome, request.dialect, shown=request.shown)), failed)
        return failed


async def _show_progress_later(yard: Yard, call_id: str) -> None:
    """Show what a call reports; most calls have ended before there is anything to show."""
    await asyncio.sleep(_SHOW_AFTER_S)
    from toolyard.cli.call_progress import show_progress

    await show_progress(yard, call_id)


async def _wait_for_tasks(
    yard: Yard, outcome: Outcome, ids: tuple[str, ...], stops: StopSignals, *, quiet: bool
) -> Outcome:
    from toolyard.cli.task_wait import wait_for_tasks  # few calls have tasks

    return await wait_for_tasks(yard, outcome, ids, stops, quiet=quiet)


def make_call(yard: Yard, tool: str, arguments: JsonObject, *, force: bool = False) -> ToolCall:
    """Make a call of the command line; its caller is the project, whichever process runs it."""
    caller = cli_caller(yard.config)
    return yard.request(tool, arguments, caller=caller, origin=Origin.CLI, force=force)


def parse_tool_pairs(yard: Yard, tool: str, pairs: tuple[str, ...]) -> JsonObject:
    """Parse ``key=value`` words by the schema of a tool of this process."""
    if not pairs:
        return {}
    from toolyard.cli.pairs import parse_pairs

    def find(key: str) -> dict[str, Json]:
        try:
            return find_schema(yard.tools.get(yard.tools.resolve_name(tool)).spec, key)
        except Failure:
            return {}  # the call itself reports an unknown tool

    return parse_pairs(pairs, find)
