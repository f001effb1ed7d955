"""A server as one of many hosts: what a worker has, its clients can call, and its events they see."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests import postgres
from tests.hosts.yards import host, plugin, sees
from tests.web.conftest import run_server
from toolyard.web.server import ServerOptions


@pytest.mark.requirement("hosts:shared", "http:call", "hosts:event-numbers")
async def test_a_client_of_a_server_calls_a_tool_that_only_a_worker_has(tmp_path: Path) -> None:
    (tmp_path / "worker").mkdir()
    plugin(tmp_path / "worker", "Far")
    async with postgres.database() as url, host(tmp_path / "worker", url):
        options = ServerOptions(version="1", port=0, database=url)
        async with run_server(tmp_path / "server", options) as server:
            await sees(server.yard, "Far")
            ticket = (await server.post("/ws-ticket")).json["ticket"]
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(f"{server.url}/ws?cursor=0&ticket={ticket}") as events,
            ):
                answer = await server.post("/v1/tools/Far", {"text": "hi"})
                assert answer.json["status"] == "success", answer.json
                heard: list[dict[str, Any]] = []
                async with asyncio.timeout(60):
                    while not heard or heard[-1]["type"] != "call.finished":
                        heard.append(json.loads((await events.receive()).data))
            assert not [event for event in heard if event["type"].startswith("remote.")]
            assert [event["seq"] for event in heard] == list(range(1, len(heard) + 1))
            listed = await server.get("/v1/calls")
            assert [call["tool"] for call in listed.json["data"]] == ["Far"]
