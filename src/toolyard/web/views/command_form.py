"""The commands of a tool that has several, each with the JSON Schema of its own calls, as client JSON."""

from collections.abc import Sequence
from typing import Any

from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifests.forms import select_command
from toolyard.protocol.markers import parse_requests
from toolyard.protocol.tool import CommandForm, ToolCommand, ToolSpec
from toolyard.protocol.tool_json import translation_to_json
from toolyard.protocol.tool_text import CHINESE, ENGLISH


def tool_forms(spec: ToolSpec) -> list[dict[str, Any]]:
    """Return a form for each command of a tool: of a built-in one, or of a plugin on another host."""
    return forms_to_json(spec.forms) or [_tool_form(spec, command) for command in spec.commands]


def tool_examples(spec: ToolSpec) -> list[dict[str, Any]]:
    """Return the examples of a tool that is no plugin of this host, those of its commands included."""
    requests = ((command.name, parse_requests(command.example)) for command in spec.commands)
    by_command = [
        {"command": name, "arguments": request["args"]}
        for name, parsed in requests
        for request in parsed
        if request["ok"]
    ]
    by_form = [{"command": form.name, "arguments": example} for form in spec.forms for example in form.examples]
    return by_command or by_form or [{"command": "", "arguments": arguments} for arguments in spec.examples]


def forms_to_json(forms: Sequence[CommandForm]) -> list[dict[str, Any]]:
    return [
        {
            "name": form.name,
            "display_name": form.display_name,
            "description": form.description,
            "translations": {language: translation_to_json(one) for language, one in form.translations.items()},
            "parameters": form.parameters,
        }
        for form in forms
    ]


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
        "parameters": select_command(schema, command.name, properties),
    }
