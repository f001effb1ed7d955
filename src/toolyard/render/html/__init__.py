"""A reply as a fragment of HTML that does nothing: no script, no handler, no style, and no request to anyone.

``to_html`` gives one ``article``: the thinking, folded; the content; attachments that are not in it; what was wrong.
Everything is escaped or built where it is made, and the whole passes an allow-list at the end. Classes are for a style
sheet; ``data-tex``, ``data-chart`` and ``pre.mermaid-source`` are for a console that draws, and ``button.load`` for one
that asks before it fetches. Time and size are bounded, whatever the reply holds.
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

_IN_PLACE = frozenset(
    {
        ProblemCode.MISSING_ATTACHMENT,
        ProblemCode.MISMATCHED_TYPE,
        ProblemCode.UNUSED_ATTACHMENT,
        ProblemCode.UNKNOWN_TYPE,
    }
)
_MAX_PROBLEMS = 100


def to_html(reply: Reply | ReplyError, language: Language = Language.ENGLISH) -> str:
    if isinstance(reply, ReplyError):
        body, kind = _failure(reply, language), "reply failed"
    else:
        body, kind = _reply(reply, language), "reply"
    return sanitise(f'<article class="{kind}" lang="{language}">{body}</article>')


def _reply(reply: Reply, language: Language) -> str:
    sheet = Sheet(texts(language), reply.attachments)
    content = f'<div class="content">{markdown(sheet, reply.content, _prefix("c", reply.content))}</div>\n'
    return _think(sheet, reply.think) + content + rest(sheet) + _problems(sheet, reply)


def _think(sheet: Sheet, think: str | None) -> str:
    if not think or not think.strip():
        return ""
    body = markdown(sheet, think, _prefix("t", think), placeholders=False)  # those of a reply stand in its content
    return f'<details class="think"><summary>{shown(sheet.texts.think)}</summary>{body}</details>\n'


def _problems(sheet: Sheet, reply: Reply) -> str:
    """What was wrong and does not show in its own place."""
    found = [warning(one.message) for one in reply.problems if one.code not in _IN_PLACE][:_MAX_PROBLEMS]
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
