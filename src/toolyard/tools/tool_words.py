"""The words of a built-in tool: its names and the texts that a model reads, with the code's own limits filled in.

They stand beside its code, in ``NAME.md``: the name and the aliases in the first line, the English description, and
below ``## 中文`` the Chinese one with the help for each parameter. Without Chinese the English is shown. The files are
also the list of the built-in tools. The commands of a tool that has several stand in ``NAME_commands.json``, each in
both languages.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypedDict

from toolyard.protocol.tool import ToolCommand, Translation

_CHINESE = "\n## 中文\n"
_PARAMETERS = "\n### 参数\n"


class ToolNames(NamedTuple):
    """The names of a built-in tool, and its module in this package."""

    name: str
    aliases: tuple[str, ...]
    module: str


class ToolText(TypedDict):
    name: str
    aliases: tuple[str, ...]
    description: str
    translations: Mapping[str, Translation]


class CommandTexts(TypedDict):
    commands: tuple[ToolCommand, ...]
    batch_example: str


def load_commands(module_file: str, **limits: int) -> CommandTexts:
    """The commands of a ToolSpec, and a call with several of them."""
    path = Path(module_file)
    data = json.loads(path.with_name(f"{path.stem}_commands.json").read_text(encoding="utf-8"))

    def fill(texts: Mapping[str, str]) -> Mapping[str, str]:
        return {language: text.format(**limits) for language, text in texts.items()}

    commands = tuple(
        ToolCommand(
            name=one["name"],
            description=fill(one["description"]),
            parameters={name: fill(texts) for name, texts in one["parameters"].items()},
            required=tuple(one["required"]),
            example=one["example"],
        )
        for one in data["commands"]
    )
    return CommandTexts(commands=commands, batch_example=data["batch_example"])


def load_text(module_file: str, **limits: int) -> ToolText:
    """Load the names, the description and the translations of a ToolSpec, from the file beside its module."""
    file = Path(module_file).with_suffix(".md")
    head, _, text = file.read_text(encoding="utf-8").partition("\n")
    english, _, chinese = text.format(**limits).partition(_CHINESE)
    names = _parse_names(head, file)
    translations = {"zh": _parse_translation(chinese)} if chinese else {}
    return ToolText(name=names.name, aliases=names.aliases, description=english.strip(), translations=translations)


def list_tool_names() -> Iterator[ToolNames]:
    """Yield the names of all built-in tools, without importing any."""
    folder = Path(__file__).parent
    for name in sorted(os.listdir(folder)):
        if name.endswith(".md"):
            with (folder / name).open(encoding="utf-8") as lines:
                yield _parse_names(next(lines), folder / name)


def _parse_names(head: str, file: Path) -> ToolNames:
    name, *aliases = head.strip().removeprefix("# ").split(", ")
    return ToolNames(name, tuple(aliases), file.stem)


def _parse_translation(text: str) -> Translation:
    description, _, listed = text.partition(_PARAMETERS)
    pairs = (line.removeprefix("- ").split(": ", 1) for line in listed.strip().splitlines())
    return Translation(description=description.strip(), parameters=dict(pairs))
