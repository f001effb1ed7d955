"""``config.env``: the settings of one plugin, in the dialect of dotenv that VCPToolBox reads.

    KEY=value            blanks around both are dropped; an unquoted value ends at ``#``
    export KEY: value    the prefix and the colon (then a blank) are accepted
    KEY="several         ', " and ` quote: the value is taken as it is, over many lines, ``#`` included;
    lines"               only inside " are ``\\n`` and ``\\r`` made a newline and a carriage return

A key is made of letters, digits and ``_ . @ # % & ^ + -`` and does not begin with ``#``. Of two equal keys the last
counts. Nothing is expanded. A quote with more text behind it on its line quotes nothing: the line is then read as
unquoted. Pure, and linear in the text. A line that is no setting is skipped with a problem; a quote that is never
closed is what a half-written file looks like, so that problem is marked as ``fatal``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_SETTING = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z0-9_.@%&^+-][A-Za-z0-9_.@#%&^+-]*)(?:[ \t]*=|:(?=[ \t]))[ \t]*")
_QUOTED = {
    quote: re.compile(rf"{quote}((?:[^{quote}\\]|\\{quote}|\\)*+){quote}[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
    for quote in "'\"`"
}
_MAX_PROBLEMS = 50  # told of one file, but for fatal ones; more would not help
_LINE_END = re.compile(r"\r\n?")


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    line: int  # from 1
    message: str
    fix: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class ConfigFile:
    values: Mapping[str, str] = field(repr=False)
    problems: tuple[ConfigProblem, ...] = ()


def parse(text: str) -> ConfigFile:
    """Every setting of ``text`` in order, and what is wrong with the rest."""
    text = _LINE_END.sub("\n", text.removeprefix("\ufeff"))
    values: dict[str, str] = {}
    problems: list[ConfigProblem] = []
    at, line = 0, 1
    while at < len(text):
        end, problem = _take(text, at, line, values)
        if problem and (problem.fatal or len(problems) < _MAX_PROBLEMS):
            problems.append(problem)
        line += text.count("\n", at, end)
        at = end
    return ConfigFile(values, tuple(problems))


def _take(text: str, at: int, line: int, values: dict[str, str]) -> tuple[int, ConfigProblem | None]:
    """Read what begins at ``at`` into ``values``; where the next line begins, and what is wrong with this one."""
    newline = text.find("\n", at)
    end = len(text) if newline < 0 else newline
    found = _SETTING.match(text, at, end)
    if found is None:
        return end + 1, _no_setting(text[at:end], line)
    key, start = found[1], found.end()
    quote = text[start] if start < end and text[start] in _QUOTED else None
    quoted = _QUOTED[quote].match(text, start) if quote else None
    problem = None
    if quoted:
        value, following = _expanded(quoted[1], quote), quoted.end()
    else:
        value, following = _unquoted(text[start:end]), end + 1
        problem = _never_closed(text, start, end, key, line) if quote else None
    if "\0" in value:
        return following, ConfigProblem(line, f"the value of {key} has a NUL character", "take the character out")
    values[key] = value
    return following, problem


def _no_setting(written: str, line: int) -> ConfigProblem | None:
    if not written.strip() or written.lstrip().startswith("#"):
        return None
    return ConfigProblem(line, "this is neither a setting nor a comment", "write KEY=value, or begin the line with #")


def _unquoted(written: str) -> str:
    value = written.partition("#")[0].strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in _QUOTED:
        return _expanded(value[1:-1], value[0])
    return value


def _expanded(value: str, quote: str | None) -> str:
    return value.replace("\\n", "\n").replace("\\r", "\r") if quote == '"' else value


def _never_closed(text: str, start: int, end: int, key: str, line: int) -> ConfigProblem | None:
    """Whether a quote that quotes nothing has no partner up to the end of the file."""
    quote = text[start]
    if text.find(quote, start + 1, end) >= 0:
        return None  # an ordinary value that happens to begin with a quote
    message = f"the value of {key} begins with {quote} and no {quote} ends it"
    return ConfigProblem(line, message, f"close it with {quote}, or write the value without it", fatal=True)
