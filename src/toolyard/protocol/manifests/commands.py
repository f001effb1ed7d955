"""``capabilities.invocationCommands``: the commands of a plugin, with the parameters of each."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.description_parser import parameter_schema, parse_calls, parse_description
from toolyard.protocol.manifests.fields import Fields
from toolyard.protocol.manifests.safe_text import MAX_DESCRIPTION, has_hidden, strip_hidden, truncate
from toolyard.protocol.manifests.values import Command
from toolyard.protocol.manifests.words import find_types

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

MAX_COMMANDS = 200
_LIST = "invocationCommands"
_SCHEMA_WORDS = {
    "properties",
    "$ref",
    "$schema",
    "$defs",
    "required",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "allOf",
}
_KEYS = frozenset({"command", "commandIdentifier", "name", "displayName", "description", "example", "parameters"})
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def parse_commands(capabilities: Fields) -> tuple[Command, ...]:
    """Parse the commands in their order. Their texts have no hidden characters and a bounded length."""
    items = list(capabilities.items(_LIST))
    if len(items) > MAX_COMMANDS:
        message = Message(
            "manifest.too_many_commands",
            "There are {count} commands; at most {max_commands} can be read.",
            count=len(items),
            max_commands=MAX_COMMANDS,
        )
        capabilities.note(_LIST, message, Message("manifest.split_plugin", "Split the plugin."), warning=False)
        return ()
    parsed: list[Command] = []
    names: set[str] = set()
    for number, item in items:
        fields = Fields(
            item if isinstance(item, dict) else {}, (*capabilities.path, _LIST, number), capabilities.faults
        )
        if not isinstance(item, dict):
            fields.note(
                None,
                Message("manifest.command_not_object_ignored", "This command is not an object. It is ignored."),
                Message("manifest.write_object", "Write it as {{...}}."),
            )
            continue
        command = _parse_command(fields, selects=len(items) > 1)
        Fields(item, fields.path, fields.faults).note_misspelt(_KEYS)
        if command.name in names:
            fields.note(
                None,
                Message("manifest.command_twice", "The command {name!r} is there twice.", name=command.name),
                Message("manifest.give_each_own_name", "Give each its own name."),
            )
        names |= {command.name} - {""}
        parsed.append(command)
    return tuple(parsed)


def read_safe_text(fields: Fields, name: str) -> str:
    """Return a text as models read it; what was removed from it is noted."""
    written = fields.text(name)
    text = strip_hidden(written)
    if has_hidden(written):
        fields.note(
            name,
            Message(
                "manifest.hidden_characters",
                "'{name}' has hidden characters. Models do not get them.",
                name=name,
            ),
            Message("manifest.remove", "Remove them."),
        )
    if len(text) > MAX_DESCRIPTION:
        message = Message(
            "manifest.description_too_long",
            "'{name}' has {count} characters. Models get the first {max_description}.",
            name=name,
            count=len(text),
            max_description=MAX_DESCRIPTION,
        )
        fields.note(name, message, Message("manifest.shorten", "Shorten it."))
    return truncate(text)


def _parse_command(fields: Fields, *, selects: bool) -> Command:
    name = fields.text("command") or fields.text("commandIdentifier")
    if isinstance(fields.value.get("example"), dict | list):
        fields.value = {**fields.value, "example": json.dumps(fields.value["example"], ensure_ascii=False, indent=2)}
    description, example = read_safe_text(fields, "description"), read_safe_text(fields, "example")
    if not description.strip():
        fields.note(
            None,
            Message("manifest.command_without_description", "This command has no description: no model can know it."),
            Message("manifest.add_description", 'Add "description".'),
        )
    parameters = _declared_parameters(fields)
    derived = parameters is None
    if parameters is None:
        parameters = _listed_parameters(fields) or parse_description(description, example, selects=selects)
    return Command(
        name=strip_hidden(name).strip(),
        display_name=strip_hidden(fields.text("displayName") or fields.text("name")),
        description=description,
        example=example,
        calls=parse_calls(example),
        parameters=parameters,
        derived=derived and parameters is not None,
    )


def _declared_parameters(fields: Fields) -> JsonObject | None:
    value = fields.value.get("parameters")
    if not isinstance(value, dict) or not _is_schema(value):
        return None
    problem = _schema_problem(value)
    if problem:
        message = Message(
            "manifest.parameters_invalid_schema",
            "'parameters' is not a JSON Schema that can be used: {problem}. It is ignored.",
            problem=problem,
        )
        fields.note(
            "parameters",
            message,
            Message("manifest.write_schema_2020_12", "Write a JSON Schema (draft 2020-12) of type object."),
        )
    return None if problem else {**_clean_schema(value), "type": "object"}


def _clean_schema(schema: JsonObject) -> JsonObject:
    """Return a schema without hidden characters in its titles and descriptions (S-84)."""

    def clean(key: str, value: Json) -> Json:
        if isinstance(value, str):
            return strip_hidden(value) if key in ("description", "title") else value
        if isinstance(value, list):
            return [clean("", item) for item in value]
        if isinstance(value, dict):
            return {name: clean(name, inner) for name, inner in value.items()}
        return value

    return {name: clean(name, inner) for name, inner in schema.items()}


def _is_schema(value: JsonObject) -> bool:
    return not value or bool(value.keys() & _SCHEMA_WORDS) or value.get("type") == "object"


def _schema_problem(schema: JsonObject) -> str:
    if schema.get("type", "object") != "object":
        return Message("manifest.wrong_schema_type", "its type is {type}", type=json.dumps(schema["type"]))
    if not isinstance(schema.get("properties", {}), dict):
        return Message("manifest.properties_not_object", "'properties' is not an object")
    for key, value in _iter_members(schema):
        inner = isinstance(value, str) and value.startswith("#")
        if key in ("$ref", "$dynamicRef") and not inner:
            return Message(
                "manifest.schema_leads_out", "{key} leads out of the manifest", key=key
            )  # nothing is ever fetched to check a call
        if key == "$schema" and (not isinstance(value, str) or value.rstrip("#") != _DIALECT):
            return Message("manifest.wrong_schema_dialect", "{key} is not {dialect}", key=key, dialect=_DIALECT)
        if key == "$id":
            return Message("manifest.schema_with_id", "$id is not used here")
    return _meta_problem(schema)


def _meta_problem(schema: JsonObject) -> str:
    from jsonschema_rs import Draft202012Validator, ReferencingError, ValidationError  # slow to load, seldom needed

    try:
        Draft202012Validator(schema)
    except ValidationError as error:
        return _describe_error(error)
    except (ReferencingError, ValueError) as error:
        return str(error)
    return ""


def _describe_error(error: "ValidationError") -> str:
    where = "".join(f".{step}" for step in error.instance_path).lstrip(".")
    message = error.message if len(error.message) <= 200 else error.message[:197] + "..."
    return f"{where}: {message}" if where else message


def _iter_members(schema: Json) -> Iterator[tuple[str, Json]]:
    pending: list[Json] = [schema]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield from item.items()
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def _listed_parameters(fields: Fields) -> JsonObject | None:
    """Parse listed parameters: ``[{"name", "type", "required", "description"}]`` or ``{name: ...}``."""
    value = fields.value.get("parameters")
    named: dict[str, Json] = {}
    if isinstance(value, list):
        named = {str(item["name"]): item for item in value if isinstance(item, dict) and item.get("name")}
    elif isinstance(value, dict) and not _is_schema(value):
        named = value
    if value is not None and not named and not (isinstance(value, dict) and _is_schema(value)) and value != []:
        message = Message("manifest.parameters_unreadable", "'parameters' cannot be read. It is ignored.")
        fields.note(
            "parameters",
            message,
            Message("manifest.write_object_schema", "Write a JSON Schema of type object."),
        )
    if not named:
        return None
    required: list[Json] = [
        name for name, form in named.items() if isinstance(form, dict) and form.get("required") is True
    ]
    schema: JsonObject = {"type": "object", "properties": {name: _parse_listed(form) for name, form in named.items()}}
    return schema | ({"required": required} if required else {}) | {"additionalProperties": True}


def _parse_listed(form: Json) -> JsonObject:
    words: Mapping[str, Any] = form if isinstance(form, dict) else {"description": form}
    kind, text = words.get("type"), words.get("description")
    return parameter_schema(
        find_types(kind) if isinstance(kind, str) else (), strip_hidden(text) if isinstance(text, str) else ""
    )
