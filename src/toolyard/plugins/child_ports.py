"""The ports of a child's profile, served by the host from its start to its end."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import TypeAlias

from toolyard.confinement.start import StartedProcess
from toolyard.plugins.host_ports import HostPorts
from toolyard.plugins.port_server import PortServer

_log = logging.getLogger(__name__)

TakePort: TypeAlias = Callable[[int, PortServer], None]
"""Takes a listening socket, which stays open here, and what is served on it."""


class ChildPorts:
    def __init__(self, services: Mapping[int, PortServer], started: StartedProcess) -> None:
        """``services`` belong to the profile's ports, in the order of the ports."""
        self._ports = HostPorts()
        self._services = tuple(services.values())
        self._serving = asyncio.ensure_future(self._serve(started)) if self._services else None
        self._closing: asyncio.Future[None] | None = None
        if not self._services and started.channel is not None:
            started.channel.close()

    def hand_over(self, take: TakePort) -> None:
        """Give every port to ``take``, as soon as it is served here."""

        def give() -> None:
            for listener, service in zip(self._ports.list_listeners(), self._services, strict=False):
                take(listener, service)

        if self._serving is None or self._serving.done():
            give()
        else:
            self._serving.add_done_callback(lambda _: give())

    def close(self) -> None:
        """Stop serving; connections that are open are cut off."""
        if self._serving is not None and self._closing is None:
            self._closing = asyncio.ensure_future(self._close(self._serving))

    async def wait_closed(self) -> None:
        """Wait until nothing is served any more, after ``close``."""
        if self._closing is not None:
            await self._closing

    async def _serve(self, started: StartedProcess) -> None:
        handlers = [service.handle for service in self._services]
        if started.channel is None:
            for listener, handle in zip(started.listeners, handlers, strict=True):
                await self._ports.serve(listener, handle)
            return
        try:
            await self._ports.serve_from_channel(started.channel, handlers)
        except (OSError, TimeoutError) as error:  # the program could not begin, and its output says why
            _log.debug("the ports of a child are not served: %s", error)
        finally:
            started.channel.close()

    async def _close(self, serving: "asyncio.Future[None]") -> None:
        await self._ports.close()
        with contextlib.suppress(OSError):
            await serving
