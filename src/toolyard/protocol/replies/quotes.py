"""Where a string ends when the quotes inside it may not be escaped.

A quote ends its string when what follows could follow a string there: a comma and then a key, a closing bracket, the
next key on a new line, the end. Any other quote belongs to the text. Every look ahead is bounded.
"""

import re

PAIRS = {
    '"': re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL),
    "'": re.compile(r"[^'\\]*+(?:\\.[^'\\]*+)*+", re.DOTALL),
    "`": re.compile(r"[^`\\]*+(?:\\.[^`\\]*+)*+", re.DOTALL),
    "“": re.compile(r"[^“”\"\\]*+(?:\\.[^“”\"\\]*+)*+", re.DOTALL),
    "”": re.compile(r"[^”\"\\]*+(?:\\.[^”\"\\]*+)*+", re.DOTALL),
    "‘": re.compile(r"[^’'\\]*+(?:\\.[^’'\\]*+)*+", re.DOTALL),
    "’": re.compile(r"[^’'\\]*+(?:\\.[^’'\\]*+)*+", re.DOTALL),
}
"""What a string may begin with, and all that comes before the next quote that could end it."""

KEY_AHEAD = r"""(?:"[^"\\\n]{0,200}+"|'[^'\\\n]{0,200}+'|[“”][^“”\n]{0,200}+[“”]|[‘’][^‘’\n]{0,200}+[‘’])\s*+[:：]"""
_KEY = re.compile(KEY_AHEAD)
_CUT_KEY = re.compile(r"[\"'“][^\"'“”\n]{0,200}+[\"'”]?\s*+\Z")
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$-]{0,100}+\s*+[:：]")
_OWN = "(?:think|content|attachments|type|language|title)"
_OWN_KEY = re.compile(rf'"{_OWN}"\s*+[:：]', re.IGNORECASE)
_OWN_BARE_KEY = re.compile(rf"{_OWN}\s*+[:：]", re.IGNORECASE)
_BLANKS = re.compile(r"\s*+")
_COMMENT = re.compile(r"//|/\*|\#")
_END = re.compile(r"[\]}]\s*+(?:[}\]]|[,，]\s*+[\"'“{\[]|\Z|`{3}|~{3}|</|//|/\*)|[\]}][ \t]*+\r?\n")
_LAST_FENCE = re.compile(r"`{3,}\s*+\Z")
_PLUS = re.compile(r"\+\s*+[\"']")
_NEW_ENTRY = re.compile(r"[,\n]\s*\Z")


def closes(text: str, quote: int, inside: str, *, inner: bool, bare_keys: bool) -> bool:
    """Whether the quote at ``quote`` ends a value in an object or an array (``inside``, its bracket)."""
    at = _skip(text, quote + 1)
    if at >= len(text):
        return True
    char = text[at]
    if char in ",，":
        return _begins_entry(text, _skip(text, at + 1), inside, bare_keys=bare_keys)
    if char in "}]":
        return not inner or _END.match(text, at) is not None
    if _COMMENT.match(text, at) or text.startswith("```", at):
        return at > quote + 1 or text.startswith("/*", at) or _LAST_FENCE.match(text, at) is not None
    if char == "+":
        return _PLUS.match(text, at) is not None
    if inside == "[":
        return at > quote + 1 and (char in PAIRS or char in "{[")
    return _is_key(text, at, bare_keys=bare_keys and "\n" in text[quote:at])


def key_without_quote(text: str, start: int, quote: int, *, inner: bool) -> bool:
    """Whether the next key begins at ``quote``, so that the string from ``start`` lost the quote at its end.

    After other quotes inside the string only a key of ours counts: the string may well hold JSON that is not escaped.
    """
    if not (_OWN_KEY if inner else _KEY).match(text, quote):
        return False
    return _NEW_ENTRY.search(text[max(start, quote - 32) : quote]) is not None


def _begins_entry(text: str, at: int, inside: str, *, bare_keys: bool) -> bool:
    if at >= len(text) or text[at] in "}],，" or text.startswith("...", at) or _COMMENT.match(text, at):
        return True
    if inside == "[":
        return text[at] in PAIRS or text[at] in "{[-0123456789tfnTFN"
    return _is_key(text, at, bare_keys=bare_keys)


def _is_key(text: str, at: int, *, bare_keys: bool) -> bool:
    if _KEY.match(text, at) or _CUT_KEY.match(text, at) or _OWN_BARE_KEY.match(text, at):
        return True
    return bare_keys and _BARE_KEY.match(text, at) is not None


def _skip(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at
