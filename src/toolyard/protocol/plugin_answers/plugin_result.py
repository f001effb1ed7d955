"""Converts a plugin's answer to a Result or a Failure (001 §3, docs/envelope.md).

Read in this order:

- a complete envelope (002 §1) is taken as it is and corrected where it breaks the rules. Every correction is reported
  in a warning. The host measures the time and knows the arguments itself: those keys of ``stats`` and ``context`` are
  its own;
- ``status: "error"`` is a Failure with the plugin's own message;
- ``result`` as a text is the text, to the letter, and ``data.result``; with ``content`` its parts, and with ``details``
  too (VCP v2) the details are ``data``; any other JSON is data. A result that has a ``status`` of its own, as old
  plugins nest it, is opened once. Without ``result``, ``data`` is the result.

Nothing is dropped: keys beside ``result`` are in ``data``, a ``context`` that has a ``cwd`` is the envelope's, warnings
are in ``context.warnings``. They are for the plugin's author, not for a model: only a partial result ends with them, to
say why it is partial, and with the next step.

The text of a failed or partial call must name a next step (002 §4): where the plugin names none, one is added.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolyard.errors import InvalidEnvelope
from toolyard.message import Message, join_paragraphs
from toolyard.protocol.content import Blob, Media, Part, Text, content_key, to_reference
from toolyard.protocol.envelope import (
    KEYS,
    MESSAGE_KEYS,
    TEXT_KEYS,
    Envelope,
    ErrorCode,
    Extras,
    Failure,
    Fault,
    Reason,
    Status,
    is_partial,
)
from toolyard.protocol.json import Json, JsonObject, json_problem
from toolyard.protocol.plugin_answers.plugin_content import (
    describe_data,
    find_message,
    format_warning,
    join_texts,
    read_parts,
    say_nothing,
    take_media,
    text_or_empty,
    to_pretty_json,
)
from toolyard.protocol.plugin_answers.plugin_output import STATUSES
from toolyard.protocol.tool import Result

_ACTION, _PAYLOAD, _CONTENT, _DETAILS = "_specialAction", "payload", "content", "details"
_STEPS = (
    "ask",
    "adjust",
    "change",
    "check",
    "choose",
    "configure",
    "consider",
    "contact",
    "correct",
    "ensure",
    "give",
    "increase",
    "install",
    "list",
    "make",
    "name",
    "narrow",
    "pass",
    "provide",
    "raise",
    "read",
    "reduce",
    "retry",
    "run",
    "see",
    "send",
    "set",
    "specify",
    "try",
    "use",
    "verify",
    "wait",
)
_ENGLISH = re.compile(
    rf"(?:^|[.!?;:,)]\s+|\n\s*|\b(?:please|then|or)\s+)(?:{'|'.join(_STEPS)})\b|\bdid you mean\b|\btry again\b"
    r"|\byou (?:can|could|may|must|should|need)\b|\bplease\b",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    r"请(?!求)|重试|再试|尝试|建议|改用|[你您]可以|(?:^|[，。；：！、\s])(?:检查|确认|使用|设置|提供|缩小|减少)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """An answer being read: the plugin, its warnings, and the extras beside ``result``."""

    plugin: str
    warnings: tuple[str, ...]
    extras: Extras
    own_context: JsonObject = field(default_factory=dict)

    @property
    def context(self) -> JsonObject:
        return {**self.own_context, "warnings": list(self.warnings)} if self.warnings else self.own_context

    def note(self, text: str) -> str:
        """Return the end of a partial text: why it is partial, and the next step unless the text names one."""
        step = "" if has_next_step(text) else step_after_partial(self.plugin)
        return join_paragraphs(format_warning(self.warnings), step)

    def add_warnings(self, *more: str) -> "_Answer":
        return replace(self, warnings=(*self.warnings, *more))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Body:
    """Data, text and parts of a result."""

    data: JsonObject
    text: str
    parts: tuple[Part, ...] = ()
    details: JsonObject | None = None  # of VCP v2, as they came

    def to_data(self, beside: Extras, note: str = "") -> tuple[JsonObject, Extras]:
        """Return the data with references in place of media, and the extras beside them."""
        data, extras = _take_all_media(self.data, replace(beside, details=self.details))
        if not self.parts:
            return data, extras
        key = content_key(data)
        data[key] = [to_reference(part) for part in self.parts]
        return data, replace(extras, parts=self.parts, content_key=key, note=note)


def read_plugin_result(plugin: str, fields: JsonObject, *, warnings: Sequence[str] = ()) -> Result:
    """Return the result in ``fields``, an object with a ``status``. Raises Failure for an error or no result."""
    fields = _open_nested(_repair_surrogates(plugin, fields))
    extras, rest = _split_special_action(fields)
    answer = _Answer(plugin=plugin, warnings=tuple(warnings), extras=extras)
    status = rest.get("status")
    if status not in STATUSES:
        word = json.dumps(status, ensure_ascii=False)[:60]
        hint = Message("It must be {names} or {last}.", names=", ".join(STATUSES[:-1]), last=STATUSES[-1])
        message = Message("{plugin} answered with the status {word}.", plugin=plugin, word=word)
        raise Failure(Reason.INVALID_OUTPUT, message, hint=hint, data={"answer": rest}, context=answer.context)
    if is_envelope(rest):
        return _from_envelope(answer, rest, Status(str(status)))
    return _from_answer(answer, rest, Status(str(status)))


def build_structured_result(plugin: str, data: JsonObject, text: str, parts: Sequence[Part], mcp: JsonObject) -> Result:
    """Return a result of data, text and parts that belong together already, as those of an MCP server do."""
    data = _repair_surrogates(plugin, data)
    body = _Body(data=data if fits_envelope(data) else {"result": data}, text=text)
    plain, extras = body.to_data(Extras(parts=tuple(parts), mcp=mcp))
    media: list[Json] = [to_reference(part) for part in parts if not isinstance(part, Text)]
    if media:
        extras = replace(extras, content_key=content_key(plain))
        plain[extras.content_key] = media
    return Result(data=plain, text=text, extras=extras)


def _repair_surrogates(plugin: str, answer: JsonObject) -> JsonObject:
    """Return ``answer`` as writable JSON: half a surrogate pair, which JavaScript lets pass, becomes U+FFFD."""
    if json_problem(answer, "its answer") is None:
        return answer
    try:
        text = json.dumps(answer, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        mended: Json = json.loads(text)
    except (ValueError, RecursionError):
        mended = answer
    problem = json_problem(mended, "its answer")
    if problem or not isinstance(mended, dict):
        raise Failure(
            Reason.INVALID_OUTPUT, Message("{plugin} gave no usable result: {problem}.", plugin=plugin, problem=problem)
        )
    return mended


def _open_nested(answer: JsonObject) -> JsonObject:
    """Unwrap an old plugin's answer whose ``result`` is a complete answer; the inner status counts."""
    inner = answer.get("result")
    if not isinstance(inner, dict) or answer.get("status") == Status.ERROR or inner.get("status") not in STATUSES:
        return answer
    if inner["status"] == Status.ERROR or "result" in inner or is_envelope(inner):
        return {**{key: value for key, value in answer.items() if key not in ("status", "result")}, **inner}
    return answer


def _split_special_action(answer: JsonObject) -> tuple[Extras, JsonObject]:
    """Return the special action with its payload, and the rest of the answer."""
    action, payload = text_or_empty(answer.get(_ACTION)) or None, answer.get(_PAYLOAD)
    theirs = action is not None or isinstance(payload, dict)
    mine = (_ACTION, _PAYLOAD) if theirs else (_ACTION,)
    rest = {key: value for key, value in answer.items() if key not in mine}
    return Extras(action=action, payload=payload if theirs else None), rest


def _from_envelope(answer: _Answer, fields: JsonObject, status: Status) -> Result:
    read = read_envelope(fields, status, lambda data: describe_data(answer.plugin, data, _CONTENT))
    answer, envelope = answer.add_warnings(*read.corrections), read.envelope
    context = {**read.context, **answer.context}
    stats = {key: value for key, value in envelope.stats.items() if key != "time_ms"}
    data, extras = _take_all_media(envelope.data, answer.extras)
    text, fault = envelope.text, envelope.error
    if fault:
        raise Failure(fault.code, fault.message, text=text, data=data, stats=stats, context=context, extras=extras)
    partial = envelope.status is Status.PARTIAL
    text = join_paragraphs(text, answer.note(text)) if partial else text
    return Result(data=data, text=text, partial=partial, stats=stats, context=context, extras=extras)


def _from_answer(answer: _Answer, fields: JsonObject, status: Status) -> Result:
    named = "result" if "result" in fields or "data" not in fields else "data"
    if is_context(fields.get("context")):
        corrections: list[str] = []
        answer = replace(answer, own_context=read_context(fields.pop("context"), corrections))
        answer = answer.add_warnings(*corrections)
    others = {key: value for key, value in fields.items() if key not in ("status", "error", named)}
    if status is Status.ERROR:
        raise _to_failure(answer, fields, others, fields.get(named))
    if fields.get("error") is not None:
        others["error"] = fields["error"]
    body = _read_result(answer.plugin, fields.get(named), others)
    if not fits_envelope(body.data):
        deeper = Message(
            "The result uses truncated, applied or failed_items in another sense; it is in data.result now."
        )
        body, answer = replace(body, data={"result": body.data}), answer.add_warnings(deeper)
    partial = status is Status.PARTIAL
    note = answer.note(body.text) if partial else ""
    data, extras = body.to_data(answer.extras, note)
    return Result(
        data=data, text=join_paragraphs(body.text, note), partial=partial, context=answer.context, extras=extras
    )


def _read_result(plugin: str, result: Json, others: JsonObject) -> _Body:
    """Return data, text and parts of a successful result."""
    if isinstance(result, str):
        text = result if result.strip() else Message("{plugin} finished with an empty text.", plugin=plugin)
        return _Body(data={**others, "result": result}, text=text)
    if isinstance(result, dict):
        content = result.get(_CONTENT)
        if isinstance(content, list) or (result.keys() == {_DETAILS} and isinstance(result[_DETAILS], dict)):
            rest = {key: value for key, value in result.items() if key != _CONTENT}
            return _read_content(plugin, content if isinstance(content, list) else [], rest, others)
        data = _merge(others, result)
        return _Body(data=data, text=describe_data(plugin, data, _CONTENT, fallback=result))
    if result is None:
        text = Message("{plugin} finished without a result.", plugin=plugin)
        return _Body(data=others, text=describe_data(plugin, others) if others else text)
    return _Body(data={**others, "result": result}, text=find_message(others) or to_pretty_json(result))


def _read_content(plugin: str, content: list[Json], rest: JsonObject, others: JsonObject) -> _Body:
    """Return the body of a result with ``content``; with ``details`` and nothing else it is VCP v2."""
    details = _object(rest.get(_DETAILS))
    if details is not None:
        own = {key: value for key, value in details.items() if key != _CONTENT or not _is_repeated(value, content)}
        rest = _merge({key: value for key, value in rest.items() if key != _DETAILS}, own)
    data, parts = _merge(others, rest), read_parts(content)
    if parts:
        return _Body(data=data, text=join_texts(plugin, parts), parts=parts, details=details)
    text = describe_data(plugin, data) if data else say_nothing(plugin)
    return _Body(data=data, text=text, details=details)


def _is_repeated(value: Json, content: list[Json]) -> bool:
    """Return whether the details repeat the content, as VCPToolBox's do: it ends with the same items."""
    return isinstance(value, list) and content[len(content) - len(value) :] == value


def _take_all_media(data: JsonObject, extras: Extras) -> tuple[JsonObject, Extras]:
    media: list[Media | Blob] = []
    plain = {key: take_media(value, media) for key, value in data.items()}
    return plain, replace(extras, attached=tuple(media))


def _merge(first: JsonObject, then: JsonObject) -> JsonObject:
    """Return both objects merged; a key that differs in them is kept twice."""
    twice = {f"{key}_2": first[key] for key in first.keys() & then.keys() if first[key] != then[key]}
    return {**first, **then, **{key: value for key, value in twice.items() if key not in then}}


def _to_failure(answer: _Answer, fields: JsonObject, others: JsonObject, result: Json) -> Failure:
    error, body = fields.get("error"), _read_error_result(answer.plugin, result)
    data = _merge(others, body.data)
    code = ErrorCode.EXECUTION_ERROR
    if isinstance(error, dict):
        data["error"] = error
        if error.get("code") in list(ErrorCode):
            code = ErrorCode(str(error["code"]))
    message = (
        text_or_empty(error)
        or find_message(_object(error) or {}, "msg", "error", "detail", "reason", "description")
        or find_message(others)
        or text_or_empty(result)
        or find_message(_object(result) or {}, "error")
        or body.text
        or Message("{plugin} reported an error but did not say which.", plugin=answer.plugin)
    )
    data, extras = replace(body, data=data if fits_envelope(data) else {"result": data}).to_data(answer.extras)
    return Failure(code, message, data=data, context=answer.context, extras=extras)


def _read_error_result(plugin: str, result: Json) -> _Body:
    """Return the body of an error's ``result``."""
    if result is None:
        return _Body(data={}, text="")
    content = result.get(_CONTENT) if isinstance(result, dict) else None
    if isinstance(result, dict) and result.keys() == {_CONTENT, _DETAILS} and isinstance(content, list) and content:
        body = _read_content(plugin, content, {_DETAILS: result[_DETAILS]}, {})
        return body if any(isinstance(part, Text) for part in body.parts) else replace(body, text="")
    return _Body(data={"result": result}, text="")


def _object(value: Json) -> JsonObject | None:
    return value if isinstance(value, dict) else None


def has_next_step(text: str) -> bool:
    """Return whether a text names a next step; a guess by its words, in English and Chinese."""
    return bool(_ENGLISH.search(text) or _CHINESE.search(text))


def step_after_error(tool: str) -> str:
    return Message("Check the arguments against what {tool} takes, then try again or do without it.", tool=tool)


def step_after_partial(tool: str) -> str:
    return Message(
        "This is not the whole result: narrow the call, or call {tool} again for what is missing.", tool=tool
    )


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
