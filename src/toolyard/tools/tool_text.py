"""The words a model reads about a tool, with the code's own limits filled in.

English stands in a Markdown file beside the code, Chinese in ``chinese.json``. The commands of a tool that has several
stand in ``NAME_commands.json``, each in both languages.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

from toolyard.protocol.tool import ToolCommand, Translation


class ToolText(TypedDict):
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


def load_text(name: str, module_file: str, **limits: int) -> ToolText:
    """Load the description and translations of a ToolSpec."""
    english = Path(module_file).with_suffix(".md").read_text(encoding="utf-8").strip()
    chinese = _load_chinese()[name]
    return ToolText(
        description=english.format(**limits),
        translations={
            "zh": Translation(
                description=chinese["description"].format(**limits),
                parameters={key: text.format(**limits) for key, text in chinese["parameters"].items()},
            )
        },
    )


@cache
def _load_chinese() -> dict[str, Any]:
    texts: dict[str, Any] = json.loads(Path(__file__).with_name("chinese.json").read_text(encoding="utf-8"))
    return texts
