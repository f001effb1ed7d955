"""Formulas: TeX as MathML, built from the elements and attributes of our list, with the TeX beside it in ``data-tex``.

Links, styles, classes and unbounded sizes of TeX are dropped. The source replaces the formula for definitions,
unknown commands, unreadable TeX, and for more than 10,000 characters or 50 levels.
"""

import re
from collections.abc import Iterator
from html import escape, unescape
from xml.etree.ElementTree import Element

from latex2mathml import exceptions
from latex2mathml.converter import Converter

from toolyard.render.html.code import MAX_SHOWN, render_cut_note
from toolyard.render.html.sanitise import MATH_ATTRIBUTES, MATH_TAGS
from toolyard.render.html.sheet import Sheet, escape_plain, escape_text, mark_hidden, render_note

MAX_TEX = 10_000
_MAX_DEPTH = 50
_MAX_LENGTH = 50.0  # of a space or a rule, in whatever unit
_FORBIDDEN = re.compile(
    r"\\(?:[gex]?def|let|futurelet|newcommand|renewcommand|providecommand|newenvironment|renewenvironment"
    r"|DeclareMathOperator|csname|catcode|input|include|includegraphics|href|url|html\w*|style|class|cssId|write)(?![a-z])"
)
_ALIGNED = re.compile(r"\\(begin|end)\{(?:aligned|gathered|split)\}")
_DELIMITERS = re.compile(r"\A\s*(?:\$\$(.*)\$\$|\$(.*)\$|\\\[(.*)\\\]|\\\((.*)\\\))\s*\Z", re.DOTALL)
_VALUE = re.compile(r"[#A-Za-z0-9 .%+-]{1,60}")
_NUMBER = re.compile(r"[0-9]*\.?[0-9]+")
_FAULTS: tuple[type[BaseException], ...] = (
    *(fault for fault in vars(exceptions).values() if isinstance(fault, type)),
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,  # too much recursion, an iterator that ended
    StopIteration,
    TypeError,
    ValueError,
)


def render_formula(sheet: Sheet, source: str, *, display: bool) -> str:
    """Return a ``div`` for a formula on its own, else a ``span``."""
    tex = _strip_delimiters(source)
    tag, kind = ("div", "math display") if display else ("span", "math")
    mathml = _to_mathml(sheet, tex, display=display)
    if mathml is None:
        why = render_note(sheet.texts.formula) if display else ""
        as_written = (
            f"<code>{escape_text(source[:MAX_SHOWN])}</code>{render_cut_note(sheet, source, inline=not display)}"
        )
        return f'<{tag} class="{kind} unread" data-tex="{escape_plain(tex[:MAX_TEX])}">{why}{as_written}</{tag}>'
    return f'<{tag} class="{kind}" data-tex="{escape_plain(tex)}">{mathml}</{tag}>'


def _strip_delimiters(source: str) -> str:
    """Return the TeX without the delimiters that mark a formula in a text."""
    match = _DELIMITERS.match(source) if len(source) <= MAX_TEX else None
    return next((inner for inner in match.groups() if inner is not None), "").strip() if match else source.strip()


def _to_mathml(sheet: Sheet, tex: str, *, display: bool) -> str | None:
    if not tex or len(tex) > MAX_TEX or _FORBIDDEN.search(tex) or _measure_depth(tex) > _MAX_DEPTH:
        return None
    if not sheet.formulas.take(len(tex)):
        return None
    ready = _ALIGNED.sub(r"\\\1{align*}", tex)
    try:
        tree = Converter(display="block" if display else "inline").convert_to_element(ready)
        return mark_hidden("".join(_serialise(tree)))
    except _FAULTS:
        return None


def _measure_depth(tex: str) -> int:
    deepest = depth = 0
    for sign in re.findall(r"\\left\b|\\right\b|\\begin|\\end|\\.|[{}^_]", tex, re.DOTALL):
        depth += 1 if sign in ("{", "\\left", "\\begin") else -1 if sign in ("}", "\\right", "\\end") else 0
        deepest = max(deepest, depth)
    return deepest


def _serialise(element: Element) -> Iterator[str]:
    """Yield the element as HTML; ``ValueError`` where the converter met something unknown."""
    text = unescape(element.text or "")
    if element.tag not in MATH_TAGS or (element.tag == "mi" and (text.startswith("\\") or text == "&")):
        raise ValueError(element.tag)
    attributes = "".join(f' {name}="{value}"' for name, value in element.items() if _is_kept(name, value))
    yield f"<{element.tag}{attributes}>{escape(text)}"
    for child in element:
        yield from _serialise(child)
        yield escape(unescape(child.tail or ""))
    yield f"</{element.tag}>"


def _is_kept(name: str, value: str) -> bool:
    if name not in MATH_ATTRIBUTES or not _VALUE.fullmatch(value):
        return False
    is_colour = name in {"mathcolor", "mathbackground"}
    return is_colour or all(float(number) <= _MAX_LENGTH for number in _NUMBER.findall(value))
