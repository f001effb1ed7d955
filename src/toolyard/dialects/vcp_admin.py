"""Answers of VCPToolBox's admin API, as its clients read them."""

from collections.abc import Iterable
from typing import Final

from toolyard.dialects.vcp_nodes import CLOUD
from toolyard.protocol.json import JsonObject

NOT_FOUND: Final[JsonObject] = {"error": "Agent file not found."}


def plugin_row(name: str, manifest: JsonObject, *, is_enabled: bool) -> JsonObject:
    """Return a plugin, without its settings: they may be secret."""
    return {
        "name": name,
        "manifest": manifest,
        "dashboardCards": [],
        "enabled": is_enabled,
        "configEnvContent": None,
        "isDistributed": False,
        "serverId": None,
    }


def node_plugin_row(name: str, manifest: JsonObject, display_name: str, node: str) -> JsonObject:
    """Return a plugin of a node, by the name that calls it."""
    more: JsonObject = {"isDistributed": True, "serverId": node}
    fields: JsonObject = {**manifest, "name": name, "displayName": f"{CLOUD}{display_name}", **more}
    return {**plugin_row(name, fields, is_enabled=True), **more}


def agent_list(names: Iterable[str]) -> JsonObject:
    """Return the files of agents by their paths, and as a tree."""
    files = list(names)
    tree: JsonObject = {}
    for name in files:
        inner = tree
        *above, last = name.split("/")
        for part in above:
            folder = inner.setdefault(part, {"type": "folder", "children": {}})
            inner = folder["children"]  # type: ignore[index, assignment, call-overload]
        inner[last] = {"type": "file", "path": name}
    return {"files": [*files], "folderStructure": tree}


def log_part(content: str, *, end: int) -> JsonObject:
    return {"content": content, "offset": end, "path": "Toolyard", "fileSize": end, "needFullReload": False}


def log_gone() -> JsonObject:
    """Return the answer for a place in the log that is not kept any more."""
    return {"needFullReload": True, "path": "Toolyard", "offset": 0}
