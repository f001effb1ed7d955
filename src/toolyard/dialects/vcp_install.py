"""The state files of a VCPToolBox install, parsed into values. Pure: the caller reads the files."""

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
    """A line of the approval list: a tool, or one of its commands, that needs approval or is refused silently."""

    text: str
    tool: str
    command: str
    refuses: bool


@dataclass(frozen=True, slots=True)
class TimedTask:
    task_id: str
    tool: str
    arguments: JsonObject
    at: str  # ISO 8601 with its offset
    maid: str | None


def read_approval_rules(value: Json) -> tuple[list[Rule], str]:
    """Return the active rules; or none, and the reason."""
    if not isinstance(value, dict):
        return [], "it is not an object"
    if value.get("enabled") is not True:
        return [], "approval is turned off there"
    listed = value.get("approvalList")
    return [_parse_rule(text) for text in listed if isinstance(text, str)] if isinstance(listed, list) else [], ""


def read_timed_task(value: Json) -> TimedTask | str:
    """Return a scheduled task; or the problem with it."""
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
    return TimedTask(str(value.get("taskId", "")), tool, own, at, maid if isinstance(maid, str) else None)


def read_result_name(file: str, body: Json, plugins: Collection[str]) -> tuple[str, str] | None:
    """Return the plugin and the task of ``PLUGIN-TASK.json``, both of which may contain hyphens."""
    stem = file.removesuffix(".json")
    declared = body.get("pluginName") if isinstance(body, dict) else None
    known = sorted({*plugins, *([declared] if isinstance(declared, str) else [])}, key=len, reverse=True)
    plugin = next((name for name in known if stem.startswith(f"{name}-")), None)
    if plugin is not None:
        return plugin, stem[len(plugin) + 1 :]
    match = _RESULT_NAME.fullmatch(file)
    return (match[1], match[2]) if match else None


def _parse_rule(text: str) -> Rule:
    plain = text.removesuffix(_SILENT)
    tool, _, command = plain.partition(":")
    return Rule(text, tool, command, plain != text)


@dataclass(frozen=True, slots=True)
class ModelPrompt:
    """A text of ``sarprompt.json`` that only some models get."""

    key: str
    models: tuple[str, ...]  # in lower case
    content: str
    is_part: bool = False  # part of a model's name is enough

    def fits(self, model: str) -> bool:
        name = model.lower()
        return any(one in name if self.is_part else one == name for one in self.models if one)


def read_model_prompts(value: Json) -> tuple[ModelPrompt, ...]:
    """Return the prompts of ``sarprompt.json``; what is none of them is left out."""
    entries = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    return tuple(
        ModelPrompt(
            str(one.get("promptKey") or ""),
            tuple(str(model).strip().lower() for model in models),
            str(one.get("content") or ""),
            is_part=one.get("matchMode") == "includes",
        )
        for one in entries
        if isinstance(models := one.get("models"), list)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicToolLimits:
    """The limits of ``{{VCPDynamicTools}}``, by ``dynamic_tool_bridge.config.json``."""

    is_on: bool = True
    listed: int = 120
    expanded: int = 4
    forced: int = 12  # tools of one category
    characters: int = 16_000

    @classmethod
    def from_json(cls, value: Json) -> "DynamicToolLimits":
        fields = value if isinstance(value, dict) else {}

        def read(name: str, usual: int, least: int, most: int) -> int:
            number = fields.get(name)
            is_number = isinstance(number, int) and not isinstance(number, bool)
            return min(max(int(str(number)), least), most) if is_number else usual

        return cls(
            is_on=fields.get("enabled") is not False,
            listed=read("maxBriefListItems", 120, 1, 500),
            expanded=read("maxExpandedPlugins", 4, 0, 50),
            forced=read("maxForcedCategoryPlugins", 12, 1, 100),
            characters=read("maxInjectionChars", 16_000, 1_000, 120_000),
        )


_SEARCH_WEIGHTS = (0.7, 0.3)


def read_search_weights(value: Json) -> tuple[float, float]:
    """Return how much the last question and the last answer count in a search, by ``rag_params.json``."""
    plugin = value.get("RAGDiaryPlugin") if isinstance(value, dict) else None
    weights = plugin.get("mainSearchWeights") if isinstance(plugin, dict) else None
    numbers = [float(one) for one in weights if isinstance(one, int | float)] if isinstance(weights, list) else []
    return (numbers[0], numbers[1]) if len(numbers) == len(_SEARCH_WEIGHTS) else _SEARCH_WEIGHTS
