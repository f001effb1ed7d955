"""A JSON object as a Reply: names in any case, types checked, bounds kept. What is wrong becomes a Problem."""

import json
from collections.abc import Iterator

import orjson

from toolyard.protocol.json import Json, JsonObject, json_problem
from toolyard.protocol.replies.placeholders import find_problems
from toolyard.protocol.replies.strict import parse_strict
from toolyard.protocol.replies.values import (
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

_OWN = frozenset({"type", "content", "language", "title"})
DATA = frozenset({AttachmentType.TABLE, AttachmentType.CHART})  # whose content may be more than text


def build_reply(value: JsonObject, think: str | None, repairs: tuple[Repair, ...]) -> Reply | tuple[str, Fault]:
    """The reply, or why there is none. ``think`` is what stood in tags, for a reply without a think of its own."""
    problems: list[Problem] = []
    fields = _raise_fields(_fold_keys(value, "the reply", problems))
    content = fields.get("content")
    if content is None:
        return 'The reply has no "content".', Fault.NO_CONTENT
    if not isinstance(content, str):
        return f'"content" must be a text and is {_name(content)}.', Fault.CONTENT_NO_TEXT
    if not content:
        return '"content" is empty.', Fault.CONTENT_EMPTY
    own = fields.get("think")
    if own is not None and not isinstance(own, str):
        problems.append(Problem(ProblemCode.WRONG_TYPE, f'"think" must be a text and is {_name(own)}: left out.'))
    attachments = dict(_read_attachments(fields, problems))
    problems += find_problems(content, attachments)
    return Reply(content, own if isinstance(own, str) else think, attachments, tuple(problems), repairs)


def _fold_keys(value: JsonObject, where: str, problems: list[Problem], id_: str | None = None) -> JsonObject:
    """The same with keys in lower case; of several the last counts."""
    folded: JsonObject = {}
    for key, item in value.items():
        name = key.strip().lower()
        if name in folded:
            message = f'"{name}" stands more than once in {where}: the last one counts.'
            problems.append(Problem(ProblemCode.DUPLICATE_KEY, message, id_))
        folded[name] = item
    return folded


def _raise_fields(fields: JsonObject) -> JsonObject:
    """The same, with a content and a think that stand among the attachments, after a brace that was forgotten."""
    given = fields.get("attachments")
    if not isinstance(given, dict):
        return fields
    lost = {
        name: given[name] for name in ("content", "think") if name not in fields and isinstance(given.get(name), str)
    }
    return {**fields, **lost, "attachments": {id_: one for id_, one in given.items() if id_ not in lost}}


def _read_attachments(fields: JsonObject, problems: list[Problem]) -> Iterator[tuple[str, Attachment]]:
    given = _list_entries(fields, problems)
    if len(given) > MAX_ATTACHMENTS:
        message = f"There are {len(given)} attachments: only the first {MAX_ATTACHMENTS} are kept."
        problems.append(Problem(ProblemCode.TOO_MANY, message))
    for id_, value in given[:MAX_ATTACHMENTS]:
        attachment = _read_attachment(id_, value, problems)
        if attachment is not None:
            yield id_, attachment


def _list_entries(fields: JsonObject, problems: list[Problem]) -> list[tuple[str, Json]]:
    given = fields.get("attachments", {})
    if isinstance(given, dict):
        return _separate_attachments(given, problems)
    problems.append(Problem(ProblemCode.WRONG_TYPE, f'"attachments" must be an object and is {_name(given)}.'))
    if isinstance(given, str):
        given = _decode_json(given)
        return _separate_attachments(given, problems) if isinstance(given, dict) else []
    if not isinstance(given, list):
        return []
    entries: list[tuple[str, Json]] = []
    for item in given:
        names = {key.lower(): inner for key, inner in item.items()} if isinstance(item, dict) else {}
        entries.append((str(names.get("id", len(entries) + 1)), item))
    return entries


def _separate_attachments(given: JsonObject, problems: list[Problem]) -> list[tuple[str, Json]]:
    """The attachments, with those that stand in another one, after a brace that was forgotten."""
    entries, known = list(given.items()), {*_OWN, *given}
    for id_, value in entries:  # grows while it is gone through
        for name, one in value.items() if isinstance(value, dict) and len(entries) <= MAX_ATTACHMENTS else ():
            if isinstance(one, dict) and name not in known and {"type", "content"} <= {*map(str.lower, one)}:
                message = f'The attachment "{name}" stands inside "{id_}": taken as one of its own.'
                problems.append(Problem(ProblemCode.WRONG_TYPE, message, name))
                entries.append((name, one))
                known.add(name)
    return entries


def _decode_json(text: str) -> Json:
    """What is written as JSON in a text; nothing when it is not."""
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
    given, content = fields.get("type"), fields.get("content")
    type_ = given.strip().lower() if isinstance(given, str) else ""
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
    """Why an attachment cannot be kept."""
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
    """In bytes, or why it cannot be written at all."""
    if isinstance(content, str):
        return len(content) if content.isascii() else len(content.encode())
    try:
        written = orjson.dumps(content)
    except orjson.JSONEncodeError:  # an integer of more than 64 bits, perhaps
        written = b"null"
    if b"null" not in written:  # which is how it writes what is no number
        return len(written)
    return json_problem(content, "content") or len(json.dumps(content, ensure_ascii=False).encode())


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _name(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case dict():
            return "an object"
