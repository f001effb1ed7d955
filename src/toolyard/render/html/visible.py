"""Text as HTML: escaped, with invisible characters and direction changes marked.

``escape_text`` is for code and other exact text and marks every invisible character; ``escape_prose`` is for running
text, where joiners and direction marks belong to the writing of some languages; ``escape_plain`` is for attributes.
"""

import re
from html import escape

_CONTROLS = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff"
_DIRECTIONS = r"\u202a-\u202e\u2066-\u2069"
_UNSEEN = r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028\u2029\u2060-\u206f\u3164"
_UNSEEN += r"\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
_IN_CODE = re.compile(f"[{_CONTROLS}{_DIRECTIONS}{_UNSEEN}]+")
_IN_PROSE = re.compile(f"[{_CONTROLS}{_DIRECTIONS}]+")
_NAMES = {chr(code): chr(0x2400 + code) for code in range(0x20)} | {"\x7f": "␡"}  # the pictures that Unicode has


def escape_text(text: str) -> str:
    return mark_hidden(escape(text))


def escape_prose(text: str) -> str:
    return _IN_PROSE.sub(_mark_character, escape(text))


def escape_plain(text: str) -> str:
    return _IN_CODE.sub(_name_character, escape(text))


def mark_hidden(html: str) -> str:
    """Return ``html``, made from text that may hold such characters, with each of them named."""
    return _IN_CODE.sub(_mark_character, html)


def _mark_character(match: re.Match[str]) -> str:
    return f'<span class="control">{_name_character(match)}</span>'


def _name_character(match: re.Match[str]) -> str:
    return "".join(_NAMES.get(sign) or f"⟨U+{ord(sign):04X}⟩" for sign in match[0])
