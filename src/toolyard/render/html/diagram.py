"""Mermaid diagrams: their source, as text, which the console draws.

Settings (``%%{init}%%`` and front matter) and actions (``click``) could loosen the drawing or lead elsewhere: they are
taken out of what is drawn and counted in a note. More than 50,000 characters or 2,000 lines are shown, not drawn.
"""

import re

from toolyard.render.html.card import render_figure, render_note
from toolyard.render.html.code import render_source
from toolyard.render.html.sheet import Sheet
from toolyard.render.html.visible import escape_text

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
