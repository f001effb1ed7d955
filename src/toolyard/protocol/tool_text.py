"""The one writer of the prompt text of a tool.

A plugin keeps the layout and the language of VCPToolBox; an offer has it as any other tool if it has a description in
the language of the conversation. Any other tool is written in that language: what it does, every parameter, and an
example that can run as it is. A parameter that the description explains stands in one line with the others of that
kind: ``name*`` is required, ``name=3`` has a default. A tool with several commands is written command by command, in
the layout of a plugin.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.manifest import Command, Manifest
from toolyard.protocol.requests.scanner import format_request
from toolyard.protocol.tool import ToolCommand, ToolSpec, Translation

ENGLISH: Final = "en"
CHINESE: Final = "zh"


_WRAPPED: Final = re.compile(r"(?<!\n)\n(?!- |\n)[ \t]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    parameters: str
    signs: str  # of parameters in one line
    example: str
    required: str
    colon: str
    command: str
    batch: str


_WORDS: Final = {
    ENGLISH: _Words(
        parameters="Parameters:", signs="Parameters (* required):", example="Example:", required="required",
        colon=": ", command="command", batch="Several commands in one call are numbered and run in order",
    ),
    CHINESE: _Words(
        parameters="参数:", signs="参数（* 必需）:", example="调用示例:", required="必需", colon="：",
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
    return _write_plainly(spec, language)


def write_offered(spec: ToolSpec, language: str) -> str:
    """Return a tool's text in an offer: that of its prompts, but for a plugin that has a shorter one."""
    has_short = bool(spec.prompt_text and spec.translations.get(language, Translation()).description)
    return _write_plainly(spec, language) if has_short else write_tool(spec, language)


def join_lines(text: str) -> str:
    """Return a text whose lines were broken for people."""
    return _WRAPPED.sub(" ", text)


def is_explained(parameter: str, description: str) -> bool:
    """Return whether a tool's description names a parameter; ours are written so that this is enough."""
    return re.search(rf"(?<!\w){re.escape(parameter)}(?!\w)", description) is not None


def _write_plainly(spec: ToolSpec, language: str) -> str:
    words, translation = _WORDS[language], spec.translations.get(language, Translation())
    description = translation.description or spec.description.strip()
    lines = [f"- {spec.name}{words.colon}{description if spec.verbatim else join_lines(description)}"]
    lines += _write_parameters(spec, description, translation, words)
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


def _write_parameters(spec: ToolSpec, description: str, translation: Translation, words: _Words) -> Iterator[str]:
    """Yield the parameters that the description explains in one line, and each other one with its own text."""
    required, helps = _required_names(spec), translation.parameters
    listed = {name: schema for name, schema in _properties(spec).items() if name not in spec.unlisted}
    named = {name: _write_sign(name, schema, required) for name, schema in listed.items()}
    short = [sign for name, sign in named.items() if is_explained(name, description)]
    if named:
        yield f"{words.signs} {', '.join(short)}".rstrip()
    for name, schema in listed.items():
        if not is_explained(name, description):
            text = helps.get(name) or str(schema.get("description") or "")
            yield f"  {named[name]}{words.colon}{text}".rstrip(" :：")


def _write_sign(name: str, schema: JsonObject, required: list[str]) -> str:
    """Return ``name*`` if it is required, ``name=3`` with its default, or ``name: a|b`` with its choices."""
    sign, default, choices = f"{name}*" if name in required else name, schema.get("default"), schema.get("enum")
    if isinstance(choices, list):
        others = [choice for choice in choices if choice != default]
        written = "|".join(map(_write_value, [*([default] if default is not None else []), *others]))
        return f"{sign}{'=' if default is not None else ': '}{written}"
    return sign if default in (None, "") else f"{sign}={_write_value(default)}"


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
