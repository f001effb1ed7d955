"""The arguments of a call for a person who approves it at a terminal: complete, with nothing hidden."""

from toolyard.cli.output import json_text
from toolyard.cli.table import escape_unprintable
from toolyard.protocol.json import Json


def format_arguments(arguments: Json) -> list[str]:
    """Return the lines of all arguments; control and invisible characters are escaped."""
    if not isinstance(arguments, dict):
        return _indent("", json_text(arguments))
    if not arguments:
        return ["  (no arguments)"]
    return [line for name, value in arguments.items() for line in _format_argument(name, value)]


def _format_argument(name: str, value: Json) -> list[str]:
    text = value if isinstance(value, str) else json_text(value)
    title = escape_unprintable(name.replace("\n", "\\n"))
    return [f"  {title}: {escape_unprintable(text)}"] if "\n" not in text else _indent(f"{title}:", text)


def _indent(title: str, text: str) -> list[str]:
    lines = [f"    {escape_unprintable(line)}" for line in text.split("\n")]
    return [f"  {title}", *lines] if title else lines
