"""The final allow-list: of finished HTML, only the tags and attributes that this package itself writes.

Its input is inert already; this guarantees it even if something above was wrong. ``href`` is http, https, mailto or a
footnote of the same reply; ``src`` is data of a displayable type.
"""

import re
from collections.abc import Callable
from functools import cache

import nh3

from toolyard.render.html.links import parse_address

_MATH_TAGS_TEXT = """
math menclose merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt mstyle
msub msubsup msup mtable mtd mtext mtr munder munderover none
"""
MATH_TAGS = frozenset(_MATH_TAGS_TEXT.split())
_MATH_ATTRIBUTES_TEXT = """
accent accentunder align columnalign columnlines columnspacing columnspan depth display displaystyle fence form frame
height largeop linebreak linethickness lspace mathbackground mathcolor mathsize mathvariant maxsize minsize
movablelimits notation rowlines rowspacing rowspan rspace scriptlevel separator stretchy symmetric voffset width
"""
MATH_ATTRIBUTES = frozenset(_MATH_ATTRIBUTES_TEXT.split())
_TAGS_TEXT = """
a article aside audio bdi blockquote br button code dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr
img li ol p pre s section span strong summary sup table tbody td th thead tr ul video
"""
_TAGS = frozenset(_TAGS_TEXT.split())
_CLASS = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,40}(?: [A-Za-z][A-Za-z0-9-]{0,40}){0,5}")
_FOOTNOTE = re.compile(r"fn(?:ref)?-[a-z][0-9a-f]{8}-[0-9]{1,6}(?::[0-9]{1,6})?")
_NUMBER = re.compile(r"[0-9]{1,7}")
_WORD = re.compile("[a-z0-9-]{1,30}")
_MATH_VALUE = re.compile(r"[#A-Za-z0-9 .%+-]{1,60}")
_SOURCES = {
    "img": re.compile(r"data:image/(?:png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/]+={0,2}"),
    "audio": re.compile(r"data:audio/(?:mpeg|wav|ogg|mp4|webm);base64,[A-Za-z0-9+/]+={0,2}"),
    "video": re.compile(r"data:video/(?:mp4|webm);base64,[A-Za-z0-9+/]+={0,2}"),
}
_REL = "noopener noreferrer nofollow"
_FREE = re.compile(r"[^\x00-\x08\x0b\x0c\x0e-\x1f]*")
_ATTRIBUTES: dict[str, dict[str, re.Pattern[str] | Callable[[str], bool]]] = {
    "*": {"class": _CLASS},
    "a": {
        "href": lambda value: parse_address(value) is not None or bool(_FOOTNOTE.fullmatch(value.removeprefix("#"))),
        "id": _FOOTNOTE,
        "rel": re.compile(_REL),
        "target": re.compile("_blank"),
    },
    "article": {"lang": re.compile("en|zh")},
    "li": {"id": _FOOTNOTE},
    "ol": {"start": _NUMBER},
    "th": {"class": _CLASS, "scope": re.compile("col|row")},
    "span": {
        "data-tex": _FREE,
        "data-kind": _WORD,
        "role": re.compile("checkbox|note"),
        "aria-checked": re.compile("true|false"),
    },
    "div": {"data-tex": _FREE, "data-kind": _WORD, "role": re.compile("note")},
    "pre": {"data-kind": _WORD},
    "figure": {"data-chart": _FREE},
    "button": {
        "type": re.compile("button"),
        "data-src": lambda value: parse_address(value) is not None,
        "data-kind": re.compile("image|audio|video"),
    },
    "img": {"src": _SOURCES["img"], "alt": _FREE, "title": _FREE, "width": _NUMBER, "height": _NUMBER},
    "audio": {"src": _SOURCES["audio"], "controls": _FREE, "preload": re.compile("metadata")},
    "video": {"src": _SOURCES["video"], "controls": _FREE, "preload": re.compile("metadata")},
}


def sanitise(html: str) -> str:
    """Return the HTML without anything that is not on the list."""
    return _make_cleaner().clean(html.encode("utf-8", "replace").decode("utf-8"))


@cache
def _make_cleaner() -> nh3.Cleaner:
    attributes = {tag: set(rules) - {"rel"} for tag, rules in _ATTRIBUTES.items()}  # the cleaner itself sets rel
    return nh3.Cleaner(
        tags=_TAGS | MATH_TAGS,
        clean_content_tags={"script", "style", "iframe", "object", "template", "noscript", "svg"},
        attributes=attributes | {tag: set(MATH_ATTRIBUTES) for tag in MATH_TAGS},
        attribute_filter=_filter_attribute,
        link_rel=_REL,
        url_schemes={"http", "https", "mailto", "data"},
    )


def _filter_attribute(tag: str, name: str, value: str) -> str | None:
    if tag in MATH_TAGS:
        return value if _MATH_VALUE.fullmatch(value) else None
    rule = _ATTRIBUTES.get(tag, {}).get(name) or _ATTRIBUTES["*"].get(name)
    if rule is None:
        return None
    allowed = rule.fullmatch(value) if isinstance(rule, re.Pattern) else rule(value)
    return value if allowed else None
