"""Text that a model reads and a person can check: no hidden characters, bounded length (S-84)."""

import re
import unicodedata

MAX_DESCRIPTION = 20_000  # characters of one command's description or example, and of all texts of a plugin for a model

# what shows nothing although its category says letter or mark; U+FE0F stays: it makes ☺ an emoji
_BLANK_LOOKING = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0e\U000e0100-\U000e01ef]"
)
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_UNSEEN = _HIDDEN | {"Zl", "Zp"}
_BREAKS = re.compile("\r\n?|\x85|\u2028|\u2029")


def strip_hidden(text: str) -> str:
    """Return ``text`` without invisible characters; all line ends are newlines."""
    text = _BREAKS.sub("\n", text)
    if text.isascii() and text.isprintable():
        return text
    visible = [char for char in text if char in "\n\t" or unicodedata.category(char) not in _HIDDEN]
    return _BLANK_LOOKING.sub("", "".join(visible))


def escape_hidden(text: str) -> str:
    """Return ``text`` with invisible characters written out as ``\\u200b``; newlines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"\\u{ord(char):04x}" if is_hidden(char) else char for char in text)


def escape_unprintable(text: str) -> str:
    """Return a text that a terminal can print: invisible characters are written as their numbers."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}" for c in text)


def is_hidden(char: str) -> bool:
    """Return whether a character is invisible, or only its effect on others is seen; newline and tab are visible."""
    return char not in "\n\t" and (unicodedata.category(char) in _UNSEEN or bool(_BLANK_LOOKING.match(char)))


def has_hidden(text: str) -> bool:
    """Return whether ``text`` has invisible characters."""
    return strip_hidden(text) != _BREAKS.sub("\n", text)


def truncate(text: str, limit: int = MAX_DESCRIPTION) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… [cut: {len(text)} characters in all]"
