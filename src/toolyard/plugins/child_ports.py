"""The ports of a child's profile, served by the host from its start to its end."""

import asyncio
import contextlib
import logging
from collections.abc import Mapping

from toolyard.confinement.start import StartedProcess
from toolyard.plugins.host_ports import HostPorts
from toolyard.plugins.stream_relay import ConnectionCallback

_log = logging.getLogger(__name__)


class ChildPorts:
    def __init__(self, services: Mapping[int, ConnectionCallback], started: StartedProcess) -> None:
        """``services`` are the handlers of the profile's ports, in the order of the ports."""
        self._ports = HostPorts()
        self._handlers = tuple(services.values())
        self._serving = asyncio.ensure_future(self._serve(started)) if self._handlers else None
        self._closing: asyncio.Future[None] | None = None
        if not self._handlers and started.channel is not None:
            started.channel.close()

    def close(self) -> None:
        """Stop serving; connections that are open are cut off."""
        if self._serving is not None and self._closing is None:
            self._closing = asyncio.ensure_future(self._close(self._serving))

    async def _serve(self, started: StartedProcess) -> None:
        if started.channel is None:
            for listener, handle in zip(started.listeners, self._handlers, strict=True):
                await self._ports.serve(listener, handle)
            return
        try:
            await self._ports.serve_from_channel(started.channel, self._handlers)
        except (OSError, TimeoutError) as error:  # the program could not begin, and its output says why
            _log.debug("the ports of a child are not served: %s", error)
        finally:
            started.channel.close()

    async def _close(self, serving: "asyncio.Future[None]") -> None:
        await self._ports.close()
        with contextlib.suppress(OSError):
            await serving
