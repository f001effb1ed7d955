"""Forms of answers from before VCP v2 (000 §1.1, 001 §3.3, 002 §3.3), converted to the one with a status.

- ``ok``, ``fail`` and ``failed`` are read as the statuses they mean.
- ``{"success": true, "data": ...}``, ``{"success": false, "error": ...}`` and ``{"error": ...}`` have no status at all,
  as log lines have none: they count only where nothing else was printed.

Every conversion is reported in a warning, for the plugin's author.
"""

from collections.abc import Mapping

from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject

STATUSES = ("success", "partial", "error")
_WORDS: Mapping[str, str] = {"ok": "success", "fail": "error", "failed": "error"}
_BESIDE = ("_specialAction", "payload")


def has_status(value: object) -> bool:
    """Return whether ``value`` is an object with one of the three statuses."""
    status = value.get("status") if isinstance(value, dict) else None
    return isinstance(status, str) and status in STATUSES


def read_status_word(value: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """Return an object with another status word with the status that it means, and a warning.

    An unknown word is left as it is, for the reader of the answer to report.
    """
    word = value["status"]
    status = _WORDS.get(word) if isinstance(word, str) else None
    if status is None:
        return value, ()
    warning = Message(
        "answer.status_word",
        'Its status "{word}" was read as "{status}": the statuses are {names}.',
        word=str(word),
        status=status,
        names=", ".join(STATUSES),
    )
    return {**value, "status": status}, (warning,)


def read_form_without_status(value: JsonObject) -> tuple[JsonObject, tuple[str, ...]] | None:
    """Return the only printed object, in one of the older forms, with a status and a warning; None: it is none."""
    success = value.get("success")
    if isinstance(success, bool):
        status, form = ("success", '"success": true') if success else ("error", '"success": false')
    elif _is_error(value.get("error")):
        status, form = "error", '"error" alone'
    else:
        return None
    rest = {key: inner for key, inner in value.items() if key != "success"}
    answer: JsonObject = {"status": status, **(_with_result(rest) if status == "success" else rest)}
    warning = Message(
        "answer.older_form",
        'It answered with {form}, an older form: print "status": "{status}" instead.',
        form=form,
        status=status,
    )
    return answer, (warning,)


def _is_error(error: Json) -> bool:
    return isinstance(error, str | dict) and bool(error)


def _with_result(rest: JsonObject) -> JsonObject:
    """Return ``rest`` with ``data`` renamed to ``result``; the special action stays beside it."""
    data = rest.get("data")
    if "data" not in rest or "result" in rest:
        return rest
    others = {key: value for key, value in rest.items() if key != "data"}
    if not isinstance(data, dict):
        return {**others, "result": data}
    beside = {key: data[key] for key in _BESIDE if key in data}
    return {**others, "result": {key: value for key, value in data.items() if key not in beside}, **beside}
