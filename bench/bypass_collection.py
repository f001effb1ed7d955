"""A full garbage collection in a server, with one ``gc.freeze`` left out or with all: how long every chat stands still.

As a program: ``python -m bench.bypass_collection PLACE MODULE REQUEST``. MODULE is the one whose ``gc.freeze`` is left
out, or ``none``; REQUEST is ``mcp`` when its MCP server is to be loaded. It prints seconds of processor time.
"""

import asyncio
import contextlib
import gc
import http.client
import json
import statistics
import sys
import time
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from toolyard.config import load_config
from toolyard.web.server.lifecycle import Server, ServerOptions

INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


async def measure(place: Path, module: str, request: str) -> None:
    _leave_out_freeze(module)
    server = Server(load_config(place / "project", place / "home"), ServerOptions(port=0))
    await server.start()
    if request == "mcp":
        await asyncio.to_thread(_load_mcp, server.url, (place / "home/key").read_text().strip())
    print(statistics.median(_collect() for _ in range(5)))
    await server.stop()


def _leave_out_freeze(module: str) -> None:
    freeze = gc.freeze

    def freeze_unless_left_out() -> None:
        if sys._getframe(1).f_globals["__name__"] != module:
            freeze()

    gc.freeze = freeze_unless_left_out


def _load_mcp(url: str, key: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    headers = {
        "Authorization": f"Bearer {key}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    with contextlib.closing(http.client.HTTPConnection(urlsplit(url).netloc)) as connection:
        connection.request("POST", "/mcp", json.dumps(body), headers)
        assert connection.getresponse().status == HTTPStatus.OK


def _collect() -> float:
    began = time.thread_time()
    gc.collect()
    return time.thread_time() - began


if __name__ == "__main__":
    place, *names = sys.argv[1:]
    asyncio.run(measure(Path(place), *names))
