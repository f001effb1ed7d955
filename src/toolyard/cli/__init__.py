"""The command line. stdout carries the result only; progress, logs and errors go to stderr.

Exit codes: 0 success or partial, 1 the tool or command failed, 2 usage, 3 another Toolyard owns this home, 4 the server
cannot be reached. Commands are imported when they are used, so that each starts as fast as it can.
"""

import gc
import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolyard import __version__
from toolyard.cli.common_options import CommonOptions, common_options, print_json
from toolyard.errors import StorageUnwritable, ToolyardError, is_disk_refusal

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_COMMANDS = {
    "serve": ("toolyard.cli.commands.serve", "Run the server."),
    "login": ("toolyard.cli.commands.login", "Print a link that signs a browser or a phone in."),
    "service": ("toolyard.cli.commands.service", "Run the server as a service of systemd or launchd."),
    "chat": ("toolyard.cli.commands.chat", "Chat with a model in the terminal."),
    "call": ("toolyard.cli.commands.call", "Call a tool and print its result as JSON."),
    "tools": ("toolyard.cli.commands.tools", "List, show and export tools."),
    "request": ("toolyard.cli.commands.request", "Parse tool requests in model output."),
    "reply": ("toolyard.cli.commands.reply", "Parse and render structured replies."),
    "plugin": ("toolyard.cli.commands.plugin", "Write, review, install and list plugins."),
    "task": ("toolyard.cli.commands.task", "List, show, cancel and retry background tasks."),
    "schedule": ("toolyard.cli.commands.schedule", "List, add, approve, cancel and run scheduled calls."),
    "approval": ("toolyard.cli.commands.approval", "Approve or deny waiting calls, and manage approval rules."),
    "journal": ("toolyard.cli.commands.journal", "Browse calls and events; undo file changes."),
    "audit": ("toolyard.cli.commands.audit", "Show who allowed what, when and from where."),
    "backup": ("toolyard.cli.commands.backup", "Back up state and settings to one file."),
    "restore": ("toolyard.cli.commands.backup:restore_", "Restore a backup."),
    "vcp": ("toolyard.cli.commands.vcp", "Use a VCPToolBox installation in place."),
    "import": ("toolyard.cli.commands.import_", "Import plugins and state from another tool host."),
    "mcp": ("toolyard.cli.commands.mcp", "Serve the tools over MCP, and manage MCP servers."),
    "worker": ("toolyard.cli.commands.worker", "Run calls for other hosts on a shared PostgreSQL database."),
    "doctor": ("toolyard.cli.commands.doctor", "Find problems on this machine and show how to fix them."),
    "config": ("toolyard.cli.commands.config", "Show and check the effective settings."),
    "completion": ("toolyard.cli.completion", "Print the completion script of a shell."),
    "help": ("toolyard.cli.commands.help", "Show a page of the documentation, or the help of a command."),
}


class _LazyGroup(click.Group):
    """A group that knows its commands by name and summary, and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, _, function = _COMMANDS[name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), function or "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from toolyard.protocol.arguments import find_nearest

            guess = find_nearest(args[0], list(_COMMANDS))
            hint = f" Did you mean '{guess}'?" if guess else ""
            ctx.fail(f"No such command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[Any]]":
        """Return the commands that begin with ``incomplete``, without importing any."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        from click.shell_completion import CompletionItem

        commands = ((name, line) for name, (_, line) in _COMMANDS.items() if name.startswith(incomplete))
        return [CompletionItem(name, help=line) for name, line in commands]

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.params.pop("version"):
            _print_version(CommonOptions(home=ctx.params["home"], json=ctx.params["json"]))
            ctx.exit()
        return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, help="Show the version; with --json also the platform and the home.")
@common_options
def toolyard(common: CommonOptions) -> None:
    """Toolyard: any program that reads stdin and writes stdout becomes a tool for any model."""


def _print_version(common: CommonOptions) -> None:
    """Print the version; with ``--json`` also what a report of a problem needs."""
    if not common.json:
        click.echo(f"toolyard, version {__version__}")
        return
    import platform

    from toolyard.config import find_home
    from toolyard.storage.sqlite_schema import latest_format

    print_json(
        {
            "version": __version__,
            "python": platform.python_version(),
            "executable": sys.executable,
            "platform": platform.platform(),
            "home": str(find_home(common.home)),
            "state_format": latest_format(),
        }
    )


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
        click.echo("\n".join((f"toolyard: {error}", *getattr(error, "__notes__", ()))), err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the pipe has gone
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 a bug of ours: one line for people, the rest for --verbose
        if "--verbose" in sys.argv or "-v" in sys.argv:
            traceback.print_exc()
        click.echo(f"toolyard: {_describe(error)}", err=True)
        sys.exit(1)
    finally:
        gc.freeze()  # the interpreter searches all modules for garbage when it ends (bench row "freeze before the end")


def _describe(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "there is not enough memory: raise the limit of address space (ulimit -v), or free some"
    if isinstance(error, OSError) and is_disk_refusal(error):
        return str(StorageUnwritable.from_os_error(Path(str(error.filename or Path.cwd())), error))
    return f"a bug in Toolyard: {type(error).__name__}: {error} (run again with --verbose for a traceback)"
