"""The settings as client JSON: value, source, type, and whether it is in effect."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from toolyard.config import FILE_NAME, Config
from toolyard.engine.masking import MASK
from toolyard.gateway.sinks.display import Show
from toolyard.protocol.json import Json
from toolyard.provider_settings import Provider, ProviderOptions
from toolyard.settings import SETTINGS, Setting

GROUPS: Final = {
    "upstream_url": "upstream",
    "upstream_key": "upstream",
    "upstreams": "upstream",
    "upstream_options": "upstream",
    "default_model": "upstream",
    "fallbacks": "upstream",
    "port": "server",
    "public_url": "server",
    "allowed_hosts": "server",
    "allowed_origins": "server",
    "trusted_proxies": "server",
    "tls_cert": "server",
    "tls_key": "server",
    "tls_self_signed": "server",
    "vcp_channels": "server",
    "cluster_key": "server",
    "database": "server",
    "approval_mode": "approvals",
    "chat_show": "chat",
    "chat_unfollowed_minutes": "chat",
    "model_aliases": "chat",
    "offer": "chat",
    "remember_tool_results": "chat",
    "request_nonce": "chat",
    "time_zone": "chat",
    "history_days": "history",
    "history_mib": "history",
    "fallback_encodings": "files",
    "strict_edits": "files",
    "truncation_direction": "files",
    "bubblewrap": "plugins",
    "built_in": "plugins",
    "confinement": "plugins",
    "plugin_cpu_minutes": "plugins",
    "plugin_file_mib": "plugins",
    "plugin_memory_mib": "plugins",
    "plugin_python": "plugins",
    "plugins_at_once": "plugins",
    "shared_keys": "plugins",
    "strict_network": "plugins",
    "trusted_folders": "plugins",
    "warm_starts": "plugins",
}
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {"chat_show": tuple(Show)}


def to_json(config: Config, running: Config, live: frozenset[str]) -> list[dict[str, Any]]:
    """Return every setting. ``config``: as in the files now; ``running``: as the server uses it."""
    return [_setting_to_json(setting, config, running, live) for setting in SETTINGS]


def _setting_to_json(setting: Setting, config: Config, running: Config, live: frozenset[str]) -> dict[str, Any]:
    name, source = setting.name, config.sources[setting.name]
    by_file = source == str(config.home / FILE_NAME)
    kind, choices = _find_kind(setting)
    value = getattr(config.settings, name)
    return {
        "name": name,
        "value": _value_to_json(setting, value),
        "default": _value_to_json(setting, setting.default),
        "source": "default" if source == "default" else "file" if by_file else "env",
        "variable": "" if by_file or source == "default" else source,
        "variables": list(setting.environment),
        "set": bool(value) or value is False,
        "secret": setting.secret,
        "live": name in live,
        "holds": value == getattr(running.settings, name),
        "description": setting.about,
        "kind": kind,
        "choices": list(choices),
        "group": GROUPS.get(name, "other"),
    }


def _find_kind(setting: Setting) -> tuple[str, tuple[str, ...]]:
    default = setting.default
    if setting.name in _CHOICES:
        return "choice", _CHOICES[setting.name]
    if isinstance(default, StrEnum):
        return "choice", tuple(one.value for one in type(default))
    kinds = {bool: "bool", int: "number", tuple: "list", dict: "table", ProviderOptions: "table"}
    return kinds.get(type(default), "text"), ()


def _value_to_json(setting: Setting, value: Any) -> Json:
    """Return a value as JSON, secrets masked."""
    if isinstance(value, Mapping):
        return {name: _inner_to_json(one) for name, one in value.items()}
    if isinstance(value, ProviderOptions):
        return value.to_json()
    if setting.secret and value:
        return MASK
    return _inner_to_json(value)


def _inner_to_json(value: Any) -> Json:
    if isinstance(value, Provider):
        return value.to_json()
    if isinstance(value, tuple):
        return [str(one) for one in value]
    return value if value is None or isinstance(value, bool | int) else str(value)
