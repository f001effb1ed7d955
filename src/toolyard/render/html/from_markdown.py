"""Markdown as HTML: CommonMark with tables, strikethrough, footnotes, task lists and ``$`` formulas.

HTML in the text is text. Links show their target; remote pictures are not fetched. At most 200,000 characters and 32
levels are read as Markdown; longer or deeper text is shown as it was written.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin

from toolyard.protocol.replies.reply_values import AttachmentType
from toolyard.render.formulas import find_bracketed_formulas, find_formulas
from toolyard.render.html.attachment import (
    Form,
    can_be_inline,
    core_rule,
    inline_rule,
    parse_placeholder,
    render_placeholder,
)
from toolyard.render.html.code import render_code, render_diagram, render_inline_code, render_source
from toolyard.render.html.formula import render_formula
from toolyard.render.html.links import Brackets, bare_link_rule, parse_address
from toolyard.render.html.media import render_media
from toolyard.render.html.sheet import Sheet, escape_plain, escape_prose, escape_text, render_note, render_pending

_MAX_TEXT = 200_000
_MAX_LEVELS = 32
_MAX_SHOWN_ADDRESS = 500

_BOX = re.compile(r"\[([ xX])\]\s")

_Rule: TypeAlias = Callable[[Sequence[Token], int, Sheet], str]


def render_markdown(sheet: Sheet, text: str, prefix: str, *, placeholders: bool = True) -> str:
    """Return Markdown as HTML. ``prefix`` separates the footnotes of one text from those of others on the page."""
    head, tail = _cut_text(text)
    env: dict[str, Any] = {"sheet": sheet, "can_be_inline": partial(can_be_inline, sheet), "prefix": prefix}
    parser = _make_parser()
    if not placeholders:
        parser.disable("placeholder")
    try:
        tokens = parser.parse(head, env)
    except RecursionError:
        return render_note(sheet.texts.too_deep) + render_source(sheet, text)
    if any(token.level >= _MAX_LEVELS - 1 for token in tokens):
        return render_note(sheet.texts.too_deep) + render_source(sheet, text)
    html = str(parser.renderer.render(tokens, parser.options, env)).replace("<p></p>\n", "")
    return html + (render_note(sheet.texts.too_long) + render_source(sheet, tail) if tail else "")


def _cut_text(text: str) -> tuple[str, str]:
    if len(text) <= _MAX_TEXT:
        return text, ""
    end = text.rfind("\n", 0, _MAX_TEXT) + 1 or _MAX_TEXT
    return text[:end], text[end:]


def _make_parser() -> MarkdownIt:
    """Return a new parser, in 1 ms: a shared one would not be thread-safe."""
    parser = MarkdownIt("js-default", {"html": False})
    parser.options.maxNesting = _MAX_LEVELS
    parser.use(footnote_plugin, inline=False)
    find_formulas(parser)
    find_bracketed_formulas(parser)
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005 - ``parse_address`` judges, once
    parser.inline.ruler.before("escape", "placeholder", inline_rule)
    parser.inline.ruler.at("linkify", bare_link_rule)
    parser.inline.ruler.before("link", "lone_bracket", Brackets().rule)
    parser.core.ruler.push("tasks", _mark_tasks)
    parser.core.ruler.push("placeholders", core_rule)
    for name, rule in _RULES.items():
        parser.add_render_rule(name, _as_method(rule))
    parser.add_render_rule("footnote_anchor_name", _footnote_name)
    return parser


def _mark_tasks(state: StateCore) -> None:
    """Mark ``[ ]`` and ``[x]`` at the beginning of list items; the plug-in for it takes quadratic time."""
    for before, opening, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        is_item = (before.type, opening.type, inline.type) == ("list_item_open", "paragraph_open", "inline")
        first = inline.children[0] if is_item and inline.children else None
        box = _BOX.match(first.content) if first and first.type == "text" else None
        if first and box and inline.children:
            before.attrSet("class", "task-list-item")
            first.content = first.content[3:]
            inline.children.insert(0, Token("task", "", 0, meta={"checked": box[1] != " "}))


def _as_method(rule: _Rule) -> Callable[..., str]:
    def method(_: object, tokens: Sequence[Token], number: int, __: object, env: dict[str, Any]) -> str:
        return rule(tokens, number, env["sheet"])

    return method


def _footnote_name(_: object, tokens: Sequence[Token], number: int, __: object, env: dict[str, Any]) -> str:
    return f"-{env['prefix']}-{tokens[number].meta['id'] + 1}"


def _render_text(tokens: Sequence[Token], number: int, _: Sheet) -> str:
    return escape_prose(tokens[number].content)


def _render_fence(tokens: Sequence[Token], number: int, sheet: Sheet) -> str:
    language = (tokens[number].info.split() or [""])[0]
    if language.lower() == AttachmentType.MERMAID:
        if sheet.partial and not _is_closed(tokens[number]):
            return render_pending(AttachmentType.MERMAID)
        return render_diagram(sheet, tokens[number].content)
    return render_code(sheet, tokens[number].content, language)


def _is_closed(fence: Token) -> bool:
    """Return whether its last line has come: then it spans two lines more than its text."""
    first, end = fence.map or (0, 0)
    text = fence.content
    return text.count("\n") + (text[-1:] not in ("", "\n")) == end - first - 2


def _render_image(tokens: Sequence[Token], number: int, sheet: Sheet) -> str:
    source = str(tokens[number].attrs.get("src", ""))
    named = parse_placeholder(unquote(source)) if source.lower().startswith("%7b%7b") else None
    if named and can_be_inline(sheet, named):
        return render_placeholder(sheet, named, Form.INLINE)
    return render_media(sheet, AttachmentType.IMAGE, source, tokens[number].content, inline=True)


def _render_link_open(tokens: Sequence[Token], number: int, _: Sheet) -> str:
    target = parse_address(str(tokens[number].attrs.get("href", "")))
    return f'<a href="{escape_plain(target.href)}" target="_blank">' if target else '<span class="unlinked">'


def _render_link_close(tokens: Sequence[Token], number: int, _: Sheet) -> str:
    start = _find_opening(tokens, number)
    href = str(tokens[start].attrs.get("href", ""))
    target = parse_address(href)
    if target is None:
        return f'</span> <bdi class="host">({escape_text(href[:_MAX_SHOWN_ADDRESS])})</bdi>'
    text = "".join(token.content for token in tokens[start:number]).strip().rstrip("/")
    address_text = target.href.removeprefix("mailto:").rstrip("/")
    if text in (address_text, address_text.partition("://")[2]):
        return "</a>"
    return f'</a> <bdi class="host">({escape_text(target.host)})</bdi>'


def _find_opening(tokens: Sequence[Token], number: int) -> int:
    """Return the start of the link that ends at ``number``; an address in angle brackets may stand inside a link."""
    inner = 0
    for at in range(number - 1, 0, -1):
        if tokens[at].type == "link_open" and inner == 0:
            return at
        inner += {"link_close": 1, "link_open": -1}.get(tokens[at].type, 0)
    return 0


def _render_cell_open(tokens: Sequence[Token], number: int, _: Sheet) -> str:
    align = str(tokens[number].attrs.get("style", "")).removeprefix("text-align:")
    return f'<{tokens[number].tag} class="align-{align}">' if align else f"<{tokens[number].tag}>"


def _render_task(tokens: Sequence[Token], number: int, _: Sheet) -> str:
    checked = tokens[number].meta["checked"]
    return f'<span class="task" role="checkbox" aria-checked="{str(checked).lower()}">{"☑" if checked else "☐"}</span>'


def _render_placeholder(tokens: Sequence[Token], number: int, sheet: Sheet) -> str:
    meta = tokens[number].meta
    return render_placeholder(sheet, meta["placeholder"], meta["form"])


_RULES: dict[str, _Rule] = {
    "text": _render_text,
    "code_inline": lambda tokens, number, _: render_inline_code(tokens[number].content),
    "code_block": lambda tokens, number, sheet: render_code(sheet, tokens[number].content, None),
    "fence": _render_fence,
    "image": _render_image,
    "link_open": _render_link_open,
    "link_close": _render_link_close,
    "th_open": _render_cell_open,
    "td_open": _render_cell_open,
    "task": _render_task,
    "math_inline": lambda tokens, number, sheet: render_formula(sheet, tokens[number].content, display=False),
    "math_inline_double": lambda tokens, number, sheet: render_formula(sheet, tokens[number].content, display=False),
    "math_block": lambda tokens, number, sheet: render_formula(sheet, tokens[number].content, display=True),
    "placeholder": _render_placeholder,
}
