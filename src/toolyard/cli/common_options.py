"""The parts that all commands share: the common options, before or after its name, its help, and results as JSON."""

import functools
import json
import logging
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from toolyard.config import Config, describe_wide_project, find_home, find_own_command, load_config
from toolyard.errors import UsageError
from toolyard.own_command import OwnCommand

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_MAX_SENTENCE = 1000  # characters
_HINT = "Common options such as --home, --project and --json: see 'toolyard --help'."
_NAMES = ("project", "home", "plugins", "trust", "json", "quiet", "verbose")


class CommonOptions(NamedTuple):
    """The values of the common options."""

    project: str | None = None  # None: the current folder
    home: str | None = None
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    plugins: tuple[str, ...] = ()
    trust: bool = False
    beside: bool = False  # VCPToolBox itself runs there too
    vcp: str | None = None  # the VCPToolBox installation to use; None: that of the running server, or the setting

    def config(self) -> Config:
        from toolyard.web.server.running_server import read_presence

        presence = None if self.vcp else read_presence(find_home(self.home))
        running = presence.vcp if presence and presence.vcp and presence.is_alive else None
        return load_config(
            self.project,
            self.home,
            plugin_folders=self.plugins,
            trusts_given=self.trust,
            vcp=self.vcp or running,
            beside=self.beside,
        )

    @property
    def own_command(self) -> OwnCommand:
        """The command of hints about this home and project."""
        project = Path(self.project).absolute() if self.project else None
        return find_own_command(self.home, project, tuple(Path(folder).absolute() for folder in self.plugins))

    def serving_config(self) -> Config:
        """Return the settings for a command that lets models use the project; its hints are read anywhere.

        Where a VCPToolBox installation is used in place, it is the project unless another one is named. Raises
        UsageError when the project is too wide and nobody named it, or when there is no such installation.
        """
        config = self._replace(project=self.project or ".").config()
        if config.vcp is not None:
            from toolyard.vcp.installation import read_installation

            root = read_installation(config.vcp).root
            return config if self.project else self._replace(project=str(root)).config()
        if not self.project and (width := describe_wide_project(config.project)):
            raise UsageError(
                f"the project would be {width}, and models could read every file in it: start in the folder of a "
                "project, or name one with --project DIR; to use this folder on purpose, pass "
                f"--project {shlex.quote(str(config.project.resolve()))}"
            )
        return config


class _CommonOption(click.Option):
    """A common option: only ``toolyard --help`` shows it."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return super().get_help_record(ctx) if ctx.parent is None else None


class _CommonHint:
    """Ends the help of a command with a pointer to the common options."""

    def format_epilog(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(_HINT)


class Command(_CommonHint, click.Command):
    """A command with the common options."""


class CommandGroup(_CommonHint, click.Group):
    """A group of such commands. Its help shows the full first sentence of each."""

    command_class = Command
    group_class = type

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(_MAX_SENTENCE)) for name, command in commands])


def complete_folders(_context: click.Context, _param: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    """Let the shell offer folders."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]


_option = functools.partial(click.option, cls=_CommonOption)
_OPTIONS = (
    _option("--project", metavar="DIR", shell_complete=complete_folders, help="Project root.  [default: .]"),
    _option(
        "--home",
        metavar="DIR",
        shell_complete=complete_folders,
        help="Settings and state.  [default: $TOOLYARD_HOME, or the user's data folder]",
    ),
    _option(
        "--plugins",
        metavar="DIR",
        multiple=True,
        shell_complete=complete_folders,
        help="Additional plugin folder; repeatable.",
    ),
    _option("--trust", is_flag=True, help="Run plugins from --plugins without review, for this command only."),
    _option("--json", "json", is_flag=True, help="Print the result as JSON."),
    _option("--quiet", "-q", is_flag=True, help="Print only the result and errors."),
    _option("--verbose", "-v", is_flag=True, help="Log more to stderr."),
)


def common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the common options, before or after the command name; the last value wins."""

    @functools.wraps(command)
    @click.pass_context
    def with_common(ctx: click.Context, /, *args: Any, **kwargs: Any) -> Any:
        given = {name: kwargs.pop(name) for name in _NAMES}
        before = ctx.obj if isinstance(ctx.obj, CommonOptions) else CommonOptions()
        ctx.obj = before._replace(**{name: value for name, value in given.items() if value})
        logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s", force=True)
        level = logging.DEBUG if ctx.obj.verbose else logging.CRITICAL if ctx.obj.quiet else logging.WARNING
        logging.getLogger("toolyard").setLevel(level)
        return command(ctx.obj, *args, **kwargs)

    return functools.reduce(lambda inner, option: option(inner), reversed(_OPTIONS), with_common)


def json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def print_json(value: Any) -> None:
    click.echo(json_text(value))
