"""A structured reply as one Markdown document that any viewer can show and none will act upon.

The thinking comes first, quoted; then the content with its attachments; then the rest: attachments that no placeholder
showed, and the problems of the reply. A placeholder on a line of its own becomes its attachment there;
one in a sentence becomes a name, and the attachment follows the paragraph, list or table. An attachment is written out
once and named after that. Placeholders inside code, and inside attachments, are ordinary text. A content of more than
256 KiB is shown as its source.
"""

from dataclasses import dataclass, replace

from toolyard.protocol.json import Json
from toolyard.protocol.replies.prompt import Language
from toolyard.protocol.reply import Attachment, ProblemCode, Reply, ReplyError
from toolyard.render.failure import build_failure_texts
from toolyard.render.markdown_blocks import Style, attachment_name, write_block, write_fence
from toolyard.render.markdown_fill import fill_placeholders
from toolyard.render.markdown_inert import escape_markdown, make_inert, make_visible
from toolyard.render.problem import write_problem

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
        return _write_failure(reply, language)
    reply = make_reply_visible(reply)
    think = f"**{_WORDS[language].think}**\n\n{reply.think}" if reply.think and reply.think.strip() else ""
    return make_inert("\n\n".join(filter(None, [_quote_lines(think), _write_document(reply, Style(language))]))) + "\n"


def write_body(reply: Reply, language: Language) -> str:
    """Return all but the thinking, of a reply that went through ``make_reply_visible``, for a terminal."""
    return make_inert(_write_document(reply, Style(language, is_for_terminal=True)))


def make_reply_visible(reply: Reply) -> Reply:
    """Return the reply with every character visible, in ids, titles and data as well."""
    items = [
        Attachment(
            make_visible(id_),
            make_visible(item.type),
            _make_value_visible(item.content),
            *(map(_make_text_visible, (item.language, item.title))),
        )
        for id_, item in reply.attachments.items()
    ]
    problems = tuple(
        replace(problem, message=make_visible(problem.message), id=_make_text_visible(problem.id))
        for problem in reply.problems
    )
    attachments = {item.id: item for item in items}
    return Reply(make_visible(reply.content), _make_text_visible(reply.think), attachments, problems, reply.repairs)


def _make_text_visible(text: str | None) -> str | None:
    return None if text is None else make_visible(text)


def _make_value_visible(value: Json) -> Json:
    if isinstance(value, str):
        return make_visible(value)
    if isinstance(value, list):
        return [_make_value_visible(item) for item in value]
    return (
        {make_visible(key): _make_value_visible(item) for key, item in value.items()}
        if isinstance(value, dict)
        else value
    )


def _write_failure(error: ReplyError, language: Language) -> str:
    texts = build_failure_texts(error, language)
    lines = [escape_markdown(make_visible(line)) for line in (texts.title, texts.error, texts.raw_label)]
    return "\n\n".join([*lines, write_fence(make_visible(texts.raw))]) + "\n"


def _quote_lines(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().split("\n")) if text else ""


def _write_document(reply: Reply, style: Style) -> str:
    words = _WORDS[style.language]
    is_large = len(reply.content) > _MAX_PARSED
    content, written = (write_fence(reply.content), frozenset[str]()) if is_large else fill_placeholders(reply, style)
    parts = [content]
    if reply.is_truncated:
        parts.append(f"⚠️ {words.truncated}")
    unused = [item for item in reply.attachments.values() if item.id not in written]
    if unused:
        parts.append(f"⚠️ {words.unused}:")
    for item in unused:
        heading = [] if item.title else [attachment_name(item)]
        parts += [*heading, write_block(item, style)]
    return "\n\n".join([*parts, *_write_notes(reply, style.language)])


def _write_notes(reply: Reply, language: Language) -> list[str]:
    """Return the problems that do not show in their place."""
    problems = [problem for problem in reply.problems if problem.code not in _SHOWN_IN_PLACE]
    unknown = {item.id for item in reply.attachments.values() if item.kind is None}
    listed = [one for one in problems if one.code is not ProblemCode.UNKNOWN_TYPE or one.id not in unknown]
    notes = [write_problem(one, language) for one in listed]
    more = [f"… (+{len(notes) - _MAX_NOTES})"] if len(notes) > _MAX_NOTES else []
    return [*(f"⚠️ {escape_markdown(note)}" for note in notes[:_MAX_NOTES]), *more]
