"""A message: an English sentence that programs can recognize and translate.

A message is written as its English template: ``Message("'{path}' is a folder.", path=path)``. ``messages.json`` beside
this module is the catalogue: for each template its code and its Chinese. A template that is not there is its own code
and is shown in English everywhere, so a new sentence needs no entry; whoever translates it adds one.

Clients get a message as three fields: the sentence, its code and its parameters (``message``, ``message_code``,
``message_params``). The code names the sentence for good, whatever becomes of its wording, so a client translates by
code and never by matching English text. Plain strings, such as the words of a plugin or of the operating system, have
no code and pass through unchanged. A model that is talked to in Chinese reads ``chinese``.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

CATALOGUE: Final = Path(__file__).with_name("messages.json")
_WITH_HINT: Final = "message.with_hint"
_PLACE: Final = re.compile(r"(\{\w+\})")  # of a parameter, as the console finds it
_STOP: Final = re.compile("[。；，：）]")
_HAN: Final = re.compile("[\u4e00-\u9fff]")
_HAN_SPACE: Final = re.compile("[\u4e00-\u9fff] $")
MAX_PARAMETER: Final = 2000  # characters of one parameter on the wire; the sentence itself is not cut


@cache
def read_catalogue() -> Mapping[str, Mapping[str, str]]:
    """Return the code and the Chinese (``zh``) of each English template; either may be missing."""
    catalogue: dict[str, dict[str, str]] = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    return catalogue


@cache
def _read_chinese() -> Mapping[str, str]:
    """Return the Chinese of each sentence by its template, and by its code, which is all that a stored one has."""
    rows = [(template, row) for template, row in read_catalogue().items() if "zh" in row]
    return {key: row["zh"] for template, row in rows for key in (template, row.get("code", template))}


class Message(str):
    """A sentence with its code and parameters. It is a ``str``: code that only displays it needs no more."""

    __slots__ = ("_key", "params")
    _key: str  # the template, or the code if the sentence was restored
    params: Mapping[str, str | int | float]

    def __new__(cls, template: str, /, **params: object) -> Self:
        """Fill in ``{name}`` of the English template; a parameter may be a message itself."""
        values = {name: value if isinstance(value, str | int | float) else str(value) for name, value in params.items()}
        return cls.restore(template.format(**values), template, values)

    @classmethod
    def restore(cls, text: str, code: str, params: Mapping[str, str | int | float]) -> Self:
        """Return a message whose sentence is already filled in; its template does for its code."""
        message = super().__new__(cls, text)
        message._key, message.params = code, params
        return message

    @property
    def code(self) -> str:
        row = read_catalogue().get(self._key)
        return self._key if row is None else row.get("code", self._key)

    @property
    def chinese(self) -> str:
        """The sentence in Chinese; in English if the catalogue has none."""
        template = _read_chinese().get(self._key)
        return "".join(self) if template is None else _join_chinese([*_fill(template, self.params)])

    def __str__(self) -> str:
        return self  # str(error) of an error that was raised with a message keeps its code

    def __reduce__(self) -> tuple[Any, ...]:
        return Message.restore, ("".join(self), self._key, dict(self.params))

    def map_text(self, change: Callable[[str], str]) -> Self:
        """Return the message with ``change`` applied to its sentence and to every parameter."""
        params = {name: _map_value(value, change) for name, value in self.params.items()}
        return self.restore(change("".join(self)), self._key, params)

    def with_text(self, text: str) -> Self:
        """Return the message with another form of its sentence."""
        return self.restore(text, self._key, self.params)


def _fill(template: str, params: Mapping[str, str | int | float]) -> Iterator[str]:
    """Yield the pieces of a Chinese sentence: its own words and, in Chinese where they can be, its parameters."""
    for piece in _PLACE.split(template):
        value = params.get(piece[1:-1]) if _PLACE.fullmatch(piece) else None
        if value is None:
            yield piece
        else:
            yield (
                value.chinese
                if isinstance(value, Message)
                else f"{value:g}"
                if isinstance(value, float)
                else str(value)
            )


def _join_chinese(pieces: Sequence[str]) -> str:
    """Join pieces: a sentence inside another one ends only once, and there is no space between Chinese characters."""
    joined = ""
    for piece in filter(None, pieces):
        if joined.endswith("。") and _STOP.match(piece):
            joined = joined[:-1]
        elif joined.endswith(("？", "！")) and piece.startswith("。"):
            piece = piece[1:]  # noqa: PLW2901
        if _HAN_SPACE.search(joined) and _HAN.match(piece):
            joined = joined[:-1]
        elif piece[:1] == " " and _HAN.match(piece[1:]) and _HAN.match(joined[-1:]):
            piece = piece[1:]  # noqa: PLW2901
        joined += piece
    return joined


def _map_value(value: str | int | float, change: Callable[[str], str]) -> str | int | float:
    if isinstance(value, Message):
        return value.map_text(change)
    return change(value) if isinstance(value, str) else value


def replace_in_message(text: str, old: str, new: str) -> str:
    """Return ``text`` with ``old`` replaced, in a message also in its parameters."""

    def replace(part: str) -> str:
        return new if part == old else part.replace(old, new)

    return text.map_text(replace) if isinstance(text, Message) else replace(text)


def cut_message(text: str, most: int) -> str:
    """Return the first ``most`` characters of a text; a message keeps its code and parameters."""
    cut = text[:most]
    return text.with_text(cut) if isinstance(text, Message) else cut


def strip_period(text: str) -> str:
    """Return a sentence without the period at its end, to be put into another one."""
    stripped = text.rstrip(".")
    return text.with_text(stripped) if isinstance(text, Message) else stripped


def join_sentences(*parts: str) -> str:
    """Return sentences as one text, with spaces between them; each message among them stays translatable."""
    return _join(parts, " ", lambda first, rest: Message("{first} {rest}", first=first, rest=rest))


def join_paragraphs(*parts: str) -> str:
    """Return texts as one, with empty lines between them; each message among them stays translatable."""
    return _join(parts, "\n\n", lambda first, rest: Message("{first}\n\n{rest}", first=first, rest=rest))


def _join(parts: Sequence[str], between: str, pair: Callable[[str, str], str]) -> str:
    filled = [part for part in parts if part]
    plain = [part for part in filled if not isinstance(part, Message)]
    if len(plain) == len(filled) or any(len(part) > MAX_PARAMETER for part in plain):
        return between.join(filled)  # a long text would be cut as a parameter
    joined = filled[-1]
    for part in reversed(filled[:-1]):
        joined = pair(part, joined)
    return joined


def join_list(parts: Sequence[str]) -> str:
    """Return several messages as one, with commas between them; each stays translatable."""
    joined = parts[-1] if parts else ""
    for part in reversed(parts[:-1]):
        joined = Message("{first}, {rest}", first=part, rest=joined)
    return joined


def join_messages(parts: Sequence[str]) -> str:
    """Return several messages as one, with semicolons between them; each stays translatable."""
    joined = parts[-1] if parts else ""
    for part in reversed(parts[:-1]):
        joined = Message("{first}; {rest}", first=part, rest=joined)
    return joined


def add_hint(message: str, hint: str) -> str:
    """Return the text of a failure: its message, and what to do next; ``read_hint`` returns the latter."""
    if not hint:
        return message
    if not message.endswith((".", "!", "?", "。", "»")):
        ended = f"{message}."
        message = message.with_text(ended) if isinstance(message, Message) else ended
    return Message("{message} {hint}", message=message, hint=hint)


def restore_hint(text: str, message: str, hint: str) -> Message:
    """Return a text that ``add_hint`` made as it was."""
    return Message.restore(text, _WITH_HINT, {"message": message, "hint": hint})


def read_hint(text: str) -> str:
    """Return the hint of a text that ``add_hint`` made; empty for any other."""
    if not isinstance(text, Message) or text.code != _WITH_HINT:
        return ""
    return str(text.params["hint"])


def from_fields(name: str, fields: Mapping[str, object]) -> str:
    """Return the text of a field, as a message if its code stands beside it: the inverse of ``to_fields``."""
    text, code, params = str(fields[name]), fields.get(f"{name}_code"), fields.get(f"{name}_params")
    if not isinstance(code, str) or not isinstance(params, Mapping):
        return text
    return Message.restore(text, code, {str(key): _value_from_json(value) for key, value in params.items()})


def _value_from_json(value: object) -> str | int | float:
    if isinstance(value, Mapping):
        return from_fields(
            "text", {"text": value.get("text", ""), "text_code": value.get("code"), "text_params": value.get("params")}
        )
    return value if isinstance(value, str | int | float) else str(value)


def to_fields(name: str, text: str) -> dict[str, Any]:
    """Return a field of client JSON and, if ``text`` is a message, its ``_code`` and ``_params`` beside it."""
    if not isinstance(text, Message):
        return {name: text}
    return {name: "".join(text), f"{name}_code": text.code, f"{name}_params": _params_to_json(text)}


def _params_to_json(message: Message) -> dict[str, Any]:
    return {name: _value_to_json(value) for name, value in message.params.items()}


def _value_to_json(value: str | int | float) -> dict[str, Any] | str | int | float:
    if isinstance(value, Message):
        return {"text": "".join(value), "code": value.code, "params": _params_to_json(value)}
    if not isinstance(value, str):
        return value
    return value[:MAX_PARAMETER].encode(errors="backslashreplace").decode()  # a file's name may be no Unicode
