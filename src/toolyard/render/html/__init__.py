"""A reply as a fragment of HTML that does nothing: no script, no handler, no style, and no request to anyone.

``to_html`` gives one ``article``: the thinking, folded; the content; attachments that are not in it; what was wrong.
Everything is escaped or built where it is made, and the whole passes an allow-list at the end. Classes are for a style
sheet; ``data-tex``, ``data-chart`` and ``pre.mermaid-source`` are for a console that draws, and ``button.load`` for one
that asks before it fetches. ``.pending`` stands for what is still being written. Time and size are bounded, whatever
the reply holds.
"""

from hashlib import sha256

from toolyard.protocol.replies.prompt import Language
from toolyard.protocol.reply import ProblemCode, Reply, ReplyError
from toolyard.render.failure import failure_texts
from toolyard.render.html.attachment import rest
from toolyard.render.html.card import note, warning
from toolyard.render.html.code import source_block
from toolyard.render.html.markdown import markdown
from toolyard.render.html.sanitise import sanitise
from toolyard.render.html.sheet import Sheet
from toolyard.render.html.texts import texts
from toolyard.render.html.visible import shown
from toolyard.render.problem import problem_text

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
    """``partial``: more is to come, and ``writing`` is the id of the attachment that may not be whole yet."""
    if isinstance(reply, ReplyError):
        return _article(_failure(reply, language), language, "reply failed")
    sheet = Sheet(texts(language), reply.attachments, partial=partial, writing=writing)
    body = _think(sheet, reply.think) + _content(sheet, reply.content)
    return _article(body if partial else body + rest(sheet) + _problems(sheet, reply, language), language)


def markdown_to_html(
    content: str, think: str | None = None, language: Language = Language.ENGLISH, *, partial: bool = False
) -> str:
    """The same for what is no structured reply: there are no attachments, so placeholders are text."""
    sheet = Sheet(texts(language), {}, partial=partial)
    return _article(_think(sheet, think) + _content(sheet, content, placeholders=False), language)


def _article(body: str, language: Language, kind: str = "reply") -> str:
    return sanitise(f'<article class="{kind}" lang="{language}">{body}</article>')


def _content(sheet: Sheet, content: str, *, placeholders: bool = True) -> str:
    body = markdown(sheet, content, _prefix("c", content), placeholders=placeholders)
    return f'<div class="content">{body}</div>\n'


def _think(sheet: Sheet, think: str | None) -> str:
    if not think or not think.strip():
        return ""
    body = markdown(sheet, think, _prefix("t", think), placeholders=False)  # those of a reply stand in its content
    return f'<details class="think"><summary>{shown(sheet.texts.think)}</summary>{body}</details>\n'


def _problems(sheet: Sheet, reply: Reply, language: Language) -> str:
    """What was wrong and does not show in its own place."""
    left = [one for one in reply.problems if one.code not in _IN_PLACE][:_MAX_PROBLEMS]
    found = [warning(problem_text(one, language)) for one in left]
    if reply.is_truncated:
        found.insert(0, note(sheet.texts.incomplete))
    return f'<aside class="problems">{"".join(found)}</aside>\n' if found else ""


def _failure(error: ReplyError, language: Language) -> str:
    said = failure_texts(error, language)
    raw = source_block(Sheet(texts(language), {}), said.raw)
    return (
        f'<section class="card failure"><p class="title"><strong>{shown(said.title)}</strong></p>'
        f'<p class="error">{shown(said.error)}</p><p>{shown(said.raw_label)}</p>{raw}</section>'
    )


def _prefix(kind: str, text: str) -> str:
    """Told by the text, so that a reply is drawn the same each time and two replies do not share footnotes."""
    return kind + sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
