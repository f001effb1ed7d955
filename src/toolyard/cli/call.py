"""``toolyard call``: run one tool. Through a running server, it loads nothing of the engine."""

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from toolyard.cli.common_options import Command, CommonOptions, common_options
from toolyard.cli.completers import complete_tools
from toolyard.cli.detach import AnswerSink, print_answer, run_detached
from toolyard.cli.server_call import call_through_server, choose_server
from toolyard.dialects import DIALECTS
from toolyard.errors import UsageError

if TYPE_CHECKING:
    from toolyard.protocol.json import Json, JsonObject


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
