"""A JSON object as a Reply: names in any case, types checked, limits enforced. Every fault becomes a Problem.

``parse_plain_reply`` is the fast path for a well-formed reply, as most are (bench row "plain reply"). Nothing is
decided there: anything odd gives None and is read with care, and the result equals that of the careful reading. So
nothing is checked twice, and checks that cannot fail are skipped: a value of texts alone has no long integers and is
not deep, and in a small text no attachment is too large.
"""

import json
from collections.abc import Iterator
from typing import Any

import orjson

from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject, json_problem
from toolyard.protocol.replies.attachment_placeholders import find_problems
from toolyard.protocol.replies.escapes import have_latex, is_suspicious
from toolyard.protocol.replies.reply_values import (
    MAX_ATTACHMENT_BYTES,
    MAX_ATTACHMENTS,
    TYPES,
    Attachment,
    AttachmentType,
    Fault,
    Problem,
    ProblemCode,
    Repair,
    Reply,
)
from toolyard.protocol.replies.strict import has_few, has_long_integer, is_too_deep, parse_strict

_OWN = frozenset({"type", "content", "language", "title"})
DATA = frozenset({AttachmentType.TABLE, AttachmentType.CHART})  # types whose content may be data
_NAMES = frozenset({"think", "content", "attachments"})
_FIELDS = frozenset({"type", "content", "language", "title"})
_TEXTS_ONLY = {str}
_SURELY_SMALL = MAX_ATTACHMENT_BYTES // 4  # characters, of four bytes at most
_FEW = 500


def build_reply(value: JsonObject, think: str | None, repairs: tuple[Repair, ...]) -> Reply | tuple[str, Fault]:
    """Return the reply, or why there is none. ``think`` is the text in tags, for a reply without a think of its own."""
    problems: list[Problem] = []
    fields = _raise_fields(_fold_keys(value, "the reply", problems))
    content = fields.get("content")
    if content is None:
        return Message('The reply has no "content".'), Fault.NO_CONTENT
    if not isinstance(content, str):
        message = Message('"content" must be a text and is {what}.', what=_name(content))
        return message, Fault.CONTENT_NO_TEXT
    if not content:
        return Message('"content" is empty.'), Fault.CONTENT_EMPTY
    own = fields.get("think")
    if own is not None and not isinstance(own, str):
        problems.append(Problem(ProblemCode.WRONG_TYPE, f'"think" must be a text and is {_name(own)}: left out.'))
    attachments = dict(_read_attachments(fields, problems))
    problems += find_problems(content, attachments)
    return Reply(content, own if isinstance(own, str) else think, attachments, tuple(problems), repairs)


def _fold_keys(value: JsonObject, where: str, problems: list[Problem], id_: str | None = None) -> JsonObject:
    """Return ``value`` with keys in lower case; of several the last counts."""
    folded: JsonObject = {}
    for key, item in value.items():
        name = key.strip().lower()
        if name in folded:
            message = f'"{name}" stands more than once in {where}: the last one counts.'
            problems.append(Problem(ProblemCode.DUPLICATE_KEY, message, id_))
        folded[name] = item
    return folded


def _raise_fields(fields: JsonObject) -> JsonObject:
    """Return ``fields`` with a content and a think moved out of the attachments, as after a forgotten brace."""
    nested = fields.get("attachments")
    if not isinstance(nested, dict):
        return fields
    lost = {
        name: nested[name] for name in ("content", "think") if name not in fields and isinstance(nested.get(name), str)
    }
    return {**fields, **lost, "attachments": {id_: one for id_, one in nested.items() if id_ not in lost}}


def _read_attachments(fields: JsonObject, problems: list[Problem]) -> Iterator[tuple[str, Attachment]]:
    entries = _list_entries(fields, problems)
    if len(entries) > MAX_ATTACHMENTS:
        message = f"There are {len(entries)} attachments: only the first {MAX_ATTACHMENTS} are kept."
        problems.append(Problem(ProblemCode.TOO_MANY, message))
    for id_, value in entries[:MAX_ATTACHMENTS]:
        attachment = _read_attachment(id_, value, problems)
        if attachment is not None:
            yield id_, attachment


def _list_entries(fields: JsonObject, problems: list[Problem]) -> list[tuple[str, Json]]:
    attachments = fields.get("attachments", {})
    if isinstance(attachments, dict):
        return _separate_attachments(attachments, problems)
    problems.append(Problem(ProblemCode.WRONG_TYPE, f'"attachments" must be an object and is {_name(attachments)}.'))
    if isinstance(attachments, str):
        attachments = _decode_json(attachments)
        return _separate_attachments(attachments, problems) if isinstance(attachments, dict) else []
    if not isinstance(attachments, list):
        return []
    entries: list[tuple[str, Json]] = []
    for item in attachments:
        names = {key.lower(): inner for key, inner in item.items()} if isinstance(item, dict) else {}
        entries.append((str(names.get("id", len(entries) + 1)), item))
    return entries


def _separate_attachments(attachments: JsonObject, problems: list[Problem]) -> list[tuple[str, Json]]:
    """Return the attachments, with those nested in another one, as after a forgotten brace."""
    entries, known = list(attachments.items()), {*_OWN, *attachments}
    for id_, value in entries:  # grows during the loop
        for name, one in value.items() if isinstance(value, dict) and len(entries) <= MAX_ATTACHMENTS else ():
            if isinstance(one, dict) and name not in known and {"type", "content"} <= {*map(str.lower, one)}:
                message = f'The attachment "{name}" stands inside "{id_}": taken as one of its own.'
                problems.append(Problem(ProblemCode.WRONG_TYPE, message, name))
                entries.append((name, one))
                known.add(name)
    return entries


def _decode_json(text: str) -> Json:
    """Return the JSON value of a text; None when it is none."""
    try:
        return parse_strict(text, {})
    except ValueError:
        return None


def _read_attachment(id_: str, value: Json, problems: list[Problem]) -> Attachment | None:
    def problem(code: ProblemCode, message: str) -> None:
        problems.append(Problem(code, f'The attachment "{id_}" {message}', id_))

    if not isinstance(value, dict):
        problem(ProblemCode.INVALID_ATTACHMENT, f"must be an object and is {_name(value)}: left out.")
        return None
    fields = _fold_keys(value, f'the attachment "{id_}"', problems, id_)
    type_value, content = fields.get("type"), fields.get("content")
    type_ = type_value.strip().lower() if isinstance(type_value, str) else ""
    if content is None and type_ == AttachmentType.TABLE and "rows" in fields:
        content = {name: fields[name] for name in ("columns", "rows") if name in fields}
    fault = _find_fault(type_, content)
    if fault is not None:
        problem(*fault)
        return None
    if not isinstance(content, str) and type_ not in DATA:
        problem(ProblemCode.WRONG_TYPE, f"has a content that is {_name(content)}: made a text.")
        content = json.dumps(content, ensure_ascii=False)
    if type_ not in TYPES:
        problem(ProblemCode.UNKNOWN_TYPE, f'has the type "{type_}", which is not known.')
    language = _text(fields.get("language"))
    if type_ == AttachmentType.CODE and not (language and language.strip()):
        problem(ProblemCode.MISSING_LANGUAGE, 'is code without a language: name it in "language".')
    return Attachment(id_, type_, content, language, _text(fields.get("title")))


def _find_fault(type_: str, content: Json) -> tuple[ProblemCode, str] | None:
    """Return the reason why an attachment cannot be kept, if any."""
    if not type_:
        return ProblemCode.INVALID_ATTACHMENT, "has no type: left out."
    if content is None:
        return ProblemCode.INVALID_ATTACHMENT, "has no content: left out."
    size = measure_content(content)
    if isinstance(size, str):
        return ProblemCode.INVALID_ATTACHMENT, f"cannot be written as JSON: {size}. Left out."
    if size > MAX_ATTACHMENT_BYTES:
        return ProblemCode.TOO_LARGE, f"is larger than {MAX_ATTACHMENT_BYTES} bytes: left out."
    return None


def measure_content(content: Json) -> int | str:
    """Return the size in bytes, or why it cannot be written at all."""
    if isinstance(content, str):
        return len(content) if content.isascii() else len(content.encode())
    try:
        written = orjson.dumps(content)
    except orjson.JSONEncodeError:  # an integer of more than 64 bits, perhaps
        written = b"null"
    if b"null" not in written:  # orjson writes NaN and Infinity so
        return len(written)
    return json_problem(content, "content") or len(json.dumps(content, ensure_ascii=False).encode())


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _name(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return Message("true or false")
        case int() | float():
            return Message("a number")
        case str():
            return Message("a text")
        case list():
            return Message("a list")
        case dict():
            return Message("an object")


def parse_plain_reply(text: str) -> Reply | None:
    """Return the reply in ``text``, which is within the size limit; None when it is not plain."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if type(value) is not dict or not _NAMES.issuperset(value):
        return None
    content, think = value.get("content"), value.get("think")
    texts: list[Any] = [content] if think is None else [content, think]
    data: list[Json] = []
    attachments = _read_plain_attachments(value["attachments"], texts, data) if "attachments" in value else {}
    if not content or attachments is None or {*map(type, texts)} != _TEXTS_ONLY:
        return None
    if not _is_harmless(text, value, data) if data else have_latex(texts):
        return None
    if not attachments and "{" not in content:
        return Reply(content, think)
    return Reply(content, think, attachments, tuple(find_problems(content, attachments)))


def _read_plain_attachments(value: Any, texts: list[Any], data: list[Json]) -> dict[str, Attachment] | None:
    """Return the attachments; add their contents, unchecked, to ``texts`` and ``data``."""
    if type(value) is not dict or len(value) > MAX_ATTACHMENTS:
        return None
    attachments = {}
    for id_, item in value.items():
        if type(item) is not dict or not _FIELDS.issuperset(item):
            return None
        type_, content = item.get("type"), item.get("content")
        if type(type_) is not str or type_ not in TYPES:
            return None
        if type_ == "code" and not str(item.get("language") or "").strip():
            return None
        if type(content) is str:
            if len(content) > _SURELY_SMALL and (not content.isascii() or len(content) > MAX_ATTACHMENT_BYTES):
                return None
            texts += item.values()
        elif type_ in DATA and isinstance(content, dict | list):
            texts += [inside for inside in item.values() if inside is not content]
            data.append(content)
        else:
            return None
        attachments[id_] = Attachment(id_, type_, content, item.get("language"), item.get("title"))
    return attachments


def _is_harmless(text: str, value: Json, data: list[Json]) -> bool:
    """Return whether a value that holds more than texts was read as intended, and its data is not too large."""
    raw = text.encode()
    if ("\\" in text and is_suspicious(text)) or has_long_integer(raw) or is_too_deep(text, 0, len(text), value):
        return False
    return _is_surely_small(text, len(raw)) or all(
        isinstance(size := measure_content(content), int) and size <= MAX_ATTACHMENT_BYTES for content in data
    )


def _is_surely_small(text: str, size: int) -> bool:
    """Return whether nothing that is read from ``text`` is too large when it is written again.

    Texts never grow, ``[0,0]`` becomes ``[0, 0]``, and numbers with an exponent grow most: ``1e15`` becomes
    ``1000000000000000.0``.
    """
    if 4 * size <= MAX_ATTACHMENT_BYTES:
        return True
    exponents = 15 * 2 * _FEW
    return 2 * size + exponents <= MAX_ATTACHMENT_BYTES and has_few(text, "e", _FEW) and has_few(text, "E", _FEW)
