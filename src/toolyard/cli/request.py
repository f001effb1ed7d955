"""``toolyard request``: the tool requests in a model's text."""

import sys
from pathlib import Path

import click

from toolyard.cli.options import Common, Verbs, common_options
from toolyard.cli.output import print_json
from toolyard.errors import UsageError
from toolyard.protocol.markers import parse_requests


@click.group("request", cls=Verbs, short_help="Find the tool requests in a model's text.")
@common_options
def command(common: Common) -> None:
    """Find the tool requests in a model's text."""


@command.command("parse")
@click.argument("file", default="-")
@common_options
def parse(_: Common, file: str) -> None:
    """Print the tool requests in FILE, or in the text on stdin, as JSON; nothing is run.

    A request that cannot be run is printed as well, with its problem.
    """
    print_json(parse_requests(_read(file)))


def _read(file: str) -> str:
    """The text as it is: no line ending is changed, and bytes that are no UTF-8 are shown as such."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read '{file}': {error.strerror or error}") from error
    return raw.decode("utf-8", errors="replace")
