"""Rendering: the text of a model as any of the targets. Each renderer is imported on demand: none is small."""

import json
from enum import StrEnum

from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.replies.reply_values import Reply, ReplyError
from toolyard.protocol.reply import parse_reply

DEFAULT_WIDTH = 80


class Target(StrEnum):
    HTML = "html"
    MARKDOWN = "markdown"
    TERMINAL = "terminal"
    JSON = "json"


def render(text: str, to: Target, language: Language = Language.ENGLISH) -> str:
    """Return the reply in ``text``, or the reason why there is none. For a terminal: plain, and 80 columns wide."""
    return render_parsed(parse_reply(text), to, language)


def render_parsed(
    reply: Reply | ReplyError,
    to: Target,
    language: Language = Language.ENGLISH,
    *,
    width: int = DEFAULT_WIDTH,
    colour: bool = False,
) -> str:
    """Return the rendering of a parsed reply. ``width`` and ``colour`` are for the terminal."""
    match to:
        case Target.HTML:
            from toolyard.render.html import to_html

            return to_html(reply, language)
        case Target.MARKDOWN:
            from toolyard.render.markdown import to_markdown

            return to_markdown(reply, language)
        case Target.TERMINAL:
            from toolyard.render.terminal import to_terminal

            return to_terminal(reply, language, width=width, colour=colour)
        case Target.JSON:
            return json.dumps(reply.to_dict(), ensure_ascii=False, indent=2) + "\n"
