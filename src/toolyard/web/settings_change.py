"""A change of the settings: checked as a whole before a byte is written, and written whole or not at all.

A key of a model provider is bound to the origin it was stored for. A change that would send it to another is refused,
unless the key is given anew with it (S-72).
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from toolyard.config import FILE_NAME, Config, load
from toolyard.errors import ConfigError, StorageUnwritable
from toolyard.gateway.assemble import DEFAULT_URL
from toolyard.plugins.state_file import lock_file, write_private_file
from toolyard.provider_settings import ProviderOptions
from toolyard.web.settings_file import Hide, masked
from toolyard.workspace.home_folder import make_private_folder

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

    ``config`` counts as what was before when the file itself has a mistake. Raises ConfigError with every problem, or
    StorageUnwritable, and then nothing has changed.
    """
    with _writing(config.home / FILE_NAME), lock_file(config.home / f".{FILE_NAME}.lock"):
        stored = stored_text(config)
        text = edit(stored)
        try:
            old = read_again(config)
        except ConfigError:
            old = config
        new = read_again(config, text)
        names = tuple(new.settings.list_differences(old.settings))
        problems = [*_astray(old, new, typed)]
        if problems:
            raise ConfigError("\n".join(problems))
        if write and text != stored:
            write_private_file(config.home / FILE_NAME, text.encode())
    return Change(new=new, names=names, before=masked(stored, hide), after=masked(text, hide))


@contextmanager
def _writing(file: Path) -> Iterator[None]:
    try:
        make_private_folder(file.parent)
        yield
    except OSError as error:
        raise StorageUnwritable.from_os_error(file, error) from error


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
    found = next((one for one in _providers(config) if origin(one.url) == origin(url) and one.keys), None)
    return found.keys[0] if found else None


def stored_options(config: Config, url: str) -> ProviderOptions:
    """The options that were stored for the origin of ``url``."""
    found = (one.options for one in _providers(config) if origin(one.url) == origin(url))
    return next(found, ProviderOptions())


def upstream_url(config: Config) -> str:
    """The address of the default model provider; empty when there is none."""
    has_key = config.settings.upstream_key or config.settings.upstream_options.keys
    return str(config.settings.upstream_url or (DEFAULT_URL if has_key else ""))


def origin(url: str) -> str:
    parts = urlsplit(url)
    try:
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        port = None
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{port}"


def _astray(old: Config, new: Config, typed: frozenset[str]) -> Iterator[str]:
    """Stored secrets that would go to a place they were not stored for."""
    bound: dict[str, set[str]] = {}
    for one in _providers(old):
        for _, secret in one.secrets:
            bound.setdefault(secret, set()).add(one.destination)
    for one in _providers(new):
        for name, secret in one.secrets:
            if secret in bound and one.destination not in bound[secret] and secret not in typed:
                places = " and ".join(sorted(bound[secret]))
                yield (
                    f"{name}: the stored key belongs to {places} and is not sent to {one.destination}: "
                    "give the key for the new address with it, or take it out"
                )


@dataclass(frozen=True, slots=True)
class _Stored:
    """A model provider of the settings; ``key_name`` and ``place`` are where its key and its options stand."""

    url: str
    key: str | None
    options: ProviderOptions
    key_name: str
    place: str

    @property
    def keys(self) -> tuple[str, ...]:
        return (*((self.key,) if self.key else ()), *self.options.keys)

    @property
    def secrets(self) -> list[tuple[str, str]]:
        """Each with the setting that it stands in."""
        own = [(self.key_name, self.key)] if self.key else []
        return own + [(f"{self.place}.{name}", secret) for name, secret in self.options.named_secrets]

    @property
    def destination(self) -> str:
        """Who can read a secret on its way: also the proxy, unless the connection through it is encrypted."""
        place, proxy = origin(self.url), self.options.proxy
        return f"{place} through {origin(proxy)}" if proxy and place.startswith("http:") else place


def _providers(config: Config) -> Iterator[_Stored]:
    if url := upstream_url(config):
        yield _Stored(
            url, config.settings.upstream_key, config.settings.upstream_options, "upstream_key", "upstream_options"
        )
    for name, one in config.settings.upstreams.items():
        yield _Stored(one.url, one.key, one.options, f"upstreams.{name}.key", f"upstreams.{name}")
