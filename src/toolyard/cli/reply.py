"""``toolyard reply``: structured replies of models."""

import sys

import click

from toolyard.cli.options import Common, common_options
from toolyard.cli.output import print_json
from toolyard.errors import UsageError
from toolyard.protocol.replies.prompt import Language, prompt
from toolyard.protocol.reply import parse_reply


@click.group("reply", short_help="Read the structured replies of models, or ask for them.")
@common_options
def command(common: Common) -> None:
    """Read the structured replies of models, or ask for them."""


@command.command("parse")
@click.argument("file", default="-")
@common_options
def parse(common: Common, file: str) -> None:  # noqa: ARG001 it prints JSON whatever they say
    """Read a reply from FILE or stdin and print think, content and attachments as JSON.

    Exits with 1 when the text is no reply.
    """
    reply = parse_reply(_text(file))
    print_json(reply.to_dict())
    sys.exit(0 if reply.ok else 1)


@command.command("prompt")
@click.option(
    "--lang",
    type=click.Choice([language.value for language in Language]),
    default=Language.ENGLISH.value,
    show_default=True,
    help="The language of the prompt.",
)
@common_options
def prompt_(common: Common, lang: str) -> None:  # noqa: ARG001
    """Print the system prompt that asks a model for this format."""
    click.echo(prompt(Language(lang)), nl=False)


def _text(file: str) -> str:
    """Bytes that are no UTF-8 become U+FFFD: a reply with one bad character can still be read."""
    try:
        with click.open_file(file, "rb") as stream:
            data: bytes = stream.read()
    except OSError as error:
        raise UsageError(f"cannot read '{file}': {error.strerror or error}") from error
    return data.decode("utf-8", errors="replace")
