"""Settings: the only module that reads environment variables and configuration files.

A setting comes from the environment, else from ``config.toml`` in the home folder, else it has its default. Nothing is
guessed: an unknown or wrong setting is a ConfigError that lists every problem with its place and how to write it right.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolyard.errors import ConfigError, UsageError
from toolyard.message import Message, replace_in_message
from toolyard.own_command import FOR_DEFAULT_HOME, OwnCommand
from toolyard.settings import SETTINGS, Setting, Settings

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

FILE_NAME = "config.toml"
INSTALLATION_FILE = "config.env"  # of a VCPToolBox installation
_PROVIDER = ("upstream_url", "upstream_key", "upstreams")
HOST_FILE = "host.env"  # variables that plugins may be given beside those of the environment, which count more


@dataclass(frozen=True, slots=True)
class Config:
    project: Path
    home: Path
    settings: Settings
    sources: Mapping[str, str]  # where each value comes from: "default", the file, or an environment variable

    environ: Mapping[str, str] = field(default_factory=dict)  # as it was when the settings were read
    plugin_folders: tuple[Path, ...] = ()  # given for this run
    vcp: Path | None = None  # the VCPToolBox installation that is used in place: given for this run, or the setting
    beside: bool = False  # VCPToolBox itself runs there too: its timers are left to it
    trusts_given: bool = False  # whether their plugins run without a review
    own_command: OwnCommand = FOR_DEFAULT_HOME  # as hints print it

    @property
    def zone(self) -> "ZoneInfo":
        from zoneinfo import ZoneInfo

        return ZoneInfo(self.settings.time_zone or _find_system_zone(self.environ))

    @property
    def secret_variables(self) -> tuple[str, ...]:
        return tuple(variable for setting in SETTINGS if setting.secret for variable in setting.environment)

    @property
    def secrets(self) -> tuple[str, ...]:
        values = [getattr(self.settings, setting.name) for setting in SETTINGS if setting.secret]
        own = [value for value in values if value and isinstance(value, str)]
        options, upstreams = self.settings.upstream_options, self.settings.upstreams.values()
        return (*own, *options.secrets, *(secret for provider in upstreams for secret in provider.secrets))


def load_config(
    project: str | os.PathLike[str] | None,
    home: str | os.PathLike[str] | None = None,
    *,
    plugin_folders: Sequence[str | os.PathLike[str]] = (),
    trusts_given: bool = False,
    vcp: str | os.PathLike[str] | None = None,
    beside: bool = False,
    text: str | None = None,
) -> Config:
    """Load the effective settings of a project and a home; raises ConfigError with every problem.

    Without a project it is the current folder, and hints do not name it: whoever reads them stands there. ``vcp`` comes
    before the setting of that name. With ``text``: the settings as if it stood in the file.
    """
    try:
        folder = Path(project or ".").absolute()
    except FileNotFoundError as error:
        raise UsageError(Message("the current folder no longer exists: go to another, or use --project")) from error
    if not folder.is_dir():
        raise UsageError(
            Message(
                "the project '{project}' is not a folder: name one that exists with --project, in Python with project=",
                project=project or folder,
            )
        )
    place = find_home(home)
    if place.exists() and not place.is_dir():
        raise UsageError(Message("the home '{place}' is not a folder: name one with --home", place=place))
    file = place / FILE_NAME
    written, text, problems = _read_file(file, text)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for setting in SETTINGS:
        value, source = _find_value(setting, written, file, os.environ)
        sources[setting.name] = source
        values[setting.name] = setting.default
        if source != "default":
            try:
                values[setting.name] = setting.parse(value)
            except ValueError as error:
                where = _find_place(file, text, setting.name) if source == str(file) else source
                problem = Message("{name}: {error}", name=setting.name, error=error)
                problems.append(_at(where, _hide_credentials(problem, value)))
    if problems:
        raise ConfigError(*problems)
    given = tuple(Path(one).absolute() for one in plugin_folders)
    missing = next((one for one in given if not one.is_dir()), None)
    if missing is not None:
        raise UsageError(
            Message("the plugin folder '{missing}' is not a folder: name one with --plugins", missing=missing)
        )
    environ = {**_read_host_variables(place / HOST_FILE), **os.environ}
    own_command = find_own_command(home, folder if project else None, given)
    named = vcp or values["vcp"]
    installation = Path(os.path.realpath(named)) if named else None
    if installation and all(sources[name] == "default" for name in _PROVIDER):
        values |= _read_provider(installation / INSTALLATION_FILE)  # defaults: any setting comes before them
    settings = Settings(**values)
    return Config(folder, place, settings, sources, environ, given, installation, beside, trusts_given, own_command)


def _read_provider(file: Path) -> dict[str, str]:
    """Return the model provider of a VCPToolBox installation as settings; empty when it names none."""
    try:
        variables = _read_host_variables(file)
        url, key = (variables.get(name, "") for name in ("API_URL", "API_Key"))
        if not url or not key or key.startswith("YOUR_"):  # the value of its example
            return {}
        parsers = {setting.name: setting.parse for setting in SETTINGS}
        return {"upstream_url": parsers["upstream_url"](url), "upstream_key": parsers["upstream_key"](key)}
    except (ConfigError, ValueError):  # the check of the installation says what is wrong with that file
        return {}


def _read_host_variables(file: Path) -> Mapping[str, str]:
    """Read the variables that a host shares with its plugins; no setting is read from there."""
    text = _read_text(file)
    if not text:
        return {}
    from toolyard.plugins.package.config_env import parse_config

    return parse_config(text).values


def _read_text(file: Path) -> str:
    """Return the text of a file, without a byte order mark; empty without a file. Raises ConfigError."""
    try:
        raw = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise ConfigError(Message("{file}: cannot be read: {strerror}", file=file, strerror=error.strerror)) from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            Message("{file}, line {line}: this is not UTF-8: save the file in that encoding", file=file, line=line)
        ) from error


def _find_system_zone(environ: Mapping[str, str]) -> str:
    """Return the time zone of the machine; UTC when it is not known."""
    from zoneinfo import TZPATH

    named = environ.get("TZ", "").lstrip(":")
    linked = os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    for name in (named, linked):
        if name and any(Path(place, name).is_file() for place in TZPATH):
            return name
    return "UTC"


def find_home(home: str | os.PathLike[str] | None = None) -> Path:
    """Return the home: the one that is given, else that of the environment, else that of the user."""
    return Path(home or os.environ.get("TOOLYARD_HOME") or _default_home(os.environ)).absolute()


def describe_wide_project(project: Path) -> str:
    """Return what is too wide about a project that holds more than one: a whole disk, or a home folder; else empty."""
    folder = project.resolve()
    if folder == Path(folder.anchor):
        return Message("the whole disk ({folder})", folder=folder)
    if folder == Path.home().resolve():
        return Message("your home folder ({folder})", folder=folder)
    return ""


def prefers_chinese() -> bool:
    """Return whether the language of the environment, by the rules of POSIX, is Chinese."""
    named = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return next(filter(None, named), "").startswith("zh")


def find_own_command(
    home: str | os.PathLike[str] | None = None, project: Path | None = None, plugins: tuple[Path, ...] = ()
) -> OwnCommand:
    """Return the command of hints about a home, a project (None: the reader stands in it) and given plugin folders.

    A home from the environment is named: another shell may not have it.
    """
    is_default = not os.environ.get("TOOLYARD_HOME") and find_home(home) == _default_home(os.environ).absolute()
    return OwnCommand(None if is_default else find_home(home), project, plugins)


def _default_home(environ: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "toolyard"
    data = environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "toolyard"


def _read_file(file: Path, given: str | None) -> tuple[dict[str, Any], str, list[str]]:
    """Return the settings in a file, its text, and the problems of the file as a whole."""
    try:
        text = _read_text(file) if given is None else given.removeprefix("\ufeff")
    except ConfigError as error:
        return {}, "", [str(error)]
    if not text:
        return {}, "", []
    import tomllib  # only a home with a file needs it

    try:
        written = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem = Message("{file}: {error}: correct the line, it is not valid TOML", file=file, error=error)
        return {}, "", [problem]
    known = {setting.name for setting in SETTINGS}
    unknown = [key for key in written if key not in known]
    return written, text, [_at(_find_place(file, text, key), _unknown(key, known)) for key in unknown]


def _find_value(
    setting: Setting, written: Mapping[str, Any], file: Path, environ: Mapping[str, str]
) -> tuple[object, str]:
    for variable in setting.environment:
        if environ.get(variable):
            return environ[variable], variable
    return (written[setting.name], str(file)) if setting.name in written else (None, "default")


def _find_place(file: Path, text: str, key: str) -> str:
    """Return the place of a key in a file; its beginning when the key is written in an unusual way."""
    match = re.search(rf"(?m)^[ \t]*\[*[\"']?(?={re.escape(key)}(?!\w))", text)
    at = match.end() if match else 0
    return Message(
        "{file}, line {line}, column {column}",
        file=file,
        line=text.count("\n", 0, at) + 1,
        column=at - text.rfind("\n", 0, at),
    )


def _hide_credentials(problem: str, value: object) -> str:
    """Return a problem with a setting without the password or key in an address that it quotes."""
    from toolyard.protocol.mask import find_credentials  # only for a setting that is wrong

    for secret, shown in find_credentials(value):
        problem = replace_in_message(problem, secret, shown)
    return problem


def _at(place: str, problem: str) -> str:
    return Message("{place}: {problem}", place=place, problem=problem)


def _unknown(key: str, known: set[str]) -> str:
    return Message("unknown setting '{key}': {hint}", key=key, hint=_suggest_key(key, known))


def _suggest_key(key: str, known: set[str]) -> str:
    from toolyard.protocol.arguments import find_nearest

    guess = find_nearest(key, sorted(known))
    return (
        Message("did you mean '{guess}'?", guess=guess)
        if guess
        else Message("the settings are {names}", names=", ".join(sorted(known)))
    )
