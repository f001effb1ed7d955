"""The text of one message, filled as VCPToolBox fills it: its variables, in its order, nested as it nests them.

``TextFiller`` fills the texts of one request, one after another, because of an agent only the first is shown in a whole
request, and a toolbox only once. Who may use what:

    system messages                            everything
    user texts that begin with [系统提示:] or    agents, toolboxes, prompts of a model
    [系统邀请指令:]
    user texts that begin with [系统通知]        prompts of a model
    any other text                             nothing

The order in one text: agents, toolboxes, emoji; prompts of a model; ``Tar…`` and ``Var…`` in the order of config.env,
then Toolyard's own; the clock; the mode of folds; static plugins; descriptions of tools; port and key of pictures. The
text of a file is filled by itself before it is inserted, an agent's from the beginning, any other's from the prompts of
a model on. So a variable that stands in the value of another one is filled only if it comes later. What no step knows
stays as it is. Async results and ``{{VCPDynamicTools}}`` are left for the caller.

What is different from VCPToolBox: texts that programs printed are made inert, ``$&`` means nothing, files that contain
each other end (``{{…}}`` stays where one would contain itself), and all of it is bounded by ``Budget``.
"""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final

from toolyard.protocol.requests.scanner import neutralise
from toolyard.vcp.folds import AUTO, BLANKS, FULL, LITE, RULE, Fold, Similarity, parse_fold, parse_marks
from toolyard.vcp.lunar import write_festival
from toolyard.vcp.prompt_files import PromptFiles

MAX_DEPTH: Final = 32  # files in files
MAX_TEXTS: Final = 2_000  # that are filled for one request: files, and the texts of messages
MAX_WORK: Final = 32 * 2**20  # characters looked at and inserted, those of inner texts included
_DAYS = ("星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日")
_NO_TOOLS = "没有可用的VCP工具描述信息"
_PRIVILEGED = ("[系统提示:]", "[系统邀请指令:]")
_NOTICES = (*_PRIVILEGED, "[系统通知:]", "[系统通知]")
_ALIAS = re.compile("\\{\\{([a-zA-Z0-9_:@#%&^+\\-\u2e80-\u2fff\u3040-\u9fff]+)\\}\\}")
_PREFIX = re.compile("^(?:agent:|toolbox:)")
_EMOJI = re.compile(r"\{\{([^{}]+?表情包)\}\}")
_MODEL_PROMPT = re.compile(r"\{\{(SarPrompt[0-9]+)\}\}")
_FOLD_MODE = re.compile(r"\[\[VCPStaticFold::(Auto|Lite|Full)\]\]", re.IGNORECASE | re.ASCII)
_log = logging.getLogger(__name__)


class TooLong(Exception):
    """The prompt of a request would become too long, or its files contain too much of each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptValues:
    """The values that are not of the installation's files, as they are for one request."""

    now: datetime  # in the zone of reports
    statics: Mapping[str, str] = field(default_factory=dict)  # what static plugins printed, by placeholder
    tools: Callable[[], Mapping[str, str]] = dict  # the description of each plugin, by VCPName; asked at most once
    own: Mapping[str, str] = field(default_factory=dict)  # Toolyard's own prompts and variables
    nodes: str = ""  # the list of connected nodes
    port: str = ""
    image_key: str = ""
    similarity: Similarity = lambda _: None


class TextFiller:
    """Fills the texts of one request."""

    def __init__(self, files: PromptFiles, values: PromptValues, model: str) -> None:
        self._files, self._values, self._model = files, values, model
        self._agent: str | None = None  # the one that is shown in this request
        self._toolboxes: set[str] = set()
        self._open: list[str] = []  # the agents, toolboxes and files that are being filled, the outermost first
        self._texts = self._work = 0
        self._tools: Mapping[str, str] | None = None
        self.lists_tools = False

    def fill(self, text: str, role: str) -> str:
        """Return a text of a message. Raises TooLong."""
        self._begin(text)
        if _may_name_agents(text, role):
            text = self._fill_named(text, role)
        if role == "system":
            text = _EMOJI.sub(self._write_emoji, text)
        return self._fill_variables(text, role)

    # --- agents and toolboxes

    def _fill_named(self, text: str, role: str) -> str:
        names = list(dict.fromkeys(_PREFIX.sub("", match[1]) for match in _ALIAS.finditer(text)))
        for name in names:
            if name in self._files.agents:
                text = self._fill_agent(text, name, role)
        for name in names:
            if name in self._files.toolboxes:
                text = self._fill_toolbox(text, name)
        return text

    def _fill_agent(self, text: str, name: str, role: str) -> str:
        marks = (f"{{{{{name}}}}}", f"{{{{agent:{name}}}}}")
        if self._agent is not None:
            return self._replace_all(text, marks, "")
        key = f"agent {name}"
        if key in self._open:
            return self._replace_all(text, marks, f"[Error: Circular agent reference detected for '{name}']")
        filled = self._fill_inner(key, lambda: self.fill(self._files.read_agent(name), role))
        text = self._replace_all(text, marks, filled)
        self._agent = name
        return text

    def _fill_toolbox(self, text: str, name: str) -> str:
        marks = (f"{{{{{name}}}}}", f"{{{{toolbox:{name}}}}}")
        if name not in self._toolboxes:
            toolbox = self._files.toolboxes[name]
            content = self._files.read_toolbox(toolbox)
            fold = parse_marks(content, toolbox.description or f"Toolbox {name}")
            found = [(at, mark) for mark in marks if (at := text.find(mark)) >= 0]
            if found:
                at, mark = min(found)
                shown = fold.choose(self._values.similarity)
                self._spend(len(shown))
                rest = self._replace_all(text[at + len(mark) :], marks, "")
                text = text[:at] + shown + rest
                self.lists_tools = True
            self._toolboxes.add(name)
            return text
        return self._replace_all(text, marks, "")

    def _write_emoji(self, match: re.Match[str]) -> str:
        value = self._files.read_emoji(match[1]) or f"[{match[1]}列表不可用]"
        self._spend(len(value))
        return value

    # --- variables

    def _fill_variables(self, text: str, role: str) -> str:
        if role == "system" or (role == "user" and text.startswith(_NOTICES)):
            text = self._fill_model_prompts(text, role)
        if role == "system":
            text = self._fill_files(text)
            text = self._fill_clock(text)
            text = self._fill_statics(text)
            text = self._fill_tools(text)
            text = self._replace(text, "{{Port}}", self._values.port) if self._values.port else text
            text = self._replace(text, "{{Image_Key}}", self._values.image_key) if self._values.image_key else text
        return text

    def _fill_model_prompts(self, text: str, role: str) -> str:
        if "{{SarPrompt" not in text:
            return text
        prompts = self._files.model_prompts
        for key in dict.fromkeys(match[1] for match in _MODEL_PROMPT.finditer(text)):
            prompt = next((one for one in prompts if one.key == key), None)
            fits = prompt is not None and bool(prompt.content) and prompt.fits(self._model)
            value = self._write_value(prompt.content, role) if prompt is not None and fits else ""
            text = self._replace(text, f"{{{{{key}}}}}", f"{{{{{key}}}}}" if value is None else value)
        if "{{SarPromptAll}}" in text:
            fitting = [one.content for one in prompts if one.content and one.fits(self._model)]
            values = [self._write_value(content, role) for content in fitting]
            text = self._replace(text, "{{SarPromptAll}}", "\n".join(value for value in values if value is not None))
        return text

    def _fill_files(self, text: str) -> str:
        for key, value in self._files.variables.items():
            if not key.startswith(("Tar", "Var")) or f"{{{{{key}}}}}" not in text:
                continue
            written = self._write_value(value, "system") if value else f"[未配置 {key}]"
            if written is not None:
                text = self._replace(text, f"{{{{{key}}}}}", written)
        for key, own in self._values.own.items():
            mark, name = f"{{{{{key}}}}}", f"prompt {key}"
            if mark in text and name not in self._open:
                text = self._replace(text, mark, self._fill_inner(name, partial(self._fill_text, own, "system")))
        return self._replace(text, "{{VCPDistributedServerList}}", self._values.nodes)

    def _write_value(self, value: str, role: str) -> str | None:
        """Return the value of a variable, or of the file that it names; None when that file is being filled already."""
        if not value.lower().endswith(".txt"):
            return value
        key = f"file {value}"
        if key in self._open:
            _log.warning("prompts of VCPToolBox: %s contains itself: %s", value, " > ".join([*self._open, key]))
            return None
        content, is_text = self._files.read_text(value)
        return self._fill_inner(key, lambda: self._fill_text(content, role)) if is_text else content

    def _fill_text(self, text: str, role: str) -> str:
        self._begin(text)
        return self._fill_variables(text, role)

    def _fill_clock(self, text: str) -> str:
        now = self._values.now
        text = self._replace(text, "{{Date}}", f"{now.year}/{now.month}/{now.day}")
        text = self._replace(text, "{{Time}}", f"{now:%H:%M:%S}")
        text = self._replace(text, "{{Today}}", _DAYS[now.weekday()])
        return self._replace(text, "{{Festival}}", write_festival(now.date())) if "{{Festival}}" in text else text

    def _fill_statics(self, text: str) -> str:
        modes = _FOLD_MODE.findall(text)
        mode = {"lite": LITE, "full": FULL}.get(modes[-1].lower() if modes else "", AUTO)
        text = (_FOLD_MODE.sub("", text) if modes else text).strip(BLANKS)
        for key, printed in self._values.statics.items():
            if f"{{{{{key}}}}}" in text:
                fold = parse_fold(printed)
                value = printed if fold is None else self._choose(fold, key, mode)
                text = self._replace(text, f"{{{{{key}}}}}", neutralise(value) or f"[{key} 信息不可用]")
        return text

    def _choose(self, fold: Fold, key: str, mode: str) -> str:
        if mode == AUTO and not fold.is_valid:
            return f"[无效的动态折叠数据结构: {key}]"
        return fold.choose(self._values.similarity, mode)

    def _fill_tools(self, text: str) -> str:
        before = text
        if "{{VCP" not in text:
            return text
        if self._tools is None:
            self._tools = self._values.tools()
        for key, description in self._tools.items():
            text = self._replace(text, f"{{{{{key}}}}}", description)
        if "{{VCPAllTools}}" in text:
            text = self._replace(text, "{{VCPAllTools}}", RULE.join(self._tools.values()) or _NO_TOOLS)
        self.lists_tools = self.lists_tools or text is not before
        return text

    # --- bounds

    def _fill_inner(self, key: str, fill: Callable[[], str]) -> str:
        if len(self._open) >= MAX_DEPTH:
            raise TooLong
        self._open.append(key)
        try:
            return fill()
        finally:
            self._open.pop()

    def _replace_all(self, text: str, marks: tuple[str, str], value: str) -> str:
        return self._replace(self._replace(text, marks[0], value), marks[1], value)

    def _replace(self, text: str, mark: str, value: str) -> str:
        count = text.count(mark)
        if not count:
            return text
        self._spend(count * len(value))
        return text.replace(mark, value)

    def _begin(self, text: str) -> None:
        self._texts += 1
        if self._texts > MAX_TEXTS:
            raise TooLong
        self._spend(len(text))

    def _spend(self, characters: int) -> None:
        self._work += characters
        if self._work > MAX_WORK:
            raise TooLong


def _may_name_agents(text: str, role: str) -> bool:
    return role == "system" or (role == "user" and text.startswith(_PRIVILEGED))
