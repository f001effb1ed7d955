"""Repairs inside a JSON string, for the mistakes that models make.

A backslash that JSON does not know stays: it is LaTeX, a pattern or a path. One that JSON would turn into a control
character stays as well when a LaTeX command follows: a form feed is never intended in ``\\frac`` or a backspace
in ``\\beta``. Newlines and tabs are common, so ``\\n`` and ``\\t`` keep their backslash only before the rest of a
command that begins no ordinary word. Half a surrogate pair becomes U+FFFD: no UTF-8 text can carry it.
"""

import json
import re

from toolyard.protocol.replies.reply_values import Repair

_COMMANDS = {
    "n": "abla|eq|mid|ot|otin|subseteq|leq|geq|exists|parallel|ewcommand|ewline|olimits|onumber|ormalsize",
    "t": "imes|heta|ilde|frac|binom|au|herefore|riangle[a-z]*|ext(?:bf|it|rm|tt|sf|sc|style|color|width)",
    "r": "ho|ight[a-z]*|angle|ceil|floor|brace|brack|[vV]ert|enewcommand",
}
_BEFORE_SIGN = {"n": "(?!)", "t": r"(?:ext|ag)(?=\{)|o(?=[ ]?[0-9+\-\\])|anh?(?=[(^\\])", "r": r"ef(?=\{)"}
_IN_FORMULA = {"n": "[uei]", "t": "op?|anh?|ag|ext", "r": "ef|m"}  # also begin words: they need a sign of a formula


def _command_rest(letter: str) -> str:
    """Return the pattern of the rest of a command after ``\\n``, ``\\t`` or ``\\r``."""
    return f"(?:{_COMMANDS[letter]})(?![A-Za-z])|{_BEFORE_SIGN[letter]}|(?:{_IN_FORMULA[letter]})(?=[$^])"


_LATEX = "|".join(
    ["[bf][A-Za-z]", *(f"{letter}(?:{_command_rest(letter)})" for letter in _COMMANDS)]
    + [rf"(?<=\$\\){letter}(?:{rest})(?![A-Za-z])" for letter, rest in _IN_FORMULA.items()]
)
_HIGH, _LOW, _HEX = r"[dD][89abAB][0-9a-fA-F]{2}", r"[dD][c-fC-F][0-9a-fA-F]{2}", "[0-9a-fA-F]"
_ODD = re.compile(
    rf"""\\\\ | \\u{_HIGH}\\u{_LOW} | \\(?:
      (?P<surrogate> u(?:{_HIGH}|{_LOW}) )
    | (?P<latex> {_LATEX} )
    | (?P<code> x{_HEX}{{2}} | u\{{{_HEX}{{1,6}}\}} | U00{_HEX}{{6}} )
    | (?P<bad> (?!["\\/bfnrtu]|\Z) (?: \r?\n | . ) | u(?!{_HEX}{{4}}) )
    )""",
    re.VERBOSE | re.DOTALL,
)
_SUSPECT = re.compile(rf"\\(?:{_LATEX}|u[dD][89a-fA-F])")  # also after a backslash that is escaped itself
_FIRST = {word[0] for word in _COMMANDS["n"].split("|")} | set(_IN_FORMULA["n"].strip("[]"))
_READ = {  # the same in a text that was read already, by its control characters
    "\b": re.compile("\b[A-Za-z]"),
    "\f": re.compile("\f[A-Za-z]"),
    "\n": re.compile(f"\n(?=[{''.join(sorted(_FIRST))}])(?:{_command_rest('n')})"),  # one character decides mostly
    "\t": re.compile(f"\t(?:{_command_rest('t')})"),
    "\r": re.compile(f"\r(?:{_command_rest('r')})"),
    "$": re.compile(rf"\$(?:\n(?:{_IN_FORMULA['n']})|\t(?:{_IN_FORMULA['t']})|\r(?:{_IN_FORMULA['r']}))(?![A-Za-z])"),
}
_COMMON, _RARE = tuple(_READ.items()), tuple((sign, pattern) for sign, pattern in _READ.items() if sign != "\n")
_LONG = 4 * 1024
_SURROGATE = re.compile("[\ud800-\udfff]")
_HALF = rf"\\(?:u{_HEX}{{0,3}})?"  # the beginning of an escape
_CUT = re.compile(rf"(?<!\\)((?:\\\\)*)(?:\\u{_HIGH}(?:{_HALF})?|{_HALF})\Z")
_CONTROL = re.compile(r"[\x00-\x1f]")
_QUOTE = re.compile(r'(\\.)|"', re.DOTALL)

Repairs = dict[Repair, None]  # a set that keeps its order


def repair_escapes(text: str, repairs: Repairs) -> str:
    """Return ``text`` with every odd escape replaced by its likely meaning. Also right for a complete JSON text."""
    if "\\" not in text:
        return text

    def repair(match: re.Match[str]) -> str:
        if match.lastgroup is None:
            return match[0]
        if match["surrogate"]:
            repairs[Repair.SURROGATES] = None
            return r"\ufffd"
        repairs[Repair.LATEX if match["latex"] else Repair.ESCAPES] = None
        if match["code"]:
            return _to_character(int(match["code"].strip("xuU{}"), 16))
        return _repair_bad_escape(match[0])

    return _ODD.sub(repair, text)


def _to_character(code: int) -> str:
    return json.dumps(chr(code))[1:-1] if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else r"\ufffd"


def _repair_bad_escape(escape: str) -> str:
    if escape == r"\'":
        return "'"
    return "" if escape.endswith("\n") else "\\" + escape


def is_suspicious(text: str) -> bool:
    """Return whether JSON's own reading of the escapes in ``text`` may not be the intended one."""
    return _SUSPECT.search(text) is not None


def has_latex(text: str) -> bool:
    """Return whether control characters of ``text``, which was read as JSON, come from LaTeX commands.

    A long text has many newlines. It is searched for those in commands only if it has another sign of LaTeX.
    """
    for sign, pattern in _COMMON if len(text) < _LONG or "$" in text or "\\" in text else _RARE:
        if sign in text and pattern.search(text) is not None:
            return True
    return False


def have_latex(texts: list[str]) -> bool:
    """Return whether one of the texts has LaTeX. Short ones are searched together."""
    if len(texts) > 1 and sum(map(len, texts)) < _LONG:
        return has_latex("\0".join(texts))
    return any(map(has_latex, texts))


def decode_string(body: str, repairs: Repairs) -> str:
    """Return the meaning of a string with the raw inside ``body``, whatever its quotes were."""
    if not body.isprintable() and _CONTROL.search(body):
        repairs[Repair.RAW_CONTROL] = None
    if "\\" not in body:
        return body
    plain = None if is_suspicious(body) else _parse_string(body)
    if plain is not None:
        return plain
    repaired = repair_escapes(body, repairs)
    repaired = _QUOTE.sub(lambda match: match[1] or '\\"', repaired) if '"' in repaired else repaired
    return _parse_string(repaired) or body


def _parse_string(body: str) -> str | None:
    try:
        return str(json.loads(f'"{body}"', strict=False))
    except ValueError:
        return None


def remove_cut_escape(body: str) -> str:
    """Return a truncated string without the beginning of an escape at its end."""
    tail = body[-64:]
    return body[: len(body) - len(tail)] + _CUT.sub(r"\1", tail)


def remove_surrogates(text: str, repairs: Repairs) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        repairs[Repair.SURROGATES] = None
        return _SURROGATE.sub("\ufffd", text)
    return text
