"""``config.env``: the settings of one plugin, in the dialect of dotenv that VCPToolBox reads.

    KEY=value            blanks around both are dropped; an unquoted value ends at ``#``
    export KEY: value    the prefix and the colon (then a blank) are accepted
    KEY="several         ', " and ` quote: the value is taken as it is, over many lines, ``#`` included;
    lines"               only inside " are ``\\n`` and ``\\r`` made a newline and a carriage return

A key is made of letters, digits and ``_ . @ # % & ^ + -`` and does not begin with ``#``. Of two equal keys the last
counts. Nothing is expanded. A quote with more text behind it on its line quotes nothing: the line is then read as
unquoted. Pure, and linear in the text. A line that is no setting is skipped with a problem; a quote that is never
closed is what a half-written file looks like, so that problem is marked as ``fatal``. A value that is cut at a ``#`` in
its middle is read so, as VCPToolBox reads it, with a problem: whoever wrote ``COLOUR=#fff`` meant the rest too.

``edit_config`` changes single settings and leaves every other character as it is, comments included.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from toolyard.message import Message
from toolyard.protocol.regex import compile_pattern

_SETTING = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z0-9_.@%&^+-][A-Za-z0-9_.@#%&^+-]*)(?:[ \t]*=|:(?=[ \t]))[ \t]*")
_QUOTED = {
    quote: compile_pattern(rf"{quote}((?:[^{quote}\\]|\\{quote}|\\)*+){quote}[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
    for quote in "'\"`"
}
_MAX_PROBLEMS = 50  # reported of one file, fatal ones excepted; more would not help
_LINE_END = re.compile(r"\r\n?")
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:pass(?:word|wd|phrase|code)?|pwd|secrets?|tokens?|keys?|apikeys?|auth|authorization|cookies?|credentials?|dsn|session)(?:_|$)"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LOGIN_IN_URL = re.compile(r"://[^/\s@]*:[^/\s@]+@")
_SYSTEM = re.compile(r"//?$|/(?:usr|bin|sbin|lib\w*|etc|proc|sys|dev|boot|run|nix|snap)(?:/|$)")


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    line: int  # from 1
    message: str
    fix: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class _Setting:
    """One setting as it stands in the text."""

    key: str
    value: str = field(repr=False)
    at: int  # where its line begins
    start: int  # its value with its quotes: from here
    end: int  # to here
    following: int  # where the next line begins
    odd_quote: str = ""  # it begins with one that quotes nothing
    is_cut: bool = False  # at a # that stands right behind other text


@dataclass(frozen=True, slots=True)
class ConfigFile:
    values: Mapping[str, str] = field(repr=False)
    problems: tuple[ConfigProblem, ...] = ()

    @property
    def fatal_problem(self) -> ConfigProblem | None:
        """The problem for which the file counts as half written."""
        return next((problem for problem in self.problems if problem.fatal), None)


def parse_config(text: str) -> ConfigFile:
    """Parse every setting of ``text`` in order; other lines become problems."""
    text = _normalize_newlines(text)
    values: dict[str, str] = {}
    problems: list[ConfigProblem] = []
    line, counted = 1, 0
    for at, end, setting in _iter_lines(text):
        line += text.count("\n", counted, at)
        counted = at
        problem = _find_problem(text, setting, line) if setting else _line_problem(text[at:end], line)
        if problem and (problem.fatal or len(problems) < _MAX_PROBLEMS):
            problems.append(problem)
        if setting and "\0" not in setting.value:
            values[setting.key] = setting.value
    return ConfigFile(values, tuple(problems))


def edit_config(text: str, values: Mapping[str, str | None]) -> str:
    """Return ``text`` with these settings set, or removed where None. Raises ValueError, naming no value."""
    plain = _normalize_newlines(text)
    before = parse_config(plain)
    if fatal := before.fatal_problem:
        raise ValueError(
            Message("line {line}: {problem}: {fix}", line=fatal.line, problem=fatal.message, fix=fatal.fix)
        )
    settings = [setting for _, _, setting in _iter_lines(plain) if setting]
    last = {setting.key: setting for setting in settings}  # the one that counts
    pieces, at = [], 0
    for setting in settings:
        new = values.get(setting.key)
        if setting.key in values and new is None:
            pieces.append(plain[at : setting.at])
            at = setting.following
        elif new is not None and setting is last[setting.key]:
            pieces += [plain[at : setting.start], _format_value(setting.key, new)]
            at = setting.end
    edited = "".join(pieces) + plain[at:]
    for key, new in values.items():
        if new is not None and key not in last:
            edited += f"{'' if edited.endswith(chr(10)) or not edited else chr(10)}{key}={_format_value(key, new)}\n"
    expected = {**before.values, **values}
    if not _has_values(edited, {key: value for key, value in expected.items() if value is not None}):
        raise ValueError(Message("the file cannot be changed here without changing other settings: edit it by hand"))
    return edited.replace("\n", "\r\n") if "\r\n" in text else edited


def _normalize_newlines(text: str) -> str:
    return _LINE_END.sub("\n", text.removeprefix("\ufeff"))


def _format_value(key: str, value: str) -> str:
    """Return the plainest way to write a value that reads as the same again."""
    escaped = value.replace("\n", "\\n").replace("\r", "\\r")
    forms = (value, *(f"{quote}{value}{quote}" for quote in "'\"`"), f'"{escaped}"')
    written = next((form for form in forms if _has_values(f"{key}={form}", {key: value})), None)
    if written is None:
        raise ValueError(Message("{key}: neither the name nor this value can be written in this file", key=key))
    return written


def _has_values(text: str, values: Mapping[str, str]) -> bool:
    read = parse_config(text)
    return read.values == values and not read.fatal_problem


def _iter_lines(text: str) -> Iterator[tuple[int, int, _Setting | None]]:
    """Yield the start and the end of each line or setting, and what it sets."""
    at = 0
    while at < len(text):
        newline = text.find("\n", at)
        end = len(text) if newline < 0 else newline
        setting = _parse_setting(text, at, end)
        yield at, end, setting
        at = setting.following if setting else end + 1


def _parse_setting(text: str, at: int, end: int) -> _Setting | None:
    match = _SETTING.match(text, at, end)
    if match is None:
        return None
    key, start = match[1], match.end()
    quote = text[start] if start < end and text[start] in _QUOTED else ""
    quoted = _QUOTED[quote].match(text, start) if quote else None
    if quoted:
        return _Setting(key, _expand_escapes(quoted[1], quote), at, start, quoted.end(1) + 1, quoted.end())
    before, sign, _ = text[start:end].partition("#")
    is_cut = bool(sign) and not text[start + len(before) - 1].isspace()
    return _Setting(
        key, _parse_unquoted(text[start:end]), at, start, start + len(before.rstrip()), end + 1, quote, is_cut
    )


def _find_problem(text: str, setting: _Setting, line: int) -> ConfigProblem | None:
    if "\0" in setting.value:
        return ConfigProblem(
            line, Message("the value of {key} has a NUL character", key=setting.key), Message("take the character out")
        )
    end = setting.following - 1
    unclosed = _unclosed_quote_problem(text, setting.start, end, setting.key, line) if setting.odd_quote else None
    if unclosed or not setting.is_cut:
        return unclosed
    message = Message("the value of {key} is cut at its #: what follows counts as a comment", key=setting.key)
    return ConfigProblem(line, message, Message("put the value in quotes, or a blank before the #"))


def _line_problem(written: str, line: int) -> ConfigProblem | None:
    if not written.strip() or written.lstrip().startswith("#"):
        return None
    return ConfigProblem(
        line, Message("this is neither a setting nor a comment"), Message("write KEY=value, or begin the line with #")
    )


def _parse_unquoted(written: str) -> str:
    value = written.partition("#")[0].strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in _QUOTED:
        return _expand_escapes(value[1:-1], value[0])
    return value


def _expand_escapes(value: str, quote: str | None) -> str:
    return value.replace("\\n", "\n").replace("\\r", "\r") if quote == '"' else value


def _unclosed_quote_problem(text: str, start: int, end: int, key: str, line: int) -> ConfigProblem | None:
    """Return the problem when an opening quote has no partner on its line."""
    quote = text[start]
    if text.find(quote, start + 1, end) >= 0:
        return None  # an ordinary value that happens to begin with a quote
    message = Message("the value of {key} begins with {quote} and no {quote} ends it", key=key, quote=quote)
    return ConfigProblem(
        line, message, Message("close it with {quote}, or write the value without it", quote=quote), fatal=True
    )


def is_secret_name(name: str) -> bool:
    """Return whether only secrets have such a name: DOUBAO_API_KEY, Image_Key, accessToken."""
    return bool(_SECRET_NAME.search(_CAMEL.sub("_", name).replace("-", "_").replace(".", "_").lower()))


def is_secret(name: str, value: str) -> bool:
    """Return whether a setting must be hidden, by its name or its value."""
    return is_secret_name(name) or bool(_LOGIN_IN_URL.search(value))


def is_shared_folder(folder: str) -> bool:
    """Return whether a folder is one of the system, or of the temporary files of all programs."""
    return bool(_SYSTEM.match(folder)) or folder in ("/tmp", "/var/tmp", "/var", "/home", "/opt", "/srv", "/mnt")  # noqa: S108


def list_config_paths(config: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files and folders that settings name by absolute paths, also in lists; none of the system's."""
    words = (word.strip() for value in config.values() for word in re.split(r"[,;]", value))
    named = (os.path.normpath(word) for word in words if word.startswith("/"))
    return tuple(dict.fromkeys(path for path in named if not _SYSTEM.match(path) and os.path.exists(path)))
