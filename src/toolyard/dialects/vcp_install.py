"""The files that an install of VCPToolBox keeps its state in, as values. Pure: somebody else reads them."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from toolyard.protocol.json import Json, JsonObject

APPROVALS: Final = "toolApprovalConfig.json"
TIMED: Final = "VCPTimedContacts"
RESULTS: Final = "VCPAsyncResults"
PLUGINS: Final = "Plugin"
CONFIG: Final = "config.env"
_SILENT = "::SilentReject"
_RESULT_NAME = re.compile(r"(.+?)-([A-Za-z0-9_-]+)\.json")


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of the approval list: a tool, or one command of it, that asks first, or is refused without a word."""

    text: str
    tool: str
    command: str
    refuses: bool


@dataclass(frozen=True, slots=True)
class Timed:
    task_id: str
    tool: str
    arguments: JsonObject
    at: str  # ISO 8601 with its offset
    maid: str | None


def read_approval_rules(value: Json) -> tuple[list[Rule], str]:
    """The rules that are in force; or none, and why."""
    if not isinstance(value, dict):
        return [], "it is not an object"
    if value.get("enabled") is not True:
        return [], "approval is turned off there"
    listed = value.get("approvalList")
    return [_parse_rule(text) for text in listed if isinstance(text, str)] if isinstance(listed, list) else [], ""


def read_timed_task(value: Json) -> Timed | str:
    """A task that waits for its time; or what is wrong with it."""
    call = value.get("tool_call") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(call, dict):
        return "it has no tool_call"
    tool, arguments, at = call.get("tool_name"), call.get("arguments"), value.get("scheduledLocalTime")
    if not isinstance(tool, str) or not tool:
        return "it names no tool"
    if not isinstance(arguments, dict) or not isinstance(at, str):
        return "it has no arguments or no time"
    maid = arguments.get("maid")
    hidden = ("timely_contact", "tool_password")
    own = {key: inner for key, inner in arguments.items() if key not in hidden}
    return Timed(str(value.get("taskId", "")), tool, own, at, maid if isinstance(maid, str) else None)


def read_result_name(file: str, body: Json, plugins: Collection[str]) -> tuple[str, str] | None:
    """The plugin and the task of ``PLUGIN-TASK.json``, both of which may have hyphens."""
    stem = file.removesuffix(".json")
    said = body.get("pluginName") if isinstance(body, dict) else None
    known = sorted({*plugins, *([said] if isinstance(said, str) else [])}, key=len, reverse=True)
    plugin = next((name for name in known if stem.startswith(f"{name}-")), None)
    if plugin is not None:
        return plugin, stem[len(plugin) + 1 :]
    found = _RESULT_NAME.fullmatch(file)
    return (found[1], found[2]) if found else None


def _parse_rule(text: str) -> Rule:
    plain = text.removesuffix(_SILENT)
    tool, _, command = plain.partition(":")
    return Rule(text, tool, command, plain != text)
