"""A profile: everything that a confined program may reach. A value, with absolute paths that have no links in them.

They are opened without following any, so that what has become a link since is not granted: the start fails instead.
"""

from dataclasses import dataclass
from enum import StrEnum


class Network(StrEnum):
    ANY = "any"
    PORTS = "ports"  # the given ports of this machine's loopback address, which the host serves
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    read: tuple[str, ...] = ()  # trees or files, which may also be executed
    write: tuple[str, ...] = ()
    covered: tuple[str, ...] = ()  # folders inside those trees that must not be seen
    views: tuple[tuple[str, str], ...] = ()  # files inside those trees, each with the file that is read in its place
    network: Network = Network.NONE
    ports: tuple[int, ...] = ()
    unix_sockets: bool = False
    own_processes: bool = False  # it sees no other processes: by bubblewrap
    is_contained: bool = False  # what it starts ends with it, where it can have a number space of processes for nothing
