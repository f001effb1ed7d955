"""The strings of a tolerant reader: any quotes, quotes inside quotes, and an end that is lost.

A quote ends its string when the text after it could follow a string: a comma and then a key, a closing bracket, the
next key on a new line, the end; also when only words without quotes stand between it and one of these. Any other quote
belongs to the text. ``inner`` is true after such a quote: then fewer quotes count as an end. One pass: a string is
scanned once by patterns that cannot backtrack, and every lookahead is bounded.
"""

import re
from dataclasses import dataclass

from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.replies.escapes import Repairs, decode_string, remove_cut_escape
from toolyard.protocol.replies.reply_values import Repair
from toolyard.protocol.replies.strict import parse_strict_at

_LAST_FENCE = re.compile(r"\s*+(?:`{3,}|~{3,})\s*\Z")
_DOUBLED = re.compile(r"([\"'])\1(?=[\w+-])")  # quotes written twice, as in CSV
_JSON = compile_pattern(r'((?:\s|\\n)*+)(?:\{(?:\s|\\n)*+"[^"\\\n]{0,200}+"\s*+:|\[(?:\s|\\n)*+["{\[])')
_MAX_FAILURES = 8  # of the strict reader: each costs time in proportion to the whole text
_PLUS = re.compile(r"\s*+\+\s*+(?=[\"'])")
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
_FENCE_BEHIND = re.compile(r"`{3,}\s*+\Z")
_JOINED = re.compile(r"\+\s*+[\"']")
_NEW_LINE = re.compile(r"\A[^\n]*,[ \t\r]*\n\s*\Z")
_NUMBER_ITEM = re.compile(r"-?[0-9][0-9.eE+-]{0,40}+\s*+(?:[,\]]|\Z)")
_NEAR = 32
_FAR = 2048
_OPENS = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class String:
    text: str
    end: int
    is_cut: bool = False  # the text ended before it did


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a value: its bracket, the number of open brackets, whether keys there have no quotes."""

    inside: str
    depth: int
    bare_keys: bool


class Strings:
    """Reads the strings of ``text``."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._last_quote = text.rfind('"')
        self._tries = _MAX_FAILURES

    def key(self, at: int, repairs: Repairs) -> String:
        """Return the key at ``at``: its first quote ends it."""
        start, twice = self._begin(at, repairs)
        quote = self._run(PAIRS[self._text[at]], start)
        if quote < 0:
            return self._read_cut(start, repairs)
        return String(decode_string(self._text[start:quote], repairs), self._behind(quote, twice=twice))

    def value(self, at: int, place: Place, repairs: Repairs) -> String:
        """Return the string at ``at``, or several joined by ``+``."""
        string = self._value(at, place, repairs)
        plus = _PLUS.match(self._text, string.end)
        if plus is None or string.is_cut:
            return string
        pieces = [string.text]
        while plus is not None and not string.is_cut:
            repairs[Repair.CONCATENATION] = None
            string = self._value(plus.end(), place, repairs)
            pieces.append(string.text)
            plus = _PLUS.match(self._text, string.end)
        return String("".join(pieces), string.end, string.is_cut)

    def ends(self, quote: int, place: Place, *, inner: int = 0) -> bool:
        """Return whether a string ends here. The last quote of all is its end unless it ends a pair inside it."""
        last = quote == self._last_quote and inner % 2 == 0
        return is_closing(self._text, quote, place.inside, inner=inner > 0 and not last, bare_keys=place.bare_keys)

    def _value(self, at: int, place: Place, repairs: Repairs) -> String:
        text, mark = self._text, self._text[at]
        triple = text.find(mark * 3, at + 3) if mark in "\"'" and text.startswith(mark * 3, at) else -1
        if triple >= 0:
            repairs[Repair.QUOTES] = None
            return String(decode_string(text[at + 3 : triple], repairs), triple + 3)
        json_string = self._read_json(at + 1, place, repairs) if mark == '"' else None
        if json_string is not None:
            return json_string
        start, twice = self._begin(at, repairs) if not self._begins_quoted(at, place) else (at + 1, False)
        run, position, inner = PAIRS[mark], start, 0
        while True:
            quote = self._run(run, position)
            if quote < 0:
                return self._read_unclosed(start, place, repairs)
            if inner and mark == '"':
                inner += text.count('"', position, quote) - text.count('\\"', position, quote)
            if self.ends(quote + twice, place, inner=inner):
                return String(decode_string(text[start:quote], repairs), self._behind(quote, twice=twice))
            if is_next_without_quote(text, start, quote, place.inside, inner=inner > 0):
                repairs[Repair.MISSING_QUOTE] = None
                return String(decode_string(text[start:quote].rstrip().removesuffix(",").rstrip(), repairs), quote)
            repairs[Repair.INNER_QUOTES] = None
            run, position, inner = INNER if mark == '"' else run, quote + 1, inner + 1

    def _read_json(self, start: int, place: Place, repairs: Repairs) -> String | None:
        """Return the string at ``start`` if all of it is JSON with unescaped quotes; its newlines may be escaped."""
        begin = _JSON.match(self._text, start) if self._tries > 0 else None
        if begin is None:
            return None
        end = self._end_of_json(self._text, begin.end(1), place)
        if end is not None:
            body = self._text[start:end]
            repairs |= dict.fromkeys([Repair.INNER_QUOTES, *([Repair.RAW_CONTROL] if "\n" in body else [])])
            return String(body, end + 1)
        self._tries -= 1
        blanked = self._text[:start] + self._text[start:].replace("\\n", "  ")
        end = self._end_of_json(blanked, begin.end(1), place)
        if end is None:
            return None
        repairs[Repair.INNER_QUOTES] = None
        return String(decode_string(self._text[start:end], repairs), end + 1)

    def _end_of_json(self, text: str, begin: int, place: Place) -> int | None:
        """Return the quote after the JSON that begins there, if it ends a string."""
        parsed = parse_strict_at(text, begin)
        end = skip_blanks(text, parsed[1]) if parsed else len(text)
        return end if self._text[end : end + 1] == '"' and self.ends(end, place) else None

    def _begin(self, at: int, repairs: Repairs) -> tuple[int, bool]:
        """Return the start of the inside, and whether the quotes are written twice."""
        twice = _DOUBLED.match(self._text, at) is not None
        if self._text[at] != '"' or twice:
            repairs[Repair.QUOTES] = None
        return at + 1 + twice, twice

    def _begins_quoted(self, at: int, place: Place) -> bool:
        """Return whether two quotes are no doubled one: the text begins with a quoted word, ``""Yes" is short"``."""
        if not self._text.startswith('""', at) or not _DOUBLED.match(self._text, at):
            return False
        quote = self._run(PAIRS['"'], at + 2)
        return quote >= 0 and not self.ends(self._behind(quote, twice=True) - 1, place)

    def _behind(self, quote: int, *, twice: bool) -> int:
        return quote + 1 + (twice and self._text.startswith(self._text[quote], quote + 1))

    def _run(self, run: re.Pattern[str], position: int) -> int:
        """Return the next quote that may end the string, or -1."""
        match = run.match(self._text, position)
        quote = match.end() if match else position
        return -1 if quote >= len(self._text) or self._text[quote] == "\\" else quote

    def _read_unclosed(self, start: int, place: Place, repairs: Repairs) -> String:
        """Return a string without an end: the text was cut, or only its quote is lost and its brackets are there."""
        fence = _LAST_FENCE.search(self._text, max(start, len(self._text) - 64))
        body = self._text[start : fence.start() if fence else len(self._text)]
        lost = count_lost_brackets(body, place.depth)
        if not lost:
            return self._read_cut(start, repairs)
        repairs[Repair.MISSING_QUOTE] = None
        return String(decode_string(body[:-lost].rstrip(), repairs), start + len(body) - lost)

    def _read_cut(self, start: int, repairs: Repairs) -> String:
        return String(decode_string(remove_cut_escape(self._text[start:]), repairs), len(self._text), is_cut=True)


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
        return at > quote + 1 or _FENCE_BEHIND.match(text, at) is not None
    if _COMMENT.match(text, at):
        comment = _SURE_COMMENT if inner else _WHOLE_COMMENT
        return (not inner and at > quote + 1) or comment.match(text, at) is not None
    if char == "+":
        return _JOINED.match(text, at) is not None
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
