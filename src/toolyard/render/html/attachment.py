"""Attachments as HTML, by their type and place, and the placeholders ``{{type:id}}`` that give the place.

Placeholders are found while Markdown is parsed, so that code is left alone and nothing is read twice. One on a line of
its own becomes a block. In a sentence a formula, a picture and a short piece of code are inline; a diagram, a table or
any other block ends the paragraph there, and the sentence continues in the next. Where no block is possible (headings,
cells, links) a reference is left, and the attachment comes after the text.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import TypeAlias

from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from toolyard.protocol.replies.attachment_placeholders import Placeholder, match_placeholder
from toolyard.protocol.replies.reply_values import TYPES, Attachment, AttachmentType
from toolyard.render.html.code import render_code, render_diagram, render_inline_code, render_source
from toolyard.render.html.formula import render_formula
from toolyard.render.html.media import render_media
from toolyard.render.html.sheet import Sheet, escape_text, render_note, render_pending, render_warning
from toolyard.render.html.tables import render_chart, render_table

_SHORT = 120  # characters of code that fit in a sentence
_MAX_NAME = 200
_Draw: TypeAlias = Callable[[Sheet, Attachment], str]
_BREAKS = frozenset({"softbreak", "hardbreak"})
_MARKS = frozenset({"strong_open", "strong_close", "em_open", "em_close", "s_open", "s_close"})


def can_be_inline(sheet: Sheet, placeholder: Placeholder) -> bool:
    """Return whether the placeholder's replacement fits in a sentence; a warning does."""
    attachment = sheet.attachments.get(placeholder.id)
    match attachment.kind if attachment else AttachmentType.IMAGE:
        case AttachmentType.LATEX | AttachmentType.IMAGE:
            return True
        case AttachmentType.CODE:
            source = _content_text(attachment) if attachment else ""
            return len(source) <= _SHORT and "\n" not in source.strip("\n")
    return False


class Form(StrEnum):
    BLOCK = "block"
    INLINE = "inline"
    REFERENCE = "reference"


def render_placeholder(sheet: Sheet, placeholder: Placeholder, form: Form) -> str:
    """Return the HTML in place of the placeholder."""
    attachment = sheet.attachments.get(placeholder.id)
    inline = form is not Form.BLOCK
    if sheet.partial and (attachment is None or _is_unfinished(sheet, attachment)):
        return render_pending(placeholder.type, inline=inline)
    if attachment is None:
        text = sheet.texts.missing if placeholder.type in TYPES else sheet.texts.unknown_placeholder
        return render_warning(text.format(type=placeholder.type, id=placeholder.id), inline=inline)
    fault = ""
    if attachment.type != placeholder.type:
        text = sheet.texts.mismatched.format(type=placeholder.type, id=placeholder.id, other=attachment.type)
        fault = render_warning(text, inline=inline)
    if form is Form.REFERENCE:
        return fault + _render_reference(sheet, attachment)
    key = attachment.id, inline
    html = sheet.html_by_form.get(key) or (
        _render_inline(sheet, attachment) if inline else render_block(sheet, attachment)
    )
    sheet.html_by_form[key] = html
    if attachment.id in sheet.shown_ids and not sheet.repeats.take(len(html)):
        return fault + _render_reference(sheet, attachment)
    sheet.shown_ids.add(attachment.id)
    return fault + html


def _is_unfinished(sheet: Sheet, attachment: Attachment) -> bool:
    """Return whether too little has come: half of a text can be shown, half of a diagram, formula or table cannot."""
    return attachment.content == "" or (attachment.id == sheet.writing and attachment.kind is not AttachmentType.CODE)


def render_block(sheet: Sheet, attachment: Attachment) -> str:
    if attachment.kind is not None:
        return _BLOCKS[attachment.kind](sheet, attachment)
    unknown = render_warning(sheet.texts.unknown.format(type=attachment.type[:_MAX_NAME]))
    return unknown + render_source(sheet, _content_text(attachment))


def _render_inline(sheet: Sheet, attachment: Attachment) -> str:
    match attachment.kind:
        case AttachmentType.LATEX:
            return render_formula(sheet, _content_text(attachment), display=False)
        case AttachmentType.IMAGE:
            return render_media(sheet, AttachmentType.IMAGE, _content_text(attachment), attachment.title, inline=True)
    return render_inline_code(_content_text(attachment).strip("\n"))


def _render_reference(sheet: Sheet, attachment: Attachment) -> str:
    name = (attachment.title or attachment.id)[:_MAX_NAME]
    return f'<span class="reference">{escape_text(sheet.texts.elsewhere.format(name=name))}</span>'


def _content_text(attachment: Attachment) -> str:
    content = attachment.content
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _render_formula(sheet: Sheet, attachment: Attachment) -> str:
    title = f'<div class="title">{escape_text(attachment.title)}</div>' if attachment.title else ""
    return title + render_formula(sheet, _content_text(attachment), display=True) + "\n"


def _media_renderer(kind: AttachmentType) -> _Draw:
    return lambda sheet, attachment: render_media(sheet, kind, _content_text(attachment), attachment.title)


_BLOCKS: dict[AttachmentType, _Draw] = {
    AttachmentType.MERMAID: lambda sheet, it: render_diagram(sheet, _content_text(it), it.title),
    AttachmentType.CODE: lambda sheet, it: render_code(sheet, _content_text(it), it.language, it.title),
    AttachmentType.LATEX: _render_formula,
    AttachmentType.IMAGE: _media_renderer(AttachmentType.IMAGE),
    AttachmentType.TABLE: lambda sheet, it: render_table(sheet, it.content, it.title),
    AttachmentType.CHART: lambda sheet, it: render_chart(sheet, it.content, it.title),
    AttachmentType.AUDIO: _media_renderer(AttachmentType.AUDIO),
    AttachmentType.VIDEO: _media_renderer(AttachmentType.VIDEO),
}


def render_rest(sheet: Sheet) -> str:
    """Return the attachments that have not been shown in the text."""
    unused = [attachment for id_, attachment in sheet.attachments.items() if id_ not in sheet.shown_ids]
    if not unused:
        return ""
    named = (
        f'<div class="attachment-id">{escape_text(one.id[:_MAX_NAME])}</div>{render_block(sheet, one)}'
        for one in unused
    )
    return f'<section class="rest">{render_note(sheet.texts.rest)}{"".join(named)}</section>\n'


CanBeInline: TypeAlias = Callable[[Placeholder], bool]


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
