"""Schemas of the project folder."""

from typing import Annotated

from pydantic import BaseModel, Field

from toolyard.workspace.folder_listing import EntryType


class ProjectEntry(BaseModel):
    name: str
    path: Annotated[str, Field(description="Relative to the root.")]
    type: EntryType


class ProjectFolder(BaseModel):
    path: Annotated[str, Field(description="Relative to the root, which is `.`; links are resolved.")]
    entries: list[ProjectEntry]
    truncated: Annotated[bool, Field(description="There are more entries than were returned.")]
