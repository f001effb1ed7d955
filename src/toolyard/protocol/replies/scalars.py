"""Values without quotes: numbers, literals, words.

Numbers as JSON has them are no repair. Those of other languages (``.5``, ``1.``, ``+1``, ``1_000``, ``1e`` when the
text was cut) and the literals of Python and JavaScript are converted; anything else is a text.
"""

import json
import re

from toolyard.protocol.json import Json
from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.replies.escapes import Repairs
from toolyard.protocol.replies.quotes import KEY_AHEAD
from toolyard.protocol.replies.values import Repair

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
