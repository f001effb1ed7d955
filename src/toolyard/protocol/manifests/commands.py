"""``capabilities.invocationCommands``: the commands of a plugin, with the parameters of each.

Parameters that are not declared are parsed from the description written for models: only what it plainly says. Sources
are lists (``- text (string, required): ...``), the fields of request blocks, and sentences such as
``Required fields: a, b``. Every name found is a parameter. It is required only when the text says so without a
condition, says nothing else elsewhere, knows one set of parameters only, and no example does without it. Arguments that
are not found here stay allowed; a type other than text may always be written as text, because request blocks do so.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.fields import (
    Fields,
    Need,
    find_need,
    find_types,
    is_conditional,
    leading_need,
    strip_need,
)
from toolyard.protocol.manifests.manifest import Command
from toolyard.protocol.manifests.safe_text import MAX_DESCRIPTION, has_hidden, strip_hidden, truncate
from toolyard.protocol.requests.block import SPECIAL
from toolyard.protocol.requests.scanner import parse_requests

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
_MAX_PARAMETERS = 200
_MAX_TEXT = 500  # characters of one parameter's description
_MAX_LINE = 2000
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"
_QUOTED = rf"[`*'\"]{{0,3}}({_NAME})[`*'\"]{{0,3}}"
_ITEM = re.compile(
    rf"\s*(?P<bullet>[-*•·+–]\s+|[-•·]|\d{{1,2}}[.、)）]\s*)?"
    rf"(?P<names>{_QUOTED}(?:\s*(?:/|／|\||、|\bor\b|或)\s*{_QUOTED})*)\s*"
    r"(?:[(（\[](?P<aside>[^()（）\[\]]{0,200})[)）\]])?\s*(?:(?P<colon>[:：])|[-–—]\s|$)(?P<rest>.*)"
)
_FIELD = re.compile(rf"\s*(?:[-*•]\s*|\d{{1,2}}[.、)）]\s*)?{_QUOTED}\s*[:：]\s*「始(?:ESCAPE)?」(?P<rest>.*)")
_AFTER_VALUE = re.compile(r"「末(?:ESCAPE)?」\s*[,，]?\s*(?://)?\s*[(（](?P<aside>[^()（）]{0,200})[)）]")
_HEADING = re.compile(
    r"[\s#*【\[]*(?:[^:：]{0,20}?)(?:参数|\b(?:parameters?|arguments?|args|params))[^:：]{0,20}[:：\]】*\s]*$",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"[\s#*【\[]*(?:返回|输出|响应|结果|示例|注意|说明|Returns?|Output|Response|Result|Examples?|Notes?)[^:：]{0,30}[:：\]】*\s]*$",
    re.IGNORECASE,
)
_SENTENCE = re.compile(
    r"(?P<need>必需|必填|必须|可选|Required|Optional)\s*(?:的)?(?:参数|字段|fields?|parameters?|arguments?)\s*[:：]\s*"
    r"(?P<names>(?:(?!\.\s|\.$)[^\n。])+)",
    re.IGNORECASE,
)
_LISTED = re.compile(rf"(?:^|[,，、;；])\s*(?:and\s+)?{_QUOTED}\s*(?=$|[,，、;；.(（:：])")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_BATCH = re.compile(r"(.*[A-Za-z_])[1-9][0-9]*")
_BLANKS = re.compile(r"\s+")
_SIGNER = ("maid", "valet")


def parse_commands(capabilities: Fields) -> tuple[Command, ...]:
    """Parse the commands in their order. Their texts have no hidden characters and a bounded length."""
    items = list(capabilities.items(_LIST))
    if len(items) > MAX_COMMANDS:
        message = Message(
            "There are {count} commands; at most {max_commands} can be read.",
            count=len(items),
            max_commands=MAX_COMMANDS,
        )
        capabilities.note(_LIST, message, Message("Split the plugin."), warning=False)
        return ()
    parsed: list[Command] = []
    names: set[str] = set()
    for number, item in items:
        fields = Fields(
            item if isinstance(item, dict) else {}, (*capabilities.path, _LIST, number), capabilities.faults
        )
        if not isinstance(item, dict):
            fields.note(None, Message("This command is not an object. It is ignored."), Message("Write it as {{...}}."))
            continue
        command = _parse_command(fields, selects=len(items) > 1)
        Fields(item, fields.path, fields.faults).note_misspelt(_KEYS)
        if command.name in names:
            fields.note(
                None,
                Message("The command {name!r} is there twice.", name=command.name),
                Message("Give each its own name."),
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
            name, Message("'{name}' has hidden characters. Models do not get them.", name=name), Message("Remove them.")
        )
    if len(text) > MAX_DESCRIPTION:
        message = Message(
            "'{name}' has {count} characters. Models get the first {max_description}.",
            name=name,
            count=len(text),
            max_description=MAX_DESCRIPTION,
        )
        fields.note(name, message, Message("Shorten it."))
    return truncate(text)


def _parse_command(fields: Fields, *, selects: bool) -> Command:
    name = fields.text("command") or fields.text("commandIdentifier")
    if isinstance(fields.value.get("example"), dict | list):
        fields.value = {**fields.value, "example": json.dumps(fields.value["example"], ensure_ascii=False, indent=2)}
    description, example = read_safe_text(fields, "description"), read_safe_text(fields, "example")
    if not description.strip():
        fields.note(
            None, Message("This command has no description: no model can know it."), Message('Add "description".')
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
            "'parameters' is not a JSON Schema that can be used: {problem}. It is ignored.", problem=problem
        )
        fields.note("parameters", message, Message("Write a JSON Schema (draft 2020-12) of type object."))
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
        return Message("its type is {type}", type=json.dumps(schema["type"]))
    if not isinstance(schema.get("properties", {}), dict):
        return Message("'properties' is not an object")
    for key, value in _iter_members(schema):
        inner = isinstance(value, str) and value.startswith("#")
        if key in ("$ref", "$dynamicRef") and not inner:
            return Message("{key} leads out of the manifest", key=key)  # nothing is ever fetched to check a call
        if key == "$schema" and (not isinstance(value, str) or value.rstrip("#") != _DIALECT):
            return Message("{key} is not {dialect}", key=key, dialect=_DIALECT)
        if key == "$id":
            return Message("$id is not used here")
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
        message = Message("'parameters' cannot be read. It is ignored.")
        fields.note("parameters", message, Message("Write a JSON Schema of type object."))
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


@dataclass(frozen=True, slots=True)
class _Mention:
    name: str
    types: tuple[str, ...] = ()
    need: Need | None = None
    text: str = ""


def parse_description(description: str, example: str, *, selects: bool) -> JsonObject | None:
    """Return the JSON Schema that the texts of one command describe, or None when they name no parameter.

    ``selects``: the argument ``command`` tells which command is meant, so it is no parameter of this one.
    """
    blocks, readable = _parse_blocks(f"{description}\n{example}")
    mentions = [
        *_find_mentions(description),
        *(_Mention(name) for block in blocks for name in block if name not in _SIGNER),
    ]
    by_name: dict[str, list[_Mention]] = {}
    for mention in mentions:
        by_name.setdefault(mention.name, []).append(mention)
    for name in (*SPECIAL, *(("command",) if selects else ())):
        by_name.pop(name, None)
    names = [name for name in by_name if not _is_numbered(name, by_name)][:_MAX_PARAMETERS]
    if not names:
        return None
    one_set = readable and sum(1 for line in _iter_lines(description) if _HEADING.fullmatch(line)) <= 1
    required: list[Json] = [
        name
        for name in names
        if one_set and _is_required(by_name[name]) and all(name in block for block in blocks) and name not in _SIGNER
    ]
    properties: JsonObject = {name: _merge_mentions(by_name[name]) for name in names}
    schema: JsonObject = {"type": "object", "properties": properties}
    return schema | ({"required": required} if required else {}) | {"additionalProperties": True}


def parse_calls(example: str) -> tuple[tuple[str, JsonObject], ...]:
    """Return the tool and the arguments of every readable request block of an example."""
    requests = parse_requests(_FENCE.sub("", example))
    return tuple((str(one["tool"]), one["args"]) for one in requests if one["ok"] and isinstance(one["args"], dict))


def parameter_schema(types: Sequence[str], text: str) -> JsonObject:
    """Return the schema of a parameter whose values may come from a request block, where all are texts."""
    kinds: list[Json] = list(types)
    if kinds and "string" not in kinds:
        kinds.append("string")
    schema: JsonObject = {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
    return schema | ({"description": truncate(text, _MAX_TEXT)} if text else {})


def _merge_mentions(mentions: list[_Mention]) -> JsonObject:
    types = dict.fromkeys(kind for mention in mentions for kind in mention.types)
    return parameter_schema(list(types), next((mention.text for mention in mentions if mention.text), ""))


def _is_required(mentions: list[_Mention]) -> bool:
    needs = {mention.need for mention in mentions} - {None}
    return needs == {Need.REQUIRED}


def _is_numbered(name: str, names: dict[str, list[_Mention]]) -> bool:
    """Return whether a name is ``filePath2`` of a batch, where ``filePath`` is the parameter."""
    match = _BATCH.fullmatch(name)
    return match is not None and (match[1] in names or match[1] == "command")


def _parse_blocks(text: str) -> tuple[list[list[str]], bool]:
    """Return the argument names of each request block that is no batch; and whether all blocks could be read."""
    requests = parse_requests(_FENCE.sub("", text))
    args = [request["args"] for request in requests]
    names = [list(block) for block in args if isinstance(block, dict)]
    return [block for block in names if "command1" not in block], len(names) == len(args)


def _iter_lines(text: str) -> Iterator[str]:
    """Yield lines of bounded length without runs of blanks, on which no pattern here takes long."""
    for line in text.split("\n"):
        yield _BLANKS.sub(" ", line)[:_MAX_LINE]


def _find_mentions(text: str) -> Iterator[_Mention]:
    section: bool | None = None  # under a heading for parameters; False: under one for something else
    for line in _iter_lines(text):
        if _HEADING.fullmatch(line):
            section = True
        elif _OTHER.fullmatch(line):
            section = False
        elif field := _FIELD.match(line):
            if field[1] not in _SIGNER:  # any block may be signed
                yield _parse_field(field)
        elif sentences := list(_SENTENCE.finditer(line)):
            for sentence in sentences:
                yield from _parse_sentence(sentence)
        elif section is not False and (item := _ITEM.fullmatch(line)):
            yield from _parse_item(item, in_section=section is True)


def _parse_item(item: re.Match[str], *, in_section: bool) -> Iterator[_Mention]:
    aside, rest = item["aside"] or "", item["rest"].strip()
    types, need = find_types(aside), find_need(aside) or leading_need(rest)
    is_marked = bool(types or need)
    if not (is_marked and (item["bullet"] or in_section)) and not (in_section and item["bullet"] and item["colon"]):
        return
    names = re.findall(_NAME, re.sub(r"\b(?:or)\b", " ", item["names"]))
    if len(names) > 1 or (need is Need.REQUIRED and is_conditional(rest)):
        need = Need.OPTIONAL  # either of several names will do, or only now and then
    for name in names:
        yield _Mention(name, types, need, strip_need(rest))


def _parse_field(field: re.Match[str]) -> _Mention:
    """Parse ``prompt:「始」(必需) what to draw「末」`` or ``prompt:「始」...「末」 (必需)``."""
    value, _, _ = field["rest"].partition("「末")
    after = _AFTER_VALUE.search(field["rest"])
    aside = after["aside"] if after else ""
    need = find_need(aside) or leading_need(value)
    return _Mention(field[1], find_types(aside), need, strip_need(value) if leading_need(value) else "")


def _parse_sentence(sentence: re.Match[str]) -> Iterator[_Mention]:
    need = leading_need(sentence["need"])
    for name in _LISTED.findall(re.sub(r"[(（][^()（）]*[)）]", "", sentence["names"])):
        yield _Mention(name, (), Need.OPTIONAL if is_conditional(sentence["names"]) else need)
