"""What the writers of requests share: a chat request read part by part."""

from toolyard.protocol.json import Json, JsonObject


def as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def as_object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def objects(value: Json) -> list[JsonObject]:
    """Return the objects of a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
