"""Argument checking: turns what a caller wrote into arguments that a tool can trust (001 §4.3).

Names are matched without case and with the tool's synonyms; texts become the numbers, booleans and lists that the JSON
Schema asks for, when nothing is lost by it; missing ones get their defaults; all problems are reported at once, each
with the argument's name, the expected value and the nearest valid name. The signature of a request, ``maid`` or
``valet``, is no argument of a tool that has no such parameter.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from toolyard.message import Message, join_list, join_messages
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import Json, JsonObject, json_problem
from toolyard.protocol.tool import SIGNERS, ToolSpec, fold_name

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

_PLAIN_KEYS = frozenset({"type", "properties", "required", "additionalProperties", "title", "description"})
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_KEPT = 256  # tools whose names and checks are cached
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def accept_arguments(spec: ToolSpec, arguments: Mapping[str, Json]) -> JsonObject:
    """Return the arguments of a call, named, typed and complete; raises Failure(INVALID_PARAM) with every problem."""
    problem = json_problem(dict(arguments), "arguments")
    if problem:
        raise _make_failure(spec, [problem])
    named, problems = _name_arguments(spec, arguments)
    typed = {name: coerce_value(value, find_schema(spec, name)) for name, value in named.items()}
    problems += _find_faults(spec, typed)
    if problems:
        raise _make_failure(spec, problems)
    return {**_list_defaults(spec), **typed}


def coerce_value(value: Json, schema: Mapping[str, Any]) -> Json:
    """Return ``value`` as the schema's type, if that loses nothing; otherwise unchanged, for the check to refuse."""
    kind = schema.get("type")
    if isinstance(value, float) and kind == "integer" and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return _coerce_inside(value, schema)
    text = value.strip()
    if kind in ("integer", "number") and _INTEGER.fullmatch(text):
        return int(text)
    if kind == "number":
        return _parse_number(text, value)
    if kind == "boolean":
        return _BOOLEANS.get(text.lower(), value)
    if kind in ("array", "object") and text[:1] in ("[", "{"):
        return _coerce_inside(_parse_json(text, value), schema)
    return value


def _coerce_inside(value: Json, schema: Mapping[str, Any]) -> Json:
    """Coerce the items of a list, or the members of an object that takes only what its schema names."""
    items, known = schema.get("items"), schema.get("properties")
    if isinstance(value, list) and isinstance(items, dict):
        return [coerce_value(item, items) for item in value]
    if not isinstance(value, dict) or not isinstance(known, dict) or schema.get("additionalProperties") is not False:
        return value
    names = {fold_name(name): name for name in known}
    made: JsonObject = {}
    for key, inner in value.items():
        name = names.get(fold_name(key), key)
        name = key if key in known or name in value or name in made else name  # duplicates are refused
        part = known.get(name)
        made[name] = coerce_value(inner, part) if isinstance(part, dict) else inner
    return made


def find_nearest(name: str, names: Iterable[str], *, like: float = 0.6) -> str | None:
    """Return the one of ``names`` most similar to ``name``, if any; ``like`` is the lowest similarity, 1 is equal."""
    from difflib import get_close_matches  # needed only when something is already wrong

    by_fold = {fold_name(known): known for known in names}
    close = get_close_matches(fold_name(name), by_fold, n=1, cutoff=like)
    return by_fold[close[0]] if close else None


def find_schema(spec: ToolSpec, name: str) -> dict[str, Json]:
    """Return the schema of the parameter that ``name`` means; empty when it means none."""
    return _find_property(spec.parameters, _canonical_names(spec), name)


def find_schema_in_json(tool: Mapping[str, Any], name: str) -> dict[str, Json]:
    """Return the same from the JSON of a tool, as ``tool_json`` writes it."""
    parameters, synonyms = tool.get("parameters", {}), tool.get("synonyms", {})
    return _find_property(parameters, _fold_names(parameters.get("properties", {}), synonyms), name)


def _find_property(parameters: Mapping[str, Any], canonical: Mapping[str, str], name: str) -> dict[str, Json]:
    properties = parameters.get("properties")
    schema = properties.get(canonical.get(fold_name(name), "")) if isinstance(properties, dict) else None
    return schema if isinstance(schema, dict) else {}


@lru_cache(maxsize=_KEPT)
def _canonical_names(spec: ToolSpec) -> dict[str, str]:
    return _fold_names(spec.parameter_names, spec.synonyms)


def _fold_names(names: Iterable[str], synonyms: Mapping[str, str]) -> dict[str, str]:
    return {fold_name(other): name for other, name in synonyms.items()} | {fold_name(name): name for name in names}


def _name_arguments(spec: ToolSpec, arguments: Mapping[str, Json]) -> tuple[JsonObject, list[str]]:
    canonical = _canonical_names(spec)
    named: JsonObject = {}
    written: dict[str, str] = {}
    problems = []
    for key, value in arguments.items():
        name = canonical.get(fold_name(key))
        if name is None and _is_closed(spec) and fold_name(key) in SIGNERS:
            continue
        if name is None and _is_closed(spec):
            problems.append(_describe_unknown(spec, key))
        elif name is None:
            named[key] = value  # the schema check decides about it
        elif value is None and (name in named or _is_optional(spec, name)):
            continue  # many models write null for what they leave out
        elif named.get(name) is not None and named[name] != value:
            problems.append(
                Message(
                    "'{one}' and '{other}' both mean '{name}' and differ: send one of them",
                    one=written[name],
                    other=key,
                    name=name,
                )
            )
        else:
            named[name], written[name] = value, key
    return named, problems


def _is_closed(spec: ToolSpec) -> bool:
    """Return whether the schema forbids additional parameters."""
    return spec.parameters.get("additionalProperties") is False


def _is_optional(spec: ToolSpec, name: str) -> bool:
    required = spec.parameters.get("required")
    kind = find_schema(spec, name).get("type")
    return not (isinstance(required, list) and name in required) and isinstance(kind, str) and kind != "null"


def _describe_unknown(spec: ToolSpec, key: str) -> str:
    known = spec.parameter_names
    guess = find_nearest(key, [*known, *spec.synonyms])
    takes = (
        Message("{tool} takes {names}", tool=spec.name, names=", ".join(known))
        if known
        else Message("{tool} takes no parameters", tool=spec.name)
    )
    if not guess:
        return Message("unknown parameter '{key}'. {takes}", key=key, takes=takes)
    return Message("unknown parameter '{key}': did you mean '{guess}'? {takes}", key=key, guess=guess, takes=takes)


def _find_faults(spec: ToolSpec, arguments: JsonObject) -> list[str]:
    if not arguments and _PLAIN_KEYS.issuperset(spec.parameters) and not spec.parameters.get("required"):
        return []  # the validator is slow to load
    validator, schema = _make_validator(spec)
    return [_describe_fault(error, schema) for error in validator.iter_errors(arguments)]


@lru_cache(maxsize=_KEPT)
def _make_validator(spec: ToolSpec) -> "tuple[Draft202012Validator, JsonObject]":
    from jsonschema_rs import Draft202012Validator  # slow to import, and only a call needs it

    # Of a closed tool, unknown names are reported already, with a better message.
    schema = {**spec.parameters, "additionalProperties": True} if _is_closed(spec) else spec.parameters
    return Draft202012Validator(schema), schema


def _describe_fault(error: "ValidationError", schema: JsonObject) -> str:
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path).lstrip(".")
    part = _schema_at(schema, error.schema_path[:-1])
    if isinstance(error.kind, error.kind.Required):
        name = error.kind.property
        expected = _describe_expected(_schema_at(part, ["properties", name]))
        if not where:
            return Message("missing parameter '{name}': expected {expected}", name=name, expected=expected)
        return Message(
            "missing parameter '{name}' in '{where}': expected {expected}", name=name, where=where, expected=expected
        )
    if isinstance(error.kind, error.kind.AdditionalProperties):
        known = list(_schema_at(part, ["properties"]))
        guesses = {name: find_nearest(name, known) for name in error.kind.unexpected}
        names = [
            Message("'{name}' (did you mean '{guess}'?)", name=name, guess=guess) if guess else f"'{name}'"
            for name, guess in guesses.items()
        ]
        return Message("unknown in '{where}': {names}", where=where, names=join_list(names))
    if error.schema_path[-1] in ("type", "minimum", "maximum", "enum", "minLength", "minItems"):
        return Message(
            "'{where}': expected {expected}, got {value}",
            where=where,
            expected=_describe_expected(part),
            value=_write_brief(cast("Json", error.instance)),
        )
    if error.schema_path[-1] == "anyOf" and (alternatives := required_alternatives(part)):
        return Message("one of these is required: {names}", names=", ".join(alternatives))
    return Message("'{where}': {problem}", where=where, problem=error.message)


def required_alternatives(schema: Mapping[str, Any]) -> list[str]:
    """Return the parameters of which an ``anyOf`` requires one; none if it says anything else."""
    names: list[str] = []
    for one in schema.get("anyOf") or ():
        if not isinstance(one, Mapping) or list(one) != ["required"] or not isinstance(one["required"], list):
            return []
        names += one["required"]
    return names


def _schema_at(schema: Mapping[str, Any], path: Sequence[str | int]) -> Mapping[str, Any]:
    """Return the part of a schema that a fault refers to; empty when the path leads through a reference."""
    part: Any = schema
    for step in path:
        try:
            part = part[step]
        except (KeyError, IndexError, TypeError):
            return {}
    return part if isinstance(part, Mapping) else {}


_ARTICLES = {
    "string": Message("a string"),
    "number": Message("a number"),
    "integer": Message("an integer"),
    "array": Message("a list"),
    "object": Message("an object"),
    "boolean": Message("true or false"),
    "null": "null",
}


def _describe_expected(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        choices = ", ".join(json.dumps(choice, ensure_ascii=False) for choice in schema["enum"])
        return Message("one of {choices}", choices=choices)
    kind = schema.get("type", "value")
    kinds = kind if isinstance(kind, list) else [kind]
    first, *others = (_ARTICLES.get(kind) or Message("a {kind}", kind=kind) for kind in kinds)
    words: str = first
    for other in others:
        words = Message("{first} or {second}", first=words, second=other)
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        words = Message("{kind} from {low} to {high}", kind=words, low=low, high=high)
    elif low is not None:
        words = Message("{kind} of at least {low}", kind=words, low=low)
    elif high is not None:
        words = Message("{kind} of at most {high}", kind=words, high=high)
    items = schema.get("items")
    if "array" in kinds and isinstance(items, dict) and isinstance(items.get("type"), str):
        words = Message("{kind} of {item}s", kind=words, item=items["type"])
    if 1 in (schema.get("minLength"), schema.get("minItems")):
        words = Message("{kind} that is not empty", kind=words)
    return words


def _write_brief(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."


def _list_defaults(spec: ToolSpec) -> JsonObject:
    schemas = {name: find_schema(spec, name) for name in spec.parameter_names}
    return {name: schema["default"] for name, schema in schemas.items() if "default" in schema}


def _parse_number(text: str, otherwise: str) -> Json:
    try:
        number = float(text)
    except ValueError:
        return otherwise
    return number if math.isfinite(number) else otherwise


def _parse_json(text: str, otherwise: str) -> Json:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return otherwise
    return otherwise if json_problem(value, "value") else value


def _make_failure(spec: ToolSpec, problems: list[str]) -> Failure:
    return Failure(
        ErrorCode.INVALID_PARAM,
        Message(
            "{name} cannot run with these arguments: {problems}.", name=spec.name, problems=join_messages(problems)
        ),
        hint=Message("Correct them and call again."),
    )
