"""The tokens of a text, as the models of OpenAI count them (o200k)."""

import warnings
from functools import cache
from typing import Any


@cache
def _tokenizer() -> Any:
    """Return o200k_base; its table is a file of the package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of how it opens that file
        import bpe_openai

        return bpe_openai.get_encoding("o200k_base")


def count_tokens(text: str) -> int:
    return len(_tokenizer().encode(text))
