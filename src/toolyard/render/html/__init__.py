"""A reply as an inert fragment of HTML: no script, no handler, no style, and no request to anyone.

``to_html`` returns one ``article``: the thinking, folded; the content; attachments that are not in it; problems.
Everything is escaped or built where it is made, and the result passes an allow-list at the end. Classes are for a style
sheet; ``data-tex``, ``data-chart`` and ``pre.mermaid-source`` are for a console that draws, and ``button.load`` for one
that asks before it fetches. ``.pending`` marks parts that are still being written. Time and size are bounded, whatever
the reply holds.
"""

from hashlib import sha256

from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.replies.reply_values import ProblemCode, Reply, ReplyError
from toolyard.render.html.attachment import render_rest
from toolyard.render.html.code import render_source
from toolyard.render.html.from_markdown import render_markdown
from toolyard.render.html.sanitise import sanitise
from toolyard.render.html.sheet import Sheet, escape_text, find_texts, render_note, render_warning
from toolyard.render.problem import build_failure_texts, write_problem

_IN_PLACE = frozenset(
    {
        ProblemCode.MISSING_ATTACHMENT,
        ProblemCode.MISMATCHED_TYPE,
        ProblemCode.UNUSED_ATTACHMENT,
        ProblemCode.UNKNOWN_TYPE,
        ProblemCode.MISSING_LANGUAGE,
    }
)
_MAX_PROBLEMS = 100


def to_html(
    reply: Reply | ReplyError, language: Language = Language.ENGLISH, *, partial: bool = False, writing: str = ""
) -> str:
    """Return the reply. ``partial``: more is to come; ``writing``: the id of an attachment that may be incomplete."""
    if isinstance(reply, ReplyError):
        return _wrap_article(_render_failure(reply, language), language, "reply failed")
    sheet = Sheet(find_texts(language), reply.attachments, partial=partial, writing=writing)
    body = _render_think(sheet, reply.think) + _render_content(sheet, reply.content)
    return _wrap_article(
        body if partial else body + render_rest(sheet) + _render_problems(sheet, reply, language), language
    )


def markdown_to_html(
    content: str, think: str | None = None, language: Language = Language.ENGLISH, *, partial: bool = False
) -> str:
    """Return plain Markdown as the same HTML: there are no attachments, so placeholders are text."""
    sheet = Sheet(find_texts(language), {}, partial=partial)
    return _wrap_article(_render_think(sheet, think) + _render_content(sheet, content, placeholders=False), language)


def _wrap_article(body: str, language: Language, kind: str = "reply") -> str:
    return sanitise(f'<article class="{kind}" lang="{language}">{body}</article>')


def _render_content(sheet: Sheet, content: str, *, placeholders: bool = True) -> str:
    body = render_markdown(sheet, content, _make_prefix("c", content), placeholders=placeholders)
    return f'<div class="content">{body}</div>\n'


def _render_think(sheet: Sheet, think: str | None) -> str:
    if not think or not think.strip():
        return ""
    body = render_markdown(
        sheet, think, _make_prefix("t", think), placeholders=False
    )  # a reply has them in its content
    return f'<details class="think"><summary>{escape_text(sheet.texts.think)}</summary>{body}</details>\n'


def _render_problems(sheet: Sheet, reply: Reply, language: Language) -> str:
    """Return the problems that do not show in their place."""
    listed = [one for one in reply.problems if one.code not in _IN_PLACE][:_MAX_PROBLEMS]
    notes = [render_warning(write_problem(one, language)) for one in listed]
    if reply.is_truncated:
        notes.insert(0, render_note(sheet.texts.incomplete))
    return f'<aside class="problems">{"".join(notes)}</aside>\n' if notes else ""


def _render_failure(error: ReplyError, language: Language) -> str:
    texts = build_failure_texts(error, language)
    raw = render_source(Sheet(find_texts(language), {}), texts.raw)
    return (
        f'<section class="card failure"><p class="title"><strong>{escape_text(texts.title)}</strong></p>'
        f'<p class="error">{escape_text(texts.error)}</p><p>{escape_text(texts.raw_label)}</p>{raw}</section>'
    )


def _make_prefix(kind: str, text: str) -> str:
    """Return a prefix derived from the text: a reply renders the same each time, and two replies share no footnotes."""
    return kind + sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
