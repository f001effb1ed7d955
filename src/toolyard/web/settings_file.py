"""``config.toml`` as it may be shown and changed from outside: its secrets stay in it.

A secret is shown as ``[masked]``; where a changed text still has that, what stood there before is put back. What is no
setting of ours is a secret by its name, in whatever table, and an address by a login in it. A text that is no TOML is
shown without any line that may hold a secret. Single settings are changed without touching anything else, comments
included.
"""

import re
import tomllib
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from toolyard.engine.masking import MASK
from toolyard.errors import ConfigError
from toolyard.plugins.environment import is_secret
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.regex import compile_pattern
from toolyard.provider_settings import OPEN_FIELDS, TABLES, is_secret_entry
from toolyard.settings import SETTINGS

Hide = Callable[[str], str]
_OURS = {setting.name: setting.secret for setting in SETTINGS}
_WORDS = r"(?:key|database|password|token|secret|credential|authorization|cookie)"
_OLD_SECRET = re.compile(rf"^(#.*?{_WORDS}\w{{0,40}}\s{{0,40}}[=:]\s*+)\S.*$", re.IGNORECASE)
_ANY_SECRET = compile_pattern(rf"^((?:(?!{_WORDS})[^#])*+{_WORDS}[^=]*+=\s*+)\S.*$", re.IGNORECASE)
_MAY_BE_SECRET = compile_pattern(rf"""(?:(?!{_WORDS})[^#])*+{_WORDS}[\w.-]*+["']?\s*+[=:]?\s*+""", re.IGNORECASE)
_TABLE = re.compile(r"""\s*\[+[\w.\s"'-]*\]+\s*(?:#.*)?""")
_LOGIN = re.compile(r"://[^/\s@]*:[^/\s@]+@")
_LONG: Final = {'"""': '"""', "'''": "'''", "[": "]", "{": "}"}  # where a value of several lines begins and ends
_COMMENTED = compile_pattern(r"""((?:[^"'#]|"(?:[^"\\]|\\.)*+"|'[^']*+')*+)(?P<comment>#.*)""")
_LONG_WORD = re.compile(r"""[^\s"']{8,}+""")
_PLACE = re.compile(r"line (\d+), column (\d+)")


def masked(text: str, hide: Hide) -> str:
    """The text without its secrets, also those in comments, where ``hide`` masks those that are known otherwise."""
    text = "\n".join(code + _hidden(code, comment, hide) for code, comment in map(_parts, text.split("\n")))
    try:
        document = tomlkit.parse(text)
    except (TOMLKitError, RecursionError):
        return hide("\n".join(_guessed(text.split("\n"))))
    for place in list(_secrets(document)):
        _set(document, place, MASK)
    return document.as_string()


def unmasked(text: str, stored: str, hide: Hide) -> str:
    """``text`` with the secrets of ``stored`` where it has a mask. Raises ConfigError when there is none to put in."""
    comments: defaultdict[str, deque[str]] = defaultdict(deque)  # by what is shown of them, in their order
    for code, comment in map(_parts, stored.split("\n")):
        comments[_hidden(code, comment, hide)].append(comment)
    lines = []
    for code, comment in map(_parts, text.split("\n")):
        before = comments.get(comment)
        lines.append(code + (before.popleft() if before else comment))
    document = _parsed("\n".join(lines))
    _put_back(document, _plain(stored))
    return _whole(document)


def changed(text: str, values: Mapping[str, Json]) -> str:
    """``text`` with these settings set, or taken out where the value is None. Raises ConfigError."""
    document, before = _parsed(text), _plain(text)
    for name, value in values.items():
        if value is None:
            document.pop(name, None)
            continue
        try:
            document[name] = tomlkit.item(value)
        except (ValueError, TypeError, RecursionError) as error:
            raise ConfigError(f"{name[:100]}: the value cannot be written as TOML") from error
    _put_back(document, before)
    whole = _whole(document)
    kept = {name: value for name, value in before.items() if name not in values}
    if {name: value for name, value in _plain(whole).items() if name not in values} != kept:
        raise ConfigError("the file cannot be changed here without changing other settings: edit it as a whole")
    return whole


def texts_in(value: Any) -> frozenset[str]:
    """Every text in a value."""
    if isinstance(value, str):
        return frozenset({value})
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return frozenset(text for one in inner for text in texts_in(one))


def texts_of(text: str) -> frozenset[str]:
    """Every text that a file sets."""
    return texts_in(_plain(text))


def problems_of(error: ConfigError) -> list[JsonObject]:
    """Each problem with its place; line 0 is no place in particular."""
    found: list[JsonObject] = []
    for message in str(error).splitlines():
        place = _PLACE.search(message)
        line, column = (int(place[1]), int(place[2])) if place else (0, 0)
        found.append({"message": message, "line": line, "column": column})
    return found


def _secrets(document: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Where the secrets of a document stand."""
    for name, value in document.items():
        if name not in _OURS:
            yield from _by_name(value, (name,))
        elif name == "upstreams" and isinstance(value, Mapping):
            for inner, one in value.items():
                yield from _of_provider(one, (name, inner))
        elif name == "upstream_options":
            yield from _of_provider(value, (name,))
        elif _OURS[name] or _is_secret("", value):
            yield (name,)


def _of_provider(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The secrets of a model provider; what is no field of one may be another."""
    if not isinstance(value, Mapping):
        yield place
        return
    for name, one in value.items():
        if name in TABLES and isinstance(one, Mapping):
            hidden = [key for key, text in one.items() if text == MASK or is_secret_entry(name, key, text)]
            yield from ((*place, name, key) for key in hidden)
        elif (
            name in TABLES or name not in OPEN_FIELDS or isinstance(one, Mapping) or one == MASK or _is_secret("", one)
        ):
            yield (*place, name)


def _by_name(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _by_name(inner, (*place, name))
    elif _is_secret(place[-1], value):
        yield place


def _is_secret(name: str, value: Any) -> bool:
    return is_secret(name, value if isinstance(value, str) else "")


def _put_back(document: Any, before: Mapping[str, Any]) -> None:
    for place in list(_secrets(document)):
        if _get(document, place) == MASK:
            stored = _get(before, place)
            if stored is None:
                what = ".".join(place)[:200]
                raise ConfigError(f"{what}: {MASK} stands for a value that is not there: write the value itself")
            _set(document, place, stored)


def _whole(document: tomlkit.TOMLDocument) -> str:
    """Its text; ConfigError when a mask is left in it, which nobody means."""
    if any(MASK in text for text in texts_in(document)):
        raise ConfigError(f"{MASK} stands where no secret was: write the value itself")
    return document.as_string()


def _get(value: Any, place: tuple[str, ...]) -> Any:
    for step in place:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _guessed(lines: list[str]) -> Iterator[str]:
    """Lines that are no TOML without what may be a secret, also where its value goes on for several lines."""
    end = ""
    for line in lines:
        if end:
            yield MASK
            end = "" if end in line else end
        elif _TABLE.fullmatch(line) or not (found := _MAY_BE_SECRET.match(line)):
            yield _LOGIN.sub(f"://{MASK}@", line)
        else:
            value = line[found.end() :]
            opened = next((sign for sign in _LONG if value.startswith(sign)), "")
            end = _LONG[opened] if opened and _LONG[opened] not in value[len(opened) :] else ""
            yield f"{line[: found.end()]}{MASK}" if value else line


def _set(document: Any, place: tuple[str, ...], value: Any) -> None:
    for step in place[:-1]:
        document = document[step]
    document[place[-1]] = value


def _parts(line: str) -> tuple[str, str]:
    """A line up to its comment, and the comment; within a text of several lines it may be neither, and that is fine."""
    found = _COMMENTED.fullmatch(line)
    return (found[1], found["comment"]) if found else (line, "")


def _hidden(code: str, comment: str, hide: Hide) -> str:
    """A comment without the secrets that stood there before; beside a secret also without what looks like another."""
    shown = _OLD_SECRET.sub(rf"\1{MASK}", comment)
    return hide(_LONG_WORD.sub(_like_a_key, shown) if _ANY_SECRET.match(code) else shown)


def _like_a_key(word: re.Match[str]) -> str:
    return MASK if any(sign.isdigit() for sign in word[0]) else word[0]


def _parsed(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        line, column = getattr(error, "line", 1), getattr(error, "col", 0) + 1
        what = str(error).partition(" at line")[0]
        raise ConfigError(f"line {line}, column {column}: it is not valid TOML: {what}") from error
    except RecursionError as error:
        raise ConfigError("line 1, column 1: it is nested too deep") from error


def _plain(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
