"""A structured reply as text for a terminal: with colours (SGR sequences and no others), or plain.

No control character of the model reaches the terminal: each becomes a sign or a name. Lines fit the width. The
thinking is folded to its first lines. Of content and attachments together 100,000 characters are shown.

Markdown that is inert and visible is drawn by rich, with diagrams, formulas and tables as a terminal can show them. Of
one piece of code 400 lines are shown, and it is coloured up to 20,000 characters without long lines: some grammars take
time with the square of a line.
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, TableElement
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.replies.reply_values import Reply, ReplyError
from toolyard.render.formulas import find_formulas, make_readable
from toolyard.render.markdown import make_reply_visible, write_body
from toolyard.render.markdown_inert import make_visible
from toolyard.render.problem import build_failure_texts
from toolyard.render.terminal_diagram import Drawings

MIN_WIDTH = 20
_MAX_SHOWN = 100_000
_MAX_THINK = 4  # lines
_SEQUENCE = re.compile(r"(\x1b\[[0-9;]*m)")
_MAX_LINES = 400
_MAX_COLOURED = 20_000
_MAX_LINE = 1_000
_CELL = 8  # minimal width of a table's column


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


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar = dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "left")


class _Code(CodeBlock):
    """A fence: a diagram, a formula or code."""

    drawings: Drawings
    more: str

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> "_Code":
        made = cls((token.info or "").partition(" ")[0] or "text", "ansi_dark")
        if isinstance(markdown, ReplyMarkdown):
            made.drawings, made.more = markdown.drawings, markdown.more
        return made

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        source = str(self.text).rstrip("\n")
        name = self.lexer_name.lower()
        drawing = self.drawings.draw(source, options.max_width) if name == "mermaid" else None
        if drawing is not None:
            yield Text(drawing, no_wrap=True)
        elif name in {"latex", "math", "tex"} and source.count("\n") < _MAX_LINES:
            yield Padding(Text(make_readable(source)), (0, 0, 0, 2))
        else:
            yield from self._code(source)

    def _code(self, source: str) -> RenderResult:
        lines = source.split("\n")
        visible = "\n".join(lines[:_MAX_LINES])
        is_coloured = len(visible) <= _MAX_COLOURED and all(len(line) <= _MAX_LINE for line in lines)
        lexer = self.lexer_name if is_coloured else "text"
        code = Syntax(visible, lexer, theme=self.theme, word_wrap=True, background_color="default", tab_size=4)
        yield Padding(code, (0, 0, 0, 2))
        if len(lines) > _MAX_LINES:
            yield Text(self.more.format(len(lines) - _MAX_LINES), style="dim")


class _Table(TableElement):
    """A table; one with too many columns for the terminal as a list of its rows, so that nothing is cut off."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        heads = self.header.row.cells if self.header and self.header.row else []
        rows = [row.cells for row in self.body.rows] if self.body else []
        if len(heads) * _CELL <= options.max_width:
            for cell in chain(heads, *rows):
                cell.content.overflow = "fold"  # a Chinese sentence is one long word
            yield from super().__rich_console__(console, options)
            return
        for row in rows:
            yield from (Text.assemble(head.content, ": ", cell.content) for head, cell in zip(heads, row, strict=False))
            yield Text()


class ReplyMarkdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
        "table_open": _Table,
    }

    def __init__(self, markup: str, more: str) -> None:
        """``more``: the notice that {} lines are left out."""
        super().__init__("", hyperlinks=False)  # addresses are visible text, without an escape sequence around them
        parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
        find_formulas(parser)
        self.parsed = [_to_fence(token) if token.type == "math_block" else token for token in parser.parse(markup)]
        self.drawings = Drawings()
        self.more = more
        for token in self.parsed:
            if token.children:
                token.children = list(_remove_echo(token.children))


def _to_fence(formula: Token) -> Token:
    return Token("fence", "code", 0, content=_formula_source(formula), info="latex", block=True)


def _formula_source(formula: Token) -> str:
    """Return its TeX source: ``make_inert`` has replaced ``<`` in it."""
    return formula.content.strip().replace("&lt;", "<")


def _remove_echo(tokens: list[Token]) -> Iterator[Token]:
    """Yield the tokens, with a link whose text is its address as that text alone."""
    skipped = 0
    for number, token in enumerate(tokens):
        if token.type == "link_open":
            inside = tokens[number + 1 : number + 3]
            if [item.type for item in inside] == ["text", "link_close"] and inside[0].content == token.attrs.get(
                "href"
            ):
                skipped = 2
                continue
        if skipped and token.type == "link_close":
            skipped = 0
            continue
        if token.type.startswith("math_inline"):  # as written: its stars and backslashes are no Markdown
            token.type, token.content = "text", f"{token.markup}{_formula_source(token)}{token.markup}"
        token.content = make_visible(token.content)  # entities are characters by now
        yield token
