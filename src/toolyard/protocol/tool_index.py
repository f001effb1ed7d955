"""A search among tools by what they are for, in English and Chinese.

The words of a query are looked for in names, descriptions, parameters and examples, and count by how few tools have
them (BM25, with weights for the places). Names are split where their case changes and at other characters than letters
and digits. Endings such as ``-ing`` and ``-s`` do not matter, nor which of the usual words an act has. Chinese is
compared by pairs of characters. A tool whose name is the query stands first, then those whose name contains it.
"""

import heapq
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Final

from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import ToolSpec

TOOL_SEARCH: Final = "ToolSearch"  # the tool that searches
AMONG: Final = "among"  # in the metadata of its calls: the names of the tools that it may find
LIMIT: Final = 5
MAX_QUERY: Final = 2_000  # characters
_MAX_TEXT: Final = 4_000  # characters of one place
_NAME, _TITLE, _DESCRIPTION, _PARAMETER, _HELP, _EXAMPLE = 6.0, 4.0, 1.5, 1.5, 0.5, 0.3  # weights of places
_SATURATION: Final = 1.5  # how soon a further mention of a word counts for little
_LENGTH: Final = 0.4  # how much a long text counts against a tool
_IS_NAMED, _IS_IN_NAME = 1e6, 1e3
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]+|[^\W\d_]+")
_ENDINGS: Final = ("ations", "ation", "ings", "ing", "ies", "ers", "ed", "er", "es", "or", "s", "e", "y")
_LEAST_STEM: Final = 3
_COMMON: Final = frozenset(
    (
        *("a", "an", "and", "any", "are", "as", "at", "be", "but", "by", "can", "do", "for", "from", "has", "have"),
        *("how", "i", "if", "in", "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our"),
        *("please", "so", "some", "that", "the", "their", "them", "then", "there", "this", "to", "up", "use", "used"),
        *("using", "want", "was", "what", "when", "which", "will", "with", "you", "your", "tool", "tools"),
        *("的", "了", "我", "请", "把"),
    )
)
_SAME: Final = {  # words for the same act, by one of them
    other: word
    for word, others in {
        "create": ("add", "insert", "make", "new", "open"),
        "delete": ("erase", "remove"),
        "update": ("change", "edit", "modify"),
        "search": ("find", "lookup", "query"),
        "get": ("fetch", "read", "retrieve", "show", "view"),
        "send": ("mail", "post"),
        "创建": ("新建", "添加", "新增"),
        "删除": ("移除", "清除"),
        "修改": ("编辑", "更新", "更改"),
        "搜索": ("查找", "查询", "检索"),
    }.items()
    for other in others
}
Counts = dict[str, float]


class ToolIndex:
    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        self._specs = tuple(specs)
        self._squashed = [_squash(spec.name) for spec in self._specs]
        counted = [_count_words(spec) for spec in self._specs]
        lengths = [sum(counts.values()) for counts in counted]
        mean = sum(lengths) / len(lengths) if lengths else 1.0
        having: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for number, (counts, length) in enumerate(zip(counted, lengths, strict=True)):
            norm = _SATURATION * (1 - _LENGTH + _LENGTH * length / mean)
            for word, count in counts.items():
                having[word].append((number, count / (count + norm)))
        self._tools_with = {word: (math.log(1 + len(counted) / len(found)), found) for word, found in having.items()}

    def search(self, query: str, limit: int = LIMIT, *, among: Collection[str] | None = None) -> list[ToolSpec]:
        """Return the tools that fit best, the best one first; none where nothing fits.

        ``among``: the names of those that count.
        """
        scores = self._score(query[:MAX_QUERY])
        fits = (number for number in scores if among is None or self._specs[number].name in among)
        best = ((scores[number], -number) for number in fits)
        return [self._specs[-number] for _, number in heapq.nlargest(limit, best)]

    def _score(self, query: str) -> dict[int, float]:
        """Return the scores of the tools that fit, by their numbers."""
        scores: defaultdict[int, float] = defaultdict(float)
        for word in dict.fromkeys(word for run in _WORD.findall(query) for word in _find_terms(run)):
            rarity, found = self._tools_with.get(word, (0.0, ()))
            for number, weight in found:
                scores[number] += rarity * weight
        if wanted := _squash(query):
            for number, name in enumerate(self._squashed):
                if wanted == name:
                    scores[number] += _IS_NAMED
                elif wanted in name:
                    scores[number] += _IS_IN_NAME
        return scores


def _count_words(spec: ToolSpec) -> Counts:
    counts: Counts = {}
    for weight, text in _list_places(spec):
        for run in _WORD.findall(text[:_MAX_TEXT]):
            for word in _find_terms(run):
                counts[word] = counts.get(word, 0.0) + weight
    return counts


def _list_places(spec: ToolSpec) -> Iterator[tuple[float, str]]:
    yield _NAME, spec.name
    yield from ((_NAME, alias) for alias in spec.aliases)
    yield _TITLE, spec.display_name
    yield _DESCRIPTION, spec.description
    for one in spec.translations.values():
        yield _TITLE, one.display_name
        yield _DESCRIPTION, one.description
        yield from ((_HELP, help_) for help_ in one.parameters.values())
    for command in spec.commands:
        yield _TITLE, command.name
        yield from ((_DESCRIPTION, text) for text in command.description.values())
    yield from _list_parameters(spec.parameters)
    yield from ((_EXAMPLE, _write_values(example)) for example in spec.examples)


def _list_parameters(schema: JsonObject) -> Iterator[tuple[float, str]]:
    properties = schema.get("properties")
    for name, parameter in properties.items() if isinstance(properties, dict) else ():
        yield _PARAMETER, name
        if isinstance(parameter, dict):
            yield _HELP, str(parameter.get("description") or "")
            choices = parameter.get("enum")
            yield _HELP, _write_values(choices if isinstance(choices, list) else [])


def _write_values(value: Json) -> str:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return " ".join(str(one)[:100] for one in inner if isinstance(one, str))


@lru_cache(maxsize=20_000)
def _find_terms(run: str) -> tuple[str, ...]:
    """Return the words of a run of letters as they are compared; none for one that says nothing."""
    if run[0] >= "\u2e80":
        pairs = [run[at : at + 2] for at in range(len(run) - 1)] or [run]
        return tuple(_SAME.get(pair, pair) for pair in pairs if pair not in _COMMON)
    word = run.lower()
    return () if word in _COMMON else (_stem(_SAME.get(word, word)),)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > _LEAST_STEM and word[-1] == word[-2] else word  # running, run


def _squash(text: str) -> str:
    """Return the letters and digits of a text, by which names are compared."""
    return "".join(filter(str.isalnum, text.lower()))
