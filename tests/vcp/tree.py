"""A small installation with the interface of VCPToolBox, and the code of some plugins that live in its process."""

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.programs import find_program
from toolyard.config import load_config
from toolyard.protocol.tool import Outcome
from toolyard.vcp.bridge.bridge import Bridge
from toolyard.yard.yard import Yard

_HOST = Path(__file__).parent / "host"
ECHO = "module.exports = { processToolCall: async (args) => ({ heard: args }) };"


class Tree:
    """An installation. Its plugins run without a review, unless ``trusted`` is False."""

    def __init__(self, place: Path, *, trusted: bool = True) -> None:
        find_program("node")
        self.place, self.root, self.home = place, place / "VCP", place / "home"
        shutil.copytree(_HOST, self.root)
        for folder in (self.root / "Plugin", self.home, place / "project"):
            folder.mkdir(parents=True, exist_ok=True)
        (self.root / "config.env").write_text("PORT=6005\nKey=of-vcptoolbox\nAdminPassword=secret\nVarName=Nova\n")
        self.config = f'vcp = "{self.root}"\n'
        self.settings(f'trusted_folders = ["{self.root / "Plugin"}"]' if trusted else "")

    def settings(self, line: str) -> None:
        """Add a line to the settings of the home."""
        self.config += f"{line}\n"
        (self.home / "config.toml").write_text(self.config)

    def add(self, name: str, code: str = ECHO, *, kind: str = "hybridservice", **fields: Any) -> Path:
        folder = self.root / "Plugin" / name
        folder.mkdir(exist_ok=True)
        commands = [{"command": "Do", "description": "Does it."}] if kind == "hybridservice" else []
        manifest = {
            "name": name,
            "displayName": name,
            "pluginType": kind,
            "entryPoint": {"script": "main.js"},
            "communication": {"protocol": "direct", "timeout": 60_000},
            "capabilities": {"invocationCommands": commands},
            **fields,
        }
        (folder / "main.js").write_text(code)
        (folder / "plugin-manifest.json").write_text(json.dumps(manifest))
        return folder

    @asynccontextmanager
    async def open(self) -> "AsyncIterator[TreeYard]":
        async with Yard(load_config(self.place / "project", self.home)) as yard:
            yield TreeYard(yard)


class TreeYard:
    def __init__(self, yard: Yard) -> None:
        self.yard = yard

    @property
    def bridge(self) -> Bridge:
        assert self.yard.vcp.bridge is not None
        return self.yard.vcp.bridge

    async def call(self, tool: str, /, **arguments: Any) -> Outcome:
        return await self.yard.calls.settle(self.yard.calls.request(tool, arguments))
