"""The words of an expression: full-width signs made plain, then tokens with their places."""

import re
import unicodedata
from fractions import Fraction

from nodes import CalcError, Node

MAX_EXPONENT = 4000  # of a literal such as 1e300
Token = tuple[str, str, int]  # kind, text, place

_SIGNS = {
    "×": "*", "·": "*", "⋅": "*", "✕": "*", "∗": "*", "÷": "/", "∕": "/", "−": "-", "–": "-", "—": "-", "﹣": "-",
    "²": "^2", "³": "^3", "√": "sqrt", "π": "pi", "∞": "inf", "τ": "tau", "φ": "phi", "≤": "<=", "≥": ">=", "≠": "!=",
    "→": "->", "℃": " degC", "℉": " degF", "【": "[", "】": "]", "、": ",", "，": ",", "；": ";", "。": ".",
    "‘": "'", "’": "'",
    "“": '"', "”": '"', "\u03a9": "ohm", "\u2126": "ohm", "µ": "u", "μ": "u",
}  # fmt: skip
_TOKEN = re.compile(
    r"""(?P<space>\s+)
      |(?P<num>0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+
          |(?:\d{1,3}(?:_\d{3})+|\d+)(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)
      |(?P<name>°[CF]?|[^\W\d]\w*)
      |(?P<text>'[^']*'|"[^"]*")
      |(?P<op>\*\*|->|<=|>=|==|!=|//|[-+*/^%!(),;\[\]=<>])""",
    re.VERBOSE,
)


def plain(text: str) -> str:
    """Full-width forms and typographic signs as their ASCII twins."""
    wide = "".join(
        unicodedata.normalize("NFKC", sign) if "！" <= sign <= "～" or sign == "　" else sign for sign in text
    )
    return "".join(_SIGNS.get(sign, sign) for sign in wide)


def tokens(source: str) -> list[Token]:
    """Every token; a sign that means nothing is refused."""
    found: list[Token] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise CalcError(
                f"unknown character '{source[at]}'", "Use only numbers, names, + - * / ^ % ! and brackets.", at
            )
        kind = match.lastgroup or ""
        if kind != "space":
            found.append((kind, match.group(), at))
        at = match.end()
    return found


def literal(text: str, at: int) -> Node:
    """A number, exact."""
    digits = text.replace("_", "")
    if digits[:2].lower() in ("0x", "0b", "0o"):
        return Node("num", value=int(digits, 0), at=at)
    exponent = re.search(r"[eE]([+-]?\d+)$", digits)
    if exponent and abs(int(exponent.group(1)[:9])) > MAX_EXPONENT:
        raise CalcError(
            f"the exponent of {text[:40]} is too large", f"It can be from -{MAX_EXPONENT} to {MAX_EXPONENT}.", at
        )
    value = Fraction(digits + "0" if digits.endswith(".") else digits)
    return Node("num", value=int(value) if value.denominator == 1 else value, at=at)
