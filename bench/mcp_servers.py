"""MCP servers to measure with: one of the SDK alone, the same with a journal, and fastmcp's proxy before the first.

As a program: ``python bench/mcp_servers.py sdk TOOLS [JOURNAL]``, and with a Python that has fastmcp
``... proxy PYTHON TOOLS``, where PYTHON runs the server behind. It imports nothing of this project.
"""

import sqlite3
import sys
import threading
import uuid
from collections.abc import Callable

Read = Callable[[str], str]


def serve_sdk(tools: int, journal: str = "") -> None:
    """Serve so many tools on stdin and stdout, the first of which reads a file; ``journal`` is a file of its calls."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("sdk")

    def read(path: str) -> str:
        with open(path, encoding="utf-8") as file:
            return file.read()

    def other(text: str, times: int = 1) -> str:
        return text * times

    server.add_tool(_with_journal(read, journal) if journal else read, name="read", description="Reads a file.")
    for number in range(1, tools):
        server.add_tool(other, name=f"tool_{number}", description=f"Repeats a text. Number {number}.")
    server.run("stdio")


def _with_journal(read: Read, file: str) -> Read:
    """Return the tool with the least that a journal takes: a record of its call before it runs, and of its result."""
    db = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE TABLE calls (id TEXT PRIMARY KEY, path TEXT, result TEXT)")
    turn = threading.Lock()

    def journalled_read(path: str) -> str:
        call_id = uuid.uuid4().hex
        with turn:
            db.execute("INSERT INTO calls (id, path) VALUES (?, ?)", (call_id, path))
        result = read(path)
        with turn:
            db.execute("UPDATE calls SET result = ? WHERE id = ?", (result, call_id))
        return result

    return journalled_read


def serve_proxy(python: str, tools: int) -> None:
    from fastmcp.server import create_proxy  # type: ignore[import-not-found]  # it is in a place of its own

    command = {"command": python, "args": [__file__, "sdk", str(tools)]}
    create_proxy({"mcpServers": {"sdk": command}}).run(transport="stdio", show_banner=False)


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    if kind == "sdk":
        serve_sdk(int(rest[0]), *rest[1:])
    else:
        serve_proxy(rest[0], int(rest[1]))
