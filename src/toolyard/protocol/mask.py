"""The sign that stands where a secret was."""

import re
from typing import Final

MASK: Final = "[masked]"
_SIGNS: Final = re.compile(r"\[masked(?:, [0-9]+ characters)?\]")


def describe_masked(length: int) -> str:
    """The sign for people who decide: it also tells how long the text is that they do not see."""
    return f"[masked, {length} characters]"


def count_masks(text: str) -> int:
    return sum(1 for _ in _SIGNS.finditer(text))
