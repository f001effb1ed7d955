"""Prompt filling: replaces the placeholders of a chat request on its way to the model.

Tools, clock, static values and the owner's prompts are filled in system messages only; results of asynchronous tasks
in system and assistant messages, and only those of this caller. One pass: inserted text is never scanned again, but for
the owner's prompts, which may name others, and text that came from a tool is made inert first. Messages without
placeholders are passed on as the very same objects. What nothing fills stays, and is reported.

A listing of tools is inserted once in a request; further placeholders for it become empty. All placeholders
together make a prompt grow by at most ``MAX_GROWTH`` bytes, and prompts contain each other at most ``MAX_DEPTH`` deep:
a request that asks for more is refused. A prompt that would contain itself stays as its placeholder.

With an installation of VCPToolBox its prompts are filled instead, in its own order (``PromptSources.installed``).

Where tools are off, only system messages are filled, and a listing of tools is empty.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from toolyard.gateway.chat_ports import PromptRequest, PromptSources
from toolyard.gateway.faults import ChatFailed, bad_request
from toolyard.gateway.offer import write_tools
from toolyard.gateway.reply.chunks import read_text
from toolyard.gateway.vcp_blocks import FORBIDDEN, remove_media
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.placeholders import Kind, Placeholder, fill_placeholders, find_placeholders
from toolyard.protocol.records.task_record import write_result
from toolyard.protocol.replies.reply_prompt import Language, write_prompt
from toolyard.protocol.requests.marks import START
from toolyard.protocol.requests.scanner import neutralise
from toolyard.protocol.tool_text import CHINESE, ENGLISH, write_tool

MAX_GROWTH: Final = 4 * 2**20
MAX_DEPTH: Final = 16
_DAYS = ("星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日")
SYSTEM: Final = ("system", "developer")
_LISTINGS: Final = (Kind.TOOL, Kind.ALL_TOOLS)
_NAMED: Final = re.compile(r"[^\W_][\w:@#%&^+.-]*")  # a placeholder that somebody meant as one, and no template


@dataclass(frozen=True, slots=True)
class FilledPrompt:
    messages: list[Json]
    changed: bool
    forbids_tools: bool
    lists_tools: bool = False  # a placeholder inserted tools
    unfilled: tuple[str, ...] = ()  # the names of placeholders that nothing fills


async def fill_prompt(
    messages: list[Json],
    texts: PromptSources,
    caller: str,
    nonce: str | None = None,
    *,
    model: str = "",
    is_plain: bool = False,
) -> FilledPrompt:
    """Return the messages as the model gets them. Raises ChatFailed when they would become too long.

    ``is_plain``: tools are off.
    """
    made: list[Json] = []
    forbids, lists_tools, sent = False, False, messages
    expansion: _Expansion | None = _Expansion(messages, texts, caller, is_plain=is_plain)
    if texts.installed is not None:
        request = PromptRequest(messages=messages, model=model, caller=caller, is_plain=is_plain)
        installed = await texts.installed(request)
        messages, lists_tools, expansion = installed.messages, installed.lists_tools, None
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        if isinstance(message, dict) and (role in SYSTEM or (role == "assistant" and not is_plain)):
            forbids = forbids or (role in SYSTEM and _has_text(message, FORBIDDEN))
            made.append(await _fill_message(message, expansion, is_system=role in SYSTEM, nonce=nonce))
        else:
            made.append(message)
    changed = len(made) != len(sent) or any(new is not old for new, old in zip(made, sent, strict=True))
    unfilled = tuple(dict.fromkeys(_list_unfilled(made)))
    if unfilled:
        texts.report_unfilled(unfilled)
    if expansion is not None:
        lists_tools = expansion.lists_tools
    return FilledPrompt(made if changed else sent, changed, forbids, lists_tools, unfilled)


def add_system_text(messages: list[Json], text: str) -> list[Json]:
    """Return the messages with a text at the end of the first system message, or as one of its own."""
    for number, message in enumerate(messages):
        if isinstance(message, dict) and message.get("role") in SYSTEM:
            content = message.get("content")
            if isinstance(content, list):
                added: Json = [*content, {"type": "text", "text": text}]
            else:
                added = f"{content}\n\n{text}" if content else text
            return [*messages[:number], {**message, "content": added}, *messages[number + 1 :]]
    return [{"role": "system", "content": text}, *messages]


def ask_for_structured_reply(messages: list[Json], *, has_tools: bool) -> list[Json]:
    """Return the messages with the prompt for structured replies, in the language of the conversation."""
    return add_system_text(messages, write_prompt(Language(detect_language(messages)), has_tools=has_tools).rstrip())


def lists_tools(messages: list[Json]) -> bool:
    """Return whether a system message has a placeholder for a listing of tools."""
    return any(
        placeholder.kind in _LISTINGS
        for message in messages
        if isinstance(message, dict) and message.get("role") in SYSTEM
        for placeholder in find_placeholders(read_text(message.get("content")))
    )


def add_nonce(text: str, nonce: str) -> str:
    """Return the text with a nonce in every start marker, so that a model writes it too."""
    return text.replace(START, START.replace("]", f":{nonce}]"))


async def _fill_message(
    message: JsonObject, expansion: "_Expansion | None", *, is_system: bool, nonce: str | None
) -> Json:
    content = message.get("content")
    if isinstance(content, str):
        new = await _fill_text(content, expansion, is_system=is_system, nonce=nonce)
        return message if new is content else {**message, "content": new}
    if not isinstance(content, list):
        return message
    parts: list[Json] = []
    for part in content:
        inner = part.get("text") if isinstance(part, dict) else None
        if isinstance(part, dict) and isinstance(inner, str):
            made = await _fill_text(inner, expansion, is_system=is_system, nonce=nonce)
            parts.append(part if made is inner else {**part, "text": made})
        else:
            parts.append(part)
    return {**message, "content": parts} if any(a is not b for a, b in zip(parts, content, strict=True)) else message


async def _fill_text(text: str, expansion: "_Expansion | None", *, is_system: bool, nonce: str | None) -> str:
    made = await expansion.expand(text, is_system=is_system) if expansion and "{{" in text else text
    if is_system and FORBIDDEN in made:
        made = made.replace(FORBIDDEN, "")
    if is_system and nonce is not None and START in made:
        made = add_nonce(made, nonce)
    return made if is_system or "base64," not in made else remove_media(made)


class _Expansion:
    """The placeholders of one request: their values, the listings inserted so far, and the growth of the prompt."""

    def __init__(self, messages: list[Json], texts: PromptSources, caller: str, *, is_plain: bool) -> None:
        self._messages, self._texts, self._caller, self._is_plain = messages, texts, caller, is_plain
        self._values: dict[str, _Value | None] = {}  # by the text between the braces
        self._static: Mapping[str, str] | None = None
        self._own: Mapping[str, str] | None = None
        self._open: list[str] = []  # the prompts that are being filled, the outermost first
        self._listed: set[str] = set()
        self._language = ""
        self._growth = 0

    @property
    def lists_tools(self) -> bool:
        return bool(self._listed)

    async def expand(self, text: str, *, is_system: bool) -> str:
        """Return the text with its placeholders filled; the same object when there is nothing to fill."""
        is_known = False
        for placeholder in find_placeholders(text):
            if is_system or placeholder.kind is Kind.ASYNC_RESULT:
                if placeholder.name not in self._values:
                    self._values[placeholder.name] = await self._value(placeholder)
                is_known = is_known or self._values[placeholder.name] is not None
        return fill_placeholders(text, lambda one: self._insert(one, is_system=is_system)) if is_known else text

    def _insert(self, placeholder: Placeholder, *, is_system: bool) -> str | None:
        value = self._values.get(placeholder.name)
        if value is None or not (is_system or placeholder.kind is Kind.ASYNC_RESULT):
            return None
        if value.is_listing:
            if placeholder.name in self._listed:
                return ""
            self._listed.add(placeholder.name)
        start, end = placeholder.span
        self._growth += value.size - (end - start)
        if self._growth > MAX_GROWTH:
            raise prompt_too_long()
        return value.text

    async def _value(self, placeholder: Placeholder) -> "_Value | None":
        if placeholder.kind is Kind.ASYNC_RESULT:
            task = await self._texts.task(placeholder.parts[0], placeholder.parts[1], self._caller)
            return None if task is None else _Value(neutralise(write_result(task)))
        if self._static is None:
            self._static = self._texts.static()
        if placeholder.name in self._static:
            return _Value(neutralise(self._static[placeholder.name]))
        if placeholder.kind is Kind.CLOCK:
            return _Value(_format_clock(placeholder.name, self._texts))
        listing = self._listing(placeholder) if placeholder.kind in _LISTINGS else None
        return await self._prompt(placeholder.name) if listing is None else _Value(listing, is_listing=True)

    async def _prompt(self, name: str) -> "_Value | None":
        """Return a prompt of the owner, filled by itself; None where there is none, or inside of itself."""
        if self._own is None:
            self._own = self._texts.own()
        if name not in self._own or name in self._open:
            return None
        if len(self._open) >= MAX_DEPTH:
            raise prompt_too_long()
        self._open.append(name)
        growth, self._growth = self._growth, 0  # what it contains counts where it is inserted
        filled = await self.expand(self._own[name], is_system=True)
        self._growth = growth
        self._open.pop()
        return _Value(filled)

    def _listing(self, placeholder: Placeholder) -> str | None:
        self._language = self._language or detect_language(self._messages)
        if placeholder.kind is Kind.ALL_TOOLS:
            return "" if self._is_plain else write_tools(list(self._texts.specs()), self._language)
        name = placeholder.parts[0]
        spec = next((spec for spec in self._texts.specs() if name in (spec.name, *spec.aliases)), None)
        return None if spec is None else "" if self._is_plain else write_tool(spec, self._language)


class _Value:
    """A text to insert, with the bytes that it takes."""

    __slots__ = ("is_listing", "size", "text")

    def __init__(self, text: str, *, is_listing: bool = False) -> None:
        self.text, self.is_listing = text, is_listing
        self.size = len(text.encode(errors="replace"))


def prompt_too_long() -> ChatFailed:
    """Return the fault of a request whose placeholders insert too much."""
    return bad_request(
        Message(
            "the placeholders of this request make its prompt longer by more than {value} MiB: use fewer or shorter "
            "ones",
            value=MAX_GROWTH // 2**20,
        ),
        "prompt_too_long",
    )


def _format_clock(name: str, texts: PromptSources) -> str:
    now = texts.now()
    if name == "Date":
        return f"{now.year}/{now.month}/{now.day}"
    return f"{now:%H:%M:%S}" if name == "Time" else _DAYS[now.weekday()]


def _has_text(message: JsonObject, words: str) -> bool:
    content = message.get("content")
    if isinstance(content, str):
        return words in content
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and words in str(part.get("text", "")) for part in parts)


def _list_unfilled(messages: list[Json]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, dict) and message.get("role") in SYSTEM:
            for placeholder in find_placeholders(read_text(message.get("content"))):
                if placeholder.kind is not Kind.REPLY and _NAMED.fullmatch(placeholder.name):
                    yield placeholder.name


_MAX_MESSAGES: Final = 20
_MAX_CHARS: Final = 4000  # of one message
_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_KANA: Final = re.compile("[\u3040-\u30ff]")
_LATIN: Final = re.compile(r"[^\sA-Za-z\u3400-\u9fff]*[A-Za-z][^\s\u3400-\u9fff]*")  # a word, a path, a line of code


def detect_language(messages: list[Json]) -> str:
    """Return the language of the newest user message that has words in it: Chinese, or English for any other."""
    for message in reversed(messages[-_MAX_MESSAGES:]):
        text = _text(message) if isinstance(message, dict) and message.get("role") == "user" else ""
        han, words = len(_HAN.findall(text)), len(_LATIN.findall(text))
        if han or words:
            return CHINESE if han >= words and not _KANA.search(text) else ENGLISH
    return ENGLISH


def _text(message: JsonObject) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content[:_MAX_CHARS]
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return " ".join(text[:_MAX_CHARS] for text in texts if isinstance(text, str))[:_MAX_CHARS]
