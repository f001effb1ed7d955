"""Typed reads of record bodies: a member that is missing or of another type is read as the default."""

from collections.abc import Mapping

from toolyard.message import from_fields
from toolyard.protocol.json import Json, JsonObject

Body = Mapping[str, Json]


def read_text(body: Body, name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""


def read_optional_text(body: Body, name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) else None


def read_message(body: Body, name: str) -> str:
    """Return a text as a message if its code stands beside it."""
    return from_fields(name, body) if isinstance(body.get(name), str) else ""


def read_number(body: Body, name: str) -> float:
    value = body.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def read_optional_number(body: Body, name: str) -> float | None:
    value = body.get(name)
    return value if isinstance(value, int | float) else None


def read_integer(body: Body, name: str) -> int:
    value = body.get(name)
    return value if isinstance(value, int) else 0


def read_object(body: Body, name: str) -> JsonObject:
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def read_objects(body: Body, name: str) -> tuple[JsonObject, ...]:
    value = body.get(name)
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def read_texts(body: Body, name: str) -> tuple[str, ...]:
    value = body.get(name)
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
