"""A tool as client JSON: its spec as a model reads it, and its source."""

from collections.abc import Sequence
from typing import Any

from toolyard.confinement.level import measure_confinement
from toolyard.confinement.profile import Profile
from toolyard.dialects.tool_specs import to_function
from toolyard.plugins.authoring.lint import has_hidden_characters, parse_examples
from toolyard.plugins.authoring.prompt_injection import HIDDEN
from toolyard.plugins.mcp.mcp_tool import McpTool
from toolyard.plugins.plugin_host import PluginTool
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifests.manifest import Manifest
from toolyard.protocol.manifests.spec import list_forms, select_command
from toolyard.protocol.requests.scanner import parse_requests
from toolyard.protocol.tool import CommandForm, Tool, ToolCommand, ToolSpec, spec_to_json, translation_to_json
from toolyard.protocol.tool_text import CHINESE, ENGLISH
from toolyard.vcp.nodes.node_tool import NodeTool
from toolyard.web.routes.plugins.plugin_details import KINDS
from toolyard.yard.yard import Yard

_MAX_LINE = 500


def to_json(yard: Yard, tool: Tool) -> dict[str, Any]:
    return {
        **spec_to_json(tool.spec),
        "native": to_function(tool.spec),
        "kind": _find_kind(yard, tool),
        "plugin": None,
        "server": None,
        "display_name": tool.spec.display_name or tool.spec.name,
        "translations": {language: translation_to_json(one) for language, one in tool.spec.translations.items()},
        "version": "",
        "commands": [one.name for one in tool.spec.forms] or [one.name for one in tool.spec.commands],
        "forms": tool_forms(tool.spec),
        "examples": tool_examples(tool.spec),
        "hidden_characters": False,
        "confinement": _confinement_level(yard, tool),
        **_source_fields(tool),
    }


def to_summary_json(yard: Yard, tool: Tool) -> dict[str, Any]:
    """Return what a list of tools shows: no schemas, of each text the first line, and nothing that looks at files."""
    spec, row = tool.spec, _source_fields(tool, is_summary=True)
    return {
        "name": spec.name,
        "description": _first_line(spec.description),
        "risk": spec.risk.value,
        "kind": _find_kind(yard, tool),
        "plugin": None,
        "server": None,
        "display_name": spec.name,
        "translations": {
            language: {"display_name": one.display_name, "description": _first_line(one.description), "parameters": {}}
            for language, one in spec.translations.items()
        },
        "version": "",
        "commands": [command.name for command in spec.commands],
        "hidden_characters": False,
        **row,
    }


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:_MAX_LINE]


def _confinement_level(yard: Yard, tool: Tool) -> str | None:
    """Return how far the program of a tool is confined; None: it runs no program of others."""
    if isinstance(tool, PluginTool):
        plugin = yard.plugins.plugins.get(tool.spec.name)
        return yard.plugins.host.measure_confinement(plugin, tool.manifest).level.value if plugin else None
    if isinstance(tool, McpTool):
        entry = yard.mcp.servers.declarations.get(tool.server)
        return measure_confinement(Profile()).level.value if entry and not entry.declared.url else None
    return None


def _source_fields(tool: Tool, *, is_summary: bool = False) -> dict[str, Any]:
    if isinstance(tool, PluginTool):
        fields = _plugin_fields(tool.manifest)
        return fields if is_summary else fields | _form_fields(tool.manifest)
    if isinstance(tool, NodeTool):
        fields = {**_plugin_fields(tool.manifest), "plugin": None, "display_name": tool.spec.display_name}
        return fields if is_summary else fields | _form_fields(tool.manifest)
    if isinstance(tool, McpTool):
        hidden = any(message == HIDDEN for message, _ in tool.definition.injections)
        title = tool.definition.title or tool.definition.name
        return {"server": tool.server, "display_name": title, "hidden_characters": hidden}
    return {}


def _plugin_fields(manifest: Manifest) -> dict[str, Any]:
    return {
        "plugin": manifest.name,
        "display_name": manifest.display_name,
        "version": manifest.version,
        "commands": [command.name for command in manifest.commands if command.name],
        "hidden_characters": has_hidden_characters(manifest),
    }


def _form_fields(manifest: Manifest) -> dict[str, Any]:
    examples = (one for one in parse_examples(manifest) if not one.problem and not one.is_template)
    own = manifest.commands[0].parameters if len(manifest.commands) == 1 else None
    return {
        **({"parameters": {**own, "additionalProperties": True}} if own is not None else {}),  # for the form: all of it
        "forms": forms_to_json(list_forms(manifest)),
        "examples": [{"command": one.command.name, "arguments": one.arguments} for one in examples],
    }


def _find_kind(yard: Yard, tool: Tool) -> str:
    if isinstance(tool, PluginTool):
        return KINDS.get(tool.manifest.type, "sync")
    if isinstance(tool, McpTool):
        return "mcp"
    others = (source for source in yard.tools.sources if source not in (yard.plugins, yard.mcp))
    return "remote" if any(source.find(tool.spec.name) for source in others) else "built-in"


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
