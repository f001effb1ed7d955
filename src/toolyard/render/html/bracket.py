"""Square brackets that cannot begin a link, found for a text at once: one by one each costs a long lookahead.

Only for texts with more than ``FEW`` of them, which nobody writes: there a bracket begins a link or a picture only if
it is closed again and at most ``DEEP`` others are nested in it. Linear in the text.
"""

from typing import Final

from markdown_it.rules_inline import StateInline

FEW: Final = 1000
DEEP: Final = 4


class Brackets:
    """The brackets of one parser's current text."""

    def __init__(self) -> None:
        self._text = ""
        self._open: frozenset[int] | None = None

    def rule(self, state: StateInline, silent: bool) -> bool:  # noqa: FBT001
        """Consume all brackets that are only text in one step."""
        text, end = state.src, state.pos
        if text is not self._text:
            self._text, self._open = text, find_openings(text)
        if self._open is None:
            return False
        while end < state.posMax:
            size = 2 if text.startswith("![", end) else 1 if text[end] == "[" else 0
            if not size or end + size - 1 in self._open:
                break
            end += size
        if end == state.pos:
            return False
        if not silent:
            state.pending += text[state.pos : end]
        state.pos = end
        return True


def find_openings(text: str) -> frozenset[int] | None:
    """Return the positions where links and pictures may begin; None: few brackets, each checked by itself."""
    if text.count("[") <= FEW:
        return None
    openings: list[int] = []
    waiting: list[tuple[int, int]] = []  # position of a bracket, and the nesting depth inside it
    for at, sign in enumerate(text):
        if sign == "[":
            waiting.append((at, 0))
        elif sign == "]" and waiting:
            opened, inside = waiting.pop()
            if inside <= DEEP:
                openings.append(opened)
            if waiting:
                around, deepest = waiting[-1]
                waiting[-1] = around, max(deepest, inside + 1)
    return frozenset(openings)
