"""Models as clients of Messages list them."""

from datetime import UTC, datetime

from toolyard.protocol.json import JsonObject

_MAX_TIME = 253402300799  # the end of the year 9999


def to_model(model: JsonObject) -> JsonObject:
    created = model.get("created")
    seconds = created if isinstance(created, int) and 0 <= created <= _MAX_TIME else 0
    return {
        "type": "model",
        "id": model["id"],
        "display_name": model.get("display_name") or model["id"],
        "created_at": datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def list_models_page(models: list[JsonObject], limit: int, after: str, before: str) -> JsonObject:
    """Return a page of models: those after an id, or before one."""
    ids = [model["id"] for model in models]
    start = ids.index(after) + 1 if after in ids else 0
    end = ids.index(before) if before in ids else len(ids)
    rest = models[start:end]
    page = [to_model(model) for model in (rest[-limit:] if before and not after else rest[:limit])]
    return {
        "data": [*page],
        "has_more": len(page) < len(rest),
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
    }
