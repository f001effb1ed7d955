"""The context of a model: how much it takes, and which results of tools a conversation is sent without to fit it.

A prompt grows with each call. Up to ``HIGH`` of the window nothing in it changes, so that each request begins with the
one before, byte by byte, as the caches of providers need it. Beyond that comes a step: the oldest results, and the long
arguments of their calls, are left out until ``LOW`` of the window is reached. Short ones stay, errors among them. What
was left out stays left out. Results of the last round are cut, if that is not enough.

The window is the one that the provider names (``Upstream.window``), or that a refusal taught; while nobody knows it,
``UNKNOWN`` bytes of results are the limit. The tokens of a request are its bytes times a rate, learned from the
usage of the answers.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Generic, TypeVar

from toolyard.gateway.chat_request import SentBytes
from toolyard.gateway.faults import ChatFault
from toolyard.gateway.offer import DATA, MEDIA_TOKENS
from toolyard.gateway.protocols.chat_body import as_object
from toolyard.gateway.reply.chunks import read_text
from toolyard.gateway.tool_calls.native_calls import call_name
from toolyard.gateway.tool_calls.rounds import CallKeys, call_key, cut_arguments, cut_blocks, is_payload, list_calls
from toolyard.gateway.vcp_blocks import PAYLOAD
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool_text import CHINESE, ENGLISH

HIGH: Final = 0.85
LOW: Final = 0.5
UNKNOWN: Final = 256 * 1024
MOST: Final = 4 * 1024 * 1024  # bytes of results, whatever the window
SHORT: Final = 600  # characters of a text that is never left out
RATE: Final = 0.3  # tokens of a byte, while nobody knows
_RATES: Final = (0.1, 1.0)
_CERTAIN: Final = 4096  # bytes of a request from which a rate is learned
_LEAST_WINDOW: Final = 1000  # a smaller number in a refusal is about something else
_MODELS: Final = 256
_LEFT_OUT: Final = 8192  # results
_LEAST: Final = 1000  # bytes of a result that is cut
_GIST: Final = 200  # characters that stay of a result that cannot be had again
_MEDIA: Final = int(MEDIA_TOKENS / RATE)  # bytes that a picture counts for
_STORED: Final = re.compile(r"tool-output/tool_[\w-]+\.txt")
_HEADING: Final = re.compile(
    r"^\[(\d{1,3})\] ([^\n:]{1,80}):", re.MULTILINE
)  # of a result among several in one message
ModelName = tuple[str, str]
"""A provider, and its name for the model."""
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A request that is to be sent."""

    conversation: bytes  # which it is of
    model: ModelName
    window: int | None  # as the provider names it
    messages: list[Json]
    sent: SentBytes  # the whole request
    first: int  # the number of the first message that this turn has added
    ours: CallKeys  # our calls in the messages before
    answer_tokens: int
    language: str


class ContextWindows:
    """The windows of models as far as they are known, and what was left out of conversations; shared by all turns.

    ``may_repeat`` says of a tool whether it can be called again just to see its result.
    """

    def __init__(self, may_repeat: Callable[[str], bool]) -> None:
        self.may_repeat = may_repeat
        self._learned: _Recent[ModelName, int] = _Recent(_MODELS)
        self._rates: _Recent[ModelName, float] = _Recent(_MODELS)
        self.left_out: _Recent[bytes, str] = _Recent(_LEFT_OUT)  # the texts in place of results, by their calls

    def note_usage(self, model: ModelName, raw: bytes, tokens: object) -> None:
        """Learn the rate of a model from a request and the tokens that its provider counted."""
        if isinstance(tokens, int) and tokens > 0 and len(raw) >= _CERTAIN and not DATA.search(raw):
            least, most = _RATES
            self._rates[model] = min(max(tokens / len(raw), least), most)

    def note_overflow(self, model: ModelName, raw: bytes, fault: ChatFault) -> None:
        """Learn the window of a model from its refusal of a request that is too long."""
        window, tokens = read_overflow(fault.words or fault.message)
        self.note_usage(model, raw, tokens)
        self._learned[model] = window if window >= _LEAST_WINDOW else int(self._count(model, raw) * HIGH)

    def fit(self, prompt: Prompt, *, is_refused: bool = False) -> list[Json]:
        """Return the messages of a prompt as its model takes them: the very same list if they are left as they are.

        ``is_refused``: the provider has just said that they are too long.
        """
        calls = _CallsMade(self, prompt)
        if not calls.size:
            return prompt.messages
        learned = self._learned.get(prompt.model)
        window = min(prompt.window or learned, learned) if learned else prompt.window
        high, low = float(UNKNOWN), UNKNOWN / 2
        if window:
            rate = self._rates.get(prompt.model, RATE)
            rest = self._count(prompt.model, prompt.sent.join()) - calls.whole_size * rate  # tokens of everything else
            full = max(min(window * HIGH, window - prompt.answer_tokens), window * LOW)
            high, low = max((full - rest) / rate, 0), max((window * LOW - rest) / rate, 0)
        if is_refused:
            high = min(high, calls.size - 1)
        high = min(high, MOST)
        if calls.size > high:
            calls.leave_out_oldest(min(low, high))
        if calls.size > high:
            calls.cut_last(high)
        return calls.messages

    def _count(self, model: ModelName, raw: bytes) -> float:
        """Return about how many tokens a request has."""
        text, media = DATA.subn(b'""', raw)
        return len(text) * self._rates.get(model, RATE) + media * MEDIA_TOKENS


@dataclass(slots=True)
class _CallMade:
    """A result, or the results of one message, with the message that asked for it."""

    at: int  # the number of the message with the result
    asked_at: int
    id: str  # of a native call
    name: str
    key: bytes
    size: int  # bytes
    excess: int = 0  # characters of its arguments that can be left out


class _CallsMade:
    """The calls in the messages of a prompt, oldest first. ``messages`` is a new list once one of them is changed."""

    def __init__(self, windows: ContextWindows, prompt: Prompt) -> None:
        self._windows, self._language = windows, prompt.language
        self.messages = self._original = prompt.messages
        self._calls = self._find(prompt)
        self.size = self.whole_size = sum(call.size for call in self._calls)
        for call in self._calls:
            if (text := windows.left_out.get(call.key)) is not None:
                self._put(call, text)

    def leave_out_oldest(self, target: float) -> None:
        """Leave out calls until the size is not above ``target``; those of the last round stay."""
        for call in self._calls:
            if self.size <= target:
                return
            is_long = call.size - call.excess > SHORT
            if call.asked_at != self._last and (is_long or call.excess) and call.key not in self._windows.left_out:
                self._remember(call, self._write(call) if is_long else "")

    def cut_last(self, target: float) -> None:
        """Cut the results of the last round, each to the same length, until the size is not above ``target``."""
        calls = sorted((call for call in self._calls if call.asked_at == self._last), key=lambda call: call.size)
        room = target - (self.size - sum(call.size for call in calls))
        for number, call in enumerate(calls):
            share = max(room / (len(calls) - number), _LEAST)
            if call.size > share and call.key not in self._windows.left_out:
                self._remember(call, self._cut(call, int(share)))
            room -= call.size

    def _find(self, prompt: Prompt) -> list[_CallMade]:
        found: list[_CallMade] = []
        asked: dict[str, tuple[int, JsonObject]] = {}  # native calls by their ids
        self._last = -1  # the number of the last message of the model
        for at, message in enumerate(prompt.messages):
            if not isinstance(message, dict):
                continue
            if message.get("role") == "assistant":
                self._last = at
                asked |= {str(call.get("id")): (at, call) for call in list_calls(message)}
            elif message.get("role") == "tool":
                asked_at, call = asked.get(str(message.get("tool_call_id")), (0, None))
                if call is not None and (at >= prompt.first or call_key(call) in prompt.ours):
                    found.append(_measure(prompt, at, call, asked_at))
            elif is_payload(message) and self._last >= 0:
                found.append(_measure(prompt, at, None, self._last))
        return found

    def _remember(self, call: _CallMade, text: str) -> None:
        self._windows.left_out[call.key] = text
        self._put(call, text)

    def _put(self, call: _CallMade, text: str) -> None:
        """Put a text in place of a result, if it is any, and leave out the long arguments of its call."""
        if self.messages is self._original:
            self.messages = [*self._original]
        message, asked = self.messages[call.at], self.messages[call.asked_at]
        if text and isinstance(message, dict):
            self.messages[call.at] = {**message, "content": text}
        if call.excess and call.asked_at != self._last and isinstance(asked, dict):
            self.messages[call.asked_at] = cut_arguments(asked, SHORT, call.id) if call.id else cut_blocks(asked, SHORT)
        left = len(text.encode()) if text else call.size - call.excess
        self.size -= call.size - left
        call.size, call.excess = left, 0

    def _write(self, call: _CallMade) -> str:
        """Return the text in place of a result: which call it was, and how to get the result again."""
        text = self._read(call)
        is_chinese = self._language == CHINESE
        if not call.id:
            names = ", ".join(_list_names(text))
            return f"{PAYLOAD}\n\n{_SEVERAL[self._language].format(names=names, size=len(text))}"
        again = _AGAIN[self._language]
        if stored := _STORED.findall(text):
            again = _STORED_AT[self._language].format(path=stored[-1])
        elif not self._windows.may_repeat(call.name):
            gist = " ".join(text[:_GIST].split())
            again = f"它已经执行过，开头是：{gist}…" if is_chinese else f"It has run, and began: {gist}…"
        return _ONE[self._language].format(name=call.name, size=len(text), again=again)

    def _read(self, call: _CallMade) -> str:
        message = self.messages[call.at]
        return read_text(message.get("content")) if isinstance(message, dict) else ""

    def _cut(self, call: _CallMade, most: int) -> str:
        """Return the beginning of a result, and how to read on."""
        text = self._read(call)
        head = text.encode(errors="replace")[:most].decode(errors="ignore")
        stored = _STORED.findall(text[len(head) :])
        more = _STORED_AT[self._language].format(path=stored[-1]) if stored else _LESS[self._language]
        return head + _CUT[self._language].format(left=len(text) - len(head), more=more)


_ONE: Final = {
    ENGLISH: "[Left out to make room: the result of {name}, {size} characters. {again}]",
    CHINESE: "[为节省上下文已省略：{name} 的结果，共 {size} 个字符。{again}]",
}
_SEVERAL: Final = {
    ENGLISH: "[Left out to make room: what {names} returned, {size} characters. What only reads can be called again.]",
    CHINESE: "[为节省上下文已省略：{names} 返回的内容，共 {size} 个字符。只读的调用可以再次执行。]",
}
_AGAIN: Final = {ENGLISH: "Call it again if you need it.", CHINESE: "需要时可以再次调用。"}
_STORED_AT: Final = {ENGLISH: "The whole of it is in {path}.", CHINESE: "完整内容在 {path}。"}
_LESS: Final = {
    ENGLISH: "Ask for a smaller part, or go on from here with the parameters of the tool.",
    CHINESE: "请只读取较小的部分，或用工具的参数从这里继续。",
}
_CUT: Final = {
    ENGLISH: "\n[… cut here: {left} more characters do not fit your context. {more}]",
    CHINESE: "\n[… 在此截断：还有 {left} 个字符超出了上下文。{more}]",
}


def _list_names(text: str) -> list[str]:
    """Return the tools whose results stand in a message one after the other."""
    names: list[str] = []
    for heading in _HEADING.finditer(text):
        if int(heading[1]) == len(names) + 1:  # a result may have lines that look like one
            names.append(heading[2])
    return names


def _measure(prompt: Prompt, at: int, call: JsonObject | None, asked_at: int) -> _CallMade:
    """Return a call with its size; ``call`` is none for requests in text, whose results stand in one message.

    Its key has its place: the same call may be made again, to see what was left out.
    """
    message, asked = as_object(prompt.messages[at]), as_object(prompt.messages[asked_at])
    content = message.get("content")
    text = read_text(content)
    if call is not None:
        function = call.get("function")
        written = function.get("arguments") if isinstance(function, dict) else ""
    else:
        written = read_text(asked.get("content"))
    written = written if isinstance(written, str) else ""
    parts = content if isinstance(content, list) else []
    media = sum(1 for part in parts if isinstance(part, dict) and part.get("type") != "text")
    excess = len(written) - SHORT if len(written) > 2 * SHORT else 0
    id_, name = (str(call.get("id")), call_name(call)) if call is not None else ("", "")
    known = blake2b(b"%d:%b" % (at, prompt.conversation), digest_size=16)
    for one in (id_, name, written, text):
        data = one.encode(errors="replace")
        known.update(b"%d:%b" % (len(data), data))
    size = len(text.encode(errors="replace")) + media * _MEDIA + excess
    return _CallMade(at, asked_at, id_, name, known.digest(), size, excess)


_NUMBER = r"(\d[\d,]{2,11})"
_COMPARED: Final = re.compile(rf"{_NUMBER}\s*(?:tokens)?\s*>\s*{_NUMBER}")
_MAXIMUM: Final = re.compile(
    rf"(?:maximum|max|limit|context (?:length|size|window)|up to|at most)[^\d]{{0,40}}{_NUMBER}", re.IGNORECASE
)
_NAMED: Final = re.compile(rf"\bn_ctx\W{{1,6}}{_NUMBER}")  # llama.cpp
_ASKED: Final = re.compile(
    rf"(?:resulted in|requested|n_prompt_tokens|input length|prompt (?:has|contains|is)|but got)[^\d]{{0,24}}{_NUMBER}",
    re.IGNORECASE,
)


def read_overflow(words: str) -> tuple[int, int]:
    """Return the window that a refusal names, and the tokens that it counted; 0 for what it does not say."""
    if compared := _COMPARED.search(words):
        return _read_number(compared[2]), _read_number(compared[1])
    maximum, asked = _NAMED.search(words) or _MAXIMUM.search(words), _ASKED.search(words)
    window, tokens = (_read_number(found[1]) if found else 0 for found in (maximum, asked))
    return (window if not tokens or window < tokens else 0), tokens


def _read_number(text: str) -> int:
    return int(text.replace(",", ""))


class _Recent(OrderedDict[K, V], Generic[K, V]):
    """The entries that were set last."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)
