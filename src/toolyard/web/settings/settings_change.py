"""Changes of the settings: checked completely before a byte is written, and written atomically.

A key of a model provider is bound to the origin it was stored for. A change that would send it to another is refused,
unless the key is given anew with it (S-72).
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from toolyard.config import FILE_NAME, Config, load_config
from toolyard.errors import ConfigError, StorageUnwritable
from toolyard.message import Message
from toolyard.provider_settings import ProviderOptions
from toolyard.web.settings.settings_file import MaskText, mask_file
from toolyard.workspace.home_folder import lock_file, make_private_folder, write_private_file
from toolyard.yard.chat import DEFAULT_URL

_MAX_DIFF_LINES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChange:
    """The result of a change; ``before`` and ``after`` are the file with secrets masked."""

    new: Config
    names: tuple[str, ...]
    before: str
    after: str

    @property
    def diff(self) -> str:
        lines = difflib.unified_diff(self.before.splitlines(), self.after.splitlines(), "before", "after", lineterm="")
        return "\n".join(line for _, line in zip(range(_MAX_DIFF_LINES), lines, strict=False))


def read_stored_text(config: Config) -> str:
    """Return the text of ``config.toml``. Raises ConfigError."""
    try:
        return (config.home / FILE_NAME).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            Message("{home} cannot be read: {error}", home=config.home / FILE_NAME, error=error)
        ) from error


def reload_config(config: Config, text: str | None = None) -> Config:
    """Load the settings again, from ``text`` instead of the file if given. Raises ConfigError."""
    try:
        return load_config(
            config.project,
            config.home,
            plugin_folders=config.plugin_folders,
            trusts_given=config.trusts_given,
            vcp=config.vcp,
            beside=config.beside,
            text=text,
        )
    except RecursionError as error:
        raise ConfigError(
            Message("{home}, line 1, column 1: it is nested too deeply", home=config.home / FILE_NAME)
        ) from error


def change_settings(
    config: Config, edit: Callable[[str], str], hide: MaskText, *, typed: frozenset[str], write: bool = True
) -> SettingsChange:
    """Replace the file with the result of ``edit``. ``typed``: every text in the request.

    ``config`` is the state before when the file itself has a mistake. Raises ConfigError with every problem, or
    StorageUnwritable, and then nothing has changed.
    """
    with _report_unwritable(config.home / FILE_NAME), lock_file(config.home / f".{FILE_NAME}.lock"):
        stored = read_stored_text(config)
        text = edit(stored)
        try:
            old = reload_config(config)
        except ConfigError:
            old = config
        new = reload_config(config, text)
        names = tuple(new.settings.list_differences(old.settings))
        problems = [*_find_misdirected_secrets(old, new, typed)]
        if problems:
            raise ConfigError(*problems)
        if write and text != stored:
            write_private_file(config.home / FILE_NAME, text.encode())
    return SettingsChange(new=new, names=names, before=mask_file(stored, hide), after=mask_file(text, hide))


@contextmanager
def _report_unwritable(file: Path) -> Iterator[None]:
    try:
        make_private_folder(file.parent)
        yield
    except OSError as error:
        raise StorageUnwritable.from_os_error(file, error) from error


def list_overridden(config: Config, names: Mapping[str, object]) -> list[str]:
    """Return a problem for each setting that an environment variable overrides."""
    file = str(config.home / FILE_NAME)
    return [
        Message("{name}: the environment variable {variable} overrides it: change it there", name=name, variable=source)
        for name, value in names.items()
        if value is not None and (source := config.sources.get(name, file)) not in ("default", file)
    ]


def find_stored_key(config: Config, url: str) -> str | None:
    """Return the key stored for the origin of ``url``; None without one."""
    provider = next((one for one in _list_providers(config) if origin(one.url) == origin(url) and one.keys), None)
    return provider.keys[0] if provider else None


def find_stored_options(config: Config, url: str) -> ProviderOptions:
    """Return the options stored for the origin of ``url``."""
    options = (one.options for one in _list_providers(config) if origin(one.url) == origin(url))
    return next(options, ProviderOptions())


def upstream_url(config: Config) -> str:
    """Return the URL of the default model provider; empty without one."""
    has_key = config.settings.upstream_key or config.settings.upstream_options.keys
    return str(config.settings.upstream_url or (DEFAULT_URL if has_key else ""))


def origin(url: str) -> str:
    parts = urlsplit(url)
    try:
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        port = None
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{port}"


def _find_misdirected_secrets(old: Config, new: Config, typed: frozenset[str]) -> Iterator[str]:
    """Yield a problem for each stored secret that would be sent to another destination."""
    bound: dict[str, set[str]] = {}
    for one in _list_providers(old):
        for _, secret in one.secrets:
            bound.setdefault(secret, set()).add(one.destination)
    for one in _list_providers(new):
        for name, secret in one.secrets:
            if secret in bound and one.destination not in bound[secret] and secret not in typed:
                yield Message(
                    "{name}: the stored key belongs to {places} and is not sent to {destination}: enter the key for "
                    "the new address too, or remove it",
                    name=name,
                    places=" and ".join(sorted(bound[secret])),
                    destination=one.destination,
                )


@dataclass(frozen=True, slots=True)
class _StoredProvider:
    """A model provider of the settings; ``key_name`` and ``place`` name its settings."""

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
        """Each secret with the name of its setting."""
        own = [(self.key_name, self.key)] if self.key else []
        return own + [(f"{self.place}.{name}", secret) for name, secret in self.options.named_secrets]

    @property
    def destination(self) -> str:
        """The origin that gets the secrets, with the proxy if the connection through it is unencrypted."""
        place, proxy = origin(self.url), self.options.proxy
        return f"{place} through {origin(proxy)}" if proxy and place.startswith("http:") else place


def _list_providers(config: Config) -> Iterator[_StoredProvider]:
    if url := upstream_url(config):
        yield _StoredProvider(
            url,
            config.settings.upstream_key,
            config.settings.default_provider_options,
            "upstream_key",
            "upstream_options",
        )
    for name, one in config.settings.upstreams.items():
        yield _StoredProvider(one.url, one.key, one.options, f"upstreams.{name}.key", f"upstreams.{name}")
