"""The context windows of models, in tokens, as lists of models say them or as is well known."""

import re
from typing import Final

from toolyard.protocol.json import JsonObject

_LISTED: Final = (  # fields of a listed model
    "max_model_len",  # vLLM, SGLang
    "loaded_context_length",  # LM Studio: what it runs with, which may be less than the model could take
    "context_length",  # OpenRouter, Together
    "context_window",  # Groq
    "max_context_length",  # LM Studio, Mistral
    "max_input_tokens",  # Anthropic
    "n_ctx",  # llama.cpp, below ``meta``
)
_WELL_KNOWN: Final = {  # by how their names begin; the longest counts
    "gpt-3.5-turbo": 16_385,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4o": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-5": 272_000,
    "o1": 200_000,
    "o3": 200_000,
    "o4-mini": 200_000,
    "claude-": 200_000,
    "gemini-": 1_048_576,
    "deepseek-chat": 128_000,
    "deepseek-reasoner": 128_000,
    "moonshot-v1-8k": 8_192,
    "moonshot-v1-32k": 32_768,
    "moonshot-v1-128k": 131_072,
    "kimi-k2": 131_072,
    "qwen-max": 32_768,
    "qwen-plus": 131_072,
    "qwen3-max": 262_144,
    "glm-4.5": 131_072,
    "glm-4.6": 200_000,
}
_NAME: Final = re.compile(
    "|".join(
        re.escape(start) + ("" if start.endswith("-") else "(?![a-z0-9])")
        for start in sorted(_WELL_KNOWN, key=len, reverse=True)
    )
)
_LEAST: Final = 256


def read_window(listed: JsonObject) -> int | None:
    """Return the window that a list of models says, if it does."""
    meta = listed.get("meta")
    places = (listed, meta if isinstance(meta, dict) else {})
    found = (place.get(name) for name in _LISTED for place in places)
    return next((value for value in found if isinstance(value, int) and value >= _LEAST), None)


def find_well_known(model: str) -> int | None:
    """Return the window of a well-known model; a local one, as ``qwen3:8b``, has what its server gives it."""
    name = model.rpartition("/")[2].lower()
    if ":" in name:
        return None
    known = _NAME.match(name)
    return _WELL_KNOWN[known[0]] if known else None
