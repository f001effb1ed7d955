"""Code, highlighted here by CSS classes, and Mermaid diagrams, whose source the console draws.

The class names a language from our list, never the reply's own word. Of one piece 200,000 characters are shown. Of one
reply 100,000 are coloured, in pieces of up to 30,000 that look like code and not like an attack on the grammar of a
language; the rest is shown plain.

Settings (``%%{init}%%`` and front matter) and actions (``click``) of a diagram could loosen the drawing or lead
elsewhere: they are taken out of what is drawn and counted in a note. More than 50,000 characters or 2,000 lines are
shown, not drawn.
"""

import re

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

from toolyard.render.html.sheet import Sheet, escape_text, mark_hidden, render_figure, render_note

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
_MAX_DRAWN = 50_000
_MAX_LINES = 2_000
_KINDS_TEXT = """
architecture architecture-beta block block-beta c4component c4container c4context c4deployment c4dynamic classdiagram
classdiagram-v2 erdiagram flowchart gantt gitgraph graph journey kanban mindmap packet packet-beta pie quadrantchart
radar-beta requirementdiagram sankey sankey-beta sequencediagram statediagram statediagram-v2 timeline treemap
treemap-beta xychart xychart-beta zenuml
"""
_KINDS = frozenset(_KINDS_TEXT.split())
_COMMENT = re.compile(r"^[ \t]*%%.*\n?", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,29}")
_FRONT_MATTER = re.compile(r"\s*---[ \t]*\r?\n(?:.*\n)*?[ \t]*---[ \t]*(?:\r?\n|$)")
_DOING = r"""(?:click[ \t]+\S+[ \t]+(?:href\b|call\b|["'])|(?:links?|callback)[ \t]+[^\s:"]+[ \t]*[:"'])"""
_ACTION = re.compile(rf"^[ \t]*{_DOING}.*\n?", re.MULTILINE)
_ACTION_AFTER = re.compile(rf";[ \t]*{_DOING}[^\n;]*")


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


def render_diagram(sheet: Sheet, source: str, title: str | None = None) -> str:
    if len(source) > _MAX_DRAWN or source.count("\n") > _MAX_LINES:
        return render_figure("mermaid", title, render_note(sheet.texts.not_drawn) + render_source(sheet, source))
    drawn, count = remove_settings(source)
    kind = _WORD.search(_COMMENT.sub("", drawn))
    name = kind[0].lower() if kind and kind[0].lower() in _KINDS else "other"
    left_out = render_note(sheet.texts.directives.format(count=count)) if count else ""
    return render_figure(
        "mermaid", title, f'<pre class="mermaid-source" data-kind="{name}">{escape_text(drawn)}</pre>{left_out}'
    )


def remove_settings(source: str) -> tuple[str, int]:
    """Return the source without directives, front matter and actions, and their number."""
    front = _FRONT_MATTER.match(source)
    count = int(front is not None)
    source = source[front.end() :] if front else source
    pieces: list[str] = []
    position = 0
    while (start := source.find("%%{", position)) >= 0:
        pieces.append(source[position:start])
        end = source.find("}%%", start)
        position = len(source) if end < 0 else end + 3
        count += 1
    source = "".join((*pieces, source[position:]))
    for pattern in (_ACTION, _ACTION_AFTER):
        source, removed = pattern.subn("", source)
        count += removed
    loose = source.count("%%{")  # a removed part may have stood between two halves of another
    return source.replace("%%{", "%% {"), count + loose
