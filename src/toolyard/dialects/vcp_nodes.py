"""Messages between a host of VCPToolBox and its distributed servers, the nodes: ``{type, data}``.

What cannot be read is no message: another version of a node may send more than is known here. ``{{...}}`` is the text
that VCPToolBox makes of the connected nodes for prompts.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.manifests.safe_text import strip_hidden
from toolyard.protocol.requests.scanner import neutralise

FILE_TOOL: Final = "internal_request_file"  # every node has it; it is no tool for models
CLOUD: Final = "[云端] "  # before the names of tools of nodes, as models are shown them
_TITLE: Final = "[VCP Distributed Server List]"
NO_NODES: Final = f"{_TITLE}\n当前没有已连接的 VCP 分布式服务器。"
_MAX_NAME = 80
_MAX_ADDRESSES = 32
_PLUGIN = ("pluginName", "PLUGIN_NAME_FOR_CALLBACK")
_TASK = ("taskId", "task_id", "TaskId", "requestId")


@dataclass(frozen=True, slots=True)
class Registration:
    name: str  # of the node; empty: it says none
    tools: tuple[JsonObject, ...]  # manifests as they were sent
    can_cancel: bool


@dataclass(frozen=True, slots=True)
class Addresses:
    name: str
    local: tuple[str, ...]
    public: str


@dataclass(frozen=True, slots=True)
class PlaceholderValues:
    values: Mapping[str, str]  # by name, without braces


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    request: str
    value: Json  # the result, or the error
    is_error: bool


@dataclass(frozen=True, slots=True)
class ForwardedCallback:
    """The body that a program of a node sent to its callback address."""

    plugin: str
    task_id: str
    body: JsonObject


NodeMessage: TypeAlias = Registration | Addresses | PlaceholderValues | ToolAnswer | ForwardedCallback


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedNode:
    name: str
    id: str
    local: tuple[str, ...]
    public: str
    connected: str  # as ISO 8601
    seen: str


def read_node_message(message: JsonObject) -> NodeMessage | None:
    """Return what a message of a node says; None when it says nothing that is known."""
    data = message.get("data")
    if not isinstance(data, dict):
        return None
    match message.get("type"):
        case "register_tools":
            tools, capabilities = data.get("tools"), data.get("capabilities")
            return Registration(
                _read_short(data.get("serverName")),
                tuple(one for one in tools if isinstance(one, dict)) if isinstance(tools, list) else (),
                isinstance(capabilities, dict) and capabilities.get("cancelTool") is True,
            )
        case "report_ip":
            local = tuple(_list_texts(data.get("localIPs")))
            return Addresses(_read_short(data.get("serverName")), local, _read_short(data.get("publicIP")))
        case "update_static_placeholders":
            return PlaceholderValues(dict(_list_values(data.get("placeholders"))))
        case "tool_result":
            is_error = data.get("status") != "success"
            return ToolAnswer(str(data.get("requestId")), data.get("error" if is_error else "result"), is_error)
        case "plugin_callback_forward":
            return _read_callback(data.get("callbackData"))
    return None


def hello_message(id_: str) -> JsonObject:
    message = "WebSocket connection successful for DistributedServer."
    data: JsonObject = {"serverId": id_, "clientId": _client(id_)}
    return {"type": "connection_ack", "message": message, "data": data}


def call_message(request: str, tool: str, arguments: Mapping[str, Json]) -> JsonObject:
    return {"type": "execute_tool", "data": {"requestId": request, "toolName": tool, "toolArgs": dict(arguments)}}


def cancel_message(request: str) -> JsonObject:
    return {"type": "cancel_tool", "data": {"requestId": request}}


def file_arguments(url: str) -> JsonObject:
    return {"fileUrl": url}


def read_file_data(answer: Json) -> str | None:
    """Return the file in an answer, in base64; None without one."""
    data = answer.get("fileData") if isinstance(answer, dict) else None
    return data if isinstance(data, str) else None


def write_node_list(nodes: Iterable[ListedNode]) -> str:
    """Return ``{{VCPDistributedServerList}}``; texts of nodes mean nothing in it."""
    entries = [_write_entry(node) for node in nodes]
    if not entries:
        return NO_NODES
    return "\n".join([_TITLE, f"已连接的 VCP 分布式服务器：{len(entries)} 个。", *entries])


def _write_entry(node: ListedNode) -> str:
    fields = {
        "serverName": node.name,
        "serverId": node.id,
        "clientId": _client(node.id),
        "publicIP": node.public or "N/A",
        "localIPs": ", ".join(node.local) or "N/A",
        "connectedAt": node.connected,
        "lastSeenAt": node.seen,
    }
    return "- " + neutralise("\n  ".join(f"{key}: {value}" for key, value in fields.items()))


def _client(id_: str) -> str:
    return id_.removeprefix("dist-")


def _read_short(value: Json) -> str:
    """Return a name or an address: one line without hidden characters."""
    return " ".join(strip_hidden(value).split())[:_MAX_NAME] if isinstance(value, str) else ""


def _list_texts(values: Json) -> Iterator[str]:
    for value in values[:_MAX_ADDRESSES] if isinstance(values, list) else ():
        if text := _read_short(value):
            yield text


def _list_values(values: Json) -> Iterator[tuple[str, str]]:
    for key, value in values.items() if isinstance(values, dict) else ():
        if name := _read_short(key.strip().strip("{}").strip()):
            yield name, value if isinstance(value, str) else json_bytes(value).decode()


def _read_callback(body: Json) -> ForwardedCallback | None:
    if not isinstance(body, dict):
        return None
    plugin = next((body[key] for key in _PLUGIN if body.get(key)), None)
    task_id = next((body[key] for key in _TASK if body.get(key)), None)
    if not isinstance(plugin, str) or not isinstance(task_id, str | int):
        return None
    return ForwardedCallback(plugin, str(task_id), body)
