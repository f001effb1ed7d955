"""The field ``permissions`` of a manifest: what a plugin may reach. It protects, so whatever is wrong in it refuses.

``network`` lists hosts, as rules about names, addresses and ports. An entry is one of

- a name, ``api.example.com``: this name only;
- ``*.example.com``: every name below it, not the name itself;
- an address, ``192.168.1.5`` or ``[fd00::5]``, or a range of them, ``10.0.0.0/8``;
- ``localhost``: this name, and the loopback addresses of the machine.

Each may end with a port, ``example.com:8443`` or ``[fd00::/8]:8443``; without one it allows the ports 80 and 443.
Names are compared without regard to case and in their ASCII form. A name that leads to an address that is not public
needs an entry for that address and port as well: to declare a name is not to declare a private network.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from toolyard.message import Message
from toolyard.protocol.access import ANY_HOST, Access, ConfinementLevel, ProjectAccess
from toolyard.protocol.arguments import find_nearest
from toolyard.protocol.json import Json
from toolyard.protocol.manifests.fields import Fields

_KEYS = ("project", "read", "write", "ownFolder", "network", "unixSockets", "confinement")
_MAX_ENTRIES = 100
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
DEFAULT_PORTS: Final = frozenset({80, 443})
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)")  # a name that ends like this is an address to some programs
_ENTRY = re.compile(r"(?:\[(?P<bracketed>[^\[\]]*)\]|(?P<plain>[^:\[\]]*))(?::(?P<port>[0-9]{1,5}))?")
_LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))


def parse_permissions(fields: Fields) -> Access | None:
    """Return the declared access; None without one, and for the list of words that old manifests may have."""
    value = fields.value.get("permissions")
    if value is None or isinstance(value, list):
        return None
    inner = fields.nested("permissions", vital=True)
    _note_unknown(inner)
    return Access(
        project=_parse_folder_access(inner, "project", ProjectAccess.NONE),
        read=tuple(_parse_paths(inner, "read")),
        write=tuple(_parse_paths(inner, "write")),
        own_folder=_parse_folder_access(inner, "ownFolder", ProjectAccess.READ),
        network=_parse_network(inner),
        unix_sockets=inner.flag("unixSockets", default=False, vital=True),
        minimum=_parse_minimum(inner),
    )


def _note_unknown(fields: Fields) -> None:
    """Refuse a misspelt permission, which would protect less than was meant; warn of any other unknown one."""
    for name in (name for name in fields.value if name not in _KEYS):
        message = Message("'{name}' is not a permission.", name=name)
        if meant := find_nearest(name, _KEYS):
            fix = Message("Did you mean '{meant}'?", meant=meant)
            fields.note(name, message, fix, warning=False)
        else:
            known = Message("Known are {known}.", known=", ".join(_KEYS))
            fields.note(name, message, known)


def _parse_folder_access(fields: Fields, name: str, default: ProjectAccess) -> ProjectAccess:
    value = fields.value.get(name)
    if value is None:
        return default
    if isinstance(value, str) and value in list(ProjectAccess):
        return ProjectAccess(value)
    _refuse(fields, name, Message('"none", "read" or "write"'))
    return default


def _parse_paths(fields: Fields, name: str) -> Iterator[str]:
    expected = Message("a list of paths: absolute, or relative to the project")
    for text in _parse_list(fields, name, expected):
        if "\0" in text or ".." in text.split("/") or text.startswith("~"):
            _refuse(fields, name, expected)
        else:
            yield text


def _parse_network(fields: Fields) -> tuple[str, ...] | None:
    value = fields.value.get("network")
    if value is None:
        return None
    if value == "any":
        return ANY_HOST
    expected = Message('"any", or a list of hosts such as "api.example.com" or "*.example.com:8443"')
    hosts = tuple(_parse_list(fields, "network", expected))
    try:
        AllowedHosts.parse(hosts)
    except ValueError:
        _refuse(fields, "network", expected)
    return hosts


def _parse_minimum(fields: Fields) -> ConfinementLevel:
    value = fields.value.get("confinement")
    if isinstance(value, str) and value in list(ConfinementLevel):
        return ConfinementLevel(value)
    if value is not None:
        _refuse(fields, "confinement", Message('"none", "files" or "full"'))
    return ConfinementLevel.NONE


def _parse_list(fields: Fields, name: str, expected: Message) -> list[str]:
    value: Json = fields.value.get(name)
    if value is None:
        return []
    if isinstance(value, list) and len(value) <= _MAX_ENTRIES:
        texts = [item for item in value if isinstance(item, str) and item]
        if len(texts) == len(value):
            return texts
    _refuse(fields, name, expected)
    return []


def _refuse(fields: Fields, name: str, expected: Message) -> None:
    fields.note(
        name,
        Message("'permissions.{name}' is not what it has to be.", name=name),
        Message("Write {expected}.", expected=expected),
        warning=False,
    )


def normalize_name(text: str) -> str | None:
    """Return a host name in ASCII without its case and its last dot; None when it is none."""
    name = text.lower().removesuffix(".")
    return name if _NAME.fullmatch(name) else None


def unmap_address(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address of the form ``::ffff:1.2.3.4`` stands for, or the address itself."""
    return getattr(address, "ipv4_mapped", None) or address


@dataclass(frozen=True, slots=True)
class HostRule:
    """One thing that an entry allows: a name, the names below it, or a range of addresses."""

    ports: frozenset[int]
    name: str = ""
    below: str = ""  # with its leading dot
    network: Network | None = None

    def allows_name(self, name: str, port: int) -> bool:
        is_below = bool(self.below) and name.endswith(self.below)
        return port in self.ports and ((bool(self.name) and name == self.name) or is_below)

    def allows_address(self, address: Address, port: int) -> bool:
        return port in self.ports and self.network is not None and address in self.network


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    rules: tuple[HostRule, ...]

    @classmethod
    def parse(cls, entries: Sequence[str]) -> "AllowedHosts":
        """Return the rules of the entries. Raises ValueError, with a sentence about the first that is wrong."""
        return cls(tuple(rule for entry in entries for rule in _parse_entry(entry)))

    def allows_name(self, name: str, port: int) -> bool:
        """Return whether an entry names this host; ``name`` comes from ``normalize_name``."""
        return any(rule.allows_name(name, port) for rule in self.rules)

    def allows_address(self, address: Address, port: int) -> bool:
        """Return whether an entry covers this address, which comes from ``unmap_address``."""
        if address.is_unspecified or address.is_multicast:  # 0.0.0.0 is the machine itself to a system that connects
            return False
        return any(rule.allows_address(address, port) for rule in self.rules)


def _parse_entry(entry: str) -> Iterator[HostRule]:
    host, port = _split_entry(entry)
    ports = DEFAULT_PORTS if port is None else frozenset({port})
    if (network := _parse_address_range(entry, host)) is not None:
        yield HostRule(ports, network=network)
        return
    name = _parse_name(entry, host.removeprefix("*."))
    if host.startswith("*."):
        yield HostRule(ports, below=f".{name}")
        return
    yield HostRule(ports, name=name)
    if name == "localhost":
        yield from (HostRule(ports, network=loopback) for loopback in _LOOPBACK)


def _split_entry(entry: str) -> tuple[str, int | None]:
    if entry.count(":") > 1 and not entry.startswith("["):  # an IPv6 address, which needs brackets only before a port
        return entry, None
    parts = _ENTRY.fullmatch(entry)
    if parts is None:
        raise _entry_error(entry, "it is not of the form host or host:port")
    bracketed, port = parts["bracketed"], parts["port"]
    if bracketed is not None and ":" not in bracketed:
        raise _entry_error(entry, "only an IPv6 address stands in brackets")
    if port is not None and not 1 <= int(port) <= 65535:
        raise _entry_error(entry, "a port is a number from 1 to 65535")
    return bracketed if bracketed is not None else parts["plain"], None if port is None else int(port)


def _parse_address_range(entry: str, host: str) -> Network | None:
    """Return the addresses that an entry names; None when it names a host."""
    if "/" not in host and ":" not in host and not _NUMBER.fullmatch(host.lower()):
        return None
    try:
        network = ipaddress.ip_network(host)
    except ValueError as error:
        raise _entry_error(entry, f"it is no address and no range of addresses ({error})") from error
    if "%" in host:
        raise _entry_error(entry, "an address stands here without its zone")
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    if mapped is not None and network.prefixlen >= 96:
        return ipaddress.IPv4Network((int(mapped), network.prefixlen - 96))
    return network


def _parse_name(entry: str, host: str) -> str:
    try:
        ascii_host = host if host.isascii() else host.encode("idna").decode()
        # The older rules of IDNA turn some letters into others (ß into ss), which would be another host.
        is_same = host.isascii() or ascii_host.encode().decode("idna") == unicodedata.normalize("NFKC", host).lower()
    except UnicodeError as error:
        raise _entry_error(entry, "it is no host name") from error
    name = normalize_name(ascii_host)
    if name is None or _NUMBER.fullmatch(name):
        raise _entry_error(entry, "it is no host name")
    if not is_same:
        raise _entry_error(entry, "write this name in its ASCII form, which begins with xn--")
    return name


def _entry_error(entry: str, problem: str) -> ValueError:
    return ValueError(f"{entry!r} in permissions.network is not a host: {problem}")
