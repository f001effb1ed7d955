"""``toolyard call``: run one tool."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from toolyard.app import Yard
from toolyard.cli.common_options import Command, CommonOptions, common_options
from toolyard.cli.detach import AnswerSink, print_answer, run_detached
from toolyard.cli.output import json_text
from toolyard.cli.plugin_targets import warn_about_broken
from toolyard.cli.server_call import call_through_server, choose_server
from toolyard.cli.task_wait import StopSignals, list_background_ids, list_task_ids, wait_for_tasks
from toolyard.dialects import DIALECTS
from toolyard.errors import UsageError
from toolyard.hosts.yard import open_yard
from toolyard.plugin_source import Outside
from toolyard.protocol.arguments import coerce_value, find_schema
from toolyard.protocol.call import Origin, ToolCall
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.web.server_client import cli_caller
from toolyard.workspace.names import to_text


@click.command("call", cls=Command, short_help="Call a tool and print its result as JSON.")
@click.argument("tool")
@click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--args", "source", metavar="JSON|@FILE|-", help="Arguments as a JSON object, from a file or from stdin.")
@click.option(
    "--dialect", type=click.Choice(DIALECTS), default="envelope", show_default=True, help="Format of the result."
)
@click.option("--shown", is_flag=True, help="Print the result as a model sees it, truncated if too long.")
@click.option("--force", is_flag=True, help="Allow overwriting a file that was not read before.")
@click.option("--detach", is_flag=True, help="Do not wait for the task of an asynchronous plugin.")
@common_options
def command(
    common: CommonOptions,
    tool: str,
    pairs: tuple[str, ...],
    source: str | None,
    dialect: str,
    shown: bool,
    force: bool,
    detach: bool,
) -> None:
    """Call a tool and print its result as JSON.

    With timely_contact=TIME the call is scheduled for that time; a server must be running then.

    A call of an asynchronous plugin waits for its task and shows the progress on stderr.

    \b
    toolyard call LS path=src limit=20
    toolyard call Read path=README.md --dialect vcp
    toolyard call Read --args '{"path": "README.md", "start_line": 10}'
    """
    written = parse_json_arguments(source) if source is not None else {}
    request = CallRequest(common, tool, written, pairs, dialect, shown, force)
    sys.exit(run_detached(request.run) if detach else asyncio.run(request.run(print_answer, wait=True)))


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A call as it was typed."""

    common: CommonOptions
    tool: str
    written: JsonObject
    pairs: tuple[str, ...]
    dialect: str
    shown: bool
    force: bool

    async def run(self, say: AnswerSink, *, wait: bool) -> int:
        """Run the call, pass on its result, and return the exit code. Without ``wait`` a task gives its receipt."""
        async with open_yard(self.common.config(), outside=Outside(warm=False), serves=False) as yard:
            warn_about_broken(self.common, yard.plugins)
            arguments = {**self.written, **parse_pairs(yard, self.tool, self.pairs)}
            later = arguments.pop("timely_contact", None)
            call = make_call(yard, self.tool, arguments, force=self.force)
            server = choose_server(self.common, yard)
            if server is not None:
                return await call_through_server(
                    server, yard, call, say, dialect=self.dialect, shown=self.shown, wait=wait,
                    later=None if later is None else str(later), quiet=self.common.quiet,
                )  # fmt: skip
            stops = StopSignals(lambda: yard.cancel(call.id))
            outcome = await (yard.settle(call) if later is None else yard.submit(call, at=str(later)))
            tasks = list_task_ids(outcome.envelope)
            if tasks and wait:
                outcome = await wait_for_tasks(yard, outcome, tasks, stops, quiet=self.common.quiet)
            failed = int(outcome.envelope.error is not None)
            say(json_text(yard.express(call, outcome, self.dialect, shown=self.shown)), failed)
            goes_on = list_background_ids(outcome.envelope)
            if goes_on or (tasks and not wait):  # this process looks after the task
                await wait_for_tasks(yard, outcome, goes_on or tasks, stops, quiet=not wait or self.common.quiet)
            return failed


def make_call(yard: Yard, tool: str, arguments: JsonObject, *, force: bool = False) -> ToolCall:
    """Make a call of the command line."""
    return yard.request(tool, arguments, caller=cli_caller(yard.config), origin=Origin.CLI, force=force)


def parse_pairs(yard: Yard, tool: str, pairs: tuple[str, ...]) -> JsonObject:
    """Parse ``key=value`` words by the tool's schema; a repeated key, or one of type array, becomes a list."""
    arguments: JsonObject = {}
    for pair in pairs:
        key, separator, value = to_text(os.fsencode(pair)).partition("=")  # bytes as typed, in any locale
        if not separator or not key:
            raise UsageError(f"'{pair}' is not KEY=VALUE: write it like path=src, or pass the arguments with --args")
        schema = _find_schema(yard, tool, key) or _find_schema(yard, tool, key.rstrip("0123456789"))
        is_list = schema.get("type") == "array" and not value.lstrip().startswith("[")
        before = arguments.get(key)
        if isinstance(before, list):
            before.append(value)
        elif key in arguments:
            raise UsageError(f"'{key}' is given twice")
        else:
            arguments[key] = [value] if is_list else coerce_value(value, schema)
    return arguments


def _find_schema(yard: Yard, tool: str, key: str) -> dict[str, Json]:
    try:
        return find_schema(yard.tools.get(yard.tools.resolve_name(tool)).spec, key)
    except Failure:
        return {}  # the call itself reports an unknown tool


def parse_json_arguments(source: str) -> JsonObject:
    where, text = _read_source(source)
    try:
        value = json.loads(text, object_pairs_hook=_reject_duplicates)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{where} is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from error
    except (RecursionError, ValueError) as error:
        raise UsageError(f"{where} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f'{where} must be a JSON object of arguments, such as {{"path": "src"}}')
    return value


def _reject_duplicates(pairs: list[tuple[str, Json]]) -> JsonObject:
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = next(name for name, _ in pairs if sum(other == name for other, _ in pairs) > 1)
        raise UsageError(f"'{twice}' is given twice")
    return members


def _read_source(source: str) -> tuple[str, str]:
    """Return a name of the source and its text, without a byte order mark."""
    if source != "-" and not source.startswith("@"):
        return "--args", source
    where = "the text on stdin" if source == "-" else f"'{source[1:]}'"
    try:
        raw = sys.stdin.buffer.read() if source == "-" else Path(source[1:]).read_bytes()
        return where, raw.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {where}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{where} is not valid UTF-8 (byte {error.start + 1}): save it as UTF-8") from error
