"""``{{type:id}}`` in Markdown, found during parsing, so that code is left alone and nothing is read twice.

A placeholder on a line of its own becomes a block. In a sentence a formula, a picture and a short piece of code are
inline; a diagram, a table or any other block ends the paragraph there, and the sentence continues in the next. Where no
block is possible (headings, cells, links) a reference is left, and the attachment comes after the text.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import TypeAlias

from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from toolyard.protocol.replies.placeholders import Placeholder, match_placeholder

_BREAKS = frozenset({"softbreak", "hardbreak"})
_MARKS = frozenset({"strong_open", "strong_close", "em_open", "em_close", "s_open", "s_close"})

CanBeInline: TypeAlias = Callable[[Placeholder], bool]


class Form(StrEnum):
    BLOCK = "block"
    INLINE = "inline"
    REFERENCE = "reference"


def parse_placeholder(text: str) -> Placeholder | None:
    """Return the placeholder that is all of ``text``."""
    text = text.strip()
    placeholder = match_placeholder(text, 0)
    return placeholder if placeholder and placeholder.end == len(text) else None


def inline_rule(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser calls it so
    placeholder = match_placeholder(state.src, state.pos, state.posMax)
    if placeholder is None:
        return False
    if not silent:
        _fill(state.push("placeholder", "", 0), placeholder, Form.REFERENCE)
    state.pos = placeholder.end
    return True


def core_rule(state: StateCore) -> None:
    """Decide the form of every placeholder, and split the paragraphs that hold blocks."""
    can_be_inline: CanBeInline = state.env["can_be_inline"]
    tokens: list[Token] = []
    for token in state.tokens:
        lone = parse_placeholder(token.content) if token.type == "code_block" else None
        if lone:  # four spaces before a placeholder are a mistake
            tokens.append(_fill(Token("placeholder", "", 0, block=True), lone, Form.BLOCK))
        elif token.type == "inline" and any(child.type == "placeholder" for child in token.children or ()):
            in_paragraph = bool(tokens) and tokens[-1].type == "paragraph_open"
            tokens += _decide_form(token, tokens[-1] if in_paragraph else None, can_be_inline)
        else:
            tokens.append(token)
    state.tokens = tokens


def _decide_form(token: Token, paragraph: Token | None, can_be_inline: CanBeInline) -> Iterator[Token]:
    children = token.children or []
    if paragraph is not None:
        children = _strip_emphasis(children)
    run: list[Token] = []
    for number, child in enumerate(children):
        if child.type != "placeholder":
            run.append(child)
            continue
        inline = can_be_inline(child.meta["placeholder"])
        if paragraph is not None and child.level == 0 and (not inline or _has_own_line(children, number)):
            yield _make_inline(token, run)
            yield Token("paragraph_close", "p", -1, block=True, hidden=paragraph.hidden)
            yield _fill(child, child.meta["placeholder"], Form.BLOCK)
            yield Token("paragraph_open", "p", 1, block=True, hidden=paragraph.hidden)
            run = []
        else:
            run.append(_fill(child, child.meta["placeholder"], Form.INLINE if inline else Form.REFERENCE))
    yield _make_inline(token, run)


def _fill(token: Token, placeholder: Placeholder, form: Form) -> Token:
    token.meta = {"placeholder": placeholder, "form": form}
    return token


def _make_inline(token: Token, run: list[Token]) -> Token:
    while run and run[0].type in _BREAKS:
        run.pop(0)
    while run and run[-1].type in _BREAKS:
        run.pop()
    if run and run[0].type == "text":
        run[0].content = run[0].content.lstrip()
    copy = token.copy()
    copy.children = run
    return copy


def _strip_emphasis(children: list[Token]) -> list[Token]:
    """Return a placeholder that is all of its paragraph without the emphasis around it."""
    rest = [child for child in children if child.type not in _MARKS and not _is_blank(child)]
    if len(rest) != 1 or rest[0].type != "placeholder":
        return children
    rest[0].level = 0
    return rest


def _has_own_line(children: Sequence[Token], number: int) -> bool:
    def ends(step: int) -> bool:
        at = number + step
        while 0 <= at < len(children) and _is_blank(children[at]):
            at += step
        return not 0 <= at < len(children) or children[at].type in _BREAKS

    return ends(-1) and ends(1)


def _is_blank(token: Token) -> bool:
    return token.type == "text" and not token.content.strip()
