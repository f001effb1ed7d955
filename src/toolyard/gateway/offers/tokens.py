"""An estimate of tokens without a tokenizer: rather too high than too low."""

from math import ceil
from typing import Final

_ASCII_CHARS: Final = 3.0  # of a token; English and JSON have nearly four
_OTHER_BYTES: Final = 2.5  # a Chinese character has three, and is seldom more than one token


def estimate_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text."""
    if text.isascii():
        return ceil(len(text) / _ASCII_CHARS)
    ascii_ = len(text.encode("ascii", "ignore"))
    return ceil(ascii_ / _ASCII_CHARS + (len(text.encode("utf-8", "replace")) - ascii_) / _OTHER_BYTES)
