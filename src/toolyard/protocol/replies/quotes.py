"""Finds the end of a string when the quotes inside it may not be escaped, or the last one is lost.

A quote ends its string when the text after it could follow a string: a comma and then a key, a closing bracket, the
next key on a new line, the end; also when only words without quotes stand between it and one of these. Any other quote
belongs to the text. ``inner`` is true after such a quote: then fewer quotes count as an end. Lookaheads are bounded.
"""

import re

from toolyard.protocol.regex import compile_pattern

SEPARATORS = ",，;；、"
PAIRS = {
    '"': compile_pattern(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL),
    "'": compile_pattern(r"[^'\\]*+(?:\\.[^'\\]*+)*+", re.DOTALL),
    "`": compile_pattern(r"[^`´\\]*+(?:\\.[^`´\\]*+)*+", re.DOTALL),
    "“": compile_pattern(r"[^“”\"\\]*+(?:\\.[^“”\"\\]*+)*+", re.DOTALL),
    "”": compile_pattern(r"[^”\"\\]*+(?:\\.[^”\"\\]*+)*+", re.DOTALL),
    "‘": compile_pattern(r"[^’'\\]*+(?:\\.[^’'\\]*+)*+", re.DOTALL),
    "’": compile_pattern(r"[^’'\\]*+(?:\\.[^’'\\]*+)*+", re.DOTALL),
    "„": compile_pattern(r"[^“”\"\\]*+(?:\\.[^“”\"\\]*+)*+", re.DOTALL),
    "＂": compile_pattern(r"[^＂\"\\]*+(?:\\.[^＂\"\\]*+)*+", re.DOTALL),
}
"""What a string may begin with, and all that comes before the next quote that could end it."""

INNER = compile_pattern(
    r'[^"\\]*+(?:(?:\\.|(?<=[^\s,])"(?=[\w.!?()]|[ ][^\WtclaTCLA])|(?<=[^\s,][ ])"(?=\w))[^"\\]*+)*+', re.DOTALL
)
"""The same for ``"`` once one belonged to the text: passes over those that ``is_closing`` and the others refuse."""

KEY_AHEAD = (
    r"""(?:""[^"\\\n]{1,200}+""|"[^"\\\n]{0,200}+"|''[^'\\\n]{1,200}+''|'[^'\\\n]{0,200}+'"""
    r"""|[“”„][^“”\n]{0,200}+[“”]|[‘’][^‘’\n]{0,200}+[‘’]|＂[^＂\n]{0,200}+＂)\s*+[:：]"""
)
_KEY = re.compile(KEY_AHEAD)
_CUT_KEY = compile_pattern(r"[\"'“](?:[\w$][^\"'“”\n]{0,200}+)?+[\"'”]?\s*+\Z")
_WORD = r"[\w$][\w$-]{0,100}+[\"']?\s*+[:：]"
_BARE_KEY = re.compile(_WORD)
_BARE_KEY_AND_VALUE = re.compile(rf"{_WORD}\s*+(?:[\"'“{{\[\d]|-\d|(?:true|false|null|none)\b)", re.IGNORECASE)
_WORD_AND_KEY = re.compile(rf"\w{{1,60}}+\s++{KEY_AHEAD}")
_OWN = "(?:think|content|attachments|type|language|title)"
_OWN_KEY = re.compile(rf'"{_OWN}"\s*+[:：]', re.IGNORECASE)
_SLIPPED_KEY = re.compile(rf'"{_OWN}(?:[:：]|"\s*+=|"\s)\s*+["{{\[]', re.IGNORECASE)  # without its quote or colon
_OWN_LETTERS = frozenset("tclaTCLA")
_OWN_BARE_KEY = re.compile(rf"{_OWN}\s*+[:：]", re.IGNORECASE)
_BLANKS = re.compile(r"[\s\ufeff\u180e\u200b-\u200d\u2060]*+")
_COMMENT = re.compile(r"//|/\*|\#")
_WHOLE_COMMENT = re.compile(r"/\*|(?://|\#)[^\n]{0,500}+(?:\n\s*+(?:[\]}\"',/#]|\Z)|\Z)")
_SURE_COMMENT = compile_pattern(
    r"/\*(?:[^*]|\*(?!/)){0,500}+\*/\s*+[,，}\]]|(?://|\#)[^\n\"]{0,500}+\n\s*+(?:[\]}\"',/#]|\Z)"
)
_END = re.compile(r"[\]}]\s*+(?:[}\]]|[,，]\s*+[\"'“{\[]|\Z|`{3}|~{3}|</|//|/\*)|[\]}][ \t]*+\r?\n")
_STRAY = re.compile(rf"[^\"'“”{{}}\[\]:：\n]{{1,200}}?(?=(?:[,，]\s*+{KEY_AHEAD})|[}}\]])")
_LAST_FENCE = re.compile(r"`{3,}\s*+\Z")
_PLUS = re.compile(r"\+\s*+[\"']")
_NEW_LINE = re.compile(r"\A[^\n]*,[ \t\r]*\n\s*\Z")
_NUMBER_ITEM = re.compile(r"-?[0-9][0-9.eE+-]{0,40}+\s*+(?:[,\]]|\Z)")
_NEAR = 32
_FAR = 2048
_OPENS = {"{": "}", "[": "]"}


def is_closing(text: str, quote: int, inside: str, *, inner: bool, bare_keys: bool) -> bool:
    """Return whether the quote at ``quote`` ends a value in an object or an array (``inside``, its bracket)."""
    if text[quote + 1 : quote + 2].isalnum():
        return False
    at = skip_blanks(text, quote + 1)
    if at >= len(text):
        return True
    char = text[at]
    if inner and char.isalnum() and char not in _OWN_LETTERS and "\n" not in text[quote:at]:
        return False
    if char in SEPARATORS:
        return _begins_entry(text, quote, at, inside, inner=inner, bare_keys=bare_keys)
    if char in "}]":
        fits = char == _OPENS[inside]
        return (fits and not inner) or ((fits or not inner) and _END.match(text, at) is not None)
    if text.startswith("```", at):
        return at > quote + 1 or _LAST_FENCE.match(text, at) is not None
    if _COMMENT.match(text, at):
        comment = _SURE_COMMENT if inner else _WHOLE_COMMENT
        return (not inner and at > quote + 1) or comment.match(text, at) is not None
    if char == "+":
        return _PLUS.match(text, at) is not None
    if inside == "[" and _begins_item(text, at, next_to=at == quote + 1, inner=inner):
        return True
    if inside == "{" and _is_key(text, at, bare_keys=(bare_keys or not inner) and "\n" in text[quote:at]):
        return True
    return not inner and at > quote + 1 and _ends_after_stray(text, at)


def skip_blanks(text: str, at: int) -> int:
    """Return the end of the blanks at ``at``."""
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def is_next_without_quote(text: str, start: int, quote: int, inside: str, *, inner: bool) -> bool:
    """Return whether the next key or item begins at ``quote``, so that the string from ``start`` lost its last quote.

    After other quotes inside the string only a key of ours counts: the string may well hold JSON that is not escaped.
    """
    before = text[max(start, quote - _NEAR) : quote]
    stripped = before.rstrip()
    if not stripped.endswith(",") and "\n" not in before[len(stripped) :]:
        return False
    if inside == "[":
        return not inner and _NEW_LINE.search(before) is not None and text.find("\n", start, quote - len(before)) < 0
    return (_OWN_KEY if inner else _KEY).match(text, quote) is not None


def count_lost_brackets(body: str, depth: int) -> int:
    """Return the number of characters at the end of an unclosed string that close the containers around it.

    At most ``depth`` of them, and only those that nothing in the string opens: a string that was cut after ``f() {}``
    keeps them.
    """
    loose = min(depth, body.count("}") - body.count("{") + body.count("]") - body.count("["))
    tail = body[-_FAR:].rstrip()
    body_end = tail
    while loose > 0 and body_end.endswith(("}", "]")):
        body_end, loose = body_end[:-1].rstrip(), loose - 1
    return len(body[-_FAR:]) - len(body_end) if len(body_end) < len(tail) else 0


def _ends_after_stray(text: str, at: int) -> bool:
    """Return whether words without quotes stand between a string and what may follow it: ``"a" oops, "b": 1``."""
    stray = _STRAY.match(text, at)
    return stray is not None and (text[stray.end()] in ",，" or _END.match(text, stray.end()) is not None)


def _begins_item(text: str, at: int, *, next_to: bool, inner: bool) -> bool:
    """Return whether another item, or the value of a key, stands after a string in an array."""
    if text[at] in ":：":
        return not inner
    if next_to:
        return False
    return text[at] in PAIRS or text[at] in "{[" or (not inner and _NUMBER_ITEM.match(text, at) is not None)


def _begins_entry(text: str, quote: int, comma: int, inside: str, *, inner: bool, bare_keys: bool) -> bool:
    at = skip_blanks(text, comma + 1)
    if at >= len(text) or text[at] in "}],，" or text.startswith("...", at) or _COMMENT.match(text, at):
        return True
    if inside == "[":
        return text[at] in PAIRS or text[at] in "{[-0123456789tfnTFN"
    if not inner and (text[at] in "{[" or _BARE_KEY_AND_VALUE.match(text, at) or _WORD_AND_KEY.match(text, at)):
        return True
    return _is_key(text, at, bare_keys=bare_keys or (not inner and "\n" in text[quote:at]))


def _is_key(text: str, at: int, *, bare_keys: bool) -> bool:
    if text[at] in PAIRS:
        keys = (_KEY, _CUT_KEY, _SLIPPED_KEY)
        return any(key.match(text, at) for key in keys)
    return (_OWN_BARE_KEY.match(text, at) or (bare_keys and _BARE_KEY.match(text, at)) or None) is not None
