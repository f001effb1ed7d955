"""Schemas of nodes."""

from typing import Annotated

from pydantic import BaseModel, Field


class NodeRow(BaseModel):
    id: str
    name: Annotated[str, Field(description="What it is called here: its own name, with a number where two have one.")]
    address: Annotated[str, Field(description="From where it is connected.")]
    connected: Annotated[float, Field(description="Since when, as Unix time.")]
    seen: Annotated[float, Field(description="When its last message came.")]
    allowed: Annotated[bool, Field(description="False while it waits for a review.")]
    tools: Annotated[list[str], Field(description="The names by which its tools are called.")]
    placeholders: Annotated[list[str], Field(description="The placeholders to which it gives a value.")]
    running: Annotated[int, Field(description="The calls that run there.")]
    left_out: Annotated[dict[str, str], Field(description="Its tools that cannot be offered, and why.")]


class NodeList(BaseModel):
    is_open: Annotated[bool, Field(description="Whether nodes can connect.")]
    data: list[NodeRow]
