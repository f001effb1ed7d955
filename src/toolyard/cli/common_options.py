"""The options of every command, before or after its name."""

import functools
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import click

from toolyard.config import Config, load

_MAX_SENTENCE = 1000  # characters of a sentence


class CommonOptions(NamedTuple):
    """The values of the common options."""

    project: str = "."
    home: str | None = None
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    plugins: tuple[str, ...] = ()
    trust: bool = False

    def config(self) -> Config:
        return load(self.project, self.home, plugin_folders=self.plugins, trusts_given=self.trust)


class CommandGroup(click.Group):
    """A group whose help shows the full first sentence of each command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(_MAX_SENTENCE)) for name, command in commands])


_OPTIONS = (
    click.option("--project", metavar="DIR", help="The project root.  [default: .]"),
    click.option("--home", metavar="DIR", help="Where state is kept.  [default: $TOOLYARD_HOME or the data folder]"),
    click.option("--plugins", metavar="DIR", multiple=True, help="One more folder of plugins; may be repeated."),
    click.option("--trust", is_flag=True, help="Run the plugins of --plugins without a review, this time."),
    click.option("--json", "json", is_flag=True, help="Print the result as JSON."),
    click.option("--quiet", "-q", is_flag=True, help="Print nothing but the result and errors."),
    click.option("--verbose", "-v", is_flag=True, help="Say more on stderr."),
)


_NAMES = ("project", "home", "plugins", "trust", "json", "quiet", "verbose")


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
