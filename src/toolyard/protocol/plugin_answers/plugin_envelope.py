"""A plugin's answer that is a complete envelope (002 §1), taken as it is and corrected where it breaks the rules.

Every correction is reported in a warning, so that nothing is changed silently. The host measures the time and knows the
arguments itself: those keys of ``stats`` and ``context`` are its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from toolyard.errors import InvalidEnvelope
from toolyard.message import Message
from toolyard.protocol.envelope import KEYS, MESSAGE_KEYS, TEXT_KEYS, Envelope, ErrorCode, Fault, Status, is_partial
from toolyard.protocol.json import Json, JsonObject

HOST_CONTEXT = (
    *("params_input", "reason", "warnings", "full_text_path"),
    *(*MESSAGE_KEYS, *TEXT_KEYS, "hint_code", "hint_params"),
)
_MEASURED: Mapping[str, int | float | str] = {"time_ms": 0}
_KNOWN: JsonObject = {"cwd": ".", "params_input": {}}
_EVERY_ENVELOPE = ("params_input",)  # dropping a copy of the host's own needs no warning
_WRONG = {
    "cwd": Message("no POSIX path relative to the project root"),
    "path_resolved": Message("no POSIX path relative to the project root"),
    "truncation_skip": Message("neither true nor false"),
}


@dataclass(frozen=True, slots=True)
class PluginEnvelope:
    """The envelope, without the keys that are the host's, and the corrections made to it."""

    envelope: Envelope
    context: JsonObject  # the plugin's own, without the host's keys
    corrections: tuple[str, ...]


def is_envelope(answer: Mapping[str, Json]) -> bool:
    """Return whether an answer is meant as one: it has ``data`` and ``text``, or one and ``stats`` or ``context``."""
    if "result" in answer or "status" not in answer:
        return False
    core = ("data" in answer) + isinstance(answer.get("text"), str)
    return core == 2 or (core == 1 and any(isinstance(answer.get(key), dict) for key in ("stats", "context")))


def read_envelope(answer: Mapping[str, Json], status: Status, describe: Callable[[JsonObject], str]) -> PluginEnvelope:
    """Return the envelope in ``answer``; ``describe`` writes the text for data that came without one."""
    corrections: list[str] = []
    data = _read_data(answer, corrections)
    text = answer.get("text")
    if not isinstance(text, str) or not text.strip():
        text = describe(data)
        corrections.append(Message("Its envelope has no text; one was made from its data."))
    error = _read_error(answer, status, text, data, corrections)
    if status is Status.SUCCESS and is_partial(data):
        status = Status.PARTIAL
        corrections.append(
            Message(
                "Its envelope says success although its data are truncated, a fallback, not applied or have failed "
                "items; it was taken as partial."
            )
        )
    stats, context = _read_stats(answer.get("stats"), corrections), read_context(answer.get("context"), corrections)
    envelope = Envelope(status=status, data=data, text=text, error=error, stats=stats, context={**_KNOWN, **context})
    return PluginEnvelope(envelope, context, tuple(corrections))


def _read_data(answer: Mapping[str, Json], corrections: list[str]) -> JsonObject:
    value = answer.get("data")
    data: JsonObject = dict(value) if isinstance(value, dict) else {} if value is None else {"result": value}
    if not isinstance(value, dict):
        corrections.append(
            Message("data of its envelope is no object.")
            if value is None
            else Message("data of its envelope is no object; it is in data.result now.")
        )
    for key in (key for key in answer if key not in KEYS):
        place = key if key not in data else f"envelope_{key}"
        data[place] = answer[key]
        corrections.append(
            Message("'{key}' is no key of an envelope; it is in data.{place} now.", key=key, place=place)
        )
    return _fit_data(data, corrections)


def _fit_data(data: JsonObject, corrections: list[str]) -> JsonObject:
    """Return ``data``, or one level deeper if it uses a key of the envelope in another sense."""
    if fits_envelope(data):
        return data
    corrections.append(
        Message("data uses truncated, applied or failed_items in another sense; it is in data.result now.")
    )
    return {"result": data}


def fits_envelope(data: JsonObject) -> bool:
    """Return whether ``data`` uses an envelope's keys in the envelope's sense."""
    if not data.keys() & {"truncated", "applied", "failed_items"}:
        return True
    try:
        Envelope(status=Status.PARTIAL, data=data, text="-", stats=_MEASURED, context=_KNOWN)
    except InvalidEnvelope:
        return False
    return True


def _read_error(
    answer: Mapping[str, Json], status: Status, text: str, data: JsonObject, corrections: list[str]
) -> Fault | None:
    value = answer.get("error")
    if status is not Status.ERROR:
        if value is not None:
            data.setdefault("error", value)
            corrections.append(
                Message(
                    "Its envelope has an error although its status is {status}; it is in data.error now.",
                    status=status.value,
                )
            )
        return None
    fields = value if isinstance(value, dict) else {"message": value}
    message, code = fields.get("message"), fields.get("code")
    if not isinstance(message, str) or not message.strip():
        message = text
        corrections.append(Message("error of its envelope has no message; its text was taken."))
    if code not in list(ErrorCode):
        corrections.append(
            Message(
                "error.code of its envelope is none of {names}; EXECUTION_ERROR was taken.", names=", ".join(ErrorCode)
            )
        )
        if code is not None:
            data.setdefault("error", value)
        code = ErrorCode.EXECUTION_ERROR
    return Fault(ErrorCode(str(code)), message)


def _read_stats(stats_value: Json, corrections: list[str]) -> dict[str, int | float | str]:
    stats: dict[str, int | float | str] = {**_MEASURED}
    if stats_value is not None and not isinstance(stats_value, dict):
        corrections.append(Message("stats of its envelope is no object; it was left out."))
    for key, value in stats_value.items() if isinstance(stats_value, dict) else ():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            corrections.append(Message("stats.{key} of its envelope is no number or text; it was left out.", key=key))
        elif key not in _MEASURED:
            stats[key] = value
    return stats


def is_context(value: Json) -> bool:
    """Return whether a value is meant as the context of an envelope: it says in which folder the plugin worked."""
    return isinstance(value, dict) and "cwd" in value


def read_context(value: Json, corrections: list[str]) -> JsonObject:
    """Return the context that a plugin printed, without the host's keys and wrong values."""
    if value is not None and not isinstance(value, dict):
        corrections.append(Message("context of its envelope is no object; it was left out."))
    context = dict(value) if isinstance(value, dict) else {}
    for key in (key for key in HOST_CONTEXT if key in context):
        del context[key]
        if key not in _EVERY_ENVELOPE:
            corrections.append(
                Message("context.{key} is the host's to tell; that of its envelope was left out.", key=key)
            )
    for key in (key for key in ("cwd", "path_resolved", "truncation_skip") if key in context):
        if not _is_context(key, context[key]):
            del context[key]
            corrections.append(
                Message("context.{key} of its envelope is {problem}; it was left out.", key=key, problem=_WRONG[key])
            )
    return context


def _is_context(key: str, value: Json) -> bool:
    if key == "truncation_skip":
        return isinstance(value, bool)
    return isinstance(value, str) and bool(value) and not value.startswith("/") and ".." not in value.split("/")
