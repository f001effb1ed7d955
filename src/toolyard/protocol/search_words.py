"""The words of a text, for searching: the same for every store, so that all of them find the same.

A word is a run of letters and digits without their case. Chinese, Japanese and Korean have no spaces: there each pair
of neighbours is a word, and so is the last character. A search finds what has, for each of its words, one that begins
with it.
"""

import re
from collections.abc import Iterable

MAX_TEXT = 4096  # what follows is not searched
_RUN = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+|[^\W_]+")
_WIDE = "\u2e80"


def list_words(text: str) -> list[str]:
    """The words that a text can be found by."""
    found: dict[str, None] = {}
    for run in _split_words(text):
        if run[0] >= _WIDE:
            found |= dict.fromkeys(run[n : n + 2] for n in range(len(run)))
        else:
            found[run] = None
    return list(found)


def list_prefixes(text: str) -> list[str]:
    """The beginnings of words that a search for ``text`` asks for, all of them."""
    found: dict[str, None] = {}
    for run in _split_words(text):
        if run[0] >= _WIDE and len(run) > 1:
            found |= dict.fromkeys(run[n : n + 2] for n in range(len(run) - 1))
        else:
            found[run] = None
    return list(found)


def matches_words(text: str, asked: Iterable[str]) -> bool:
    """Whether a text has all the words that are ``list_prefixes``."""
    own = list_words(text)
    return all(any(word.startswith(start) for word in own) for start in asked)


def _split_words(text: str) -> list[str]:
    return _RUN.findall(text[:MAX_TEXT].lower())
