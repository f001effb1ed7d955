"""Services of the host in the network of a confined program: a proxy to its hosts, and the host's callback port."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

from toolyard.confinement.level import can_enter_namespaces
from toolyard.confinement.profile import Network
from toolyard.plugins.package.plugin_access import PROXY_PORT, list_host_ports
from toolyard.plugins.process.launch import Launch, PortServer
from toolyard.plugins.process.network_proxy import NetworkProxy, proxy_variables
from toolyard.plugins.process.ports import Connection, ConnectionLimits, close_gracefully, open_tcp_connection, relay
from toolyard.protocol.access import Access
from toolyard.protocol.json import JsonObject

_log = logging.getLogger(__name__)
_LOOPBACK = "127.0.0.1"
_HTTP_PORTS = {"http": 80, "https": 443}
_RETRY_S = 0.25


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


class PortForward:
    """Forwards each connection to one address, such as the host's listener for callbacks."""

    def __init__(self, address: str, port: int, *, waits: bool = False, limits: ConnectionLimits | None = None) -> None:
        self._address, self._port = address, port
        self._waits = waits  # for a server that is not there at the moment: it may be restarting
        self._limits = limits or ConnectionLimits()
        self._connections = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection. One too many is closed at once, as is one whose address does not answer."""
        if self._connections >= self._limits.connections:
            writer.close()
            return
        client = Connection(reader, writer)
        self._connections += 1
        try:
            with suppress(OSError):
                await self._forward(client)
            await close_gracefully(client, self._limits.linger_s)
        finally:
            self._connections -= 1
            writer.transport.abort()

    def to_json(self) -> JsonObject:
        return {"address": self._address, "port": self._port, "waits": self._waits}

    async def _forward(self, client: Connection) -> None:
        async with asyncio.timeout(self._limits.connect_s):
            upstream = await self._connect()
        try:
            await relay(client, upstream, self._limits.idle_s)
            await close_gracefully(upstream, self._limits.linger_s)
        finally:
            upstream.writer.transport.abort()

    async def _connect(self) -> Connection:
        while True:
            try:
                return await open_tcp_connection(self._address, self._port)
            except ConnectionRefusedError:
                if not self._waits:
                    raise
            await asyncio.sleep(_RETRY_S)
