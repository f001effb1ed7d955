"""The access of a program in plain words, for the owner who decides on it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolyard.confinement.level import Confinement
from toolyard.message import Message, to_fields
from toolyard.protocol.access import ANY_HOST, Access, AccessChoice, ProjectAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessOption:
    """One of the decisions that an owner can take, with what it means here."""

    choice: AccessChoice
    reach: tuple[Message, ...]
    confinement: Confinement

    def to_json(self) -> dict[str, Any]:
        return {
            "choice": self.choice.value,
            "reach": [to_fields("text", line) for line in self.reach],
            "confinement": self.confinement.level.value,
            "missing": [to_fields("text", line) for line in self.confinement.missing],
        }


def describe_access(access: Access | None, *, declares_network: bool) -> tuple[Message, ...]:
    """Describe what a program may reach beyond the system and its data folder; None: everything."""
    if access is None:
        return (Message("access.everything", "everything that Toolyard itself can reach: it is not confined"),)
    return (
        *_describe_files(access),
        _describe_network(access, declares_network=declares_network),
        *_describe_rest(access),
    )


def describe_links(links: Mapping[str, str]) -> tuple[Message, ...]:
    """Describe the links on the way to what a program may reach."""
    return tuple(
        Message("access.link", "follows the link {path} to {lead}", path=path, lead=lead)
        for path, lead in sorted(links.items())
    )


def _describe_files(access: Access) -> Iterator[Message]:
    if access.own_folder is ProjectAccess.WRITE:
        yield Message("access.own_folder_write", "changes files in its own folder")
    else:
        yield Message("access.own_folder_read", "reads its own folder and writes its data folder")
    if access.project is ProjectAccess.WRITE:
        yield Message("access.project_write", "reads and changes every file of the project")
    elif access.project is ProjectAccess.READ:
        yield Message("access.project_read", "reads every file of the project")
    if access.read:
        yield Message("access.paths_read", "reads {paths}", paths=", ".join(access.read))
    if access.write:
        yield Message("access.paths_write", "reads and changes {paths}", paths=", ".join(access.write))


def _describe_network(access: Access, *, declares_network: bool) -> Message:
    if access.network == ANY_HOST:
        if declares_network:
            return Message("access.network_any", "connects to any host on the network")
        return Message(
            "access.network_undeclared", "connects to any host on the network: it does not say which it needs"
        )
    if access.network:
        return Message("access.network_hosts", "connects to {hosts} only", hosts=", ".join(access.network))
    return Message("access.network_none", "has no network")


def _describe_rest(access: Access) -> Iterator[Message]:
    if access.unix_sockets:
        yield Message(
            "access.unix_sockets", "opens local sockets: a session bus, a container engine, other programs of this user"
        )
