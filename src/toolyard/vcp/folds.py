"""Folds: texts in blocks, of which a prompt gets those that are about the conversation.

``[===vcp_fold: 0.5===]`` or ``[===vcp_fold: 0.5 ::desc: what it is about===]`` on a line of its own begins a block;
what stands before the first one is a block of threshold 0. A static plugin may also print a fold as JSON. A block is
shown from its threshold on, compared with how similar the conversation and a description are, from 0 to 1. Where
nothing can say that, the block with the lowest threshold is shown.

A blank before ``===]`` without a description makes no mark: SkillBridge's text is such a one, and is inserted whole.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from toolyard.protocol.json import Json

LITE: Final = "lite"  # the lowest block
FULL: Final = "full"  # all blocks
AUTO: Final = "auto"
RULE: Final = "\n\n---\n\n"
# Returns how similar a description and the conversation are; None: nothing can say.
Similarity = Callable[[str], float | None]
BLANKS: Final = " \t\n\r\v\f\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
_MARK = re.compile(r"\[===vcp_fold:\s*([0-9.]+)(?:\s*::desc:\s*(.*?)\s*)?===\]\s*")
_NUMBER = re.compile(r"[0-9]*\.?[0-9]*")
_EMPTY = "配置文件中未找到有效内容。"


@dataclass(frozen=True, slots=True)
class Block:
    threshold: float
    content: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    blocks: tuple[Block, ...]
    description: str = ""
    is_per_block: bool = True  # each block is compared by itself and several may be shown; else one is
    is_valid: bool = True

    def choose(self, similarity: Similarity, mode: str = AUTO) -> str:
        """Return the blocks to show, as one text."""
        if mode == FULL:
            return RULE.join(block.content for block in self.blocks if block.content)
        if mode == LITE:
            return min(self.blocks, key=lambda block: block.threshold).content if self.blocks else ""
        if not self.is_per_block:
            return self._choose_single(similarity)
        return self._choose_several(similarity)

    @property
    def _base(self) -> str:
        """The block with the lowest threshold that has content; of equal ones the last."""
        filled = [block for block in reversed(self.blocks) if block.content]
        return min(filled, key=lambda block: block.threshold).content if filled else ""

    def _choose_single(self, similarity: Similarity) -> str:
        similar = similarity(self.description)
        if similar is None:
            return self._base
        reached = [block for block in self.blocks if similar >= block.threshold]
        return max(reached, key=lambda block: block.threshold).content if reached else self._base

    def _choose_several(self, similarity: Similarity) -> str:
        plain = [block for block in self.blocks if not block.description]
        described = {block.description: similarity(block.description) for block in self.blocks if block.description}
        whole = similarity(self.description) if plain else 0.0
        if whole is None or None in described.values():
            return self._base
        reached = [block for block in plain if whole >= block.threshold]
        lowest = min((block.threshold for block in plain), default=0.0)
        shown_plain = reached or [block for block in plain if block.threshold <= lowest]
        shown = [
            block
            for block in self.blocks
            if (
                (described[block.description] or 0.0) >= block.threshold
                if block.description
                else any(block is other for other in shown_plain)
            )
        ]
        text = RULE.join(block.content for block in shown if block.content) or self._base
        hidden = len(self.blocks) - len(shown)
        if hidden:
            text += (
                f"\n\n*(提示：当前上下文中还隐藏收纳了另外 {hidden} 个工具模块分组，"
                "您可以通过明确提问或强调相关语境来获得展开。)*"
            )
        return text


def parse_marks(text: str, description: str = "") -> Fold:
    """Return the fold of a text, whether it has marks or not."""
    blocks: list[Block] = []
    threshold, about, lines, is_open = 0.0, "", list[str](), False
    for line in text.split("\n"):
        mark = _MARK.fullmatch(line)
        if mark is None:
            lines.append(line)
            continue
        if is_open or lines:
            blocks.append(Block(threshold, "\n".join(lines).strip(BLANKS), about))
        threshold, about, lines, is_open = _read_number(mark[1]), (mark[2] or "").strip(), [], True
    if is_open or lines:
        blocks.append(Block(threshold, "\n".join(lines).strip(BLANKS), about))
    return Fold(tuple(blocks) or (Block(0.0, _EMPTY),), description)


def parse_fold(text: str, description: str = "") -> Fold | None:
    """Return the fold that a static plugin printed; None: it is an ordinary text."""
    text = text.strip(BLANKS)
    if text.startswith("{"):
        try:
            value: Json = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and value.get("vcp_dynamic_fold"):
            return _read_object(value)
    if any(_MARK.fullmatch(line) for line in text.split("\n")):
        return parse_marks(text, description)
    return None


def _read_object(value: dict[str, Json]) -> Fold:
    stored = value.get("fold_blocks")
    blocks = tuple(
        Block(
            _read_threshold(one.get("threshold")),
            str(one["content"]),
            str(one.get("description") or "").strip() if isinstance(one.get("description"), str) else "",
        )
        for one in (stored if isinstance(stored, list) else [])
        if isinstance(one, dict) and isinstance(one.get("content"), str)
    )
    is_per_block = value.get("dynamic_fold_strategy") == "toolbox_block_similarity"
    return Fold(
        blocks, str(value.get("plugin_description") or ""), is_per_block, isinstance(stored, list) and bool(stored)
    )


def _read_threshold(value: Json) -> float:
    try:
        return float(value) if isinstance(value, bool | int | float | str) else 0.0
    except ValueError:
        return 0.0


def _read_number(text: str) -> float:
    """Return the number at the beginning of a text of digits and dots, as parseFloat does."""
    begin = _NUMBER.match(text)
    try:
        return float(begin[0]) if begin else 0.0
    except ValueError:
        return 0.0
