"""The words of a text, for searching: the same for every store, so that all of them find the same records.

A word is a run of letters and digits without their case. Chinese, Japanese and Korean have no spaces: there each pair
of neighbours is a word, and so is the last character. A search matches a text that has, for each of its
words, one that begins with it.
"""

import re
from collections.abc import Iterable
from functools import cache

MAX_TEXT = 4096  # what follows is not searched
_ASCII_RUN = re.compile("[a-z0-9]+")
_UNSPACED = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"  # slow to compile, and often not needed
_WIDE = "\u2e80"


def list_words(text: str) -> list[str]:
    """Return the words that a text can be found by."""
    words: dict[str, None] = {}
    for run in _split_words(text):
        if run[0] >= _WIDE:
            words |= dict.fromkeys(run[n : n + 2] for n in range(len(run)))
        else:
            words[run] = None
    return list(words)


def list_prefixes(text: str) -> list[str]:
    """Return the word prefixes that a search for ``text`` requires, all of them."""
    prefixes: dict[str, None] = {}
    for run in _split_words(text):
        if run[0] >= _WIDE and len(run) > 1:
            prefixes |= dict.fromkeys(run[n : n + 2] for n in range(len(run) - 1))
        else:
            prefixes[run] = None
    return list(prefixes)


def matches_words(text: str, prefixes: Iterable[str]) -> bool:
    """Return whether a text has a word for each of ``prefixes``."""
    own = list_words(text)
    return all(any(word.startswith(start) for word in own) for start in prefixes)


def _split_words(text: str) -> list[str]:
    lowered = text[:MAX_TEXT].lower()
    return (_ASCII_RUN if lowered.isascii() else _compile_run()).findall(lowered)


@cache
def _compile_run() -> re.Pattern[str]:
    return re.compile(rf"[{_UNSPACED}]+|[^\W_]+")
