"""The commands of a plugin that has several, each with the JSON Schema of its own calls: what a form needs.

The schema of the tool itself covers all commands and requires little. Here a command stands alone: its parameters, what
it requires, and the argument that selects it.
"""

from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifests.spec import SELECTOR
from toolyard.protocol.manifests.values import Command, Manifest
from toolyard.protocol.tool import CommandForm, Translation


def list_forms(manifest: Manifest) -> tuple[CommandForm, ...]:
    """Return a form for each command of a plugin; none if there is nothing to choose."""
    named = [command for command in manifest.commands if command.name]
    return tuple(_to_form(manifest, command) for command in named) if len(named) > 1 else ()


def select_command(schema: JsonObject, name: str, properties: JsonObject) -> JsonObject:
    """Return the schema of the calls of one command, which name it."""
    required = schema.get("required")
    others = [one for one in required if one != SELECTOR] if isinstance(required, list) else []
    return {
        **schema,
        "properties": {**properties, SELECTOR: {"type": "string", "const": name}},
        "required": [SELECTOR, *others],
    }


def _to_form(manifest: Manifest, command: Command) -> CommandForm:
    translations = {
        language: Translation(
            description=one.commands.get(command.name, ""),
            parameters={name: text for name, text in one.parameters.items() if name in command.properties},
        )
        for language, one in manifest.translations.items()
    }
    return CommandForm(
        name=command.name,
        display_name=command.display_name,
        description=command.description,
        translations=translations,
        parameters=select_command(command.parameters or {"type": "object"}, command.name, command.properties),
        examples=tuple(arguments for tool, arguments in command.calls if tool == manifest.name),
    )
