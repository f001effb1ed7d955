"""A tolerant reader of one JSON object in a text.

It tolerates what models write: comments, commas too many or too few, any quotes, quotes inside quotes, bare keys and
words, Python's literals, full-width punctuation, raw newlines, brackets that do not match, and an end that is missing.
Every repair is in ``repairs``. One pass: every look ahead is bounded, nothing is read twice, nothing recurses.

Of values without quotes, numbers as JSON has them are no repair. Those of other languages (``.5``, ``1.``, ``+1``,
``1_000``, ``1e`` when the text was cut) and the literals of Python and JavaScript are converted; anything else is a
text.
"""

import json
import re
from dataclasses import dataclass

from toolyard.message import Message
from toolyard.protocol.json import MAX_DEPTH, Json, JsonObject
from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.replies.escapes import Repairs, decode_string
from toolyard.protocol.replies.reply_values import Repair
from toolyard.protocol.replies.strings import KEY_AHEAD, PAIRS, SEPARATORS, Place, String, Strings, count_lost_brackets

_BLANK = r"[\s\ufeff\u180e\u200b-\u200d\u2060]++|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
_BLANKS = compile_pattern(rf"(?:{_BLANK}|(?://|\#)[^\n]*+)*+")
_BLANKS_OF_LAST_LINE = compile_pattern(rf"(?:{_BLANK}|(?://|\#)[^\n,，}}\]]*+)*+")
_NO_COMMENT = "\ufeff\u180e\u200b\u200c\u200d\u2060 \t\r\n\f\v\u00a0\u3000"
_FENCE = re.compile(r"`{3,}|~{3,}")
_BARE_KEY = re.compile(r"[^\s:：,，;=>{}\[\]\"'“”‘’`]+")
_PLAIN_KEY = re.compile(r'"([^"\\\x00-\x1f:：]{0,200}+)"\s*+:')
_PLAIN_VALUE = re.compile(  # unambiguous ones, as most are
    r"(?P<number>-?(?:0|[1-9][0-9]{0,17}+))(?=\s*+[,}\]])"
    r'|"(?P<text>[^"\\\x00-\x1f]*+)"(?=\s*+(?:[}\]]\s*+(?:[,}\]]|\Z)|,\s*+"[^"\\\n]{0,200}+"\s*+:))'
)
_COLON = re.compile(r"[:：]|=>?")
_VALUE_AHEAD = re.compile(r"[\"'“”‘’`＂{\[]|(?:-?[0-9.]{1,40}+|true|false|null|none)\s*+(?=[,，}\]]|\Z)", re.IGNORECASE)
_KEY_IN_STRING = re.compile(r"([\w$-]{1,100}+)\s*+[:：]\s*+")
_QUOTED_KEY = re.compile(KEY_AHEAD)
_TO_QUOTE = re.compile(r"[^\"\n{}\[\]:：]{1,500}+(?=\")")
_PREFIX = re.compile(r"[bBfFrRuU]{1,2}(?=[\"'][^,，}\]])")
_MORE = re.compile(rf"\s*+[,，]\s*+{KEY_AHEAD}")
_ITEM_AHEAD = re.compile(r"\s*+[,，]\s*+[{\[]")
_SIGNS = frozenset({"-", "+", "."})  # of a number that was cut off
_ELLIPSES = frozenset({"...", "…"})
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,300})(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,3})?")
_LOOSE_NUMBER = re.compile(r"[+-]?(?=\.?[0-9])(?:0|[1-9][0-9_]{0,300})?(?:\.[0-9_]{0,300})?(?:[eE][+-]?[0-9]{0,3})?")
_BARE = compile_pattern(  # without a lookahead beyond its own end, which would make many of them quadratic
    rf"(?:[^,，;}}\]{{\s/]++|[^\S\n](?!//|\#|/\*|{KEY_AHEAD})|/(?!\*)|\{{(?!\s{{0,20}}\")(?:[^{{}}\n]{{0,500}}+\}})?+)++"
)
_CALL = re.compile(r"[A-Za-z_]\w{0,40}\(\s{0,20}(?:\"([^\"\\\n]{0,300})\"|([^\"'(),\s]{1,40}))\s{0,20}\)")
_WORDS: dict[str, Json] = {
    "true": True, "false": False, "null": None, "none": None, "undefined": None, "nil": None, "nan": None,
    "infinity": None, "-infinity": None, "inf": None, "-inf": None,
}  # fmt: skip
_STRICT_WORDS = frozenset({"true", "false", "null"})


@dataclass(frozen=True, slots=True)
class Reading:
    """``value`` spans the text from ``start`` to ``end``; not ``complete`` when the text ended before it did."""

    value: JsonObject
    start: int
    end: int
    complete: bool
    repairs: tuple[Repair, ...]


class Frame:
    """A container that is being filled. ``key`` waits for its value; ``comma``: one has just been read."""

    __slots__ = ("comma", "container", "key")

    def __init__(self, container: "JsonObject | list[Json]") -> None:
        self.container = container
        self.key: str | None = None
        self.comma = False

    def put(self, value: Json) -> None:
        if isinstance(self.container, list):
            self.container.append(value)
        elif self.key is not None:
            self.container[self.key] = value
        self.key = None
        self.comma = False


class Reader:
    """Reads the object that begins at a brace of ``text``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.repairs: Repairs = {}
        self._stack: list[Frame] = []
        self._bare_keys = False
        self._cut = False
        self._strings = Strings(text)
        self._last_line = text.rfind("\n") + 1

    def read(self, start: int, *, brace: bool = True) -> Reading:
        """Return the object at ``start``; without ``brace`` its first key begins there. Raises only TooDeep."""
        root: JsonObject = {}
        self.repairs = {} if brace else {Repair.MISSING_BRACE: None}
        self._stack, self._bare_keys, self._cut = [Frame(root)], False, False
        at = start + brace
        while self._stack:
            at = self._skip(at)
            if at >= len(self.text) or _FENCE.match(self.text, at):
                self._cut = True
            if self._cut:
                self.repairs[Repair.TRUNCATED] = None
                break
            at = self._step(at)
        return Reading(root, start, at, not self._cut, tuple(self.repairs))

    def _skip(self, at: int) -> int:
        blanks = _BLANKS if at < self._last_line else _BLANKS_OF_LAST_LINE  # a comment there must not hide the end
        match = blanks.match(self.text, at)
        end = match.end() if match else at
        if end > at and self.text[at:end].strip(_NO_COMMENT):
            self.repairs[Repair.COMMENTS] = None
        return end

    def _step(self, at: int) -> int:
        char, frame = self.text[at], self._stack[-1]
        if char in SEPARATORS:
            return self._comma(at, frame)
        if char in "}]":
            return self._close(at, frame)
        if frame.key is not None:
            return self._value(at, frame)
        if frame.container and not frame.comma:
            self.repairs[Repair.MISSING_COMMA] = None
        return self._key(at, frame) if isinstance(frame.container, dict) else self._value(at, frame)

    def _comma(self, at: int, frame: Frame) -> int:
        if self.text[at] != ",":
            self.repairs[Repair.MISSING_COMMA if self.text[at] == ";" else Repair.FULL_WIDTH] = None
        if frame.key is not None:
            self.repairs[Repair.STRAY_TEXT] = None
            frame.put(None)
        elif frame.comma or not frame.container:
            self.repairs[Repair.EXTRA_COMMA] = None
        frame.comma = True
        return at + 1

    def _close(self, at: int, frame: Frame) -> int:
        if frame.key is not None:
            self.repairs[Repair.STRAY_TEXT] = None
            frame.put(None)
        elif frame.comma:
            self.repairs[Repair.TRAILING_COMMA] = None
        kind = dict if self.text[at] == "}" else list
        if kind is dict and _is_list_of_objects(frame.container) and _ITEM_AHEAD.match(self.text, at + 1):
            self.repairs[Repair.MISMATCHED_BRACKET] = None  # one too many
            return at + 1
        fitting = [number for number, other in enumerate(self._stack) if isinstance(other.container, kind)]
        if not fitting or fitting[-1] != len(self._stack) - 1:
            self.repairs[Repair.MISMATCHED_BRACKET] = None
        if fitting and fitting[-1] == 0 and is_closed_too_soon(self.text, at + 1):
            self.repairs[Repair.MISMATCHED_BRACKET] = None
            del self._stack[1:]
        elif fitting:
            del self._stack[fitting[-1] :]
        return at + 1

    # --- keys

    def _key(self, at: int, frame: Frame) -> int:
        if self.text[at] in PAIRS:
            return self._quoted_key(at, frame)
        match = _BARE_KEY.match(self.text, at)
        if match is None:
            return self._no_key(at, frame)
        self._bare_keys = True
        end = match.end() + self.text.startswith(('"', "'"), match.end())
        at = self._skip(end)
        if end > match.end() and not _COLON.match(self.text, at):  # the quote is no slip of the key
            end, at = match.end(), self._skip(match.end())
        if _COLON.match(self.text, at) or self._opens_value(at):
            self.repairs[Repair.UNQUOTED] = None
            return self._colon(match[0], at, frame)
        self.repairs[Repair.STRAY_TEXT] = None
        return end

    def _quoted_key(self, at: int, frame: Frame) -> int:
        plain = _PLAIN_KEY.match(self.text, at)
        if plain:
            frame.key = plain[1]
            return plain.end()
        string = self._strings.key(at, self.repairs)
        after = self._skip(string.end)
        lost = _KEY_IN_STRING.match(self.text, at + 1)
        if lost and self._lost_its_quote(at, string, lost.end(), after):
            self.repairs[Repair.MISSING_QUOTE] = None
            frame.key = lost[1]
            return lost.end()
        if string.is_cut:
            self._cut = True
        elif _COLON.match(self.text, after) or _VALUE_AHEAD.match(self.text, after):
            return self._colon(string.text, after, frame)
        elif after < len(self.text):
            self.repairs[Repair.STRAY_TEXT] = None
        return string.end

    def _lost_its_quote(self, at: int, string: String, colon: int, after: int) -> bool:
        """Return whether a key that holds a colon lost its last quote: ``{"key:"value"}`` or ``{"key: value}``."""
        if string.is_cut:
            return count_lost_brackets(self.text[at:], len(self._stack)) > 0
        between = self.text[colon : string.end - 1]
        return not between.strip(" \t\r\n{[") and len(between) < MAX_DEPTH and _COLON.match(self.text, after) is None

    def _opens_value(self, at: int) -> bool:
        """Return whether a text begins at ``at``, and no key: then the word before it is a key without its colon."""
        return self.text[at : at + 1] in PAIRS and not _QUOTED_KEY.match(self.text, at)

    def _colon(self, key: str, at: int, frame: Frame) -> int:
        colon = _COLON.match(self.text, at)
        frame.key = key
        if colon is None:
            self.repairs[Repair.MISSING_COLON] = None
            return at
        if colon[0] != ":":
            self.repairs[Repair.FULL_WIDTH if colon[0] == "：" else Repair.MISSING_COLON] = None
        return colon.end()

    def _no_key(self, at: int, frame: Frame) -> int:
        """Read what is no key: a list that continues after its bracket, the next item of a list, or nothing known."""
        last = next(reversed(frame.container.values()), None) if isinstance(frame.container, dict) else None
        outer = self._stack[-2] if len(self._stack) > 1 else frame
        if self.text[at] == "[" and isinstance(last, list) and len(self._stack) < MAX_DEPTH:
            self.repairs[Repair.MISMATCHED_BRACKET] = None
            frame.comma = False
            self._stack.append(Frame(last))
        elif self.text[at] == "{" and isinstance(outer.container, list):
            self.repairs[Repair.MISMATCHED_BRACKET] = None
            self._stack.pop()
            self._open(at, {}, outer)
        else:
            self.repairs[Repair.STRAY_TEXT] = None
        return at + 1

    # --- values

    def _value(self, at: int, frame: Frame) -> int:
        plain = _PLAIN_VALUE.match(self.text, at)
        if plain:
            frame.put(int(plain["number"]) if plain["number"] else plain["text"])
            return plain.end()
        char = self.text[at]
        if char in "{[":
            self._open(at, {} if char == "{" else [], frame)
            return at + 1
        if char not in PAIRS:
            return self._bare(at, frame)
        string = self._strings.value(at, self._place(), self.repairs)
        self._cut = string.is_cut
        colon = self._skip(string.end) if isinstance(frame.container, list) else len(self.text)
        if self.text[colon : colon + 1] in {":", "："}:
            self.repairs[Repair.MISSING_BRACE] = None  # ["key": "value"]
            self._open(at, {}, frame)
            return self._colon(string.text, colon, self._stack[-1])
        frame.put(string.text)
        return string.end

    def _open(self, at: int, inner: "JsonObject | list[Json]", frame: Frame) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise TooDeep(at)
        frame.put(inner)
        self._stack.append(Frame(inner))

    def _bare(self, at: int, frame: Frame) -> int:
        """Read a number, a literal or words without quotes, up to a comma, a bracket, a comment or the next key."""
        prefix = _PREFIX.match(self.text, at)
        if prefix:
            self.repairs[Repair.QUOTES] = None
            return prefix.end()
        word = read_bare_word(self.text, at)
        end_of_text = at + len(word) >= len(self.text)
        if word.strip() in _ELLIPSES or (end_of_text and word.rstrip() in _SIGNS):
            self.repairs[Repair.STRAY_TEXT] = None
            if frame.key is not None and not end_of_text:
                frame.put(None)
            return at + len(word)
        value = parse_scalar(word.rstrip(), self.repairs, cut=end_of_text)
        quote = _TO_QUOTE.match(self.text, at)
        if (
            value == word.rstrip()
            and quote
            and quote.end() > at + len(word)
            and self._strings.ends(quote.end(), self._place())
        ):
            self.repairs[Repair.MISSING_QUOTE] = None
            frame.put(decode_string(quote[0], self.repairs))
            return quote.end() + 1
        frame.put(value)
        return at + max(1, len(word))

    def _place(self) -> Place:
        inside = "{" if isinstance(self._stack[-1].container, dict) else "["
        return Place(inside, len(self._stack), self._bare_keys)


def is_closed_too_soon(text: str, end: int) -> bool:
    """Return whether an object that ended at ``end`` continues with another key: ``{"a": 1}, "b": 2}``."""
    return _MORE.match(text, end) is not None


def _is_list_of_objects(container: "JsonObject | list[Json]") -> bool:
    return isinstance(container, list) and bool(container) and isinstance(container[-1], dict)


def read_bare_word(text: str, at: int) -> str:
    """Return the unquoted text at ``at``, up to a comma, a bracket, a comment or the next key."""
    match = _BARE.match(text, at)
    return match[0] if match else text[at]


def parse_scalar(word: str, repairs: Repairs, *, cut: bool = False) -> Json:
    """Return the value of ``word``; ``cut`` when the text ended in it."""
    if _NUMBER.fullmatch(word):
        return _parse_number(word)
    low = word.lower()
    if cut and len(word) > 1:
        low = next((name for name in _WORDS if name.startswith(low)), low)
    if low in _WORDS:
        if word not in _STRICT_WORDS:
            repairs[Repair.LITERALS] = None
        return _WORDS[low]
    if _LOOSE_NUMBER.fullmatch(word):
        repairs[Repair.LITERALS] = None
        return _parse_number(_tidy_number(word))
    if word.find('"') == len(word) - 1 > 0:  # the quote that opened it was lost
        repairs[Repair.MISSING_QUOTE] = None
        return parse_scalar(word[:-1].rstrip(), repairs)
    call = _CALL.fullmatch(word)
    repairs[Repair.UNQUOTED] = None
    if call:  # as ObjectId("1") and NumberLong(1)
        return call[1] if call[1] is not None else parse_scalar(call[2], repairs)
    return word


def _parse_number(word: str) -> Json:
    number: Json = json.loads(word)
    return number


def _tidy_number(word: str) -> str:
    """Return the same number as JSON writes it."""
    number = word.replace("_", "").removeprefix("+").rstrip("+-").rstrip("eE")
    mantissa, sign, exponent = number.lower().partition("e")
    integer, point, rest = mantissa.partition(".")
    integer = integer if integer not in {"", "-"} else integer + "0"
    return integer + (point + rest if rest else "") + sign + exponent


class TooDeep(Exception):
    def __init__(self, position: int) -> None:
        super().__init__(Message("The JSON is nested deeper than {most} levels.", most=MAX_DEPTH))
        self.position = position
