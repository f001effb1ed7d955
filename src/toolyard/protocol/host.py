"""Hosts: the processes that share a database, as they announce themselves, and the tools they offer."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from toolyard.protocol.client_json import INTERNAL, to_client_json
from toolyard.protocol.json import JsonObject
from toolyard.protocol.record_body import read_integer, read_text, read_texts
from toolyard.protocol.store import NewEvent, Record

HOST: Final = "host"  # the kind of its records
OFFER: Final = "offer"  # the tools of a host, apart from its heartbeat because they are large and change seldom


class HostState(StrEnum):
    UP = "up"
    LEFT = "left"  # it announced that it leaves
    LOST = "lost"  # its lease ran out


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    id: str
    state: HostState
    created: float
    updated: float
    machine: str
    keeps: bool  # it settles what dead hosts leave behind
    offer: int  # the version of its offer
    tools: tuple[str, ...]
    term: int = 1
    version: Annotated[int, INTERNAL] = 0
    signature: Annotated[str, INTERNAL] = ""  # of what it says about itself and its offer

    @classmethod
    def from_record(cls, record: Record) -> "Host":
        body = record.body
        return cls(
            id=record.id, state=HostState(record.state), created=record.created, updated=record.updated,
            machine=read_text(body, "machine"), keeps=body.get("keeps") is True, offer=read_integer(body, "offer"),
            tools=read_texts(body, "tools"), term=read_integer(body, "term") or 1, version=record.version,
            signature=read_text(body, "signature"),
        )  # fmt: skip

    def to_record(self) -> Record:
        return Record(
            kind=HOST, id=self.id, state=self.state, version=self.version, created=self.created, updated=self.updated,
            body={
                "machine": self.machine, "keeps": self.keeps, "offer": self.offer, "tools": [*self.tools],
                "term": self.term, "signature": self.signature,
            },
        )  # fmt: skip

    def to_json(self) -> JsonObject:
        return to_client_json(self)

    def to_event(self) -> NewEvent:
        data: JsonObject = {"id": self.id, "machine": self.machine, "tools": [*self.tools]}
        return NewEvent(type=f"host.{self.state.value}", at=self.updated, data=data)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOffer:
    """The specs of the tools that a host offers, as texts."""

    id: str
    created: float
    updated: float
    tools: tuple[str, ...]
    version: int = 0

    @classmethod
    def from_record(cls, record: Record) -> "HostOffer":
        return cls(
            id=record.id, created=record.created, updated=record.updated, tools=read_texts(record.body, "tools"),
            version=record.version,
        )  # fmt: skip

    def to_record(self) -> Record:
        return Record(
            kind=OFFER, id=self.id, state=HostState.UP, version=self.version, created=self.created,
            updated=self.updated, body={"tools": [*self.tools]},
        )  # fmt: skip
