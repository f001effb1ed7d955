"""``toolyard mcp serve``: one client on stdin and stdout. stdout carries the protocol and nothing else."""

from toolyard.app import Yard
from toolyard.mcp.server import McpServer


async def serve(yard: Yard) -> None:
    """Until the client closes stdin."""
    from mcp.server.stdio import stdio_server

    caller = f"mcp:{yard.config.project.resolve()}"
    server = McpServer(yard, lambda _: caller)
    async with stdio_server() as (incoming, outgoing), server.running(refresh=True):
        await server.sdk.run(incoming, outgoing, server.sdk.create_initialization_options())
