"""The words a model reads about a tool, with the code's own limits filled in.

English stands in a Markdown file beside the code, Chinese in ``chinese.json``.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

from toolyard.protocol.tool import Translation


class Words(TypedDict):
    description: str
    translations: Mapping[str, Translation]


def load_words(name: str, module_file: str, **limits: int) -> Words:
    """What a ToolSpec says about itself."""
    english = Path(module_file).with_suffix(".md").read_text(encoding="utf-8").strip()
    chinese = _chinese()[name]
    return Words(
        description=english.format(**limits),
        translations={
            "zh": Translation(
                description=chinese["description"].format(**limits),
                parameters={key: text.format(**limits) for key, text in chinese["parameters"].items()},
            )
        },
    )


@cache
def _chinese() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name("chinese.json").read_text(encoding="utf-8"))
    return found
