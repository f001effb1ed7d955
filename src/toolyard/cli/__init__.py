"""The command line. stdout carries the result only; progress, logs and errors go to stderr.

Exit codes: 0 success or partial, 1 the tool or command failed, 2 usage, 3 another Toolyard owns this home, 4 the server
cannot be reached. Commands are imported when they are used, so that each starts as fast as it can.
"""

import importlib
import os
import sys
import traceback
from pathlib import Path

import click

from toolyard import __version__
from toolyard.cli.common_options import CommonOptions, common_options
from toolyard.cli.loading import without_collection
from toolyard.errors import StorageUnwritable, ToolyardError, is_disk_refusal

_COMMANDS = {
    "serve": ("toolyard.cli.serve", "Run the server."),
    "chat": ("toolyard.cli.chat", "Talk to a model in the terminal; tools run on the way."),
    "call": ("toolyard.cli.call", "Run one tool and print its result as JSON."),
    "tools": ("toolyard.cli.tools", "List the tools, or show one."),
    "request": ("toolyard.cli.request", "Find the tool requests in a model's text."),
    "reply": ("toolyard.cli.reply", "Read the structured replies of models, or ask for them."),
    "plugin": ("toolyard.cli.plugin", "Write, review, install and list plugins."),
    "task": ("toolyard.cli.task", "List, show, cancel or retry tasks."),
    "schedule": ("toolyard.cli.schedule", "List, add, cancel or run scheduled calls."),
    "approval": ("toolyard.cli.approval", "Answer calls that wait for approval, and keep rules."),
    "journal": ("toolyard.cli.journal", "Look at calls and events; undo what a call wrote."),
    "backup": ("toolyard.cli.backup", "Write the state and the settings to one file."),
    "restore": ("toolyard.cli.restore", "Put a backup in place."),
    "import": ("toolyard.cli.import_", "Take over plugins and state of another host."),
    "mcp": ("toolyard.cli.mcp", "Offer the tools to MCP clients, and use the tools of MCP servers."),
    "worker": ("toolyard.cli.worker", "Run calls for other hosts that share a PostgreSQL database."),
    "doctor": ("toolyard.cli.doctor", "Say what is wrong on this machine and how to mend it."),
    "config": ("toolyard.cli.config", "Show or check the settings."),
}


class _LazyGroup(click.Group):
    """A group that knows its commands by name and summary, and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        with without_collection():
            command: click.Command = importlib.import_module(_COMMANDS[name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _COMMANDS and not args[0].startswith("-"):
            from toolyard.protocol.arguments import find_nearest

            guess = find_nearest(args[0], list(_COMMANDS))
            hint = f" Did you mean '{guess}'?" if guess else ""
            ctx.fail(f"No such command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="toolyard")
@common_options
def toolyard(common: CommonOptions) -> None:
    """Toolyard: any program that reads stdin and writes stdout becomes a tool for any model."""


def main() -> None:
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 for as long as we run
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        toolyard(prog_name="toolyard")
    except ToolyardError as error:
        click.echo(f"toolyard: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the pipe has gone
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 a bug of ours: one line for people, the rest for --verbose
        if "--verbose" in sys.argv or "-v" in sys.argv:
            traceback.print_exc()
        click.echo(f"toolyard: {_describe(error)}", err=True)
        sys.exit(1)


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and is_disk_refusal(error):
        return str(StorageUnwritable.from_os_error(Path(str(error.filename or Path.cwd() / "a file")), error))
    return f"a bug in Toolyard: {type(error).__name__}: {error} (--verbose shows where)"
