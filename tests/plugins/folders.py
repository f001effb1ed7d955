"""Plugin folders for tests."""

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from toolyard.plugins.package.command_line import Programs
from toolyard.plugins.package.discovery import PluginRoot, Plugins
from toolyard.plugins.package.plugin import Origin
from toolyard.plugins.package.trust import Trust

PROGRAMS = Programs(os.defpath)


def manifest_text(name: str, **more: Any) -> str:
    fields = {
        "name": name,
        "displayName": name,
        "description": "A plugin of the tests.",
        "pluginType": "synchronous",
        "entryPoint": {"type": "python", "command": "python main.py"},
        "communication": {"protocol": "stdio", "timeout": 60_000},
        "capabilities": {"invocationCommands": [{"commandIdentifier": "Go", "description": "Goes."}]},
    }
    return json.dumps({**fields, **more}, indent=2)


def make_plugin(root: Path, name: str, *, folder: str | None = None, config: str | None = None, **more: Any) -> Path:
    """A plugin that would run, in a folder of ``root``."""
    place = root / (folder or name)
    place.mkdir(parents=True)
    (place / "main.py").write_text("print('{}')\n")
    (place / "plugin-manifest.json").write_text(manifest_text(name, **more), encoding="utf-8")
    if config is not None:
        (place / "config.env").write_text(config, encoding="utf-8")
        (place / "config.env").chmod(0o600)
    return place


def plugins_in(
    *roots: Path, home: Path, trusted: Collection[Path] | None = None, reserved: Collection[str] = ()
) -> Plugins:
    """The plugins of given folders, all of them trusted unless told otherwise."""
    trust = Trust(home, folders=roots if trusted is None else trusted)
    return Plugins(
        [PluginRoot(root, Origin.GIVEN) for root in roots],
        home=home,
        project=home.parent / "project",
        trust=trust,
        reserved=reserved,
        programs=PROGRAMS,
    )
