"""The strings of a tolerant reader: any quotes, quotes inside quotes, and an end that is lost.

``quotes`` finds the end of a string; here it is read up to there and its inside decoded. One pass: a string is scanned
once by patterns that cannot backtrack, and every lookahead is bounded.
"""

import re
from dataclasses import dataclass

from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.replies.escapes import Repairs, decode_string, remove_cut_escape
from toolyard.protocol.replies.quotes import (
    INNER,
    PAIRS,
    count_lost_brackets,
    is_closing,
    is_next_without_quote,
    skip_blanks,
)
from toolyard.protocol.replies.strict import parse_strict_at
from toolyard.protocol.replies.values import Repair

_LAST_FENCE = re.compile(r"\s*+(?:`{3,}|~{3,})\s*\Z")
_DOUBLED = re.compile(r"([\"'])\1(?=[\w+-])")  # quotes written twice, as in CSV
_JSON = compile_pattern(r'((?:\s|\\n)*+)(?:\{(?:\s|\\n)*+"[^"\\\n]{0,200}+"\s*+:|\[(?:\s|\\n)*+["{\[])')
_MAX_FAILURES = 8  # of the strict reader: each costs time in proportion to the whole text
_PLUS = re.compile(r"\s*+\+\s*+(?=[\"'])")


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
