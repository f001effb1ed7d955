"""What a plugin printed, as a Result or a Failure (001 §3, contract §1 and §6).

Taken in this order:

- a whole envelope (``status``, ``data`` and ``text``, and no key that envelopes do not have) as it is; the host
  measures ``stats.time_ms`` and knows ``cwd`` and ``params_input`` by itself;
- ``status: "error"`` is a Failure with the plugin's own message;
- ``result`` as a text is the text, to the letter; with ``content`` its parts; any other JSON is data. A result that has
  a ``status`` of its own, as old plugins nest it, is opened once.

Nothing is dropped: keys beside ``result`` are in ``data``, warnings in ``context.warnings``. They are
for the plugin's author, not for a model: only a partial result ends with them, to say why it is not whole.
"""

import json
from collections.abc import Mapping, Sequence

from toolyard.errors import InvalidEnvelope
from toolyard.protocol.content import Media, Text
from toolyard.protocol.envelope import KEYS, Envelope, ErrorCode, Status
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import Json, JsonObject, json_problem
from toolyard.protocol.outcome import Extras, Result
from toolyard.protocol.plugin_content import parts_of

_ACTION, _PAYLOAD = "_specialAction", "payload"
_FOR_MODELS = ("messageForAI", "message", "text")
_HOSTS = {"time_ms": 0}
_MAX_NOTE = 300  # characters of a warning that stand in the text


def result_of(plugin: str, said: JsonObject, *, warnings: Sequence[str] = ()) -> Result:
    """The result in ``said``, an object with a ``status``. Raises Failure when it is an error, or no result at all."""
    said = _readable(plugin, said)
    context: JsonObject = {"warnings": list(warnings)} if warnings else {}
    note = _note(warnings) if said.get("status") == Status.PARTIAL else ""
    beside = {key: said[key] for key in (_ACTION, _PAYLOAD) if key in said}
    extras = Extras(action=_text(beside.get(_ACTION)) or None, payload=_object(beside.get(_PAYLOAD)))
    envelope = _envelope({key: value for key, value in said.items() if key not in beside})
    if envelope is not None:
        return _taken(envelope, context, extras, note)
    return _legacy(plugin, _opened(said), context, extras, note)


def _readable(plugin: str, said: JsonObject) -> JsonObject:
    """``said`` as JSON that can be written again: half an emoji, which JavaScript lets pass, becomes U+FFFD."""
    if json_problem(said, "its answer") is None:
        return said
    try:
        text = json.dumps(said, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        mended: Json = json.loads(text)
    except (ValueError, RecursionError):
        mended = said
    problem = json_problem(mended, "its answer")
    if problem or not isinstance(mended, dict):
        raise Failure(Reason.INVALID_OUTPUT, f"{plugin} gave no usable result: {problem}.")
    return mended


def _envelope(said: JsonObject) -> Envelope | None:
    if not {"status", "data", "text"} <= said.keys() <= set(KEYS):
        return None
    stats, context = said.get("stats") or {}, said.get("context") or {}
    if not isinstance(stats, dict) or not isinstance(context, dict):
        return None
    own = {**context, "cwd": ".", "params_input": {}}
    try:
        return Envelope.from_dict({**said, "stats": {**_HOSTS, **stats}, "context": own})
    except InvalidEnvelope:
        return None


def _taken(envelope: Envelope, context: JsonObject, extras: Extras, note: str) -> Result:
    own = {key: value for key, value in envelope.context.items() if key not in ("cwd", "params_input")} | context
    text = envelope.text + note
    if envelope.error:
        message = envelope.error.message
        hint = text.removeprefix(message).strip() if text.startswith(message) else text
        raise Failure(envelope.error.code, message, hint=hint, data=envelope.data, context=own)
    partial = envelope.status is Status.PARTIAL
    return Result(data=envelope.data, text=text, partial=partial, stats=envelope.stats, context=own, extras=extras)


def _opened(said: JsonObject) -> JsonObject:
    """Old plugins put their whole answer into ``result``; what it says of itself counts."""
    inner = said.get("result")
    if not isinstance(inner, dict) or said.get("status") == Status.ERROR:
        return said
    if inner.get("status") == Status.ERROR or (inner.get("status") in list(Status) and "result" in inner):
        return {**{key: value for key, value in said.items() if key not in ("status", "result")}, **inner}
    return said


def _legacy(plugin: str, said: JsonObject, context: JsonObject, extras: Extras, note: str) -> Result:
    status = said.get("status")
    if status not in list(Status):
        message = f"{plugin} answered with the status {json.dumps(status, ensure_ascii=False)[:60]}."
        raise Failure(Reason.INVALID_OUTPUT, message, hint="It must be success, partial or error.", context=context)
    mine = ("status", "result", "error", _ACTION) + ((_PAYLOAD,) if extras.payload is not None else ())
    others = {key: value for key, value in said.items() if key not in mine}
    if status == Status.ERROR:
        raise _failure(plugin, said, others, context, note)
    partial = status == Status.PARTIAL
    data, text, parts = _shaped(plugin, said.get("result"), others)
    if note and not parts:
        parts = (Text(text),)  # so that the text can be had to the letter
    extras = Extras(action=extras.action, payload=extras.payload, parts=parts)
    return Result(data=_safe(data), text=text + note, partial=partial, context=context, extras=extras)


def _shaped(plugin: str, result: Json, others: JsonObject) -> tuple[JsonObject, str, tuple[Text | Media, ...]]:
    """Data, text and parts of a good result."""
    if isinstance(result, str):
        return others, result if result.strip() else f"{plugin} finished with an empty text.", ()
    if isinstance(result, dict) and isinstance(content := result.get("content"), list):
        parts, unread = parts_of(content)
        rest = {key: value for key, value in result.items() if key != "content"}
        data = {**others, **rest, **({"content": unread} if unread else {})}
        return data, _joined(plugin, parts), parts
    if isinstance(result, dict):
        return {**others, **result}, _message({**others, **result}) or _pretty(result), ()
    if result is None:
        return others, _message(others) or (_pretty(others) if others else f"{plugin} finished without a result."), ()
    return {**others, "result": result}, _message(others) or _pretty(result), ()


def _joined(plugin: str, parts: tuple[Text | Media, ...]) -> str:
    text = "\n".join(part.text for part in parts if isinstance(part, Text))
    kinds = [part.kind for part in parts if isinstance(part, Media)]
    counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return text if text.strip() else f"{plugin} returned {counted or 'nothing'}."


def _failure(plugin: str, said: JsonObject, others: JsonObject, context: JsonObject, note: str) -> Failure:
    error, result = said.get("error"), said.get("result")
    data = dict(others)
    code = ErrorCode.EXECUTION_ERROR
    if isinstance(error, dict):
        data["error"] = error
        if error.get("code") in list(ErrorCode):
            code = ErrorCode(str(error["code"]))
    if result is not None:
        data["result"] = result
    told = _text(error) or _message(_object(error) or {}, "msg", "error", "detail", "reason", "description")
    told = told or _message(others) or _text(result) or _message(_object(result) or {}, "error")
    message = told or f"{plugin} reported an error but did not say which."
    return Failure(code, message, hint=note.strip(), data=_safe(data), context=context)


def _message(fields: Mapping[str, Json], *more: str) -> str:
    return next((text for name in (*_FOR_MODELS, *more) if (text := _text(fields.get(name)))), "")


def _text(value: Json) -> str:
    return value if isinstance(value, str) and value.strip() else ""


def _object(value: Json) -> JsonObject | None:
    return value if isinstance(value, dict) else None


def _pretty(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _note(warnings: Sequence[str]) -> str:
    if not warnings:
        return ""
    first = warnings[0] if len(warnings[0]) <= _MAX_NOTE else warnings[0][: _MAX_NOTE - 3] + "..."
    more = f" ({len(warnings) - 1} more in context.warnings)" if len(warnings) > 1 else ""
    return f"\n\nWarning: {first}{more}"


def _safe(data: JsonObject) -> JsonObject:
    """``data`` itself, unless it uses a word of the envelope in another sense: then it stands one level deeper."""
    if not data.keys() & {"truncated", "applied", "failed_items"}:
        return data
    context: JsonObject = {"cwd": ".", "params_input": {}}
    try:
        Envelope(status=Status.PARTIAL, data=data, text="-", stats=_HOSTS, context=context)
    except InvalidEnvelope:
        return {"result": data}
    return data
