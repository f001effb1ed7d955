"""The prompts of a VCPToolBox installation: what becomes of the messages of a request, in VCPToolBox's order.

1. ``{{TransBase64}}`` and ``{{TransBase64+}}`` are taken out of system and user texts.
2. The preprocessor VCPTavern, where the installation's own code runs.
3. The variables of each message, one after another: ``prompt_text``. Then async results, in every role.
4. The processor of media, if a mark of the first step asked for it, then the other preprocessors in their order.
5. Detectors in system texts, super-detectors in all, in the order of config.env.
6. The role divider.

This is code of our own because a prompt then needs no Node process: agents, variables and diaries work in a chat from
its first second, and while the bridge is away. Only what searches by meaning, the preprocessors, is asked of it.
"""

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from toolyard.dialects.vcp_nodes import NO_NODES
from toolyard.gateway.chat_ports import InstalledPrompt, PromptRequest
from toolyard.gateway.chat_prompt import MAX_GROWTH, SYSTEM, prompt_too_long
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.task_record import Task, write_result
from toolyard.protocol.requests.marks import START
from toolyard.protocol.requests.scanner import neutralise
from toolyard.vcp.bridge.connection import BridgeError
from toolyard.vcp.dynamic_tools import ListedTool, write_dynamic_tools
from toolyard.vcp.folds import Similarity
from toolyard.vcp.prompt_files import PromptFiles
from toolyard.vcp.prompt_text import PromptValues, TextFiller, TooLong
from toolyard.vcp.roles import RoleDivider

USUAL_ZONE: Final = "Asia/Shanghai"
_MAX_WAIT_S = 120.0  # for the preprocessors of one stage; they may ask a model
_RESULT = re.compile(r"(\{{2,4})VCP_ASYNC_RESULT::([a-zA-Z0-9_.-]+)::([a-zA-Z0-9_-]+)(\}{2,4})")
_MEDIA = re.compile(r"\{\{TransBase64\+?\}\}")
_log = logging.getLogger(__name__)


class Stage(StrEnum):
    """When a preprocessor of the installation runs."""

    FIRST = "first"  # VCPTavern: before the variables
    MEDIA = "media"  # the processor of media, only where a text asks for it
    REST = "rest"


# Runs the preprocessors of a stage in the installation's own code.
Preprocess = Callable[[Stage, list[Json]], Awaitable[list[Json]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPorts:
    """The parts of the program that prompts need."""

    now: Callable[[], datetime]
    task: Callable[[str, str, str], Awaitable[Task | None]]  # plugin, id, caller
    statics: Callable[[], Mapping[str, str]]  # what static plugins printed, folds included, by placeholder
    tools: Callable[[], Mapping[str, str]]  # the description of each plugin, by VCPName
    own: Callable[[], Mapping[str, str]] = dict  # Toolyard's own prompts and variables
    nodes: Callable[[], str] = lambda: NO_NODES
    port: Callable[[], str] = lambda: ""
    listed_tools: Callable[[], Sequence[ListedTool]] = tuple  # for {{VCPDynamicTools}}
    similarity: Callable[[list[Json]], Similarity] | None = None  # with a conversation; used in another thread
    preprocess: Preprocess | None = None


class InstalledPrompts:
    def __init__(self, files: PromptFiles, ports: PromptPorts) -> None:
        self._files, self._ports = files, ports

    async def fill(self, request: PromptRequest) -> InstalledPrompt:
        """Return the messages as the model gets them. Raises ChatFailed when they would become too long."""
        messages, wants_media = _take_media_marks(request.messages)
        messages = await self._preprocess(Stage.FIRST, messages)
        size = _count_text(messages)
        similarity = self._ports.similarity(messages) if self._ports.similarity else _know_nothing
        try:
            messages, lists_tools = await asyncio.to_thread(self._fill_variables, messages, request, similarity)
        except TooLong:
            raise prompt_too_long() from None
        if _count_text(messages) - size > MAX_GROWTH:
            raise prompt_too_long()
        lists_tools = lists_tools or any(
            role == "system" and "{{VCPDynamicTools}}" in text for one in messages for text, role in _list_texts(one)
        )
        messages = [await self._fill_late(message, request) for message in messages]
        if _count_text(messages) - size > MAX_GROWTH:
            raise prompt_too_long()
        if wants_media:
            messages = await self._preprocess(Stage.MEDIA, messages)
        messages = await self._preprocess(Stage.REST, messages)
        messages = await asyncio.to_thread(self._finish, messages)
        lists_tools = (lists_tools or _has_calls(messages)) and not request.is_plain
        return InstalledPrompt(messages=messages, lists_tools=lists_tools)

    def _fill_variables(
        self, messages: list[Json], request: PromptRequest, similarity: Similarity
    ) -> tuple[list[Json], bool]:
        zone = _find_zone(self._files.variables)
        ports = self._ports
        values = PromptValues(
            now=ports.now().astimezone(zone) if zone else ports.now(),
            statics=ports.statics(),
            tools=(lambda: dict.fromkeys(ports.tools(), "")) if request.is_plain else ports.tools,
            own=ports.own(),
            nodes=ports.nodes(),
            port=ports.port(),
            image_key=self._files.image_key,
            similarity=similarity,
        )
        filler = TextFiller(self._files, values, request.model)
        made = [_map_texts(message, filler.fill) for message in messages]
        return made, filler.lists_tools and not request.is_plain

    def _finish(self, messages: list[Json]) -> list[Json]:
        variables = self._files.variables
        return RoleDivider.from_variables(variables).divide(_apply_detectors(messages, variables))

    async def _fill_late(self, message: Json, request: PromptRequest) -> Json:
        """Insert what has to be waited for: async results, and the tools that fit the conversation."""
        found: dict[tuple[str, str], str] = {}
        tools, is_named = "", False
        for text, role in _list_texts(message):
            if role == "system" and not is_named and "{{VCPDynamicTools}}" in text:
                is_named, tools = True, await self._write_dynamic_tools(request)
            for match in _RESULT.finditer(text):
                key = (match[2], match[3])
                if key not in found:
                    found[key] = neutralise(await self._read_result(*key, request.caller))

        def insert(text: str, role: str) -> str:
            if role == "system" and is_named:
                text = text.replace("{{VCPDynamicTools}}", tools)
            return _RESULT.sub(lambda match: _insert_result(match, found[match[2], match[3]]), text) if found else text

        return _map_texts(message, insert) if found or is_named else message

    async def _write_dynamic_tools(self, request: PromptRequest) -> str:
        limits = await asyncio.to_thread(lambda: self._files.dynamic_tool_limits)
        if request.is_plain or not limits.is_on:
            return ""
        return await asyncio.to_thread(write_dynamic_tools, self._ports.listed_tools(), request.messages, limits)

    async def _read_result(self, plugin: str, task_id: str, caller: str) -> str:
        task = await self._ports.task(plugin, task_id, caller)
        if task is not None:
            return write_result(task)
        stored = await asyncio.to_thread(self._files.read_async_result, plugin, task_id)
        return _write_stored_result(plugin, task_id, stored)

    async def _preprocess(self, stage: Stage, messages: list[Json]) -> list[Json]:
        """Return the messages of the preprocessors; the same ones when they fail, as VCPToolBox goes on."""
        if self._ports.preprocess is None:
            return messages
        try:
            async with asyncio.timeout(_MAX_WAIT_S):
                return await self._ports.preprocess(stage, messages)
        except (BridgeError, Failure, OSError) as error:
            _log.warning("the preprocessors of VCPToolBox failed (%s): %s", stage, str(error) or type(error).__name__)
            return messages


def _know_nothing(_: str) -> None:
    return None


def _take_media_marks(messages: list[Json]) -> tuple[list[Json], bool]:
    """Return the messages without the marks that ask for descriptions of media, and whether there were any."""
    found = False

    def take(text: str, role: str) -> str:
        nonlocal found
        if role not in ("system", "user") or not _MEDIA.search(text):
            return text
        found = True
        return _MEDIA.sub("", text)

    made = [_map_texts(message, take) for message in messages]
    return (made, True) if found else (messages, False)


def _apply_detectors(messages: list[Json], variables: Mapping[str, str]) -> list[Json]:
    in_system = list(_list_rules(variables, "Detector"))
    in_all = list(_list_rules(variables, "SuperDetector"))
    if not in_system and not in_all:
        return messages

    def apply(text: str, role: str) -> str:
        for word, output in [*(in_system if role == "system" else ()), *in_all]:
            if word in text:
                if len(text) + text.count(word) * len(output) > 2 * MAX_GROWTH + len(text):
                    raise prompt_too_long()
                text = text.replace(word, output)
        return text

    return [_map_texts(message, apply) for message in messages]


def _list_rules(variables: Mapping[str, str], kind: str) -> Iterable[tuple[str, str]]:
    for name, word in variables.items():
        number = name.removeprefix(kind)
        if name.startswith(kind) and number.isascii() and number.isdigit() and word:
            output = variables.get(f"{kind}_Output{number}", "")
            if output:
                yield word, output


def _write_stored_result(plugin: str, task_id: str, stored: "Json | OSError") -> str:
    if isinstance(stored, FileNotFoundError):
        return f"[任务 {plugin} (ID: {task_id}) 结果待更新...]"
    if isinstance(stored, OSError):
        return f"[获取任务 {plugin} (ID: {task_id}) 结果时出错]"
    body: JsonObject = stored if isinstance(stored, dict) else {}
    if body.get("message"):
        message = body["message"]
        return message if isinstance(message, str) else _write_json(message)
    if body.get("status") == "Succeed":
        data = body.get("data") or body.get("result") or body
        return f"任务 {plugin} (ID: {task_id}) 已成功完成。详情: {_write_json(data)}"
    if body.get("status") == "Failed":
        reason = body.get("reason") or _write_json(body.get("data") or body.get("error") or body)
        why = reason if isinstance(reason, str) else _write_json(reason)
        return f"任务 {plugin} (ID: {task_id}) 处理失败。原因: {why}"
    return f"[任务 {plugin} (ID: {task_id}) 已完成]"


def _write_json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _insert_result(match: re.Match[str], text: str) -> str:
    """Return the text for as many braces as there are on both sides; others stay."""
    braces = min(len(match[1]), len(match[4]))
    return match[1][braces:] + text + match[4][braces:]


def _find_zone(variables: Mapping[str, str]) -> ZoneInfo | None:
    """Return the zone of reports; None: its name is none, so that of the settings is used."""
    name = variables.get("REPORT_TIMEZONE") or variables.get("DEFAULT_TIMEZONE") or USUAL_ZONE
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return None


def _has_calls(messages: list[Json]) -> bool:
    return any(role == "system" and START in text for message in messages for text, role in _list_texts(message))


def _count_text(messages: list[Json]) -> int:
    return sum(len(text.encode(errors="replace")) for message in messages for text, _ in _list_texts(message))


def _list_texts(message: Json) -> Iterable[tuple[str, str]]:
    """Yield the texts of a message, with its role: ``developer`` is a system message."""
    if not isinstance(message, dict):
        return
    role = _read_role(message)
    content = message.get("content")
    if isinstance(content, str):
        yield content, role
    for part in content if isinstance(content, list) else []:
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if isinstance(text, str):
            yield text, role


def _map_texts(message: Json, change: Callable[[str, str], str]) -> Json:
    """Return a message with its texts changed; the same object when none is."""
    texts = list(_list_texts(message))
    changed = [change(text, role) for text, role in texts]
    if not isinstance(message, dict) or all(new == old for new, (old, _) in zip(changed, texts, strict=True)):
        return message
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": changed[0]}
    following = iter(changed)
    parts: list[Json] = [
        {**part, "text": next(following)}
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
        else part
        for part in (content if isinstance(content, list) else [])
    ]
    return {**message, "content": parts}


def _read_role(message: JsonObject) -> str:
    role = str(message.get("role") or "")
    return "system" if role in SYSTEM else role
