"""Prompt filling: what the placeholders of a chat request become on its way to the model (contract §5).

Tools, clock and static values are filled in system messages only; results of asynchronous tasks in system and
assistant messages, and only those of this caller. One pass: what is inserted is never looked at again, and what came
from a tool is made inert first. Messages without placeholders are passed on as the very same objects.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from toolyard.gateway.host import Texts
from toolyard.gateway.vcp import FORBIDDEN
from toolyard.gateway.vcp_media import remove_media
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifest import plugin_text
from toolyard.protocol.placeholders import Kind, Placeholder, fill, placeholders
from toolyard.protocol.request_text import format_request, neutralise
from toolyard.protocol.requests.marks import START
from toolyard.protocol.task import result_text
from toolyard.protocol.tool import ToolSpec

_DAYS = ("星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日")
_NO_TOOLS = "没有可用的VCP工具描述信息"
_BETWEEN = "\n\n---\n\n"
_SYSTEM = ("system", "developer")


@dataclass(frozen=True, slots=True)
class Filled:
    messages: list[Json]
    changed: bool
    forbids_tools: bool


async def filled(messages: list[Json], texts: Texts, caller: str, nonce: str | None = None) -> Filled:
    """The messages as the model gets them."""
    made: list[Json] = []
    forbids = False
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        if isinstance(message, dict) and (role in _SYSTEM or role == "assistant"):
            forbids = forbids or (role in _SYSTEM and _holds(message, FORBIDDEN))
            made.append(await _message(message, texts, caller, system=role in _SYSTEM, nonce=nonce))
        else:
            made.append(message)
    changed = any(new is not old for new, old in zip(made, messages, strict=True))
    return Filled(made if changed else messages, changed, forbids)


def tool_text(spec: ToolSpec) -> str:
    """A built-in tool as its placeholder shows it: laid out as a plugin's."""
    example = format_request(spec.name, {name: f"({_hint(spec, name)})" for name in _wanted(spec)})
    lines = [
        f"- {spec.name} ({spec.name}) - 命令: N/A:",
        *_indented(spec.description),
        "  调用示例:",
        *_indented(example),
    ]
    return "\n".join(lines)


async def _message(message: JsonObject, texts: Texts, caller: str, *, system: bool, nonce: str | None) -> Json:
    content = message.get("content")
    if isinstance(content, str):
        new = await _text(content, texts, caller, system=system, nonce=nonce)
        return message if new is content else {**message, "content": new}
    if not isinstance(content, list):
        return message
    parts: list[Json] = []
    for part in content:
        inner = part.get("text") if isinstance(part, dict) else None
        if isinstance(part, dict) and isinstance(inner, str):
            made = await _text(inner, texts, caller, system=system, nonce=nonce)
            parts.append(part if made is inner else {**part, "text": made})
        else:
            parts.append(part)
    return {**message, "content": parts} if any(a is not b for a, b in zip(parts, content, strict=True)) else message


async def _text(text: str, texts: Texts, caller: str, *, system: bool, nonce: str | None) -> str:
    made = text
    if "{{" in text:
        values = await _values(text, texts, caller, system=system)
        if values:
            made = fill(text, lambda found: values.get(found.name))
    if system and FORBIDDEN in made:
        made = made.replace(FORBIDDEN, "")
    if system and nonce is not None and START in made:
        made = made.replace(START, START.replace("]", f":{nonce}]"))
    return made if system or "base64," not in made else remove_media(made)


async def _values(text: str, texts: Texts, caller: str, *, system: bool) -> dict[str, str]:
    """What each placeholder of the text becomes, by what stands between its braces."""
    found: dict[str, str] = {}
    static: Mapping[str, str] | None = None
    for placeholder in placeholders(text):
        if placeholder.name in found:
            continue
        value = await _task(placeholder, texts, caller)
        if value is None and system:
            if static is None:
                static = texts.static()
            value = _owners(placeholder, texts, static)
        if value is not None:
            found[placeholder.name] = value
    return found


async def _task(placeholder: Placeholder, texts: Texts, caller: str) -> str | None:
    if placeholder.kind is not Kind.ASYNC_RESULT:
        return None
    task = await texts.task(placeholder.parts[0], placeholder.parts[1], caller)
    return None if task is None else neutralise(result_text(task))


def _owners(placeholder: Placeholder, texts: Texts, static: Mapping[str, str]) -> str | None:
    if placeholder.name in static:
        return neutralise(static[placeholder.name])
    match placeholder.kind:
        case Kind.CLOCK:
            return _clock(placeholder.name, texts)
        case Kind.TOOL:
            return _tool(placeholder.parts[0], texts)
        case Kind.ALL_TOOLS:
            told = (_spec_text(spec, texts) for spec in texts.specs())
            return _BETWEEN.join(text for text in told if text) or _NO_TOOLS
        case _:
            return None


def _clock(name: str, texts: Texts) -> str:
    now = texts.now()
    if name == "Date":
        return f"{now.year}/{now.month}/{now.day}"
    return f"{now:%H:%M:%S}" if name == "Time" else _DAYS[now.weekday()]


def _tool(name: str, texts: Texts) -> str | None:
    spec = next((spec for spec in texts.specs() if name in (spec.name, *spec.aliases)), None)
    return None if spec is None else _spec_text(spec, texts)


def _spec_text(spec: ToolSpec, texts: Texts) -> str:
    manifest = texts.manifest(spec.name)
    return tool_text(spec) if manifest is None else plugin_text(manifest)


def _holds(message: JsonObject, words: str) -> bool:
    content = message.get("content")
    if isinstance(content, str):
        return words in content
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and words in str(part.get("text", "")) for part in parts)


def _wanted(spec: ToolSpec) -> list[str]:
    required = spec.parameters.get("required")
    return [str(name) for name in required] if isinstance(required, list) else []


def _hint(spec: ToolSpec, name: str) -> str:
    properties = spec.parameters.get("properties")
    schema = properties.get(name) if isinstance(properties, dict) else None
    told = schema.get("description") if isinstance(schema, dict) else None
    return " ".join(str(told or name).split())[:120]


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.strip().split("\n")]
