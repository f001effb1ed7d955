"""The list that represents a result in its ``data`` (000 §2.1): entries, matches and the like."""

from collections.abc import Mapping

from toolyard.protocol.json import Json

LISTINGS = ("items", "results", "entries", "matches", "paths", "info")


def find_listing(data: Mapping[str, Json]) -> tuple[str, Json] | None:
    """Return its name and the list, or None when ``data`` has none."""
    return next(((name, data[name]) for name in LISTINGS if data.get(name) is not None), None)
