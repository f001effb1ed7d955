"""``toolyard request``: the tool requests in a model's text."""

import sys
from pathlib import Path

import click

from toolyard.cli.common_options import CommandGroup, CommonOptions, common_options
from toolyard.cli.completers import complete_files
from toolyard.cli.output import print_json
from toolyard.errors import UsageError
from toolyard.protocol.markers import parse_requests


@click.group("request", cls=CommandGroup, short_help="Parse tool requests in model output.")
@common_options
def command(common: CommonOptions) -> None:
    """Parse tool requests in model output."""


@command.command("parse")
@click.argument("file", default="-", shell_complete=complete_files)
@common_options
def parse(_: CommonOptions, file: str) -> None:
    """Print the tool requests in FILE or stdin as JSON, without running them.

    An invalid request is printed with its problem.
    """
    print_json(parse_requests(_read(file)))


def _read(file: str) -> str:
    """Read a text unchanged, line endings included; invalid UTF-8 becomes U+FFFD."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read '{file}': {error.strerror or error}") from error
    return raw.decode("utf-8", errors="replace")
