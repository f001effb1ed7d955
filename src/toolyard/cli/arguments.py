"""The arguments of a call for a person at a terminal who decides about it: all of them, whole, with nothing hidden."""

from toolyard.cli.output import json_text
from toolyard.cli.table import visible
from toolyard.protocol.json import Json


def argument_lines(arguments: Json) -> list[str]:
    """Each argument by its name, texts as they are; whatever a terminal would obey or not show is written out."""
    if not isinstance(arguments, dict):
        return _indented("", json_text(arguments))
    if not arguments:
        return ["  (no arguments)"]
    return [line for name, value in arguments.items() for line in _argument(name, value)]


def _argument(name: str, value: Json) -> list[str]:
    text = value if isinstance(value, str) else json_text(value)
    title = visible(name.replace("\n", "\\n"))
    return [f"  {title}: {visible(text)}"] if "\n" not in text else _indented(f"{title}:", text)


def _indented(title: str, text: str) -> list[str]:
    lines = [f"    {visible(line)}" for line in text.split("\n")]
    return [f"  {title}", *lines] if title else lines
