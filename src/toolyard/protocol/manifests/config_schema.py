"""``configSchema``: the settings of a plugin, in every form that manifests use."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from toolyard.message import Message
from toolyard.protocol.json import Json
from toolyard.protocol.manifests.fields import Fields, Need, find_need, parse_type
from toolyard.protocol.manifests.manifest import ConfigKey

_SCALARS = ("string", "integer", "number", "boolean")
_SHORT = re.compile(r"\s*([A-Za-z\u4e00-\u9fff]+)\s*(?:[(（]([^)）]*)[)）])?\s*[,，:：-]?\s*(.*)", re.DOTALL)
_KEY = re.compile(r"[^=\s\0]{1,200}")


def parse_config_keys(manifest: Fields) -> tuple[ConfigKey, ...]:
    """Parse the settings in the order of the manifest; of several with one name the first counts."""
    value = manifest.value.get("configSchema")
    if isinstance(value, list):
        schema = Fields({}, (*manifest.path, "configSchema"), manifest.faults)
        parsed = [key for number, item in enumerate(value) for key in _parse_listed(schema, number, item)]
    else:
        schema = manifest.nested("configSchema")
        texts = manifest.value.get("configSchemaDescriptions")
        members = _properties(schema.value)
        musts = schema.value.get("required") if members is not schema.value else None
        needed = frozenset(one for one in musts if isinstance(one, str)) if isinstance(musts, list) else frozenset()
        keys_ = (_parse_key(schema, name, name, form, texts) for name, form in members.items())
        parsed = [replace(key, required=True) if key.name in needed else key for key in keys_]
    keys: dict[str, ConfigKey] = {}
    for key in parsed:
        if not _KEY.fullmatch(key.name):
            schema.note(
                key.name,
                Message("{name!r} cannot be the name of a setting.", name=key.name),
                Message("Use letters, digits and _."),
            )
        else:
            keys.setdefault(key.name, key)
    return tuple(keys.values())


def _properties(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the settings of a schema that is written as a JSON Schema, or the schema itself."""
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) and schema.get("type") == "object" else schema


def _parse_listed(schema: Fields, number: int, item: Json) -> Iterator[ConfigKey]:
    if isinstance(item, str):
        yield ConfigKey(name=item.strip())
    elif isinstance(item, dict) and isinstance(name := item.get("key", item.get("name")), str):
        yield _parse_key(schema, number, name, item, None)
    else:
        schema.note(
            number,
            Message("This setting has no name. It is ignored."),
            Message('Give it "key": the name of the setting.'),
        )


def _parse_key(schema: Fields, step: str | int, name: str, form: Json, texts: Json) -> ConfigKey:
    help_text = texts.get(name) if isinstance(texts, dict) else None
    text = help_text if isinstance(help_text, str) else ""
    if isinstance(form, str):
        match = _SHORT.fullmatch(form)
        word, aside, rest = match.groups() if match else (form, None, "")
        need = find_need(aside or "")
        kind = _parse_type(schema, step, word)
        return ConfigKey(name=name, type=kind, description=rest or text, required=need is Need.REQUIRED)
    if not isinstance(form, dict):
        schema.note(
            step,
            Message("The setting {name!r} has no type. It is taken as a text.", name=name),
            Message('Write {{"type": "string"}}.'),
        )
        return ConfigKey(name=name, description=text)
    fields = Fields(form, (*schema.path, step), schema.faults)
    written = form.get("type", "string")
    choices = written if isinstance(written, list) else [written]
    word = next((choice for choice in choices if isinstance(choice, str) and choice != "null"), "")
    return ConfigKey(
        name=name,
        type=_parse_type(schema, step, word),
        default=form.get("default", form.get("defaultValue")),
        description=fields.text("description", text),
        required=fields.flag("required", default=False),
        required_unless=_parse_names(form.get("requiredUnless")),
    )


def _parse_names(value: Json) -> tuple[str, ...]:
    return tuple(name for name in value if isinstance(name, str)) if isinstance(value, list) else ()


def _parse_type(schema: Fields, step: str | int, word: str) -> str:
    kind = parse_type(word)
    if kind is None:
        schema.note(
            step,
            Message("The type {word!r} is not known. It is taken as a text.", word=word),
            Message("Use {names}.", names=", ".join(_SCALARS)),
        )
    return kind if kind in _SCALARS else "string"
