"""The files of an installation that prompts are made of, read again when they have changed.

``agent_map.json`` and ``Agent/``, ``toolbox_map.json`` and ``TVStxt/``, ``sarprompt.json``, ``config.env``, the lists
of emoji, ``VCPAsyncResults/``. Nothing is written, and nothing is kept open: what a file is now is looked up by its
time and size whenever it is used, so that a change counts from the next request on, however it was made.
"""

import json
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

from toolyard.dialects.vcp_install import CONFIG, RESULTS, DynamicToolLimits, ModelPrompt, read_model_prompts
from toolyard.plugins.package.config_env import parse_config
from toolyard.protocol.json import Json
from toolyard.vcp.installation import AGENT_MAP, TOOLBOX_MAP

MODEL_PROMPTS: Final = "sarprompt.json"
EMOJI: Final = "Plugin/EmojiListGenerator/generated_lists"
IMAGE_SERVER: Final = "Plugin/ImageFileServer/config.env"
DYNAMIC_TOOLS: Final = "ToolConfigs/dynamic_tool_bridge.config.json"
MAX_FILE: Final = 8 * 2**20  # bytes of one file
_MAX_KEPT = 500  # files
_MAX_MODEL_PROMPTS = 100  # in config.env, as VCPToolBox reads them
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Toolbox:
    file: str
    description: str = ""


class PromptFiles:
    def __init__(self, root: Path) -> None:
        self.root = root
        self._variables: _Watched[Mapping[str, str]] = _Watched(root / CONFIG, _parse_variables)
        self._agents = _Watched(root / AGENT_MAP, _parse_agents)
        self._toolboxes = _Watched(root / TOOLBOX_MAP, _parse_toolboxes)
        self._image_server: _Watched[Mapping[str, str]] = _Watched(root / IMAGE_SERVER, _parse_variables)
        self._dynamic_tools = _Watched(root / DYNAMIC_TOOLS, _parse_limits)
        self._model_prompts = _Watched(root / MODEL_PROMPTS, _parse_model_prompts)
        self._texts: OrderedDict[str, _Watched[str]] = OrderedDict()

    @property
    def variables(self) -> Mapping[str, str]:
        """The settings of config.env, in their order."""
        return self._variables.read()

    @property
    def image_key(self) -> str:
        """The key in addresses of pictures: that of their plugin, else of config.env."""
        return self._image_server.read().get("Image_Key", "") or self.variables.get("Image_Key", "")

    @property
    def dynamic_tool_limits(self) -> DynamicToolLimits:
        return self._dynamic_tools.read()

    @property
    def agents(self) -> Mapping[str, str]:
        """The file of each agent, below the folder of agents."""
        return self._agents.read()

    @property
    def toolboxes(self) -> Mapping[str, Toolbox]:
        return self._toolboxes.read()

    @property
    def model_prompts(self) -> tuple[ModelPrompt, ...]:
        """The prompts of ``sarprompt.json``; those of config.env while there is no such file."""
        if (self.root / MODEL_PROMPTS).exists():
            return self._model_prompts.read()
        return tuple(_list_model_prompts(self.variables))

    def read_agent(self, name: str) -> str:
        """Return the text of an agent; why not, where it cannot be read, in the words of VCPToolBox."""
        folder = self.root / (self.variables.get("AGENT_DIR_PATH", "").strip() or "Agent")
        text = self._read(f"{folder}/{self.agents[name]}")
        if isinstance(text, str):
            return text
        return f"[AgentManager: Error loading prompt for '{name}'. File not found or unreadable.]"

    def read_text(self, name: str) -> tuple[str, bool]:
        """Return a file of ``TVStxt`` and True; why not, and False, where it cannot be read."""
        text = self._read(f"{self._text_folder}/{name}")
        if isinstance(text, FileNotFoundError):
            return f"[变量文件 ({name}) 未找到]", False
        if isinstance(text, OSError):
            return f"[处理变量文件 ({name}) 时出错]", False
        return text, not text.startswith(("[变量文件", "[处理变量文件"))

    def read_toolbox(self, toolbox: Toolbox) -> str:
        """Return the text of a toolbox; why not, where it cannot be read."""
        base = os.path.abspath(self._text_folder)
        path = os.path.abspath(os.path.join(base, toolbox.file))
        if not path.startswith(base + os.sep):
            return f"[ToolboxManager] 非法路径访问被拒绝: {toolbox.file}"
        text = self._read(path)
        if isinstance(text, str):
            return text
        return f"[ToolboxManager] 无法读取 toolbox 文档 '{toolbox.file}'：{text.strerror}"

    def read_emoji(self, name: str) -> str:
        """Return the list of a pack of emoji; empty when there is none."""
        text = "" if "/" in name or "\0" in name else self._read(f"{self.root}/{EMOJI}/{name}.txt")
        return text if isinstance(text, str) else ""

    def read_async_result(self, plugin: str, task: str) -> "Json | OSError":
        """Return what was called back for a task; an OSError where there is nothing, or nothing that can be read."""
        text = self._read(f"{self.root}/{RESULTS}/{plugin}-{task}.json")
        if isinstance(text, OSError):
            return text
        try:
            value: Json = json.loads(text)
        except (ValueError, RecursionError) as error:
            return OSError(str(error))
        return value

    @property
    def _text_folder(self) -> Path:
        return self.root / (self.variables.get("TVSTXT_DIR_PATH", "").strip() or "TVStxt")

    def _read(self, path: str) -> str | OSError:
        watched = self._texts.get(path)
        if watched is None:
            watched = self._texts[path] = _Watched(Path(path), str)
            if len(self._texts) > _MAX_KEPT:
                self._texts.popitem(last=False)
        self._texts.move_to_end(path)
        text = watched.read()
        return watched.problem or text


class _Watched(Generic[T]):
    """A value made of a file, until it changes; while the file cannot be read, the value of an empty text."""

    def __init__(self, path: Path, parse: Callable[[str], T]) -> None:
        self._path, self._parse = path, parse
        self._seen: tuple[int, int, int] | None = None
        self._value = parse("")
        self.problem: OSError | None = FileNotFoundError()

    def read(self) -> T:
        try:
            found = os.stat(self._path)
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            if seen != self._seen:
                self._value = self._parse(_read_file(self._path).decode("utf-8", "replace"))
                self._seen, self.problem = seen, None
        except (OSError, ValueError) as error:  # ValueError: a NUL in its name
            self.problem = error if isinstance(error, OSError) else OSError(str(error))
            if self._seen is not None:
                self._value, self._seen = self._parse(""), None
        return self._value


def _read_file(path: Path) -> bytes:
    """Return the content of a regular file. Raises OSError; a pipe is not waited for."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        raw = file.read(MAX_FILE + 1)
    if len(raw) > MAX_FILE:
        raise OSError(27, "the file is too large")
    return raw


def _parse_variables(text: str) -> Mapping[str, str]:
    return parse_config(text).values


def _parse_map(text: str) -> dict[str, Json]:
    try:
        value = json.loads(text.removeprefix("\ufeff") or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _parse_limits(text: str) -> DynamicToolLimits:
    return DynamicToolLimits.from_json(_parse_map(text))


def _parse_agents(text: str) -> Mapping[str, str]:
    return {name: file for name, file in _parse_map(text).items() if isinstance(file, str) and file}


def _parse_toolboxes(text: str) -> Mapping[str, Toolbox]:
    toolboxes: dict[str, Toolbox] = {}
    for name, entry in _parse_map(text).items():
        if isinstance(entry, str):
            toolboxes[name] = Toolbox(entry)
        elif isinstance(entry, dict) and isinstance(file := entry.get("file"), str):
            about = entry.get("description")
            toolboxes[name] = Toolbox(file, about.strip() if isinstance(about, str) else "")
    return toolboxes


def _parse_model_prompts(text: str) -> tuple[ModelPrompt, ...]:
    try:
        value: Json = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return ()
    return read_model_prompts(value)


def _list_model_prompts(variables: Mapping[str, str]) -> Iterator[ModelPrompt]:
    for number in range(1, _MAX_MODEL_PROMPTS + 1):
        content, models = variables.get(f"SarPrompt{number}", ""), variables.get(f"SarModel{number}", "")
        if content and models:
            yield ModelPrompt(f"SarPrompt{number}", tuple(one.strip().lower() for one in models.split(",")), content)
