"""All nodes that are connected: the names of their tools, what they give to prompts, and which of them may.

The key with which a node connects is the decision: its tools are callable at once. With the setting ``node_review``
each node waits until its owner has allowed exactly these tools of a node with this name.

A tool has its plain name when nothing here and no node before has it; another one is ``NAME@NODE``, and every tool can
be called by that. Of nodes with one name the second is ``NODE-2``. A node keeps its place while it is connected; one
that comes from where another one with its name is connected goes before that, which may be its own dead connection.
"""

import hashlib
import json
import logging
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from toolyard.dialects.vcp_nodes import (
    Addresses,
    ForwardedCallback,
    ListedNode,
    Registration,
    read_node_message,
    write_node_list,
)
from toolyard.message import Message
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.manifest import Manifest, Push
from toolyard.vcp.nodes.node import Node
from toolyard.vcp.nodes.node_tool import NodeTasks, NodeTool
from toolyard.workspace.home_folder import StateFile

MAX_NODES: Final = 64
ALLOWED: Final = "nodes.json"  # of the home: the digests of allowed nodes, by name
_MAX_ALLOWED = 8  # versions of one name
_MAX_LABEL = 40
_UNNAMED: Final = "node"
_LIST: Final = "VCPDistributedServerList"
_OTHER = re.compile(r"[^\w.-]+")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    """The facts and services of the host that nodes need."""

    review: bool  # the setting
    allowed: StateFile
    now: Callable[[], datetime]
    tasks: NodeTasks
    has_tool: Callable[[str], bool]  # whether a tool that is no node's has this name
    others: Callable[[], Hashable]  # changes when those do
    changed: Callable[[], None]  # told when tools have come or gone


class Nodes:
    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._nodes: dict[str, Node] = {}  # by id, in the order in which they came
        self._changes = 0
        self._built_for: Hashable = None
        self._tools: dict[str, NodeTool] = {}  # by the name that lists them
        self._labels: dict[str, str] = {}  # by id

    # --- connections ---

    def connect(self, address: str) -> Node:
        """Add a connection. Raises Failure when there are too many."""
        if len(self._nodes) >= MAX_NODES:
            raise Failure(Reason.BUSY, Message("{most} nodes are connected already.", most=MAX_NODES))
        node = Node(address, self._context.now())
        self._nodes[node.id] = node
        return node

    async def take(self, node: Node, message: JsonObject) -> bool:
        """Take a message of a node; return whether it was an answer that is waited for."""
        node.seen = self._context.now()
        said = read_node_message(message)
        if isinstance(said, ForwardedCallback):
            await self._take_callback(node, said)
            return False
        is_answer = said is not None and node.take(said)
        if isinstance(said, Registration | Addresses):
            self._note_change()
        return is_answer

    def disconnect(self, node: Node) -> None:
        if self._nodes.pop(node.id, None) is not None:
            node.close()
            self._note_change()

    async def close(self) -> None:
        for node in list(self._nodes.values()):
            self.disconnect(node)
        await self._context.tasks.close()

    async def _take_callback(self, node: Node, callback: ForwardedCallback) -> None:
        if callback.plugin in node.manifests and self.is_allowed(node):
            await self._context.tasks.take(callback)
        else:
            _log.warning("the node %s sent a result of %s, which it does not have", node.name, callback.plugin)

    def _note_change(self) -> None:
        self._changes += 1
        self._context.changed()

    # --- which of them may ---

    def is_allowed(self, node: Node) -> bool:
        return not self._context.review or digest_tools(node) in self._read_allowed(node.name)

    def allow(self, id_: str) -> Node | None:
        """Allow the tools of a node as they are now; None when no such node is connected. Blocks."""
        node = self._nodes.get(id_)
        if node is None:
            return None
        digest = digest_tools(node)

        def add(stored: JsonObject) -> None:
            known = [one for one in self._read_allowed(node.name) if one != digest]
            stored[node.name] = [*[digest, *known][:_MAX_ALLOWED]]

        self._context.allowed.update(add)
        return node

    def note_allowed(self) -> None:
        self._note_change()

    def _read_allowed(self, name: str) -> list[str]:
        stored = self._context.allowed.read().get(name)
        return [str(one) for one in stored] if isinstance(stored, list) else []

    def _require_allowed(self, node: Node) -> None:
        if node.id not in self._nodes:
            raise Failure(Reason.INTERRUPTED, Message("The node {name} is gone.", name=node.name))
        if not self.is_allowed(node):
            message = Message("The node {name} waits for a review.", name=node.name)
            raise Failure(Reason.DENIED, message, hint=Message("The owner of this machine can allow it."))

    # --- their tools ---

    def find(self, name: str) -> NodeTool | None:
        """Return a tool by the name that lists it or by ``NAME@NODE``, also one whose node waits for a review."""
        tools = self._catalogue()
        plain, at, label = name.rpartition("@")
        return tools.get(name) or (self._find_at(plain, label) if at else None)

    def all(self) -> Iterator[NodeTool]:
        """Yield the tools that are offered."""
        return (one for one in self._catalogue().values() if one.manifest.commands and self.is_allowed(one.node))

    def version(self) -> Hashable:
        return self._changes

    def find_push(self, plugin: str) -> Push | None:
        """Return the push of the plugin of a node."""
        return next((push for node in self._nodes.values() if (push := _find_push(node, plugin))), None)

    def _find_at(self, plain: str, label: str) -> NodeTool | None:
        return next((one for one in self._tools.values() if (one.manifest.name, one.label) == (plain, label)), None)

    def _catalogue(self) -> Mapping[str, NodeTool]:
        """Return all tools by their names, built anew when tools here or there have changed."""
        version = (self._changes, self._context.others())
        if version != self._built_for:
            self._built_for = version
            self._labels = dict(_make_labels(self._list_by_place()))
            known = {(one.node.id, one.label, one.spec.name): one for one in self._tools.values()}
            self._tools = {}
            for node in self._list_by_place():
                for manifest in node.manifests.values():
                    tool = self._make_tool(node, manifest, known)
                    self._tools.setdefault(tool.spec.name, tool)
        return self._tools

    def _make_tool(self, node: Node, manifest: Manifest, known: Mapping[tuple[str, str, str], NodeTool]) -> NodeTool:
        label, name = self._labels[node.id], manifest.name
        if name in self._tools or self._context.has_tool(name):
            name = f"{name}@{label}"
        tool = known.get((node.id, label, name))
        if tool is not None and tool.manifest is manifest:
            return tool
        return NodeTool(
            node,
            manifest,
            name=name,
            label=label,
            fingerprint=_digest(manifest.fields),
            tasks=self._context.tasks,
            require_allowed=self._require_allowed,
        )

    def _list_by_place(self) -> list[Node]:
        """Return the nodes that have a name, the first first."""
        named = [node for node in self._nodes.values() if node.name or node.manifests]
        places: dict[tuple[str, str], int] = {}
        for number, node in enumerate(named):
            places.setdefault((node.name, node.address), number)
        numbers = {node.id: number for number, node in enumerate(named)}
        return sorted(named, key=lambda node: (places[node.name, node.address], -numbers[node.id]))

    # --- prompts ---

    def placeholders(self) -> dict[str, str]:
        """Return the values of placeholders, that of the first node where two have one name."""
        values: dict[str, str] = {}
        for node in self._list_by_place():
            if self.is_allowed(node):
                values = {**node.placeholders, **values}
        return {_LIST: self.write_list(), **values}

    def write_list(self) -> str:
        """Return ``{{VCPDistributedServerList}}``, laid out as VCPToolBox does."""
        self._catalogue()
        return write_node_list(
            ListedNode(
                name=self._labels[node.id],
                id=node.id,
                local=node.local_addresses,
                public=node.public_address,
                connected=node.connected.isoformat(timespec="seconds"),
                seen=node.seen.isoformat(timespec="seconds"),
            )
            for node in sorted(self._list_by_place(), key=lambda one: self._labels[one.id])
        )

    # --- files and people ---

    def list_allowed(self) -> list[Node]:
        """Return the nodes that files may be asked of, the first first."""
        return [node for node in self._list_by_place() if self.is_allowed(node)]

    def list_manifests(self) -> list[tuple[Node, Manifest, str]]:
        """Return every registered plugin, with its node and the name that lists it."""
        self._catalogue()
        return [(one.node, one.manifest, name) for name, one in self._catalogue().items()]

    def to_json(self) -> list[JsonObject]:
        """Return the client JSON of all nodes."""
        tools = self._catalogue()
        return [
            {
                "id": node.id,
                "name": self._labels.get(node.id, _UNNAMED),
                "address": node.address,
                "connected": node.connected.timestamp(),
                "seen": node.seen.timestamp(),
                "allowed": self.is_allowed(node),
                "tools": [*sorted(name for name, one in tools.items() if one.node is node and one.manifest.commands)],
                "placeholders": [*sorted(node.placeholders)],
                "running": node.running_count,
                "left_out": dict(node.left_out),
            }
            for node in self._nodes.values()
        ]


def digest_tools(node: Node) -> str:
    return _digest({name: manifest.fields for name, manifest in node.manifests.items()})


def _digest(value: Json) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _make_labels(nodes: list[Node]) -> Iterator[tuple[str, str]]:
    """Yield the id of each node and what it is called: its own name, or that with a number."""
    counts: dict[str, int] = {}
    for node in nodes:
        name = _OTHER.sub("-", node.name).strip("-")[:_MAX_LABEL] or _UNNAMED
        counts[name] = counts.get(name, 0) + 1
        yield node.id, name if counts[name] == 1 else f"{name}-{counts[name]}"


def _find_push(node: Node, plugin: str) -> Push | None:
    manifest = node.manifests.get(plugin)
    return manifest.push if manifest and manifest.push and manifest.push.enabled else None
