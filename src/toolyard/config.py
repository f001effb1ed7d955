"""Settings: the only module that reads environment variables and configuration files.

A setting comes from the environment, else from ``config.toml`` in the home folder, else it has its default. Nothing is
guessed: an unknown or wrong setting is a ConfigError that lists every problem with its place and how to write it right.
"""

import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolyard.errors import ConfigError, UsageError
from toolyard.protocol.truncation import Direction

FILE_NAME = "config.toml"


def _encodings(value: object) -> tuple[str, ...]:
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError('expected a list of encodings, such as ["gb18030", "shift_jis"]')
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


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    about: str
    default: Any
    parse: Callable[[object], Any]
    environment: tuple[str, ...]  # the first one that is set counts
    secret: bool = False


SETTINGS = (
    Setting(
        "fallback_encodings",
        "Encodings tried, in this order, for a file that is not valid UTF-8, before a statistical guess.",
        ("gb18030",),
        _encodings,
        ("TOOLYARD_FALLBACK_ENCODINGS",),
    ),
    Setting(
        "truncation_direction",
        "Which end of a result too long for a model is shown: head or tail.",
        Direction.HEAD,
        _direction,
        ("TOOLYARD_TRUNCATION_DIRECTION",),
    ),
    Setting(
        "upstream_key",
        "The key of the model provider. It is masked where arguments, texts and errors would repeat it.",
        None,
        _text,
        ("OPENAI_API_KEY", "API_Key"),
        secret=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Config:
    project: Path
    home: Path
    values: Mapping[str, Any]
    sources: Mapping[str, str]  # where each value comes from: "default", the file, or an environment variable

    @property
    def fallback_encodings(self) -> tuple[str, ...]:
        return tuple(self.values["fallback_encodings"])

    @property
    def truncation_direction(self) -> Direction:
        return Direction(self.values["truncation_direction"])

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(str(self.values[s.name]) for s in SETTINGS if s.secret and self.values[s.name])


def load(project: str | os.PathLike[str], home: str | os.PathLike[str] | None = None) -> Config:
    """The settings that hold for a project and a home; raises ConfigError with every problem."""
    try:
        folder = Path(project).absolute()
    except FileNotFoundError as error:
        raise UsageError("the current folder no longer exists: go to another, or use --project") from error
    if not folder.is_dir():
        raise UsageError(f"the project '{project}' is not a folder: name one with --project")
    place = Path(home).absolute() if home else _default_home(os.environ).absolute()
    file = place / FILE_NAME
    written, problems = _read(file)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for setting in SETTINGS:
        value, source = _find(setting, written, file, os.environ)
        sources[setting.name] = source
        values[setting.name] = setting.default
        if source != "default":
            try:
                values[setting.name] = setting.parse(value)
            except ValueError as error:
                problems.append(f"{source}: {setting.name}: {error}")
    if problems:
        raise ConfigError("\n".join(problems))
    return Config(folder, place, values, sources)


def _default_home(environ: Mapping[str, str]) -> Path:
    if environ.get("TOOLYARD_HOME"):
        return Path(environ["TOOLYARD_HOME"])
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "toolyard"
    data = environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "toolyard"


def _read(file: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        text = file.read_text(encoding="utf-8")
        written = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return {}, []
    except tomllib.TOMLDecodeError as error:
        return {}, [f"{file}: {error}: correct the line, it is not valid TOML"]
    except (OSError, UnicodeDecodeError) as error:
        return {}, [f"{file}: cannot be read: {error}"]
    known = {setting.name for setting in SETTINGS}
    unknown = [key for key in written if key not in known]
    return written, [f"{_place(file, text, key)}: unknown setting '{key}': {_nearest(key, known)}" for key in unknown]


def _find(setting: Setting, written: Mapping[str, Any], file: Path, environ: Mapping[str, str]) -> tuple[object, str]:
    for variable in setting.environment:
        if environ.get(variable):
            return environ[variable], variable
    return (written[setting.name], str(file)) if setting.name in written else (None, "default")


def _place(file: Path, text: str, key: str) -> str:
    before = re.split(rf"(?m)^[ \t]*\[?{re.escape(key)}\b", text, maxsplit=1)[0]
    return f"{file}, line {before.count(chr(10)) + 1}"


def _nearest(key: str, known: set[str]) -> str:
    from toolyard.protocol.arguments import nearest

    guess = nearest(key, sorted(known))
    return f"did you mean '{guess}'?" if guess else f"the settings are {', '.join(sorted(known))}"
