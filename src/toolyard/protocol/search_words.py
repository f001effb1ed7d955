"""The words of a text, for searching: the same for every store, so that all of them find the same records.

A word is a run of letters and digits without their case. Chinese, Japanese and Korean have no spaces: there each pair
of neighbours is a word, and so is the last character. A search matches a text that has, for each of its
words, one that begins with it.
"""

import re
from collections.abc import Iterable
from functools import cache

MAX_TEXT = 400_000  # characters; what follows is not searched
LONG_TEXT = 8_000  # characters; the words of a longer text are found in a thread
MAX_BYTES = 1_000_000  # of all words of a text: PostgreSQL takes a MiB
_ASCII_RUN = re.compile("[a-z0-9]+")
_UNSPACED = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"  # slow to compile, and often not needed
FIRST_UNSPACED = "\u2e80"  # from here on, characters are of languages without spaces
_MOST_PER_SIGN = 8  # bytes of words: each character of four bytes may begin a pair


def list_words(text: str) -> list[str]:
    """Return the words that a text can be found by."""
    words: dict[str, None] = {}
    for run in _split_words(text):
        if run[0] >= FIRST_UNSPACED:
            words |= dict.fromkeys(run[n : n + 2] for n in range(len(run)))
        else:
            words[run] = None
    return list(words) if len(text) * _MOST_PER_SIGN <= MAX_BYTES else _cut_words(words)


def list_prefixes(text: str) -> list[str]:
    """Return the word prefixes that a search for ``text`` requires, all of them."""
    prefixes: dict[str, None] = {}
    for run in _split_words(text):
        if run[0] >= FIRST_UNSPACED and len(run) > 1:
            prefixes |= dict.fromkeys(run[n : n + 2] for n in range(len(run) - 1))
        else:
            prefixes[run] = None
    return list(prefixes)


def matches_words(text: str, prefixes: Iterable[str]) -> bool:
    """Return whether a text has a word for each of ``prefixes``."""
    own = list_words(text)
    return all(any(word.startswith(start) for word in own) for start in prefixes)


def _cut_words(words: Iterable[str]) -> list[str]:
    left, kept = MAX_BYTES, []
    for word in words:
        left -= len(word.encode(errors="surrogatepass"))
        if left < 0:
            break
        kept.append(word)
    return kept


def _split_words(text: str) -> list[str]:
    lowered = text[:MAX_TEXT].lower()
    return (_ASCII_RUN if lowered.isascii() else _compile_run()).findall(lowered)


@cache
def _compile_run() -> re.Pattern[str]:
    return re.compile(rf"[{_UNSPACED}]+|[^\W_]+")
