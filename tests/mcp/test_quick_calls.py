"""Quick calls on stdio: the same results as by the SDK, which gets all that is not quick."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.mcp.clients import CALLER, ERAS, User, stdio
from tests.waiting import wait_for_value, wait_until
from toolyard.config import load_config
from toolyard.mcp.server import McpServer
from toolyard.mcp.stdio import QuickCalls
from toolyard.protocol.store import Query
from toolyard.yard.yard import Yard

pytestmark = pytest.mark.requirement("mcp:quick-calls")

PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301010018dd8db0"
    "0000000049454e44ae426082"
)
CALLS: dict[str, dict[str, Any]] = {
    "a file": {"name": "Read", "arguments": {"path": "a.txt"}},
    "a picture": {"name": "Read", "arguments": {"path": "a.png"}},
    "a missing file": {"name": "Read", "arguments": {"path": "missing.txt"}},
    "a wrong argument": {"name": "Read", "arguments": {"path": "a.txt", "limit": -1}},
    "no argument": {"name": "LS"},
    "a very long integer": {"name": "LS", "arguments": {"limit": 10**30}},
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolyard.mcp.stdio.QUICK_S", 60)  # also on a busy machine; over stdio the server has its own


@dataclass
class Connection:
    """A client of the SDK, and quick calls beside it that have its envelope."""

    client: Client
    server: McpServer
    envelope: dict[str, Any]
    results: list[dict[str, Any]]  # of the SDK, as it writes them
    written: list[bytes] = field(default_factory=list)
    passed_on: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.quick = QuickCalls(self.server, self.written.append, self._pass_on)

    async def _pass_on(self, line: bytes) -> None:
        self.passed_on.append(line)

    def write_line(self, id_: Any = 7, **params: Any) -> bytes:
        params = {"_meta": self.envelope, **params} if self.envelope else params
        return json.dumps({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}).encode() + b"\n"

    async def call_quickly(self, **params: Any) -> dict[str, Any]:
        assert await self.quick.take(self.write_line(**params))
        await wait_until(lambda: self.written)
        response: dict[str, Any] = json.loads(self.written.pop())
        assert (response["jsonrpc"], response["id"]) == ("2.0", 7)
        return dict(response["result"])


@contextlib.asynccontextmanager
async def connect(project: Path, home: Path, mode: str) -> AsyncIterator[Connection]:
    (project / "a.txt").write_text("one\n" * 20)
    (project / "a.png").write_bytes(PICTURE)
    async with Yard(load_config(project, home)) as yard:
        server = McpServer(yard, lambda _: CALLER)
        envelopes, results = list[dict[str, Any]](), list[dict[str, Any]]()

        async def note(ctx: Any, call_next: Any) -> Any:
            envelopes.append(dict((ctx.params or {}).get("_meta") or {}))
            result = await call_next(ctx)
            results.append(result)
            return result

        server.sdk.middleware.append(note)
        async with server.running(refresh=True), Client(server.sdk, mode=mode, cache=None) as client:
            await client.call_tool("LS", {})
            yield Connection(client, server, envelopes[-1], results)


def comparable(result: dict[str, Any]) -> dict[str, Any]:
    """A result without the times of the call, which the text of the envelope contains too."""
    return dict(json.loads(re.sub(r'(time_ms\\*": ?)[\d.e-]+', r"\g<1>0", json.dumps(result))))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("mode", ERAS)
async def test_a_quick_result_is_that_of_the_sdk(project: Path, home: Path, mode: str, name: str) -> None:
    call = CALLS[name]
    async with connect(project, home, mode) as connection:
        await connection.client.call_tool(call["name"], call.get("arguments"))
        by_sdk = connection.results[-1]
        assert comparable(await connection.call_quickly(**call)) == comparable(by_sdk)
        assert connection.passed_on == []


@pytest.mark.parametrize("mode", ERAS)
async def test_what_the_sdk_has_not_accepted_in_this_form_is_left_to_it(project: Path, home: Path, mode: str) -> None:
    async with connect(project, home, mode) as connection:
        take, line = connection.quick.take, connection.write_line
        assert not await take(line(name="Nothing"))
        assert not await take(line(name="LS", arguments=None))
        assert not await take(line(name="LS", arguments=[]))
        assert not await take(line(name="LS", task={"ttl": 1}))
        assert not await take(line(name="LS", _meta={**connection.envelope, "x": 1}))
        assert not await take(line(id_=None, name="LS"))
        assert not await take(line(id_=True, name="LS"))
        assert not await take(line(name="LS").replace(b"2.0", b"1.0"))
        assert not await take(line(name="LS").replace(b"tools/call", b"tools/list"))
        assert not await take(line(name="LS")[:-10])
        assert await take(line(name="LS", _meta={**connection.envelope, "progressToken": 7}))
        await wait_until(lambda: connection.written)


async def test_the_first_call_of_a_connection_is_the_sdks(project: Path, home: Path) -> None:
    async with Yard(load_config(project, home)) as yard:
        connection = Connection(None, McpServer(yard, lambda _: CALLER), {}, [])  # type: ignore[arg-type]
        assert not await connection.quick.take(connection.write_line(name="LS"))


async def test_a_cancelled_call_is_handed_over_before_its_cancel(project: Path, home: Path) -> None:
    async with connect(project, home, "legacy") as connection:
        line = connection.write_line(name="Write", arguments={"path": "b.txt", "content": "x"})
        assert await connection.quick.take(line)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        assert not await connection.quick.take(json.dumps(cancel).encode())
        assert connection.passed_on == [line]
        assert connection.written == []


@pytest.mark.parametrize("mode", ERAS)
async def test_over_stdio_a_call_that_asks_is_asked_about_once_and_runs_once(
    project: Path, home: Path, mode: str
) -> None:
    (project / "a.txt").write_text("one\n")
    user = User()
    async with asyncio.timeout(120), Client(stdio(project, home), mode=mode, elicitation_callback=user) as client:
        await client.call_tool("Read", {"path": "a.txt"})
        written = await client.call_tool("Write", {"path": "b.txt", "content": "two\n"})
        read = await client.call_tool("Read", {"path": "b.txt"})
    assert not written.is_error
    assert "two" in str(read.content)
    assert len(user.asked) == 1
    async with Yard(load_config(project, home)) as yard:
        calls = await yard.state.journal.page(Query(), limit=10)
    assert [(call.tool, call.state) for call in calls] == [
        ("Read", "success"),
        ("Write", "success"),
        ("Read", "success"),
    ]


@pytest.mark.parametrize("mode", ERAS)
async def test_over_stdio_a_call_that_waits_is_cancelled_by_its_client(project: Path, home: Path, mode: str) -> None:
    async with asyncio.timeout(120), Client(stdio(project, home), mode=mode) as client:
        await client.call_tool("LS", {})
        calling = asyncio.create_task(client.call_tool("Write", {"path": "b.txt", "content": "x"}))
        async with Yard(load_config(project, home)) as yard:
            await wait_for_value(lambda: yard.state.approvals.page(("pending",), limit=10))
            calling.cancel()
            await wait_for_value(
                lambda: yard.state.journal.page(Query(), limit=10), lambda calls: calls[0].state == "cancelled"
            )
        assert not (await client.call_tool("LS", {})).is_error
    assert not (project / "b.txt").exists()
