"""Output of results on stdout as JSON."""

import json
from typing import Any

import click


def json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def print_json(value: Any) -> None:
    click.echo(json_text(value))
