"""MCP servers to measure with: one of the SDK alone, and fastmcp's proxy before it.

As a program: ``python bench/mcp_servers.py sdk TOOLS``, and with a Python that has fastmcp ``... proxy PYTHON TOOLS``,
where PYTHON runs the server behind. It imports nothing of this project.
"""

import sys


def serve_sdk(tools: int) -> None:
    """Serve so many tools on stdin and stdout, the first of which reads a file."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("sdk")

    def read(path: str) -> str:
        with open(path, encoding="utf-8") as file:
            return file.read()

    def other(text: str, times: int = 1) -> str:
        return text * times

    server.add_tool(read, name="read", description="Reads a file.")
    for number in range(1, tools):
        server.add_tool(other, name=f"tool_{number}", description=f"Repeats a text. Number {number}.")
    server.run("stdio")


def serve_proxy(python: str, tools: int) -> None:
    from fastmcp.server import create_proxy  # type: ignore[import-not-found]  # it is in a place of its own

    command = {"command": python, "args": [__file__, "sdk", str(tools)]}
    create_proxy({"mcpServers": {"sdk": command}}).run(transport="stdio", show_banner=False)


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    if kind == "sdk":
        serve_sdk(int(rest[0]))
    else:
        serve_proxy(rest[0], int(rest[1]))
