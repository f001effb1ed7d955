"""The contract for what the host serves on one port in a program's network."""

import asyncio
from typing import Protocol

from toolyard.protocol.json import JsonObject


class PortServer(Protocol):
    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one accepted connection to its end, and close it."""
        ...

    def to_json(self) -> JsonObject:
        """Return what another process needs to serve the same: see ``network_services.build_port_server``."""
        ...
