"""The settings of one plugin: those of its schema and of its ``config.env``, each with the source of its value.

The value of a secret is never in them. Writing changes single keys of ``config.env`` and leaves the rest of the file as
it is; the file is then there whole or as before, and for its owner only.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from toolyard.errors import ConfigError, UsageError
from toolyard.message import Message, join_messages
from toolyard.plugins.package.config_env import edit_config, is_secret, parse_config
from toolyard.plugins.package.environment import RESERVED, Environment, SettingSource, coerce_text
from toolyard.plugins.package.plugin import CONFIG, Plugin
from toolyard.protocol.json import Json
from toolyard.protocol.manifests.manifest import ConfigKey, Manifest
from toolyard.workspace.home_folder import lock_file, write_private_file

_MAX_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSetting:
    key: str
    type: str = "string"
    description: str = ""
    translations: Mapping[str, str] = field(default_factory=dict)  # the description by language
    required: bool = False
    secret: bool = False
    value: str | None = field(default=None, repr=False)  # None: it is a secret, or not set
    source: SettingSource = SettingSource.MISSING
    in_schema: bool = True
    is_missing: bool = False  # it is required, and not set

    @property
    def is_set(self) -> bool:
        return self.source is not SettingSource.MISSING


def list_settings(manifest: Manifest, config: Mapping[str, str], environment: Environment) -> tuple[PluginSetting, ...]:
    """Return the settings of the schema in its order, then the other keys of config.env."""
    known = {key.name for key in manifest.config}
    set_keys = {name for name in environment.sources if environment.values.get(name)}
    more = [ConfigKey(name=name) for name in config if name not in known]
    return tuple(
        replace(
            _build_setting(key, environment, in_schema=key.name in known),
            required=key.is_required(set_keys),
            is_missing=key.name in environment.missing,
            translations={
                language: one.settings[key.name]
                for language, one in manifest.translations.items()
                if key.name in one.settings
            },
        )
        for key in (*manifest.config, *more)
    )


def write_settings(plugin: Plugin, values: Mapping[str, str | int | float | bool | None]) -> None:
    """Set these keys, or remove those whose value is None. Raises UsageError for invalid values, ConfigError."""
    schema = {key.name: key for key in (plugin.manifest.config if plugin.manifest else ())}
    texts = {name: None if value is None else _to_text(value) for name, value in values.items()}
    problems = [problem for name, text in texts.items() if (problem := _find_problem(name, text, schema))]
    if problems:
        raise UsageError(join_messages(problems))
    file = plugin.folder / CONFIG
    try:
        with lock_file(file.with_name(f".{CONFIG}.lock")):
            write_private_file(file, _edit_file(file, texts).encode())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(Message("{file} cannot be changed: {error}", file=file, error=error)) from error


def _build_setting(key: ConfigKey, environment: Environment, *, in_schema: bool) -> PluginSetting:
    value = environment.values.get(key.name) if key.name in environment.sources else None
    secret = is_secret(key.name, value or "")
    return PluginSetting(
        key=key.name,
        type=key.type,
        description=key.description,
        secret=secret,
        value=None if secret else value,
        source=environment.sources.get(key.name, SettingSource.MISSING) if value else SettingSource.MISSING,
        in_schema=in_schema,
    )


def _edit_file(file: Path, texts: Mapping[str, str | None]) -> str:
    text = ""
    if file.exists():
        with file.open("rb") as stream:
            text = stream.read(_MAX_BYTES + 1).decode()
    try:
        edited = edit_config(text, texts)
    except ValueError as error:
        raise UsageError(Message("{config}: {error}", config=CONFIG, error=error)) from error
    if len(edited) > _MAX_BYTES:
        raise UsageError(Message("{config} would be larger than {value} MiB", config=CONFIG, value=_MAX_BYTES >> 20))
    return edited


def _to_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _find_problem(name: str, text: str | None, schema: Mapping[str, ConfigKey]) -> str:
    if name in RESERVED:
        return Message("{name} is decided by Toolyard and cannot be set", name=name)
    if not parse_config(f"{name}=x").values.get(name):
        return Message("'{name}' cannot be the name of a setting: use letters, digits and _", name=name[:100])
    if text is not None and name in schema and coerce_text(text, schema[name].type) is None:
        return Message("{name}: expected a value of the type {type}", name=name, type=schema[name].type)
    return ""
