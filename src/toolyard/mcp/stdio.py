"""``toolyard mcp serve``: one client on stdin and stdout. stdout carries the protocol and nothing else."""

from toolyard.app import Yard
from toolyard.config import Config
from toolyard.mcp.server import McpServer


async def serve(config: Config) -> None:
    """Until the client closes stdin."""
    from mcp.server.stdio import stdio_server

    caller = f"mcp:{config.project.resolve()}"
    async with Yard(config) as yard:
        server = McpServer(yard, lambda _: caller)
        async with stdio_server() as (incoming, outgoing), server.running(refresh=True):
            await server.sdk.run(incoming, outgoing, server.sdk.create_initialization_options())
