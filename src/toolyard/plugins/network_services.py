"""Services of the host in the network of a confined program: a proxy to its hosts, and the host's callback port."""

import logging
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

from toolyard.confinement.level import can_enter_namespaces
from toolyard.confinement.profile import Network
from toolyard.plugins.launch import Launch
from toolyard.plugins.network_proxy import NetworkProxy, proxy_variables
from toolyard.plugins.plugin_access import PROXY_PORT, list_host_ports
from toolyard.plugins.port_forward import PortForward
from toolyard.plugins.port_server import PortServer
from toolyard.protocol.access import Access
from toolyard.protocol.json import JsonObject

_log = logging.getLogger(__name__)
_LOOPBACK = "127.0.0.1"
_HTTP_PORTS = {"http": 80, "https": 443}


class NetworkServices:
    """The proxies of one event loop, one for each list of hosts."""

    def __init__(self) -> None:
        self._proxies: dict[tuple[str, tuple[str, ...]], NetworkProxy] = {}
        self.refusals = 0  # so far, of all programs
        self._refused: dict[str, tuple[int, str]] = {}  # by program: the number of its last refusal, and the host

    def add_to(self, launch: Launch, name: str, access: Access | None) -> Launch:
        """Return the launch with the services and variables by which its program reaches the hosts of its list."""
        ports = list_host_ports(access) if access else set()
        if not ports or not can_enter_namespaces() or access is None:
            return launch
        services: dict[int, PortServer] = {
            port: self._proxy(name, access.network or ()) if port == PROXY_PORT else PortForward(_LOOPBACK, port)
            for port in sorted(ports)
        }
        environment = {**launch.environment, **proxy_variables(PROXY_PORT)}
        return replace(launch, services=services, environment=environment)

    def find_refused_host(self, name: str, since: int) -> str:
        """Return the last host that a program was kept from; empty: none since there were ``since`` refusals."""
        number, host = self._refused.get(name, (0, ""))
        return host if number > since else ""

    def _proxy(self, name: str, hosts: tuple[str, ...]) -> NetworkProxy:
        def log_refusal(host: str, port: int, reason: str) -> None:
            _log.info("%s was kept from %s:%d: %s", name, host, port, reason)
            self.refusals += 1
            self._refused[name] = self.refusals, f"{host}:{port}"

        key = (name, hosts)
        if key not in self._proxies:
            self._proxies[key] = NetworkProxy(hosts, on_refused=log_refusal)
        return self._proxies[key]


def add_callback(launch: Launch, base: str) -> tuple[Launch, str]:
    """Return the launch of a program that calls back to ``base``, and the address by which it does so.

    A program with a network of its own reaches the host by a loopback port there; any other as it is.
    """
    profile = launch.profile
    if profile is None or profile.network is not Network.PORTS or not can_enter_namespaces():
        return launch, base
    parts = urlsplit(base)
    port = parts.port or _HTTP_PORTS[parts.scheme]
    services = {**launch.services, port: PortForward(parts.hostname or _LOOPBACK, port, waits=True)}
    own = urlunsplit(parts._replace(netloc=f"{_LOOPBACK}:{port}"))
    return replace(launch, services=services, profile=replace(profile, ports=tuple(services))), own


def build_port_server(fields: JsonObject) -> PortServer:
    """Return the service that another process described by ``to_json``."""
    match fields:
        case {"hosts": list() as hosts}:
            return NetworkProxy([str(host) for host in hosts])
        case {"address": str() as address, "port": int() as port, "waits": bool() as waits}:
            return PortForward(address, port, waits=waits)
    raise ValueError(f"unknown service: {fields}")
