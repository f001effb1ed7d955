"""The commands of a tool that has several, each with the JSON Schema of its own call: what a form needs.

The schema of the tool itself covers all commands and requires little. Here a command stands alone: its parameters, what
it requires, and the argument that selects it.
"""

from typing import Any

from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifest import Command, Manifest
from toolyard.protocol.manifests.spec import SELECTOR
from toolyard.protocol.markers import parse_requests
from toolyard.protocol.tool import ToolCommand, ToolSpec
from toolyard.protocol.tool_text import CHINESE, ENGLISH


def plugin_forms(manifest: Manifest) -> list[dict[str, Any]]:
    """Return a form for each command of a plugin; none if there is nothing to choose."""
    named = [command for command in manifest.commands if command.name]
    return [_plugin_form(manifest, command) for command in named] if len(named) > 1 else []


def tool_forms(spec: ToolSpec) -> list[dict[str, Any]]:
    """Return a form for each command of a built-in tool."""
    return [_tool_form(spec, command) for command in spec.commands]


def tool_examples(spec: ToolSpec) -> list[dict[str, Any]]:
    """Return the examples of a tool that is no plugin, those of its commands included."""
    requests = ((command.name, parse_requests(command.example)) for command in spec.commands)
    by_command = [
        {"command": name, "arguments": request["args"]}
        for name, parsed in requests
        for request in parsed
        if request["ok"]
    ]
    return by_command or [{"command": "", "arguments": arguments} for arguments in spec.examples]


def _plugin_form(manifest: Manifest, command: Command) -> dict[str, Any]:
    schema = command.parameters or {"type": "object"}
    translations = {
        language: {
            "display_name": "",
            "description": one.commands.get(command.name, ""),
            "parameters": {name: text for name, text in one.parameters.items() if name in command.properties},
        }
        for language, one in manifest.translations.items()
    }
    return {
        "name": command.name,
        "display_name": command.display_name,
        "description": command.description,
        "translations": translations,
        "parameters": _select(schema, command.name, command.properties),
    }


def _tool_form(spec: ToolSpec, command: ToolCommand) -> dict[str, Any]:
    known = spec.parameters.get("properties")
    properties: JsonObject = {}
    for name, help_texts in command.parameters.items():
        own = known.get(spec.synonyms.get(name, name)) if isinstance(known, dict) else None
        properties[name] = {**(own if isinstance(own, dict) else {}), "description": help_texts.get(ENGLISH, "")}
    schema: JsonObject = {"type": "object", "required": [*command.required], "additionalProperties": False}
    chinese = {name: texts[CHINESE] for name, texts in command.parameters.items() if CHINESE in texts}
    return {
        "name": command.name,
        "display_name": "",
        "description": command.description.get(ENGLISH, ""),
        "translations": {
            CHINESE: {
                "display_name": "",
                "description": command.description.get(CHINESE, ""),
                "parameters": chinese,
            }
        },
        "parameters": _select(schema, command.name, properties),
    }


def _select(schema: JsonObject, name: str, properties: JsonObject) -> JsonObject:
    """Return the schema of calls of one command, which name it."""
    required = schema.get("required")
    others = [one for one in required if one != SELECTOR] if isinstance(required, list) else []
    return {
        **schema,
        "properties": {**properties, SELECTOR: {"type": "string", "const": name}},
        "required": [SELECTOR, *others],
    }
