"""``config.toml`` as clients see and edit it: without its secrets.

A secret is shown as ``[masked]``; where an edited text still has the mask, the stored value is restored. Unknown
settings are secret by their name, in any table, and URLs by a login in them. Invalid TOML is shown without any value
that may be a secret. Single settings are changed without touching anything else, comments included.
"""

import re
import tomllib
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from toolyard.errors import ConfigError
from toolyard.message import Message, to_fields
from toolyard.plugins.package.config_env import is_secret
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.mask import MASK
from toolyard.protocol.regex import compile_pattern
from toolyard.provider_settings import FORMER_NAMES, OPEN_FIELDS, TABLES, is_secret_entry
from toolyard.settings import SETTINGS

MaskText = Callable[[str], str]
_OURS = {setting.name: setting.secret for setting in SETTINGS}
_WORDS = r"(?:key|database|password|token|secret|credential|authorization|cookie)"
_OLD_SECRET = re.compile(rf"^(#.*?{_WORDS}\w{{0,40}}\s{{0,40}}[=:]\s*+)\S.*$", re.IGNORECASE)
_ANY_SECRET = compile_pattern(rf"^((?:(?!{_WORDS})[^#])*+{_WORDS}[^=]*+=\s*+)\S.*$", re.IGNORECASE)
_MAY_BE_SECRET = compile_pattern(rf"""(?:(?!{_WORDS})[^#])*+{_WORDS}[\w.-]*+["']?\s*+[=:]?\s*+""", re.IGNORECASE)
_TABLE = re.compile(r"""\s*\[+[\w.\s"'-]*\]+\s*(?:#.*)?""")
_LOGIN = re.compile(r"://[^/\s@]*:[^/\s@]+@")
_LONG: Final = {'"""': '"""', "'''": "'''", "[": "]", "{": "}"}  # opening and closing of multi-line values
_COMMENTED = compile_pattern(r"""((?:[^"'#]|"(?:[^"\\]|\\.)*+"|'[^']*+')*+)(?P<comment>#.*)""")
_LONG_WORD = re.compile(r"""[^\s"']{8,}+""")
_PLACE = re.compile(r"line (\d+), column (\d+)")


def mask_file(text: str, hide: MaskText) -> str:
    """Return the text with its secrets masked, also in comments; ``hide`` masks secrets known from elsewhere."""
    text = "\n".join(
        code + _mask_comment(code, comment, hide) for code, comment in map(_split_comment, text.split("\n"))
    )
    try:
        document = tomlkit.parse(text)
    except (TOMLKitError, RecursionError):
        return hide("\n".join(_mask_invalid_toml(text.split("\n"))))
    for place in list(_find_secrets(document)):
        _set(document, place, MASK)
    return document.as_string()


def unmask_file(text: str, stored: str, hide: MaskText) -> str:
    """Return ``text`` with the secrets of ``stored`` in place of masks. Raises ConfigError when one is missing."""
    comments: defaultdict[str, deque[str]] = defaultdict(deque)  # by their masked text, in order
    for code, comment in map(_split_comment, stored.split("\n")):
        comments[_mask_comment(code, comment, hide)].append(comment)
    lines = []
    for code, comment in map(_split_comment, text.split("\n")):
        before = comments.get(comment)
        lines.append(code + (before.popleft() if before else comment))
    document = _parse("\n".join(lines))
    _restore_secrets(document, _parse_plain(stored))
    return _to_text(document)


def set_values(text: str, values: Mapping[str, Json]) -> str:
    """Return ``text`` with these settings set, or removed where the value is None. Raises ConfigError."""
    document, before = _parse(text), _parse_plain(text)
    for name, value in values.items():
        if value is None:
            document.pop(name, None)
            continue
        try:
            document[name] = tomlkit.item(value)
        except (ValueError, TypeError, RecursionError) as error:
            raise ConfigError(Message("{name}: the value cannot be written as TOML", name=name[:100])) from error
    _restore_secrets(document, before)
    whole = _to_text(document)
    expected = {name: value for name, value in before.items() if name not in values}
    if {name: value for name, value in _parse_plain(whole).items() if name not in values} != expected:
        raise ConfigError(Message("this change would affect other settings: edit the whole file instead"))
    return whole


def collect_texts(value: Any) -> frozenset[str]:
    """Return every string in a value."""
    if isinstance(value, str):
        return frozenset({value})
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return frozenset(text for one in inner for text in collect_texts(one))


def collect_file_texts(text: str) -> frozenset[str]:
    """Return every string that a file sets."""
    return collect_texts(_parse_plain(text))


def list_problems(error: ConfigError) -> list[JsonObject]:
    """Return each problem with its position; line 0 means no position."""
    problems: list[JsonObject] = []
    for message in error.problems:
        place = _PLACE.search(message)
        line, column = (int(place[1]), int(place[2])) if place else (0, 0)
        problems.append({**to_fields("message", message), "line": line, "column": column})
    return problems


def _find_secrets(document: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the secrets in a document."""
    for name, value in document.items():
        if name not in _OURS:
            yield from _find_named_secrets(value, (name,))
        elif name == "upstreams" and isinstance(value, Mapping):
            for inner, one in value.items():
                yield from _find_provider_secrets(one, (name, inner))
        elif name == "upstream_options":
            yield from _find_provider_secrets(value, (name,))
        elif _OURS[name] or _is_secret("", value):
            yield (name,)


def _find_provider_secrets(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the secrets of a model provider; unknown fields count as secret."""
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


def _find_named_secrets(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _find_named_secrets(inner, (*place, name))
    elif _is_secret(place[-1], value):
        yield place


def _is_secret(name: str, value: Any) -> bool:
    return is_secret(name, value if isinstance(value, str) else "")


def _restore_secrets(document: Any, before: Mapping[str, Any]) -> None:
    for place in list(_find_secrets(document)):
        if _get(document, place) == MASK:
            stored = next((one for one in _list_stored(document, before, place) if one is not None), None)
            if stored is None:
                what = ".".join(place)[:200]
                raise ConfigError(
                    Message(
                        "{what}: {mask} stands for a value that is not stored: enter the value itself",
                        what=what,
                        mask=MASK,
                    )
                )
            _set(document, place, stored)


def _list_stored(document: Any, before: Mapping[str, Any], place: tuple[str, ...]) -> Iterator[Any]:
    """Yield what may be stored for a mask: at its place, or where a provider was that has another name now."""
    yield _get(before, place)
    section, *rest = place
    if section != "upstreams" or len(rest) < 2:
        return
    name, *field = rest
    former = _get(document, (section, name, FORMER_NAMES))
    for other in former if isinstance(former, list) else ():
        if _get(document, (section, other)) is None:
            yield _get(before, (section, other, *field))


def _to_text(document: tomlkit.TOMLDocument) -> str:
    """Return the text of a document. Raises ConfigError when a mask is left in it."""
    if any(MASK in text for text in collect_texts(document)):
        raise ConfigError(Message("{mask} is used where there was no secret: enter the value itself", mask=MASK))
    return document.as_string()


def _get(value: Any, place: tuple[str, ...]) -> Any:
    for step in place:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _mask_invalid_toml(lines: list[str]) -> Iterator[str]:
    """Yield lines of invalid TOML without possible secrets, also in multi-line values."""
    end = ""
    for line in lines:
        if end:
            yield MASK
            end = "" if end in line else end
        elif _TABLE.fullmatch(line) or not (match := _MAY_BE_SECRET.match(line)):
            yield _LOGIN.sub(f"://{MASK}@", line)
        else:
            value = line[match.end() :]
            opened = next((sign for sign in _LONG if value.startswith(sign)), "")
            end = _LONG[opened] if opened and _LONG[opened] not in value[len(opened) :] else ""
            yield f"{line[: match.end()]}{MASK}" if value else line


def _set(document: Any, place: tuple[str, ...], value: Any) -> None:
    for step in place[:-1]:
        document = document[step]
    document[place[-1]] = value


def _split_comment(line: str) -> tuple[str, str]:
    """Split a line into code and comment; within a multi-line string the result may be wrong, without harm."""
    match = _COMMENTED.fullmatch(line)
    return (match[1], match["comment"]) if match else (line, "")


def _mask_comment(code: str, comment: str, hide: MaskText) -> str:
    """Mask commented-out secrets in a comment; beside a secret also everything that looks like one."""
    masked = _OLD_SECRET.sub(rf"\1{MASK}", comment)
    return hide(_LONG_WORD.sub(_mask_word, masked) if _ANY_SECRET.match(code) else masked)


def _mask_word(word: re.Match[str]) -> str:
    return MASK if any(sign.isdigit() for sign in word[0]) else word[0]


def _parse(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        line, column = getattr(error, "line", 1), getattr(error, "col", 0) + 1
        what = str(error).partition(" at line")[0]
        raise ConfigError(
            Message("line {line}, column {column}: it is not valid TOML: {what}", line=line, column=column, what=what)
        ) from error
    except RecursionError as error:
        raise ConfigError(Message("line 1, column 1: it is nested too deeply")) from error


def _parse_plain(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
