"""From what a caller wrote to what a tool can trust (001 §4.3).

Names are matched without case and with the tool's synonyms; texts become the numbers, booleans and lists that the JSON
Schema asks for, when nothing is lost by it; missing ones get their defaults; everything wrong is said at once, each
with the argument's name, what was expected and the nearest valid name. The signature of a request, ``maid`` or
``valet``, is no argument of a tool that has no such parameter.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from toolyard.protocol.call import SIGNERS, fold
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject, json_problem
from toolyard.protocol.tool import ToolSpec

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_KEPT = 256  # tools whose names and checks are kept from call to call
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def accept(spec: ToolSpec, arguments: Mapping[str, Json]) -> JsonObject:
    """The arguments of a call, named, typed and complete; raises Failure(INVALID_PARAM) with every problem."""
    problem = json_problem(dict(arguments), "arguments")
    if problem:
        raise _invalid(spec, [problem])
    named, problems = _named(spec, arguments)
    typed = {name: coerce(value, schema_of(spec, name)) for name, value in named.items()}
    problems += _faults(spec, typed)
    if problems:
        raise _invalid(spec, problems)
    return {**_defaults(spec), **typed}


def coerce(value: Json, schema: Mapping[str, Any]) -> Json:
    """``value`` as the type the schema asks for, if it says the same; otherwise unchanged, for the check to refuse."""
    kind = schema.get("type")
    if isinstance(value, float) and kind == "integer" and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return _inside(value, schema)
    text = value.strip()
    if kind in ("integer", "number") and _INTEGER.fullmatch(text):
        return int(text)
    if kind == "number":
        return _number(text, value)
    if kind == "boolean":
        return _BOOLEANS.get(text.lower(), value)
    if kind in ("array", "object") and text[:1] in ("[", "{"):
        return _inside(_json(text, value), schema)
    return value


def _inside(value: Json, schema: Mapping[str, Any]) -> Json:
    """The same for what stands in a list, or in an object that takes only what its schema names."""
    items, known = schema.get("items"), schema.get("properties")
    if isinstance(value, list) and isinstance(items, dict):
        return [coerce(item, items) for item in value]
    if not isinstance(value, dict) or not isinstance(known, dict) or schema.get("additionalProperties") is not False:
        return value
    meant = {fold(name): name for name in known}
    made: JsonObject = {}
    for key, inner in value.items():
        name = meant.get(fold(key), key)
        name = key if key in known or name in value or name in made else name  # what is given twice is refused
        part = known.get(name)
        made[name] = coerce(inner, part) if isinstance(part, dict) else inner
    return made


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The one of ``names`` that ``name`` was most likely meant to be."""
    from difflib import get_close_matches  # needed only when something is already wrong

    by_fold = {fold(known): known for known in names}
    close = get_close_matches(fold(name), by_fold, n=1, cutoff=0.6)
    return by_fold[close[0]] if close else None


def schema_of(spec: ToolSpec, name: str) -> dict[str, Json]:
    """The schema of the parameter that ``name`` means; empty when it means none."""
    canonical = _canonical(spec).get(fold(name), "")
    properties = spec.parameters.get("properties")
    schema = properties.get(canonical) if isinstance(properties, dict) else None
    return schema if isinstance(schema, dict) else {}


@lru_cache(maxsize=_KEPT)
def _canonical(spec: ToolSpec) -> dict[str, str]:
    names = {fold(other): name for other, name in spec.synonyms.items()}
    return names | {fold(name): name for name in spec.parameter_names}


def _named(spec: ToolSpec, arguments: Mapping[str, Json]) -> tuple[JsonObject, list[str]]:
    canonical = _canonical(spec)
    named: JsonObject = {}
    written: dict[str, str] = {}
    problems = []
    for key, value in arguments.items():
        name = canonical.get(fold(key))
        if name is None and _is_closed(spec) and fold(key) in SIGNERS:
            continue
        if name is None and _is_closed(spec):
            problems.append(_unknown(spec, key))
        elif name is None:
            named[key] = value  # the schema has the last word about it
        elif value is None and (name in named or _optional(spec, name)):
            continue  # many models write null for what they leave out
        elif named.get(name) is not None and named[name] != value:
            problems.append(f"'{written[name]}' and '{key}' both mean '{name}' and differ: send one of them")
        else:
            named[name], written[name] = value, key
    return named, problems


def _is_closed(spec: ToolSpec) -> bool:
    """Whether the tool takes only what its schema names; as in any JSON Schema, it must say so."""
    return spec.parameters.get("additionalProperties") is False


def _optional(spec: ToolSpec, name: str) -> bool:
    required = spec.parameters.get("required")
    kind = schema_of(spec, name).get("type")
    return not (isinstance(required, list) and name in required) and isinstance(kind, str) and kind != "null"


def _unknown(spec: ToolSpec, key: str) -> str:
    known = spec.parameter_names
    guess = nearest(key, [*known, *spec.synonyms])
    meant = f": did you mean '{guess}'?" if guess else "."
    return f"unknown parameter '{key}'{meant} {spec.name} takes {', '.join(known) or 'no parameters'}"


def _faults(spec: ToolSpec, arguments: JsonObject) -> list[str]:
    validator, schema = _validator(spec)
    return [_fault(error, schema) for error in validator.iter_errors(arguments)]


@lru_cache(maxsize=_KEPT)
def _validator(spec: ToolSpec) -> "tuple[Draft202012Validator, JsonObject]":
    from jsonschema_rs import Draft202012Validator  # only a call needs it, and it takes a while to load

    # Of a closed tool, unknown names are already said, with a better word.
    schema = {**spec.parameters, "additionalProperties": True} if _is_closed(spec) else spec.parameters
    return Draft202012Validator(schema), schema


def _fault(error: "ValidationError", schema: JsonObject) -> str:
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path).lstrip(".")
    part = _at(schema, error.schema_path[:-1])
    if isinstance(error.kind, error.kind.Required):
        inside = f" in '{where}'" if where else ""
        wanted = _at(part, ["properties", error.kind.property])
        return f"missing parameter '{error.kind.property}'{inside}: expected {_expected(wanted)}"
    if isinstance(error.kind, error.kind.AdditionalProperties):
        known = list(_at(part, ["properties"]))
        guesses = {name: nearest(name, known) for name in error.kind.unexpected}
        told = (f"'{name}'" + (f" (did you mean '{guess}'?)" if guess else "") for name, guess in guesses.items())
        return f"unknown in '{where}': {', '.join(told)}"
    if error.schema_path[-1] in ("type", "minimum", "maximum", "enum", "minLength", "minItems"):
        return f"'{where}': expected {_expected(part)}, got {_brief(cast('Json', error.instance))}"
    return f"'{where}': {error.message}"


def _at(schema: Mapping[str, Any], path: Sequence[str | int]) -> Mapping[str, Any]:
    """The part of a schema that a fault speaks of; empty when the way leads through a reference."""
    part: Any = schema
    for step in path:
        try:
            part = part[step]
        except (KeyError, IndexError, TypeError):
            return {}
    return part if isinstance(part, Mapping) else {}


_ARTICLES = {
    "integer": "an integer",
    "array": "a list",
    "object": "an object",
    "boolean": "true or false",
    "null": "null",
}


def _expected(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(choice, ensure_ascii=False) for choice in schema["enum"])
    kind = schema.get("type", "value")
    kinds = kind if isinstance(kind, list) else [kind]
    words = " or ".join(_ARTICLES.get(kind, f"a {kind}") for kind in kinds)
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        words += f" from {low} to {high}"
    elif low is not None:
        words += f" of at least {low}"
    elif high is not None:
        words += f" of at most {high}"
    items = schema.get("items")
    if "array" in kinds and isinstance(items, dict) and isinstance(items.get("type"), str):
        words += f" of {items['type']}s"
    if 1 in (schema.get("minLength"), schema.get("minItems")):
        words += " that is not empty"
    return words


def _brief(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."


def _defaults(spec: ToolSpec) -> JsonObject:
    schemas = {name: schema_of(spec, name) for name in spec.parameter_names}
    return {name: schema["default"] for name, schema in schemas.items() if "default" in schema}


def _number(text: str, otherwise: str) -> Json:
    try:
        number = float(text)
    except ValueError:
        return otherwise
    return number if math.isfinite(number) else otherwise


def _json(text: str, otherwise: str) -> Json:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return otherwise
    return otherwise if json_problem(value, "value") else value


def _invalid(spec: ToolSpec, problems: list[str]) -> Failure:
    return Failure(
        ErrorCode.INVALID_PARAM,
        f"{spec.name} cannot run with these arguments: {'; '.join(problems)}.",
        hint="Correct them and call again.",
    )
