"""A tolerant reader of one JSON object in a text.

It forgives what models write: comments, commas too many or too few, any quotes, quotes inside quotes, bare keys and
words, Python's literals, full-width punctuation, raw newlines, brackets that do not match, and an end that is missing.
What it forgave is in ``repairs``. One pass: every look ahead is bounded, nothing is read twice, nothing recurses.
"""

import json
import re
from dataclasses import dataclass

from toolyard.protocol.json import MAX_DEPTH, Json, JsonObject
from toolyard.protocol.replies.escapes import Repairs, decode, without_cut_escape
from toolyard.protocol.replies.quotes import KEY_AHEAD, PAIRS, closes, key_without_quote
from toolyard.protocol.replies.values import Repair

_BLANKS = re.compile(r"(?:[\s\ufeff\u200b]++|//[^\n]*+|\#[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))*+")
_FENCE = re.compile(r"`{3,}|~{3,}")
_BARE_KEY = re.compile(r"[^\s:：,，{}\[\]\"'“”‘’`]+")
_COLON = re.compile(r"[:：]|=>?")
_BARE_VALUE = re.compile(r"[^,，}\]\n]+")
_COMMENT = re.compile(r"\s(?://|\#|/\*)|/\*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,300})(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,3})?")
_KEY_INSIDE = re.compile(rf"\s(?={KEY_AHEAD})")
_MORE = re.compile(rf"\s*+[,，]\s*+{KEY_AHEAD}")
_PLUS = re.compile(r"\s*+\+\s*+(?=[\"'])")
_WORDS: dict[str, Json] = {
    "true": True, "false": False, "null": None, "none": None, "undefined": None, "nil": None, "nan": None,
    "infinity": None, "-infinity": None,
}  # fmt: skip
_ELLIPSES = frozenset({"...", "…"})
_STRICT_WORDS = frozenset({"true", "false", "null"})


@dataclass(frozen=True, slots=True)
class Reading:
    """``value`` stands in the text from ``start`` to ``end``; not ``complete`` when the text ended before it did."""

    value: JsonObject
    start: int
    end: int
    complete: bool
    repairs: tuple[Repair, ...]


class TooDeep(Exception):
    def __init__(self, position: int) -> None:
        super().__init__(f"The JSON is nested deeper than {MAX_DEPTH} levels.")
        self.position = position


class _Frame:
    """A container that is being filled. ``key`` waits for its value; ``comma`` says that one has just been read."""

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
        self._stack: list[_Frame] = []
        self._bare_keys = False
        self._cut = False

    def read(self, start: int, *, brace: bool = True) -> Reading:
        """The object at ``start``; without ``brace`` its first key stands there. Raises TooDeep, and nothing else."""
        root: JsonObject = {}
        self.repairs = {} if brace else {Repair.MISSING_BRACE: None}
        self._stack, self._bare_keys, self._cut = [_Frame(root)], False, False
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
        match = _BLANKS.match(self.text, at)
        end = match.end() if match else at
        if end > at and self.text[at:end].strip("\ufeff\u200b \t\r\n\f\v\u00a0\u3000"):
            self.repairs[Repair.COMMENTS] = None
        return end

    def _step(self, at: int) -> int:
        char, frame = self.text[at], self._stack[-1]
        if char in ",，":
            return self._comma(at, frame)
        if char in "}]":
            return self._close(at, frame)
        if frame.key is not None:
            return self._value(at, frame)
        if frame.container and not frame.comma:
            self.repairs[Repair.MISSING_COMMA] = None
        return self._key(at, frame) if isinstance(frame.container, dict) else self._value(at, frame)

    def _comma(self, at: int, frame: _Frame) -> int:
        if self.text[at] == "，":
            self.repairs[Repair.FULL_WIDTH] = None
        if frame.key is not None:
            self.repairs[Repair.STRAY_TEXT] = None
            frame.put(None)
        elif frame.comma or not frame.container:
            self.repairs[Repair.EXTRA_COMMA] = None
        frame.comma = True
        return at + 1

    def _close(self, at: int, frame: _Frame) -> int:
        if frame.key is not None:
            self.repairs[Repair.STRAY_TEXT] = None
            frame.put(None)
        elif frame.comma:
            self.repairs[Repair.TRAILING_COMMA] = None
        wanted = dict if self.text[at] == "}" else list
        fitting = [number for number, other in enumerate(self._stack) if isinstance(other.container, wanted)]
        if not fitting or fitting[-1] != len(self._stack) - 1:
            self.repairs[Repair.MISMATCHED_BRACKET] = None
        if fitting and fitting[-1] == 0 and closed_too_soon(self.text, at + 1):
            self.repairs[Repair.MISMATCHED_BRACKET] = None
            del self._stack[1:]
        elif fitting:
            del self._stack[fitting[-1] :]
        return at + 1

    def _key(self, at: int, frame: _Frame) -> int:
        if self.text[at] in PAIRS:
            key, end = self._string(at, is_key=True)
        else:
            match = _BARE_KEY.match(self.text, at)
            if match is None:
                self.repairs[Repair.STRAY_TEXT] = None
                return at + 1
            key, end = match[0], match.end()
            self._bare_keys = True
        if self._cut:
            return end
        return self._colon(key, end, self._skip(end), frame, bare=self.text[at] not in PAIRS)

    def _colon(self, key: str, end: int, at: int, frame: _Frame, *, bare: bool) -> int:
        colon = _COLON.match(self.text, at)
        if colon is None and (bare or self.text[at : at + 1] not in {*PAIRS, "{", "["}):
            if at < len(self.text):
                self.repairs[Repair.STRAY_TEXT] = None
            return end
        if bare:
            self.repairs[Repair.UNQUOTED] = None
        frame.key = key
        if colon is None:
            self.repairs[Repair.MISSING_COLON] = None
            return at
        if colon[0] != ":":
            self.repairs[Repair.FULL_WIDTH if colon[0] == "：" else Repair.MISSING_COLON] = None
        return colon.end()

    def _value(self, at: int, frame: _Frame) -> int:
        char = self.text[at]
        if char in "{[":
            if len(self._stack) >= MAX_DEPTH:
                raise TooDeep(at)
            inner: JsonObject | list[Json] = {} if char == "{" else []
            frame.put(inner)
            self._stack.append(_Frame(inner))
            return at + 1
        if char in PAIRS:
            value, end = self._joined(at)
            frame.put(value)
            return end
        return self._bare(at, frame)

    def _bare(self, at: int, frame: _Frame) -> int:
        """A number, a literal or words without quotes, up to a comma, a bracket, a comment or the next key."""
        match = _BARE_VALUE.match(self.text, at)
        word = match[0] if match else self.text[at]
        for end in (_COMMENT.search(word), _KEY_INSIDE.search(word)):
            word = word[: end.start()] if end else word
        end_of_text = at + len(word) >= len(self.text)
        if word.strip() in _ELLIPSES:
            self.repairs[Repair.STRAY_TEXT] = None
        else:
            frame.put(self._literal(word.rstrip(), cut=end_of_text))
        return at + max(1, len(word))

    def _literal(self, word: str, *, cut: bool) -> Json:
        if _NUMBER.fullmatch(word):
            number: Json = json.loads(word)
            return number
        low = word.lower()
        if cut and len(word) > 1:
            low = next((name for name in _WORDS if name.startswith(low)), low)
        if low in _WORDS:
            if word not in _STRICT_WORDS:
                self.repairs[Repair.LITERALS] = None
            return _WORDS[low]
        self.repairs[Repair.UNQUOTED] = None
        return word[:-1] if word.find('"') == len(word) - 1 else word

    def _joined(self, at: int) -> tuple[str, int]:
        """A string, or several with ``+`` between them."""
        text, end = self._string(at)
        pieces = [text]
        plus = _PLUS.match(self.text, end)
        while plus is not None and not self._cut:
            self.repairs[Repair.CONCATENATION] = None
            text, end = self._string(plus.end())
            pieces.append(text)
            plus = _PLUS.match(self.text, end)
        return "".join(pieces), end

    def _string(self, at: int, *, is_key: bool = False) -> tuple[str, int]:
        text, start = self.text, at + 1
        if text[at] != '"':
            self.repairs[Repair.QUOTES] = None
        triple = text.find('"""', at + 3) if text.startswith('"""', at) else -1
        if triple >= 0:
            self.repairs[Repair.QUOTES] = None
            return decode(text[at + 3 : triple], self.repairs), triple + 3
        run, position, inner = PAIRS[text[at]], start, False
        while True:
            match = run.match(text, position)
            quote = match.end() if match else position
            if quote >= len(text) or text[quote] == "\\":
                self._cut = True
                return decode(without_cut_escape(text[start:]), self.repairs), len(text)
            if is_key or closes(text, quote, self._inside(), inner=inner, bare_keys=self._bare_keys):
                return decode(text[start:quote], self.repairs), quote + 1
            if key_without_quote(text, start, quote, inner=inner):
                self.repairs[Repair.MISSING_QUOTE] = None
                return decode(text[start:quote].rstrip().removesuffix(",").rstrip(), self.repairs), quote
            self.repairs[Repair.INNER_QUOTES] = None
            position, inner = quote + 1, True

    def _inside(self) -> str:
        return "{" if isinstance(self._stack[-1].container, dict) else "["


def closed_too_soon(text: str, end: int) -> bool:
    """Whether an object that ended at ``end`` goes on with another key: ``{"a": 1}, "b": 2}``."""
    return _MORE.match(text, end) is not None
