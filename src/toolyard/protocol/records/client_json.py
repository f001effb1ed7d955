"""Client JSON of stored values: a frozen dataclass or named tuple declares once what clients see of it.

Each field is a member of its client JSON under its own name, unless it is marked ``INTERNAL``. ``Doc`` describes a
field for the OpenAPI, whose models are built from ``client_fields``; a property whose result has a ``Doc`` is a member
too. A field that may hold a ``Message`` is declared as ``Message | str``: the message's code and parameters stand
beside it.
"""

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

from toolyard.message import Message, to_fields
from toolyard.protocol.json import Json, JsonObject

_NAMES: dict[type[Any], tuple[str, ...]] = {}  # of the values seen so far: type hints are slow to read
_PLAIN = frozenset({str, int, float, bool, type(None), dict, list})


class Doc(NamedTuple):
    """The description of a field: ``Annotated[str, Doc("Why it asks.")]``."""

    text: str


INTERNAL: Final = Doc("")
"""Marks a field that clients do not see."""


class ClientField(NamedTuple):
    type: Any
    description: str = ""
    is_message: bool = False  # with its code and parameters beside it, if it has any


def client_fields(value_type: type[Any]) -> dict[str, ClientField]:
    """Return the members of the client JSON of a value, by name, in order."""
    hints = _read_hints(value_type)
    names = [field.name for field in fields(value_type)] if is_dataclass(value_type) else value_type._fields
    declared = {name: _read_hint(hints[name]) for name in names if not _is_internal(hints[name])}
    getters = {name: item.fget for name, item in vars(value_type).items() if isinstance(item, property)}
    results = {name: _read_hints(getter)["return"] for name, getter in getters.items()}
    return declared | {name: _read_hint(hint) for name, hint in results.items() if get_origin(hint) is Annotated}


def is_value_type(kind: Any) -> bool:
    """Return whether values of this type have client JSON."""
    return isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields"))


def to_client_json(value: Any) -> JsonObject:
    """Return the client JSON of a value."""
    names = _NAMES.get(type(value)) or _remember_names(type(value))
    members: JsonObject = {}
    for name in names:
        item = getattr(value, name)
        if isinstance(item, Message):
            members |= to_fields(name, item)
        else:
            members[name] = _to_json(item)
    return members


def _remember_names(value_type: type[Any]) -> tuple[str, ...]:
    _NAMES[value_type] = tuple(client_fields(value_type))
    return _NAMES[value_type]


def _to_json(value: Any) -> Json:
    if type(value) in _PLAIN:
        return value  # type: ignore[no-any-return]
    if isinstance(value, Enum):
        return value.value  # type: ignore[no-any-return]
    if is_value_type(type(value)):
        return to_client_json(value)
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no client JSON")


def _read_hints(declared: Any) -> dict[str, Any]:
    return get_type_hints(declared, localns={"Json": Json}, include_extras=True)


def _read_hint(hint: Any) -> ClientField:
    plain, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    parts = [part for part in get_args(plain) if part is not Message]
    is_message = Message in get_args(plain)
    description = next((note.text for note in notes if isinstance(note, Doc)), "")
    return ClientField(Union[tuple(parts)] if is_message else plain, description, is_message)  # noqa: UP007 known only now


def _is_internal(hint: Any) -> bool:
    return get_origin(hint) is Annotated and INTERNAL in get_args(hint)
