"""The one writer of the prompt text of a tool.

A plugin keeps the layout and the language of VCPToolBox. Any other tool is written in the language of the
conversation: what it does, every parameter with its type and default, and an example that can run as it is. A tool with
several commands is written command by command, in the layout of a plugin.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.manifest import Command, Manifest
from toolyard.protocol.requests.scanner import format_request
from toolyard.protocol.tool import ToolCommand, ToolSpec, Translation

ENGLISH: Final = "en"
CHINESE: Final = "zh"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    parameters: str
    example: str
    required: str
    default: str
    choices: str
    colon: str
    command: str
    batch: str


_WORDS: Final = {
    ENGLISH: _Words(
        parameters="Parameters:", example="Example:", required="required", default="default", choices="one of",
        colon=": ", command="command", batch="Several commands in one call are numbered and run in order",
    ),
    CHINESE: _Words(
        parameters="参数:", example="调用示例:", required="必需", default="默认", choices="可选值", colon="：",
        command="命令", batch="一次执行多个命令：命令和参数加上相同的数字后缀，按顺序执行",
    ),
}  # fmt: skip
_TYPES: Final = {
    "string": "字符串", "integer": "整数", "number": "数字", "boolean": "布尔值", "array": "JSON 数组",
    "object": "JSON 对象",
}  # fmt: skip


def write_plugin(manifest: Manifest) -> str:
    """Return the text of ``{{VCPName}}``, laid out as VCPToolBox does: each command that has a description."""
    return "\n\n".join(_write_plugin_command(manifest, command) for command in manifest.commands if command.description)


def write_tool(spec: ToolSpec, language: str = ENGLISH) -> str:
    """Return a tool's prompt text; empty for a plugin without one."""
    if spec.prompt_text is not None:
        return spec.prompt_text
    if spec.commands:
        return "\n\n".join(_write_commands(spec, language))
    words, translation = _WORDS[language], spec.translations.get(language, Translation())
    lines = [f"- {spec.name}{words.colon}{translation.description or spec.description.strip()}"]
    parameters = list(_write_parameters(spec, translation, language))
    lines += [words.parameters, *parameters] if parameters else []
    example = write_example_request(spec)
    return "\n".join([*lines, words.example, example] if example else lines)


def find_example_arguments(spec: ToolSpec) -> JsonObject | None:
    """Return arguments of a call that runs as it is: the tool's own, or from its schema; None: unknown.

    A schema is enough when each required parameter has an example, a default or a choice.
    """
    if spec.examples:
        return spec.examples[0]
    properties, required = _properties(spec), _required_names(spec)
    values = {name: _sample(properties.get(name)) for name in required}
    return None if any(value is None for value in values.values()) else values


def write_example_request(spec: ToolSpec) -> str:
    """Return the request block of a call that runs as it is; empty when none is known."""
    arguments = find_example_arguments(spec)
    if arguments is None:
        return ""
    try:
        return format_request(spec.name, {name: _write_value(value) for name, value in arguments.items()})
    except ValueError:
        return ""  # a name that cannot be written in a block


def _write_commands(spec: ToolSpec, language: str) -> Iterator[str]:
    words = _WORDS[language]
    for command in spec.commands:
        described = "\n".join([command.description[language], *_write_command_parameters(spec, command, language)])
        yield "\n".join(
            [
                f"- {spec.name} - {words.command}: {command.name}:",
                _indent(described),
                f"  {words.example}",
                _indent(command.example),
            ]
        )
    if spec.batch_example:
        yield f"- {spec.name} - {words.batch}:\n{_indent(spec.batch_example)}"


def _write_command_parameters(spec: ToolSpec, command: ToolCommand, language: str) -> list[str]:
    words, properties = _WORDS[language], _properties(spec)
    lines = []
    for name, texts in command.parameters.items():
        kind = _write_type(properties[spec.synonyms.get(name, name)], language)
        facts = ", ".join([kind, words.required] if name in command.required else [kind])
        lines.append(f"- {name} ({facts}){words.colon}{texts[language]}")
    return [words.parameters, *lines] if lines else []


def _write_plugin_command(manifest: Manifest, command: Command) -> str:
    head = f"- {manifest.display_name} ({manifest.name}) - 命令: {command.name or 'N/A'}:\n"
    example = f"\n  调用示例:\n{_indent(command.example)}" if command.example else ""
    return f"{head}{_indent(command.description)}{example}"


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def _write_parameters(spec: ToolSpec, translation: Translation, language: str) -> Iterator[str]:
    words, required = _WORDS[language], _required_names(spec)
    for name, schema in _properties(spec).items():
        aside = [_write_type(schema, language)]
        aside += [words.required] if name in required else []
        default = schema.get("default")
        aside += [f"{words.default} {_write_value(default)}"] if default not in (None, "", []) else []
        choices = schema.get("enum")
        aside += [f"{words.choices} {', '.join(map(_write_value, choices))}"] if isinstance(choices, list) else []
        text = translation.parameters.get(name) or str(schema.get("description") or "")
        facts = ", ".join(part for part in aside if part)
        yield f"  {name}{f' ({facts})' if facts else ''}{words.colon}{text}".rstrip(" :：")


def _write_type(schema: JsonObject, language: str) -> str:
    kinds = schema.get("type")
    names = [str(kind) for kind in (kinds if isinstance(kinds, list) else [kinds] if kinds else [])]
    return " | ".join(_TYPES.get(name, name) if language == CHINESE else name for name in names)


def _sample(schema: JsonObject | None) -> Json:
    for key in ("examples", "enum"):
        values = (schema or {}).get(key)
        if isinstance(values, list) and values:
            return values[0]
    return (schema or {}).get("default")


def _write_value(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _properties(spec: ToolSpec) -> dict[str, JsonObject]:
    properties = spec.parameters.get("properties")
    named = properties.items() if isinstance(properties, dict) else ()
    return {name: schema for name, schema in named if isinstance(schema, dict)}


def _required_names(spec: ToolSpec) -> list[str]:
    required = spec.parameters.get("required")
    return [str(name) for name in required] if isinstance(required, list) else []
