"""Yards with plugins of the tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.plugins.folders import make_plugin
from toolyard.config import load_config
from toolyard.protocol.tool import Outcome
from toolyard.yard.yard import Yard

ECHO = """
import json, sys
said = json.loads(sys.stdin.read() or "{}")
print(json.dumps({"status": "success", "result": {"content": [], "heard": said}}))
"""


class PluginYard:
    """A Yard on an empty project whose plugins are written by the test, and trusted."""

    def __init__(self, place: Path, *, trusted: bool = True, environment: Mapping[str, str] | None = None) -> None:
        self.place, self.folder = place, place / "given"
        for folder in ("project", "given"):
            (place / folder).mkdir(parents=True, exist_ok=True)
        self.trusted = trusted
        self._yard: Yard | None = None

    @property
    def yard(self) -> Yard:
        if self._yard is None:
            config = load_config(
                self.place / "project", self.place / "home", plugin_folders=[self.folder], trusts_given=self.trusted
            )
            self._yard = Yard(config)
        return self._yard

    def add(self, name: str, code: str = ECHO, *, config: str | None = None, **more: Any) -> Path:
        folder = make_plugin(self.folder, name, config=config, **more)
        (folder / "main.py").write_text(code, encoding="utf-8")
        return folder

    async def call(self, tool: str, **arguments: Any) -> Outcome:
        return await self.yard.calls.settle(self.yard.calls.request(tool, arguments))

    async def __aenter__(self) -> "PluginYard":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._yard is not None:
            await self._yard.close()


def confirm_read(yard: Yard, name: str) -> None:
    """The owner reviews a plugin, allows it, and confirms that it only reads."""
    yard.plugins.plugins.refresh()
    plugin = yard.plugins.plugins.get(name)
    assert plugin is not None
    yard.plugins.allow(yard.plugins.review(plugin), confirm_read=True)
    yard.plugins.plugins.refresh()


def entry(command: str) -> dict[str, Any]:
    return {"type": "any", "command": command}
