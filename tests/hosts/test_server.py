"""A server as one of many hosts: what a worker has, its clients can call, and its events they see."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests import postgres
from tests.hosts.yards import config_of, host, plugin, sees
from tests.web.conftest import run_server
from toolyard.protocol.requests.scanner import format_request
from toolyard.web.routes.calls.tool_details import to_json
from toolyard.web.server.lifecycle import ServerOptions
from toolyard.yard.yard import Yard


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


COMMANDS = [
    {
        "commandIdentifier": "Draw",
        "displayName": "Draw a picture",
        "description": "Draws.",
        "parameters": {
            "type": "object",
            "properties": {"what": {"type": "string"}, "size": {"type": "integer", "minimum": 1}},
            "required": ["what"],
        },
        "example": format_request("Painter", {"command": "Draw", "what": "a cat"}),
    },
    {
        "commandIdentifier": "Erase",
        "description": "Erases.",
        "parameters": {"type": "object", "properties": {"all": {"type": "boolean"}}},
    },
]


@pytest.mark.requirement("hosts:forms")
async def test_a_plugin_of_another_host_has_the_forms_of_its_commands(tmp_path: Path) -> None:
    for place in ("worker", "alone"):
        (tmp_path / place).mkdir()
        plugin(tmp_path / place, "Painter", displayName="The painter", capabilities={"invocationCommands": COMMANDS})
    config = config_of(tmp_path / "alone")
    async with Yard(config) as alone, postgres.database() as url, host(tmp_path / "worker", url):
        here = to_json(alone, alone.tools.get("Painter"))
        options = ServerOptions(version="1", port=0, database=url)
        async with run_server(tmp_path / "server", options) as server:
            await sees(server.yard, "Painter")
            there = (await server.get("/v1/tools/Painter")).json
    assert (here["kind"], there["kind"]) == ("sync", "remote")
    assert [form["name"] for form in there["forms"]] == ["Draw", "Erase"]
    assert there["forms"][0]["parameters"]["required"] == ["command", "what"]
    shared = ("forms", "commands", "examples", "display_name", "parameters", "description")
    assert {name: there[name] for name in shared} == {name: here[name] for name in shared}
