"""A structured reply as one Markdown document that any viewer can show and none will act upon.

The thinking comes first, quoted; then the content with its attachments; then what was left: attachments that no
placeholder showed, and what is wrong with the reply. A placeholder on a line of its own becomes its attachment there;
one in a sentence becomes a name, and the attachment follows the paragraph, list or table. An attachment is written out
once and named after that. Placeholders inside code, and inside attachments, are ordinary text. A content of more than
256 KiB is shown as its source.
"""

from dataclasses import dataclass, replace

from toolyard.protocol.json import Json
from toolyard.protocol.replies.prompt import Language
from toolyard.protocol.reply import Attachment, ProblemCode, Reply, ReplyError
from toolyard.render.failure import failure_texts
from toolyard.render.markdown_blocks import Style, block, fence, name_of
from toolyard.render.markdown_fill import filled
from toolyard.render.markdown_inert import escaped, inert, visible
from toolyard.render.problem import problem_text

_MAX_PARSED = 256 * 1024
_MAX_NOTES = 100
_SHOWN_IN_PLACE = frozenset(
    {
        ProblemCode.MISSING_ATTACHMENT,
        ProblemCode.MISMATCHED_TYPE,
        ProblemCode.UNUSED_ATTACHMENT,
        ProblemCode.MISSING_LANGUAGE,
    }
)


@dataclass(frozen=True, slots=True)
class _Words:
    think: str
    unused: str
    truncated: str


_WORDS = {
    Language.ENGLISH: _Words(
        "Thinking",
        "Attachments that the text does not use",
        "The reply is incomplete: it ended too soon.",
    ),
    Language.CHINESE: _Words("思考过程", "正文未引用的附件", "回复不完整：内容被截断。"),
}


def to_markdown(reply: Reply | ReplyError, language: Language = Language.ENGLISH) -> str:
    if isinstance(reply, ReplyError):
        return _failure(reply, language)
    reply = visible_reply(reply)
    think = f"**{_WORDS[language].think}**\n\n{reply.think}" if reply.think and reply.think.strip() else ""
    return inert("\n\n".join(filter(None, [_quoted(think), _document(reply, Style(language))]))) + "\n"


def body(reply: Reply, language: Language) -> str:
    """All but the thinking, of a reply that went through ``visible_reply``, for a terminal."""
    return inert(_document(reply, Style(language, is_for_terminal=True)))


def visible_reply(reply: Reply) -> Reply:
    """The same with every character to be seen, in ids, titles and data as well."""
    shown = [
        Attachment(
            visible(id_), visible(item.type), _seen(item.content), *(map(_seen_text, (item.language, item.title)))
        )
        for id_, item in reply.attachments.items()
    ]
    problems = tuple(
        replace(problem, message=visible(problem.message), id=_seen_text(problem.id)) for problem in reply.problems
    )
    attachments = {item.id: item for item in shown}
    return Reply(visible(reply.content), _seen_text(reply.think), attachments, problems, reply.repairs)


def _seen_text(text: str | None) -> str | None:
    return None if text is None else visible(text)


def _seen(value: Json) -> Json:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list):
        return [_seen(item) for item in value]
    return {visible(key): _seen(item) for key, item in value.items()} if isinstance(value, dict) else value


def _failure(error: ReplyError, language: Language) -> str:
    texts = failure_texts(error, language)
    lines = [escaped(visible(line)) for line in (texts.title, texts.error, texts.raw_label)]
    return "\n\n".join([*lines, fence(visible(texts.raw))]) + "\n"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().split("\n")) if text else ""


def _document(reply: Reply, style: Style) -> str:
    words = _WORDS[style.language]
    is_large = len(reply.content) > _MAX_PARSED
    content, written = (fence(reply.content), frozenset[str]()) if is_large else filled(reply, style)
    parts = [content]
    if reply.is_truncated:
        parts.append(f"⚠️ {words.truncated}")
    unused = [item for item in reply.attachments.values() if item.id not in written]
    if unused:
        parts.append(f"⚠️ {words.unused}:")
    for item in unused:
        heading = [] if item.title else [name_of(item)]
        parts += [*heading, block(item, style)]
    return "\n\n".join([*parts, *_notes(reply, style.language)])


def _notes(reply: Reply, language: Language) -> list[str]:
    """What is wrong and does not show in its place."""
    found = [problem for problem in reply.problems if problem.code not in _SHOWN_IN_PLACE]
    unknown = {item.id for item in reply.attachments.values() if item.kind is None}
    left = [one for one in found if one.code is not ProblemCode.UNKNOWN_TYPE or one.id not in unknown]
    notes = [problem_text(one, language) for one in left]
    more = [f"… (+{len(notes) - _MAX_NOTES})"] if len(notes) > _MAX_NOTES else []
    return [*(f"⚠️ {escaped(note)}" for note in notes[:_MAX_NOTES]), *more]
