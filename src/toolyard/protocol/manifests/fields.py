"""The members of one object of a manifest, read by their types.

What has a wrong type is noted with its path and counts as missing. It is a warning, as long as the plugin runs without
it just as safely; a field that protects or that nothing works without is ``vital``: then the manifest is refused.

The words for types, and for required or optional, are those that manifests written by hand use, in English and Chinese.
"""

import json
import math
import re
from collections.abc import Collection, Iterator
from enum import Enum, auto

from toolyard.message import Message
from toolyard.protocol.arguments import find_nearest
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.manifest_json import Fault, JsonPath

_WORDS = {
    bool: Message("true or false"),
    int: Message("a number"),
    float: Message("a number"),
    str: Message("a text"),
    list: Message("a list"),
    dict: Message("an object"),
}
_TYPES = {
    "string": "string str text char password secret url uri path file date enum 字符串 文本 字符 日期 枚举 路径",
    "integer": "integer int long 整数 整型",
    "number": "number float double decimal numeric 数字 数值 浮点数 浮点 小数",
    "boolean": "boolean bool 布尔 布尔值 布尔型",
    "array": "array list json数组 数组 列表 字符串数组 数字数组 string[] number[] json-array",
    "object": "object dict json map json对象 对象 字典",
}
_KIND = {word: kind for kind, words in _TYPES.items() for word in words.split()}
_MAX_ASIDE = 300  # characters of a remark about one parameter
_SPLIT = re.compile(r"[,，;；/|、]|\s+or\s+|或者?", re.IGNORECASE)
# a need that depends on something else is no plain one
_CONDITIONAL = re.compile(
    r"时|当|如果|若|仅|除非|二选一|三选一|多选一|任选|至少|之一|或"
    r"|\b(?:if|when|unless|only|either|or|at least|one of|depending|except)\b",
    re.IGNORECASE,
)


class Fields:
    def __init__(self, value: JsonObject, path: JsonPath, faults: list[Fault]) -> None:
        self.value, self.path, self.faults = value, path, faults

    def note(self, name: str | int | None, message: str, fix: str, *, warning: bool = True) -> None:
        path = self.path if name is None else (*self.path, name)
        self.faults.append(Fault(message=message, fix=fix, path=path, warning=warning))

    def note_missing(self, name: str, fix: str, known: Collection[str]) -> None:
        """Refuse an object without this member, and name a misspelt one that is not ``known``."""
        full_name = ".".join(str(part) for part in (*self.path, name))
        written = find_nearest(name, [key for key in self.value if key not in known])
        if written is None:
            self.note(None, Message("'{name}' is missing.", name=full_name), fix, warning=False)
        else:
            message = Message(
                "'{full_name}' is missing, and '{written}' is not known.", full_name=full_name, written=written
            )
            self.note(written, message, Message("Did you mean '{name}'? Write it instead.", name=name), warning=False)

    def note_misspelt(self, known: Collection[str]) -> None:
        """Warn of unknown members that are almost spelt like an absent known one."""
        absent = [name for name in known if name not in self.value]
        noted = {fault.path for fault in self.faults}
        for name in self.value:
            if name in known or (*self.path, name) in noted:
                continue
            if meant := find_nearest(name, absent, like=0.8):
                self.note(
                    name,
                    Message("'{name}' is not known. It is ignored.", name=name),
                    Message("Did you mean '{meant}'?", meant=meant),
                )

    def text(self, name: str, default: str = "") -> str:
        value = self.value.get(name)
        if value is None:
            return default
        if isinstance(value, int | float) and not isinstance(value, bool):
            return json.dumps(value)
        if not isinstance(value, str):
            self._note_wrong_type(name, Message("a text"), vital=False)
            return default
        return value

    def flag(self, name: str, *, default: bool, vital: bool = False) -> bool:
        value = self.value.get(name)
        if isinstance(value, str) and value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        if isinstance(value, bool):
            return value
        if value is not None:
            self._note_wrong_type(name, Message("true or false"), vital=vital)
        return default

    def number(self, name: str, low: float, high: float, *, integer: bool = False, vital: bool = False) -> float | None:
        """Return a number, also one written as text; None when it is missing or not from ``low`` to ``high``."""
        value = self.value.get(name)
        if value is None:
            return None
        number = to_number(value)
        if number is None or not low <= number <= high or (integer and not number.is_integer()):
            kind = Message("a whole number") if integer else Message("a number")
            self._note_wrong_type(
                name, Message("{kind} from {low:g} to {high:g}", kind=kind, low=low, high=high), vital=vital
            )
            return None
        return number

    def nested(self, name: str, *, vital: bool = False) -> "Fields":
        value = self.value.get(name)
        if value is not None and not isinstance(value, dict):
            self._note_wrong_type(name, Message("an object"), vital=vital)
        return Fields(value if isinstance(value, dict) else {}, (*self.path, name), self.faults)

    def items(self, name: str) -> Iterator[tuple[int, Json]]:
        value = self.value.get(name)
        if value is not None and not isinstance(value, list):
            self._note_wrong_type(name, Message("a list"), vital=False)
        yield from enumerate(value if isinstance(value, list) else [])

    def _note_wrong_type(self, name: str, expected: str, *, vital: bool) -> None:
        value = self.value[name]
        shown_value = (
            json.dumps(value, ensure_ascii=False) if isinstance(value, str | int | float) else describe_kind(value)
        )
        shown_value = shown_value if len(shown_value) <= 60 else shown_value[:57] + "..."
        message = (
            Message("'{name}' is {value}.", name=name, value=shown_value)
            if vital
            else Message("'{name}' is {value}. It is ignored.", name=name, value=shown_value)
        )
        self.note(name, message, Message("Make it {expected}, or remove it.", expected=expected), warning=not vital)


def to_number(value: Json) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value.strip())
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def describe_kind(value: Json) -> str:
    return "null" if value is None else _WORDS[type(value)]


class Need(Enum):
    REQUIRED = auto()
    OPTIONAL = auto()


_NEEDS = {
    Need.REQUIRED: "必需 必须 必填 必要 必选 必传 required mandatory",
    Need.OPTIONAL: "可选 选填 可不填 可省略 非必需 非必填 非必须 optional",
}

_NEED = {word: need for need, words in _NEEDS.items() for word in words.split()}

_FIRST = re.compile(
    rf"\s*[(（\[【*]*\s*({'|'.join(_NEED)})(?:参数|项|的)?(?=[\s,，。.;；:：)）\]】*]|$)", re.IGNORECASE
)


def parse_type(word: str) -> str | None:
    """Return the JSON type that ``word`` names, or None."""
    return _KIND.get(word.strip().strip("`'\"").lower())


def find_types(text: str) -> tuple[str, ...]:
    """Return the types named in ``字符串或JSON数组, 必需``, in their order."""
    return tuple(dict.fromkeys(kind for word in _split_words(text) if (kind := parse_type(word))))


def find_need(text: str) -> Need | None:
    """Return the need in ``字符串, 必需, 默认 5``; one under a condition counts as optional."""
    words = _split_words(text)
    needs = {_parse_need(word) for word in words} - {None}
    if needs == {Need.REQUIRED}:
        remarks = " ".join(word for word in words if not parse_type(word))
        return Need.OPTIONAL if is_conditional(remarks) else Need.REQUIRED
    return Need.OPTIONAL if needs else None


def leading_need(text: str) -> Need | None:
    """Return the need that ``(可选) how many`` or ``必填，the text`` begins with."""
    match = _FIRST.match(text)
    return _NEED[match[1].lower()] if match else None


def strip_need(text: str) -> str:
    match = _FIRST.match(text)
    return text[match.end() :].lstrip(" \t,，。.;；:：)）]】*") if match else text.strip()


def is_conditional(text: str) -> bool:
    return _CONDITIONAL.search(text) is not None


def _split_words(text: str) -> list[str]:
    return _SPLIT.split(" ".join(text[:_MAX_ASIDE].split()))


def _parse_need(word: str) -> Need | None:
    return _NEED.get(re.sub(r"(?:参数|项|的)$", "", word.strip().strip("*`").lower()))
