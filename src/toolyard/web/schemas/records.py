"""Models of answers that show a stored value, built from the value, so that the two cannot disagree.

A route answers with the ``to_json`` of a value; its model has the members of ``client_fields`` and those that the route
adds. Such models are closed: an answer with another member does not match them.
"""

from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, Field, create_model

from toolyard.protocol.records.client_json import ClientField, client_fields, is_value_type
from toolyard.web.schemas.common import Code, Params, StrictModel


def record_model(
    name: str, value_type: type, added: type[BaseModel] = StrictModel, *, without: str = ""
) -> type[BaseModel]:
    """Build the model of a value's client JSON, with the members that a route adds; ``without`` names one it drops.

    A member of ``added`` describes the value's member of the same name more exactly, or replaces it.
    """
    left_out = {without, *added.model_fields}
    fields = {key: field for key, field in client_fields(value_type).items() if key not in left_out}
    model = extend_model(name, added, **{key: _to_annotation(field) for key, field in fields.items()})
    codes: Any = {f"{key}_code": (Code, "") for key, field in fields.items() if field.is_message}
    params: Any = {f"{key}_params": (Params, ...) for key, field in fields.items() if field.is_message}
    with_codes: type[BaseModel] = create_model(name, __base__=model, **codes, **params)
    return with_codes if codes else model


def page_model(name: str, row: type[BaseModel]) -> type[BaseModel]:
    """Build the model of a page of rows."""
    return extend_model(name, StrictModel, data=list[row], next=str | None)  # type: ignore[valid-type]


def extend_model(name: str, base: type[BaseModel], /, **members: Any) -> type[BaseModel]:
    """Build a model with more members, all of which are always there."""
    required: Any = {key: (kind, ...) for key, kind in members.items()}
    model: type[BaseModel] = create_model(name, __base__=base, **required)
    return model


@cache
def _nested_model(value_type: type) -> type[BaseModel]:
    return record_model(value_type.__name__, value_type)


def _to_annotation(field: ClientField) -> Any:
    kind = _to_model_type(field.type)
    return Annotated[kind, Field(description=field.description)] if field.description else kind


def _to_model_type(kind: Any) -> Any:
    """Return the type for pydantic: an object of JSON has any members, a tuple is a list, a value is its model."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is dict:
        return dict[str, Any]
    if origin is tuple:
        return list[_to_model_type(parts[0])]  # type: ignore[misc]
    if origin in (Union, UnionType):
        is_any_json = {dict, list} <= {get_origin(part) for part in parts}
        return Any if is_any_json else Union[tuple(map(_to_model_type, parts))]  # noqa: UP007 known only now
    return _nested_model(kind) if is_value_type(kind) else kind


class MaskedText(StrictModel):
    at: Annotated[str, Field(description="The JSON pointer of the text that is masked, or has masks in it.")]
    characters: int


class PatchHunk(BaseModel):
    oldStart: int  # noqa: N815 as npm diff names it
    oldLines: int  # noqa: N815
    newStart: int  # noqa: N815
    newLines: int  # noqa: N815
    lines: list[str]


class RevealedArguments(BaseModel):
    id: str
    arguments: dict[str, Any]
