"""The settings there are: name, meaning, default, and how each is written."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolyard.protocol.approval import Mode
from toolyard.protocol.truncation import Direction


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    about: str
    default: Any
    parse: Callable[[object], Any]
    environment: tuple[str, ...] = ()  # the first one that is set counts; none: only the file can set it
    secret: bool = False


def _texts(value: object, separator: str, what: str) -> list[str]:
    names = [name.strip() for name in value.split(separator)] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"expected a list of {what}")
    return names


def _encodings(value: object) -> tuple[str, ...]:
    names = _texts(value, ",", 'encodings, such as ["gb18030", "shift_jis"]')
    for name in names:
        try:
            "".encode(name)
        except (LookupError, ValueError) as error:
            raise ValueError(f"'{name}' is not a text encoding: use names such as gb18030 or shift_jis") from error
    return tuple(names)


def _direction(value: object) -> Direction:
    if value not in list(Direction):
        raise ValueError('expected "head" or "tail"')
    return Direction(str(value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a text")
    return value


def _folders(value: object) -> tuple[Path, ...]:
    folders = tuple(Path(name).expanduser() for name in _texts(value, os.pathsep, 'folders, such as ["/srv/plugins"]'))
    relative = next((folder for folder in folders if not folder.is_absolute()), None)
    if relative is not None:
        raise ValueError(f"'{relative}' is not an absolute path")
    return folders


def _program(value: object) -> str:
    place = Path(_text(value)).expanduser()
    if not place.is_absolute() or not os.access(place, os.X_OK):
        raise ValueError(f"'{value}' is not the absolute path of a program")
    return str(place)


def _yes(value: object) -> bool:
    said = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(str(value).lower())
    if said is None:
        raise ValueError("expected true or false")
    return said


def _number(least: int, most: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        digits = str(value)
        if isinstance(value, bool) or not digits.isdecimal() or not least <= int(digits) <= most:
            raise ValueError(f"expected a whole number from {least} to {most}")
        return int(digits)

    return parse


def _zone(value: object) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(_text(value)).key
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"'{value}' is not a time zone: use a name such as Asia/Shanghai") from error


def _mode(value: object) -> Mode:
    if value not in list(Mode):
        raise ValueError(f"expected one of {', '.join(Mode)}")
    return Mode(str(value))


def _shared(value: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise ValueError('expected a table of plugins, such as { TarotDivination = ["VarHttpUrl"] }')
    return {plugin: tuple(_texts(keys, ",", 'variables, such as ["VarHttpUrl"]')) for plugin, keys in value.items()}


SETTINGS = (
    Setting(
        "approval_mode",
        "What a chat, an MCP client or a schedule may do without asking: ask, auto, read-only or deny.",
        Mode.ASK,
        _mode,
        ("TOOLYARD_APPROVAL_MODE",),
    ),
    Setting(
        "fallback_encodings",
        "Encodings tried, in this order, for a file that is not valid UTF-8, before a statistical guess.",
        ("gb18030",),
        _encodings,
        ("TOOLYARD_FALLBACK_ENCODINGS",),
    ),
    Setting(
        "plugin_python",
        "The Python that runs plugins whose command says python and that have no .venv of their own.",
        None,
        _program,
        ("TOOLYARD_PLUGIN_PYTHON",),
    ),
    Setting(
        "plugins_at_once",
        "How many calls of plugins run at the same time; further ones wait their turn.",
        8,
        _number(1, 1000),
        ("TOOLYARD_PLUGINS_AT_ONCE",),
    ),
    Setting(
        "port",
        "The port of the server.",
        6005,
        _number(1, 65535),
        ("TOOLYARD_PORT", "PORT"),
    ),
    Setting(
        "shared_keys",
        "Variables of the host that a plugin may see, by the name of the plugin.",
        {},
        _shared,
    ),
    Setting(
        "time_zone",
        "The zone in which times without an offset are meant.",
        None,
        _zone,
        ("TOOLYARD_TIME_ZONE", "DEFAULT_TIMEZONE"),
    ),
    Setting(
        "truncation_direction",
        "Which end of a result too long for a model is shown: head or tail.",
        Direction.HEAD,
        _direction,
        ("TOOLYARD_TRUNCATION_DIRECTION",),
    ),
    Setting(
        "trusted_folders",
        "Folders whose plugins run without a review.",
        (),
        _folders,
        ("TOOLYARD_TRUSTED_FOLDERS",),
    ),
    Setting(
        "upstream_key",
        "The key of the model provider. It is masked where arguments, texts and errors would repeat it.",
        None,
        _text,
        ("OPENAI_API_KEY", "API_Key"),
        secret=True,
    ),
    Setting(
        "warm_starts",
        "Whether plugins are started ahead of their calls, or forked from a process that has loaded them.",
        True,
        _yes,
        ("TOOLYARD_WARM_STARTS",),
    ),
)
