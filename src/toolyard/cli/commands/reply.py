"""``toolyard reply``: structured replies of models."""

import shutil
import sys

import click

from toolyard.cli.commands.request import read_model_text
from toolyard.cli.common_options import CommandGroup, CommonOptions, common_options, print_json
from toolyard.cli.completion import complete_files
from toolyard.protocol.replies.reply_prompt import Language, write_prompt
from toolyard.protocol.reply import parse_reply
from toolyard.render import DEFAULT_WIDTH, Target, render_parsed

_language = click.option(
    "--lang",
    type=click.Choice([language.value for language in Language]),
    default=Language.ENGLISH.value,
    show_default=True,
    help="Language of Toolyard's own texts.",
)


@click.group("reply", cls=CommandGroup, short_help="Parse and render structured replies.")
@common_options
def command(common: CommonOptions) -> None:
    """Parse and render structured replies, or print the prompt that requests them."""


@command.command("parse")
@click.argument("file", default="-", shell_complete=complete_files)
@common_options
def parse(common: CommonOptions, file: str) -> None:  # noqa: ARG001 it prints JSON whatever they say
    """Parse a reply from FILE or stdin and print think, content and attachments as JSON.

    Exits with 1 if the text is not a structured reply.
    """
    reply = parse_reply(read_model_text(file))
    print_json(reply.to_dict())
    sys.exit(0 if reply.ok else 1)


@command.command("render")
@click.argument("file", default="-", shell_complete=complete_files)
@click.option(
    "--to",
    type=click.Choice([target.value for target in Target]),
    help="Output format.  [default: terminal on a terminal, else markdown; json with --json]",
)
@_language
@common_options
def render(common: CommonOptions, file: str, to: str | None, lang: str) -> None:
    """Render a reply from FILE or stdin with its attachments.

    HTML output is a fragment. Exits with 1 if the text is not a structured reply, after printing why.
    """
    usual = Target.JSON if common.json else Target.TERMINAL if sys.stdout.isatty() else Target.MARKDOWN
    target = Target(to) if to else usual
    reply = parse_reply(read_model_text(file))
    colour = target is Target.TERMINAL and _has_colour()
    width = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    shown = render_parsed(reply, target, Language(lang), width=width, colour=colour)
    click.echo(shown.rstrip("\n"), color=colour)
    sys.exit(0 if reply.ok else 1)


@command.command("prompt")
@_language
@common_options
def prompt_(common: CommonOptions, lang: str) -> None:  # noqa: ARG001
    """Print the system prompt that requests this format."""
    click.echo(write_prompt(Language(lang)), nl=False)


def _has_colour() -> bool:
    """Return whether stdout is a colour terminal and colours are not disabled."""
    from rich.console import Console

    console = Console(file=sys.stdout)
    return console.is_terminal and console.color_system is not None and not console.no_color
