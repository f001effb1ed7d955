"""Vocabulary of manifests written by hand, in English and Chinese: types, and required or optional."""

import re
from enum import Enum, auto


class Need(Enum):
    REQUIRED = auto()
    OPTIONAL = auto()


_TYPES = {
    "string": "string str text char password secret url uri path file date enum 字符串 文本 字符 日期 枚举 路径",
    "integer": "integer int long 整数 整型",
    "number": "number float double decimal numeric 数字 数值 浮点数 浮点 小数",
    "boolean": "boolean bool 布尔 布尔值 布尔型",
    "array": "array list json数组 数组 列表 字符串数组 数字数组 string[] number[] json-array",
    "object": "object dict json map json对象 对象 字典",
}
_KIND = {word: kind for kind, words in _TYPES.items() for word in words.split()}
_NEEDS = {
    Need.REQUIRED: "必需 必须 必填 必要 必选 必传 required mandatory",
    Need.OPTIONAL: "可选 选填 可不填 可省略 非必需 非必填 非必须 optional",
}
_NEED = {word: need for need, words in _NEEDS.items() for word in words.split()}
_MAX_ASIDE = 300  # characters of a remark about one parameter
_SPLIT = re.compile(r"[,，;；/|、]|\s+or\s+|或者?", re.IGNORECASE)
_FIRST = re.compile(
    rf"\s*[(（\[【*]*\s*({'|'.join(_NEED)})(?:参数|项|的)?(?=[\s,，。.;；:：)）\]】*]|$)", re.IGNORECASE
)
# a need that depends on something else is no plain one
_CONDITIONAL = re.compile(
    r"时|当|如果|若|仅|除非|二选一|三选一|多选一|任选|至少|之一|或"
    r"|\b(?:if|when|unless|only|either|or|at least|one of|depending|except)\b",
    re.IGNORECASE,
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
