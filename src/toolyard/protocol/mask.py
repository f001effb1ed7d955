"""The sign that replaces a secret."""

import re
from typing import Final

MASK: Final = "[masked]"
_SIGNS: Final = re.compile(r"\[masked(?:, [0-9]+ characters)?\]")


def describe_masked(length: int) -> str:
    """Return the sign for people who decide: it also says how long the hidden text is."""
    return f"[masked, {length} characters]"


def count_masks(text: str) -> int:
    return sum(1 for _ in _SIGNS.finditer(text))
