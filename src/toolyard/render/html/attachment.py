"""One attachment as HTML, by its type and its place."""

import json
from collections.abc import Callable
from typing import TypeAlias

from toolyard.protocol.replies.placeholders import Placeholder
from toolyard.protocol.replies.values import TYPES
from toolyard.protocol.reply import Attachment, AttachmentType
from toolyard.render.html.card import render_note, render_pending, render_warning
from toolyard.render.html.chart import render_chart
from toolyard.render.html.code import render_code, render_inline_code, render_source
from toolyard.render.html.diagram import render_diagram
from toolyard.render.html.formula import render_formula
from toolyard.render.html.media import render_media
from toolyard.render.html.placeholder import Form
from toolyard.render.html.sheet import Sheet
from toolyard.render.html.table import render_table
from toolyard.render.html.visible import escape_text

_SHORT = 120  # characters of code that fit in a sentence
_MAX_NAME = 200

_Draw: TypeAlias = Callable[[Sheet, Attachment], str]


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
