"""``/v1/backend/stream`` on a real server: server-sent events and a WebSocket, both from a cursor."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.web.conftest import RunningServer, run_server
from toolyard.web.server.lifecycle import ServerOptions

pytestmark = pytest.mark.requirement("backend:stream")
STREAM = "/v1/backend/stream"


@pytest.fixture
def server(running_server: RunningServer) -> RunningServer:
    return running_server


async def read_events(response: aiohttp.ClientResponse, count: int) -> list[dict[str, str]]:
    """So many events, comments left out."""
    result: list[dict[str, str]] = []
    async with asyncio.timeout(60):
        while len(result) < count:
            block = (await response.content.readuntil(b"\n\n")).decode()
            fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
            if fields:
                result.append(fields)
    return result


def key(server: RunningServer) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.key}"}


async def test_messages_come_as_events_and_go_on_after_the_last_id(server: RunningServer) -> None:
    url = server.url + STREAM
    async with server.client.get(url, headers=key(server)) as response:
        assert response.content_type == "text/event-stream"
        await server.post("/v1/tools/Write", {"path": "a.txt", "content": "x"})
        await server.post("/v1/tools/Read", {"path": "missing.txt"})
        first, second = await read_events(response, 2)
    written, missing = json.loads(first["data"]), json.loads(second["data"])
    assert set(written) == {"type", "tool_name", "tool_use_id", "uuid", "data"}
    assert (written["type"], written["tool_name"]) == ("backend_only", "Replace")
    assert written["data"]["filePath"] == str(server.project / "a.txt")
    assert missing["data"].startswith("Error: NOT_FOUND: ")
    async with server.client.get(url, headers={**key(server), "Last-Event-ID": first["id"]}) as response:
        assert await read_events(response, 1) == [second]


@pytest.mark.requirement("backend:stream:websocket")
async def test_a_websocket_carries_the_same_frames_as_server_sent_events(server: RunningServer) -> None:
    await server.post("/v1/tools/Write", {"path": "a.txt", "content": "x"})
    async with server.client.ws_connect(f"{server.url}{STREAM}?cursor=0", headers=key(server)) as socket:
        first: dict[str, Any] = await socket.receive_json(timeout=60)
        await server.post("/v1/tools/Glob", {"pattern": "*"})
        second = await socket.receive_json(timeout=60)
    async with server.client.get(f"{server.url}{STREAM}?cursor=0", headers=key(server)) as response:
        assert [json.loads(event["data"]) for event in await read_events(response, 2)] == [first, second]
    assert list(first) == ["type", "tool_name", "tool_use_id", "uuid", "data"]
    assert (first["type"], first["tool_name"], second["tool_name"]) == ("backend_only", "Replace", "Glob")


@pytest.mark.requirement("backend:stream:websocket")
def test_one_page_alone_describes_the_frames_of_the_stream() -> None:
    docs = Path(__file__).parents[2] / "docs"
    telling = {
        page.relative_to(docs).as_posix()
        for page in docs.rglob("*.md")
        for paragraph in page.read_text("utf-8").split("\n\n")
        if "WebSocket" in paragraph and ("frames" in paragraph or "帧" in paragraph) and "/ws" not in paragraph
    }
    assert telling == {"http.md", "http.zh-CN.md"}


async def test_without_a_key_or_with_a_bad_cursor_there_is_nothing(server: RunningServer) -> None:
    assert (await server.get(STREAM, key=None)).status == 401
    assert (await server.get(f"{STREAM}?cursor=x")).status == 400
    with pytest.raises(aiohttp.WSServerHandshakeError, match="400"):
        await server.client.ws_connect(f"{server.url}{STREAM}?cursor=-1", headers=key(server))


async def test_an_open_stream_does_not_hold_up_the_end(tmp_path: Path) -> None:
    async with asyncio.timeout(120), aiohttp.ClientSession() as client:
        async with run_server(tmp_path, ServerOptions(port=0, grace_s=600.0)) as server:
            response = await client.get(server.url + STREAM, headers=key(server))
            socket = await client.ws_connect(server.url + STREAM, headers=key(server))
        response.close()
        await socket.close()


CELL: dict[str, Any] = {"cell_type": "code", "metadata": {}, "source": "x", "outputs": [], "execution_count": None}
NOTEBOOK = {
    "cells": [{**CELL, "id": f"c{n}"} for n in range(6)],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


async def test_every_message_of_the_document_comes_out_of_the_stream(server: RunningServer) -> None:
    project = server.project
    (project / "config.py").write_text("# Configuration\nDEBUG = False\nPORT = 8000\n")
    (project / "utils.py").write_text("import os\n\n\n\ndef process():\n    pass\n")
    (project / "a.ipynb").write_text(json.dumps(NOTEBOOK))
    hello, updated = "def hello():\n    print('Hello, World!')\n", "def hello():\n    print('Hello, Updated World!')\n"
    edits = [
        {"old_string": "import os", "new_string": "import os\nimport sys"},
        {"old_string": "def process():", "new_string": "def process_data():"},
    ]
    missing = [{"old_string": "import os", "new_string": "import io"}, {"old_string": "def gone()", "new_string": "x"}]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("Write", {"path": "new_file.py", "content": hello}),
        ("Write", {"path": "new_file.py", "content": updated}),
        ("Edit", {"path": "config.py", "old_string": "DEBUG = False", "new_string": "DEBUG = True"}),
        ("MultiEdit", {"path": "utils.py", "edits": edits}),
        ("MultiEdit", {"path": "utils.py", "edits": missing}),
        ("NotebookEdit", {"path": "a.ipynb", "cell_number": 3, "new_source": "import pandas as pd"}),
        ("NotebookEdit", {"path": "a.ipynb", "cell_number": 5, "new_source": "# Plots", "cell_type": "markdown",
                          "edit_mode": "insert"}),
        ("NotebookEdit", {"path": "a.ipynb", "cell_number": 2, "edit_mode": "delete"}),
        ("NotebookEdit", {"path": "a.ipynb", "cell_number": 10, "new_source": "print('test')"}),
    ]  # fmt: skip
    async with server.client.get(server.url + STREAM, headers=key(server)) as response:
        for tool, arguments in calls:
            await server.post(f"/v1/tools/{tool}", arguments)
        answer_json = [json.loads(event["data"]) for event in await read_events(response, len(calls))]
    assert {tuple(message) for message in answer_json} == {("type", "tool_name", "tool_use_id", "uuid", "data")}
    assert len({message["uuid"] for message in answer_json}) == len(calls)
    names = ["Replace"] * 2 + ["Edit"] + ["MultiEdit"] * 2 + ["NotebookEditCell"] * 4
    assert [message["tool_name"] for message in answer_json] == names
    data = [message["data"] for message in answer_json]
    path = str(project / "new_file.py")
    assert data[0] == {"type": "create", "filePath": path, "content": hello, "structuredPatch": []}
    assert {**data[1], "structuredPatch": None} == {
        "type": "update", "filePath": path, "content": updated, "structuredPatch": None,
    }  # fmt: skip
    assert data[1]["structuredPatch"] == [
        {
            "oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2,
            "lines": [" def hello():", "-    print('Hello, World!')", "+    print('Hello, Updated World!')"],
        }
    ]  # fmt: skip
    assert data[2]["originalFile"] == "# Configuration\nDEBUG = False\nPORT = 8000\n"
    assert (data[2]["oldString"], data[2]["newString"]) == ("DEBUG = False", "DEBUG = True")
    assert data[3]["summary"] == "Successfully applied 2 edits to utils.py"
    assert [result["editIndex"] for result in data[3]["editsApplied"]] == [1, 2]
    assert data[4] == "Error in edit 2: String not found: def gone()..."
    common = {"cell_type": "code", "language": "python"}
    assert data[5] == {**common, "cell_number": 3, "new_source": "import pandas as pd", "edit_mode": "replace"}
    assert data[6] == {
        "cell_number": 5, "new_source": "# Plots", "cell_type": "markdown", "language": "python", "edit_mode": "insert",
    }  # fmt: skip
    assert data[7] == {**common, "cell_number": 2, "new_source": "", "edit_mode": "delete"}
    assert set(data[8]) == {"cell_number", "new_source", "cell_type", "language", "edit_mode", "error"}


@pytest.mark.requirement("s:S-52")
async def test_a_stream_ends_with_its_key(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolyard.web.routes.calls.backend_stream.POLL_S", 0.05)
    made = (await server.post("/v1/keys", {"name": "a back end", "scopes": ["admin"]})).json
    theirs = {"Authorization": f"Bearer {made['key']}"}
    async with (
        asyncio.timeout(60),
        server.client.get(server.url + STREAM, headers=theirs) as response,
        server.client.ws_connect(server.url + STREAM, headers=theirs) as socket,
    ):
        await server.request("DELETE", f"/v1/keys/{made['id']}")
        await server.post("/v1/tools/LS", {})
        assert b"data:" not in await response.read()
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
