"""The addresses by which other machines of the local network reach this one."""

import contextlib
import socket
import struct
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import Final

_ROUTE_TARGETS: Final = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))  # documentation addresses
_GET_ADDRESS: Final = 0x8915  # SIOCGIFADDR of Linux


def list_lan_addresses() -> tuple[str, ...]:
    """Return the addresses of this machine that others can reach; the one of the default route comes first."""
    found = [*_list_route_addresses(), *_list_interface_addresses()]
    return tuple(dict.fromkeys(address for address in found if _is_reachable(address)))


def _list_route_addresses() -> list[str]:
    """Return the addresses from which packets to the outside would come. Nothing is sent."""
    addresses = []
    for family, target in _ROUTE_TARGETS:
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((target, 9))
            addresses.append(probe.getsockname()[0])
    return addresses


def _list_interface_addresses() -> list[str]:
    """Return the IPv4 address of each network card; only Linux is asked, others have that of the default route.

    Bridges of containers and virtual machines come and go, and no phone is behind them.
    """
    if sys.platform != "linux":
        return []
    import fcntl

    addresses = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for _, name in socket.if_nameindex():
            if not Path("/sys/class/net", name, "device").exists():
                continue
            with contextlib.suppress(OSError):  # an interface without an address
                answer = fcntl.ioctl(control, _GET_ADDRESS, struct.pack("256s", name.encode()[:15]))
                addresses.append(socket.inet_ntoa(answer[20:24]))
    return addresses


def _is_reachable(address: str) -> bool:
    parsed = ip_address(address)
    return not (parsed.is_loopback or parsed.is_link_local or parsed.is_unspecified)
