"""Markdown drawn by rich, with diagrams, formulas and tables as a terminal can show them.

Its input is Markdown that is inert and visible already. Of one piece of code 400 lines are shown, and it is coloured up
to 20,000 characters without long lines: some grammars take time with the square of a line.
"""

from collections.abc import Iterator
from itertools import chain
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, TableElement
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from toolyard.render.formulas import find_formulas, make_readable
from toolyard.render.markdown_inert import make_visible
from toolyard.render.terminal_diagram import Drawings

_MAX_LINES = 400
_MAX_COLOURED = 20_000
_MAX_LINE = 1_000
_CELL = 8  # minimal width of a table's column


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
