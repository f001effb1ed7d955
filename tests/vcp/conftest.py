"""A small installation of VCPToolBox, written for these tests."""

import json
from pathlib import Path
from typing import Any

import pytest

SETTINGS = """# the installation's own settings
API_Key=sk-provider-secret
API_URL=http://provider.example
PORT=6005
Key=the-door-key-0123
Image_Key=picture-key-0123
File_Key=document-key-0123
VCP_Key=channel-key-root
VarHttpUrl=http://vcp.example
VarUser="the user"
OTHER_API_KEY=another-secret
WeatherCity=Shanghai
"""
SHOW = """
import json, os, sys
asked = json.loads(sys.stdin.read() or "{}")
root = os.environ["PROJECT_BASE_PATH"]
city = os.environ.get("WeatherCity")
def read(path):
    try:
        return open(os.path.join(root, path)).read()
    except OSError as error:
        return type(error).__name__
def write(path):
    try:
        open(os.path.join(root, path), "w").close()
        return "written"
    except OSError as error:
        return type(error).__name__
def names(path):
    try:
        return sorted(os.listdir(os.path.join(root, path)))
    except OSError:
        return []
print(json.dumps({"status": "success", "result": {
    "root": root, "variables": dict(os.environ), "read": {path: read(path) for path in asked.get("read", [])},
    "write": {path: write(path) for path in asked.get("write", [])},
    "names": {path: names(path) for path in asked.get("names", [])}}}))
"""


def add_plugin(tree: Path, name: str, code: str = SHOW, *, config: str | None = None, **more: Any) -> Path:
    folder = tree / "Plugin" / name
    folder.mkdir(parents=True)
    fields: dict[str, Any] = {
        "manifestVersion": "1.0.0", "name": name, "displayName": name, "version": "1.0.0", "pluginType": "synchronous",
        "entryPoint": {"type": "python", "command": "python main.py"},
        "communication": {"protocol": "stdio", "timeout": 60_000},
        "capabilities": {"invocationCommands": [{"commandIdentifier": name, "description": "Shows what it sees."}]},
    }  # fmt: skip
    (folder / "plugin-manifest.json").write_text(json.dumps({**fields, **more}), encoding="utf-8")
    (folder / "main.py").write_text(code, encoding="utf-8")
    if config is not None:
        (folder / "config.env").write_text(config, encoding="utf-8")
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path)


def make_tree(place: Path) -> Path:
    """Write an installation with two plugins, a service and an agent."""
    tree = place / "VCPToolBox"
    add_plugin(tree, "Show")
    add_plugin(tree, "Store", config="STORE_API_KEY=the-secret-of-a-sibling\nSTORE_FOLDER=store\n")
    (tree / "Plugin/Store/cache.txt").write_text("cached")
    service = add_plugin(
        tree, "VCPLog", pluginType="service", entryPoint={"script": "log.js"}, communication={"protocol": "direct"},
        config="VCP_Key=channel-key-0123\n"
    )  # fmt: skip
    (service / "log.js").write_text("module.exports = {};\n")
    (tree / "config.env").write_text(SETTINGS, encoding="utf-8")
    (tree / "agent_map.json").write_text('{"Nova": "Nova.txt"}', encoding="utf-8")
    for folder in ("Agent", "TVStxt", "image", "dailynote"):
        (tree / folder).mkdir()
    (tree / "Agent/Nova.txt").write_text("You are Nova.", encoding="utf-8")
    (tree / "image/one.png").write_bytes(b"\x89PNG\r\n")
    return tree
