"""Schemas of settings."""

from typing import Annotated, Any, TypeAlias

from pydantic import Field

from toolyard.web.schemas.common import ErrorBody, MessageFields

SettingValue: TypeAlias = str | bool | int | float | list[str] | dict[str, Any] | None
"""The value of a setting; a table such as ``upstreams`` is an object."""


class SettingProblem(MessageFields):
    line: int
    column: int


class SettingProblems(ErrorBody):
    problems: Annotated[list[SettingProblem], Field(default_factory=list)]
