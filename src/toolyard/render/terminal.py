"""A structured reply as text for a terminal: with colours (SGR sequences and no others), or plain.

No control character of the model reaches the terminal: each becomes a sign or a name. Lines fit the width. The
thinking is folded to its first lines. Of content and attachments together 100,000 characters are shown.
"""

import io
import re
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.text import Text

from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.replies.reply_values import Reply, ReplyError
from toolyard.render.markdown import make_reply_visible, write_body
from toolyard.render.markdown_inert import make_visible
from toolyard.render.problem import build_failure_texts
from toolyard.render.terminal_markdown import ReplyMarkdown

MIN_WIDTH = 20
_MAX_SHOWN = 100_000
_MAX_THINK = 4  # lines
_SEQUENCE = re.compile(r"(\x1b\[[0-9;]*m)")


@dataclass(frozen=True, slots=True)
class _Words:
    think: str
    folded: str
    lines: str
    characters: str


_WORDS = {
    Language.ENGLISH: _Words(
        "Thinking",
        "… {} characters in all",
        "… {} more lines",
        "… {} more characters: --to markdown shows them",
    ),
    Language.CHINESE: _Words("思考过程", "… 共 {} 个字符", "… 还有 {} 行", "… 还有 {} 个字符：用 --to markdown 查看"),
}


def to_terminal(reply: Reply | ReplyError, language: Language = Language.ENGLISH, *, width: int, colour: bool) -> str:
    console = _make_console(max(MIN_WIDTH, width), colour=colour)
    if isinstance(reply, ReplyError):
        _print_all(console, *_write_failure(reply, language))
    else:
        reply = make_reply_visible(reply)
        words = _WORDS[language]
        if reply.think and reply.think.strip():
            _print_all(console, _write_think(reply.think.strip(), language, console), Text())
        visible, rest = _cut_text(write_body(reply, language))
        _print_all(console, ReplyMarkdown(visible, words.lines))
        if rest:
            _print_all(console, Text(words.characters.format(rest), style="dim"))
    return _strip_controls(console.file.getvalue() if isinstance(console.file, io.StringIO) else "", colour=colour)


def _make_console(width: int, *, colour: bool) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="256" if colour else None,
        no_color=not colour,
        force_jupyter=False,
        legacy_windows=False,
        emoji=False,
        markup=False,
        highlight=False,
        _environ={},
    )


def _print_all(console: Console, *parts: RenderableType) -> None:
    for part in parts:
        console.print(part, soft_wrap=False)


def _write_failure(error: ReplyError, language: Language) -> list[Text]:
    texts = build_failure_texts(error, language)
    raw, rest = _cut_text(make_visible(texts.raw))
    more = [Text(_WORDS[language].characters.format(rest), style="dim")] if rest else []
    title = Text(texts.title, style="bold yellow")
    return [title, Text(), Text(make_visible(texts.error)), Text(), Text(texts.raw_label), Text(), Text(raw), *more]


def _write_think(think: str, language: Language, console: Console) -> Text:
    words = _WORDS[language]
    beginning = Text(think[: console.width * (_MAX_THINK + 1)])
    lines = [line.plain.rstrip() for line in beginning.wrap(console, console.width - 2)]
    folded = [words.folded.format(len(think))] if len(lines) > _MAX_THINK or len(beginning.plain) < len(think) else []
    return Text("\n".join(f"│ {line}".rstrip() for line in [words.think, *lines[:_MAX_THINK], *folded]), style="dim")


def _cut_text(text: str) -> tuple[str, int]:
    """Return the displayed part of a text, up to a line end if one is near, and the number of omitted characters."""
    if len(text) <= _MAX_SHOWN:
        return text, 0
    end = text.rfind("\n", _MAX_SHOWN - 2_000, _MAX_SHOWN)
    end = _MAX_SHOWN if end < 0 else end
    return text[:end], len(text) - end


def _strip_controls(output: str, *, colour: bool) -> str:
    """Return ``output`` with colours if enabled, line feeds, and no other control sequence."""
    parts = _SEQUENCE.split(output)
    cleaned = [
        part if number % 2 and colour else "" if number % 2 else make_visible(part) for number, part in enumerate(parts)
    ]
    return "\n".join(line.rstrip() for line in "".join(cleaned).split("\n")).strip("\n") + "\n"
