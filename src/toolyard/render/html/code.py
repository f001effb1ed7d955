"""Code, highlighted here by CSS classes, so that a page needs no script for it.

The class names a language from our list, never the reply's own word. Of one piece 200,000 characters are shown. Of one
reply 100,000 are coloured, in pieces of up to 30,000 that look like code and not like an attack on the grammar of a
language; the rest is shown plain.
"""

import re

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

from toolyard.render.html.card import render_figure, render_note
from toolyard.render.html.sheet import Sheet
from toolyard.render.html.visible import escape_text, mark_hidden

MAX_SHOWN = 200_000
_MAX_COLOURED = 30_000
# Some grammars take time with the square of a line, or of a stretch without any punctuation.
_UNCOLOURED = re.compile(r"[^\n]{1000}|[\w\s*]{300}|[\w\s*@\[\]<>.$,?&]{800}")
_MAX_NAME = 40

_LANGUAGES = """
awk bash bat c clojure cmake cpp csharp css dart diff docker elixir erlang fsharp go graphql groovy haskell html
http ini java javascript json jsx julia kotlin latex less lua make markdown matlab nginx nim objective-c ocaml perl php
powershell protobuf python r ruby rust scala scss solidity sql swift toml tsx typescript vim xml yaml zig
"""
_OTHER_NAMES = """
c++=cpp cc=cpp hpp=cpp h=c c#=csharp cs=csharp f#=fsharp golang=go hs=haskell js=javascript mjs=javascript
node=javascript json5=json jsonc=json jsonl=json kt=kotlin ts=typescript py=python python3=python pyi=python rb=ruby
rs=rust sh=bash shell=bash zsh=bash console=bash terminal=bash dockerfile=docker makefile=make mk=make md=markdown
patch=diff ps1=powershell pwsh=powershell batch=bat cmd=bat tex=latex yml=yaml htm=html svg=xml
proto=protobuf objc=objective-c vue=html postgresql=sql mysql=sql sqlite=sql conf=ini cfg=ini properties=ini
"""
LANGUAGES = {name: name for name in _LANGUAGES.split()} | dict(pair.split("=") for pair in _OTHER_NAMES.split())


def render_code(sheet: Sheet, source: str, language: str | None, title: str | None = None) -> str:
    name = (language or "").strip()
    known = LANGUAGES.get(name.lower())
    label = f'<span class="language">{escape_text(name[:_MAX_NAME])}</span>' if name else ""
    kind = f' class="language-{known}"' if known else ""
    body = f"<pre><code{kind}>{_highlight(sheet, source, known)}</code></pre>{render_cut_note(sheet, source)}"
    return render_figure("code", title, body, label=label)


def render_source(sheet: Sheet, source: str) -> str:
    """Return text as it was written, for an attachment that cannot be rendered as intended."""
    return f'<pre class="source"><code>{escape_text(source[:MAX_SHOWN])}</code></pre>{render_cut_note(sheet, source)}'


def render_inline_code(source: str) -> str:
    return f"<code>{escape_text(source)}</code>"


def render_cut_note(sheet: Sheet, source: str, *, inline: bool = False) -> str:
    if len(source) <= MAX_SHOWN:
        return ""
    return render_note(sheet.texts.cut.format(shown=MAX_SHOWN, all=len(source)), inline=inline)


def _highlight(sheet: Sheet, source: str, language: str | None) -> str:
    source = source[:MAX_SHOWN]
    if (
        language is None
        or len(source) > _MAX_COLOURED
        or _UNCOLOURED.search(source)
        or not sheet.colouring.take(len(source))
    ):
        return escape_text(source)
    html = highlight(source, _find_lexer(language), HtmlFormatter(nowrap=True))
    return mark_hidden(html if source.endswith("\n") else html.removesuffix("\n"))


def _find_lexer(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False, handlecodeblocks=False)  # no code in the code
