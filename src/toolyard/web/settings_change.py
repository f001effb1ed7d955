"""A change of the settings: checked as a whole before a byte is written, and written whole or not at all.

A key of a model provider is bound to the origin it was stored for. A change that would send it to another is refused,
unless the key is given anew with it (S-72).
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from toolyard.config import FILE_NAME, Config, load
from toolyard.errors import ConfigError
from toolyard.gateway.assemble import DEFAULT_URL
from toolyard.plugins.state_file import turn, write_private
from toolyard.web.settings_file import Hide, masked

_MAX_DIFF_LINES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a change comes to; ``before`` and ``after`` are the file as it may be shown."""

    new: Config
    names: tuple[str, ...]
    before: str
    after: str

    @property
    def diff(self) -> str:
        lines = difflib.unified_diff(self.before.splitlines(), self.after.splitlines(), "before", "after", lineterm="")
        return "\n".join(line for _, line in zip(range(_MAX_DIFF_LINES), lines, strict=False))


def stored_text(config: Config) -> str:
    """What ``config.toml`` holds now. Raises ConfigError."""
    try:
        return (config.home / FILE_NAME).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{config.home / FILE_NAME} cannot be read: {error}") from error


def read_again(config: Config, text: str | None = None) -> Config:
    """The settings as the file has them now, or would with ``text``. Raises ConfigError."""
    try:
        return load(
            config.project,
            config.home,
            plugin_folders=config.plugin_folders,
            trusts_given=config.trusts_given,
            text=text,
        )
    except RecursionError as error:
        raise ConfigError(f"{config.home / FILE_NAME}, line 1, column 1: it is nested too deep") from error


def change(
    config: Config, edit: Callable[[str], str], hide: Hide, *, typed: frozenset[str], write: bool = True
) -> Change:
    """Put what ``edit`` makes of the file in its place. ``typed``: every text that was given just now.

    ``config`` counts as what was before when the file itself has a mistake. Raises ConfigError with every problem, and
    then nothing has changed.
    """
    config.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with turn(config.home / f".{FILE_NAME}.lock"):
        stored = stored_text(config)
        text = edit(stored)
        try:
            old = read_again(config)
        except ConfigError:
            old = config
        new = read_again(config, text)
        names = tuple(name for name in new.values if new[name] != old[name])
        problems = [*_astray(old, new, typed)]
        if problems:
            raise ConfigError("\n".join(problems))
        if write and text != stored:
            try:
                write_private(config.home / FILE_NAME, text.encode())
            except OSError as error:
                raise ConfigError(f"{config.home / FILE_NAME} cannot be written: {error.strerror}") from error
    return Change(new=new, names=names, before=masked(stored, hide), after=masked(text, hide))


def outranked(config: Config, names: Mapping[str, object]) -> list[str]:
    """Why a file cannot change these settings: a variable of the environment counts more."""
    file = str(config.home / FILE_NAME)
    return [
        f"{name}: the variable {source} of the environment counts more: change it there"
        for name, value in names.items()
        if value is not None and (source := config.sources.get(name, file)) not in ("default", file)
    ]


def stored_key(config: Config, url: str) -> str | None:
    """The key that was stored for the origin of ``url``; None when there is none."""
    return next((key for _, own, key in _keys(config) if origin(own) == origin(url)), None)


def upstream_url(config: Config) -> str:
    """The address of the default model provider; empty when there is none."""
    return str(config["upstream_url"] or (DEFAULT_URL if config["upstream_key"] else ""))


def origin(url: str) -> str:
    parts = urlsplit(url)
    try:
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        port = None
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{port}"


def _astray(old: Config, new: Config, typed: frozenset[str]) -> Iterator[str]:
    """Stored keys that would go to an origin they were not stored for."""
    bound: dict[str, set[str]] = {}
    for _, url, key in _keys(old):
        bound.setdefault(key, set()).add(origin(url))
    for name, url, key in _keys(new):
        if key in bound and origin(url) not in bound[key] and key not in typed:
            places = " and ".join(sorted(bound[key]))
            yield (
                f"{name}: the stored key belongs to {places} and is not sent to {origin(url)}: "
                "give the key for the new address with it, or take it out"
            )


def _keys(config: Config) -> Iterator[tuple[str, str, str]]:
    """Setting, address and key of every model provider that has a key."""
    if config["upstream_key"]:
        yield "upstream_key", upstream_url(config), config["upstream_key"]
    for name, one in config["upstreams"].items():
        if one.key:
            yield f"upstreams.{name}.key", one.url, one.key
