"""A tool of an MCP server, called by a model in a chat."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.gateway.serving import gateway, request
from tests.gateway.upstream import replies
from toolyard.protocol.access import Mode
from toolyard.yard.yard import Yard

TINY = Path(__file__).with_name("tiny_server.py")
REAL = shutil.which("mcp-server-time")


async def allow(yard: Yard, name: str) -> None:
    entry = yard.mcp.servers.declarations.get(name)
    assert entry is not None
    yard.mcp.servers.pins.allow(entry, (await yard.mcp.servers.inspect_tools(entry)).tools, at="now")


def declare(place: Path, **server: object) -> None:
    (place / "project").mkdir()
    (place / "project" / ".mcp.json").write_text(json.dumps({"mcpServers": {"far": server}}))


@pytest.mark.requirement("mcp:client")
async def test_a_model_asks_for_it_in_its_text_and_gets_its_result(tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    declare(tmp_path, command=sys.executable, args=[str(TINY), str(tmp_path / "tiny")])
    block = request("mcp__far__echo", text="ab", times="2")
    async with gateway(tmp_path, replies(block, "Done."), settings={"approval_mode": Mode.AUTO}) as one:
        await allow(one.yard, "far")
        answer = await one.complete()
        payload = one.upstream.bodies[1]["messages"][-1]["content"]
    assert "Done." in answer["choices"][0]["message"]["content"]
    assert "abab" in payload


@pytest.mark.skipif(REAL is None, reason="mcp-server-time of PyPI is not installed")
@pytest.mark.requirement("mcp:client")
async def test_a_server_from_pypi_tells_a_model_the_time(tmp_path: Path) -> None:
    declare(tmp_path, command=REAL)
    block = request("mcp__far__get_current_time", timezone="Asia/Tokyo")
    async with gateway(tmp_path, replies(block, "Done."), settings={"approval_mode": Mode.AUTO}) as one:
        await allow(one.yard, "far")
        await one.complete()
        payload = one.upstream.bodies[1]["messages"][-1]["content"]
    assert "Asia/Tokyo" in payload
