"""The value of a static plugin: its stdout as the text of a placeholder.

VCPToolBox folds long values by relevance, which takes embeddings; without them it shows the base block, and so do we.
"""

import json
import re

_FOLD = re.compile(r"^\[===\s*vcp_fold:\s*([0-9.]+).*?===\]\s*$", re.MULTILINE)


def read_static_value(stdout: str) -> str:
    """Return the text to insert."""
    text = stdout.strip()
    if text.startswith("{") and "vcp_dynamic_fold" in text:
        folded = _object(text)
        if folded is not None:
            return folded
    marks = list(_FOLD.finditer(text))
    if not marks:
        return text
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    blocks = [(float(mark[1] or 0), text[mark.end() : end].strip()) for mark, end in zip(marks, ends, strict=True)]
    before = text[: marks[0].start()].strip()
    return before or min(blocks, key=lambda block: block[0])[1]


def _object(text: str) -> str | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    blocks = value.get("fold_blocks") if isinstance(value, dict) else None
    if not isinstance(blocks, list):
        return None
    good = [block for block in blocks if isinstance(block, dict) and isinstance(block.get("content"), str)]
    if not good:
        return None
    lowest = min(good, key=lambda block: block["threshold"] if isinstance(block.get("threshold"), int | float) else 0)
    return str(lowest["content"]).strip()
