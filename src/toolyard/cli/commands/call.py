"""``toolyard call``: run one tool, through the running server of the home if there is one.

Through a server, nothing of the engine is loaded; only a longer wait loads it, to show the progress. Ctrl-C and SIGTERM
cancel the call, and its result is still printed; a second signal also gives up a server that does not answer.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar
from uuid import uuid4

import click

from toolyard.cli.common_options import Command, CommonOptions, common_options, json_text
from toolyard.cli.completion import complete_tools
from toolyard.cli.detach import AnswerSink, print_answer, run_detached
from toolyard.config import Config
from toolyard.dialects import DIALECTS
from toolyard.errors import ServerUnreachable, UsageError
from toolyard.web.server.running_server import ServerClient, find_server

if TYPE_CHECKING:
    from toolyard.protocol.json import Json, JsonObject

P = ParamSpec("P")
T = TypeVar("T")
_RETRY_S = 0.5
_SHOW_AFTER_S = 1.0  # before it, the engine is not loaded to show the progress of a call


@click.command("call", cls=Command, short_help="Call a tool and print its result as JSON.")
@click.argument("tool", shell_complete=complete_tools)
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


class CallRequest(NamedTuple):
    """A call as it was typed."""

    common: CommonOptions
    tool: str
    written: "JsonObject"
    pairs: tuple[str, ...]
    dialect: str
    shown: bool
    force: bool

    async def run(self, say: AnswerSink, *, wait: bool) -> int:
        """Run the call, pass on its result, and return the exit code. Without ``wait`` a task gives its receipt."""
        config = self.common.config()
        server = choose_server(self.common, config)
        if server is not None:
            return await call_through_server(server, self, config, say, wait=wait)
        from toolyard.cli.local_call import call_locally  # the engine is loaded here alone

        return await call_locally(self, config, say, wait=wait)


def parse_pairs(pairs: tuple[str, ...], find_schema: "Callable[[str], dict[str, Json]]") -> "JsonObject":
    """Parse ``key=value`` words by the tool's schema; a repeated key, or one of type array, becomes a list.

    ``find_schema`` returns the schema of a parameter; empty when the tool has none of this name.
    """
    from toolyard.protocol.arguments import coerce_value
    from toolyard.workspace.path_walk import to_text

    arguments: JsonObject = {}
    for pair in pairs:
        key, separator, value = to_text(os.fsencode(pair)).partition("=")  # bytes as typed, in any locale
        if not separator or not key:
            raise UsageError(f"'{pair}' is not KEY=VALUE: write it like path=src, or pass the arguments with --args")
        schema = find_schema(key) or find_schema(key.rstrip("0123456789"))
        is_list = schema.get("type") == "array" and not value.lstrip().startswith("[")
        before = arguments.get(key)
        if isinstance(before, list):
            before.append(value)
        elif key in arguments:
            raise UsageError(f"'{key}' is given twice")
        else:
            arguments[key] = [value] if is_list else coerce_value(value, schema)
    return arguments


def parse_json_arguments(source: str) -> "JsonObject":
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


def _reject_duplicates(pairs: "list[tuple[str, Json]]") -> "JsonObject":
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
        pairs = await run_in_daemon_thread(_parse_pairs, server, request)
    else:
        await run_in_daemon_thread(server.check)  # before the signals are taken: Ctrl-C ends this wait
    arguments = {**request.written, **pairs}
    later = arguments.pop("timely_contact", None)
    call = _Call(f"call_{uuid4().hex}", request.tool, arguments, request.force)
    cancels: list[asyncio.Task[None]] = []
    stops = StopSignals(lambda: cancels.append(asyncio.create_task(_cancel_until_answered(server, call.id, stops))))
    telling = None if request.common.quiet else asyncio.create_task(_show_progress_later(config, call.id))
    when = None if later is None else str(later)
    running = run_in_daemon_thread(
        server.call, call, caller="cli", dialect=request.dialect, shown=request.shown, later=when
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

    receipt = await run_in_daemon_thread(server.get_envelope, call.id)
    return await wait_for_server_tasks(request, config, call, receipt, answered.tasks, stops, say)


def _parse_pairs(server: ServerClient, request: "CallRequest") -> "JsonObject":
    from toolyard.protocol.arguments import find_schema_in_json

    tool = server.find_tool(request.tool)
    return parse_pairs(request.pairs, lambda key: find_schema_in_json(tool, key))


async def _show_progress_later(config: Config, call_id: str) -> None:
    """Show what a call reports, once it takes so long that its user may wonder."""
    await asyncio.sleep(_SHOW_AFTER_S)
    from toolyard.cli.local_call import show_server_progress

    await show_server_progress(config, call_id)


class StopSignals:
    """Handler of Ctrl-C and SIGTERM: running work is cancelled, and its result still printed.

    A call may have become a task by then; ``set_handler`` switches what is stopped. A second signal sets ``gave_up``:
    whoever waits for another process stops waiting then.
    """

    def __init__(self, stop: Callable[[], object] = lambda: None) -> None:
        self._is_requested, self._stop = False, stop
        self.gave_up = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._handle_signal)

    def set_handler(self, stop: Callable[[], object]) -> None:
        """Set what a signal does, and do it at once if one came before."""
        self._stop = stop
        if self._is_requested:
            stop()

    def _handle_signal(self) -> None:
        if self._is_requested:
            self.gave_up.set()
        self._is_requested = True
        self._stop()


async def _cancel_until_answered(server: ServerClient, call_id: str, stops: StopSignals) -> None:
    """Cancel a call repeatedly, because the server may not have received it yet."""
    while True:
        try:
            await run_in_daemon_thread(server.cancel, call_id)
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


async def run_in_daemon_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking ``work(*args, **kwargs)`` in a thread that does not keep the program from ending."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            value = work(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 whoever waits gets it
            with contextlib.suppress(InvalidStateError):  # nobody waits any more
                result.set_exception(error)
        else:
            with contextlib.suppress(InvalidStateError):
                result.set_result(value)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(result)
