"""A manifest as a tool: the texts for models, and the schemas that check the arguments of a call.

The schema of the tool itself covers all commands and requires little. A form is for one command alone: its parameters,
what it requires, and the argument that selects it.
"""

from collections.abc import Iterable, Mapping

from toolyard.protocol.arguments import required_alternatives
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.manifest import Command, Manifest
from toolyard.protocol.manifests.safe_text import MAX_DESCRIPTION, truncate
from toolyard.protocol.tool import SIGNERS, CommandForm, ToolSpec, Translation, fold_name, split_batch
from toolyard.protocol.tool_text import write_plugin

SELECTOR = "command"


def tool_spec(manifest: Manifest) -> ToolSpec:
    """Return the plugin as one tool. Its schema is for models and forms: it covers all commands, and refuses little.

    What a call must have depends on its command: ``command_spec`` is for checking.
    """
    return ToolSpec(
        name=manifest.name,
        description=_build_description(manifest),
        parameters=_merge_parameters(manifest.commands),
        translations=manifest.translations,
        examples=tuple(args for one in manifest.commands for tool, args in one.calls if tool == manifest.name),
        prompt_text=write_plugin(manifest),
        risk=manifest.risk,
        exact_approval=manifest.exact_approval,
        ask_always_with=manifest.ask_always_with,
        timeout_s=manifest.timeout_s,
        verbatim=True,
        idempotent=manifest.idempotent,
        at_once=manifest.max_concurrency or 0,
    )


def command_spec(manifest: Manifest, arguments: Mapping[str, Json]) -> ToolSpec | None:
    """Return the spec of the one command that ``arguments`` are for; None when there is nothing to check.

    That is so for a command without known parameters, an unknown command, and a numbered batch, which only the plugin
    itself understands. Derived parameters check a call only if it has no argument that they do not know: such a one
    may be another name for a parameter that seems to be missing.
    """
    command = _select_command(manifest.commands, arguments)
    if command is None or command.parameters is None:
        return None
    properties = command.properties
    known = {fold_name(name) for name in (*properties, SELECTOR, *SIGNERS)}
    if _is_batch(arguments, (*properties, SELECTOR)):
        return None
    if command.derived and any(fold_name(name) not in known for name in arguments):
        return None
    allowed: JsonObject = {name: {} for name in (SELECTOR, *SIGNERS)}
    parameters: JsonObject = {**command.parameters, "properties": allowed | properties}
    return ToolSpec(name=manifest.name, description=command.description, parameters=parameters, verbatim=True)


def _build_description(manifest: Manifest) -> str:
    texts = [manifest.description or manifest.display_name]
    several = len(manifest.commands) > 1
    for command in manifest.commands:
        title = command.name or command.display_name
        parts = [f"Command {title}:" if several and title else "", command.description]
        parts.append(f"Example:\n{command.example}" if command.example else "")
        texts.append("\n".join(part for part in parts if part))
    return truncate("\n\n".join(text for text in texts if text), MAX_DESCRIPTION)


def _merge_parameters(commands: tuple[Command, ...]) -> JsonObject:
    """Return the parameters of all commands; where they differ about one, only what they agree on."""
    if len(commands) == 1 and commands[0].parameters is not None:
        single = commands[0].parameters
        if "anyOf" in single and required_alternatives(single):  # providers refuse it at the top of a function's schema
            single = {key: value for key, value in single.items() if key != "anyOf"}
        return {**single, "additionalProperties": True}
    properties: JsonObject = {}
    names = [command.name for command in commands if command.name]
    declared = len(commands) > 1 and all(command.name and not command.derived for command in commands)
    if len(commands) > 1 and names:
        choice: JsonObject = {"enum": [*names]} if declared else {}
        properties[SELECTOR] = {"type": "string", "description": f"One of: {', '.join(names)}.", **choice}
    for command in commands:
        for name, own in command.properties.items():
            if name != SELECTOR or not names:
                properties[name] = _merge_schemas(properties.get(name), own)
    schema: JsonObject = {"type": "object", "properties": properties}
    return schema | ({"required": [SELECTOR]} if declared else {}) | {"additionalProperties": True}


def _merge_schemas(one: Json, other: Json) -> Json:
    """Return what both schemas say; references are dropped, because they point into their own command's schema."""
    other = (
        {key: value for key, value in other.items() if not _has_reference({key: value})}
        if isinstance(other, dict)
        else {}
    )
    if not isinstance(one, dict):
        return other
    return {key: value for key, value in one.items() if key == "description" or other.get(key) == value}


def _has_reference(value: Json) -> bool:
    if isinstance(value, dict):
        return "$ref" in value or "$dynamicRef" in value or any(_has_reference(inner) for inner in value.values())
    return isinstance(value, list) and any(_has_reference(inner) for inner in value)


def _select_command(commands: tuple[Command, ...], arguments: Mapping[str, Json]) -> Command | None:
    if len(commands) == 1:
        return commands[0]
    selected = next((value for name, value in arguments.items() if fold_name(name) == SELECTOR), None)
    exact = [command for command in commands if command.name and command.name == selected]
    if not exact and isinstance(selected, str):
        exact = [command for command in commands if command.name.lower() == selected.strip().lower() != ""]
    return exact[0] if len(exact) == 1 else None


def _is_batch(arguments: Mapping[str, Json], names: Iterable[str]) -> bool:
    try:
        return split_batch(arguments, tuple(names)) is not None
    except Failure:
        return True


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
