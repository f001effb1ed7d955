"""Formulas in Markdown, found in the same way by all renderers.

In a sentence a formula between dollars begins and ends with a non-blank character, and no digit stands right before or
after it, so that prices stay prices. Code begins before a formula does: there is no backtick in one. A
formula of its own has at most 100 lines.

Some models put a formula of a sentence between ``\\(`` and ``\\)``, one on its own lines between ``\\[`` and ``\\]``.
In Markdown these are just brackets, so only a model's own text is read so.
"""

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.dollarmath.index import math_block_dollar

from toolyard.protocol.regex import compile_pattern

_MAX_LINES = 100
_BLOCK = math_block_dollar(allow_labels=False, allow_blank_lines=False)
_TEXT = r"[^$\\`]*+(?:\\[\s\S][^$\\`]*+)*+"
_PARENTHESES = compile_pattern(r"\\\((?P<tex>[^\\`]*+(?:\\(?![()\[\]])[\s\S][^\\`]*+)*+)\\\)")
_INLINE = compile_pattern(
    rf"(?<!\d)(?:\$\$(?!\s)(?P<double>{_TEXT}(?:\$(?!\$){_TEXT})*+)(?<!\s)\$\$"
    rf"|\$(?![\s$])(?P<single>{_TEXT})(?<!\s)\$)(?!\d)"
)


def find_formulas(parser: MarkdownIt) -> None:
    """Make ``parser`` emit ``math_inline``, ``math_inline_double`` and ``math_block``."""
    parser.use(dollarmath_plugin, allow_labels=False)
    parser.inline.ruler.at("math_inline", _parse_inline)
    parser.block.ruler.at("math_block", _parse_block)


def find_bracketed_formulas(parser: MarkdownIt) -> None:
    """Make ``parser`` emit them for ``\\(`` and ``\\[`` too."""
    parser.inline.ruler.before("escape", "math_parentheses", _parse_parenthesised)
    parser.block.ruler.before(
        "math_block", "math_brackets", _parse_bracketed, {"alt": ["paragraph", "blockquote", "list"]}
    )


def _parse_parenthesised(state: StateInline, silent: bool) -> bool:  # noqa: FBT001
    match = _PARENTHESES.match(state.src, state.pos, state.posMax)
    tex = match["tex"].strip() if match else ""
    if match is None or not tex:
        return False
    if not silent:
        token = state.push("math_inline", "math", 0)
        token.content, token.markup = tex, "$"
    state.pos = match.end()
    return True


def _parse_bracketed(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    lines: list[str] = []
    for number in range(start, min(end, start + _MAX_LINES)):
        line = state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].strip()
        if line.startswith(r"\[") != (number == start) or not line or state.sCount[number] < state.blkIndent:
            return False
        lines.append(line)
        if r"\]" in line:
            break
    tex = "\n".join(lines)[2:-2].strip()
    if not lines or not lines[-1].endswith(r"\]") or lines[-1].count(r"\]") > 1 or not tex:
        return False
    if not silent:
        state.line = start + len(lines)
        token = state.push("math_block", "math", 0)
        token.content, token.markup, token.block, token.map = tex, "$$", True, [start, state.line]
    return True


def _parse_inline(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser calls it so
    match = _INLINE.match(state.src, state.pos, state.posMax)
    tex = match["double"] or match["single"] if match else None
    if match is None or not tex:
        return False
    if not silent:
        token = state.push("math_inline_double" if match["double"] else "math_inline", "math", 0)
        token.content, token.markup = tex, "$$" if match["double"] else "$"
    state.pos = match.end()
    return True


def _parse_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """Parse a formula of at most ``_MAX_LINES``: the plug-in's own rule searches to the end of the text each time."""
    return _BLOCK(state, start, min(end, start + _MAX_LINES), silent)
