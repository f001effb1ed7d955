"""``toolyard request``: the tool requests in a model's text."""

import sys
from pathlib import Path

import click

from toolyard.cli.common_options import CommandGroup, CommonOptions, common_options, print_json
from toolyard.cli.completion import complete_files
from toolyard.errors import UsageError
from toolyard.protocol.requests.scanner import parse_requests


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
    print_json(parse_requests(read_model_text(file)))


def read_model_text(file: str) -> str:
    """Read a text of a model from a file or stdin, unchanged; invalid UTF-8 becomes U+FFFD."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read '{file}': {error.strerror or error}") from error
    return raw.decode("utf-8", errors="replace")
