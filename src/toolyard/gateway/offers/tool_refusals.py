"""Models that refuse native tools: detection of such a refusal, and the memory of them."""

import re
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from toolyard.gateway.faults import ChatFault

_MAX_KEPT: Final = 256  # models
_KEPT_S: Final = 3600.0  # a provider may be started anew, with tools
_CODES: Final = frozenset(
    f"upstream_{status.value}"
    for status in (
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_FOUND,  # OpenRouter: no endpoint of the model takes them
        HTTPStatus.METHOD_NOT_ALLOWED,  # DeepInfra
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.INTERNAL_SERVER_ERROR,  # llama.cpp without --jinja
        HTTPStatus.NOT_IMPLEMENTED,
    )
)
_ABOUT_TOOLS: Final = re.compile(r"\btools?\b|\bfunctions?\b|tool[_ -](?:use|call|choice)|function[_ -]call", re.I)


def is_tool_refusal(fault: ChatFault) -> bool:
    """Return whether a provider's error is about the tools of the request."""
    return fault.code in _CODES and bool(_ABOUT_TOOLS.search(fault.words))


class ToolRefusals:
    """The models that have refused native tools, by provider; a refusal is forgotten after a while."""

    def __init__(self, now: Callable[[], float]) -> None:
        """``now`` is a monotonic clock."""
        self._now = now
        self._refused: OrderedDict[tuple[str, str], float] = OrderedDict()

    def add(self, provider: str, model: str) -> None:
        self._refused[provider, model] = self._now()
        self._refused.move_to_end((provider, model))
        if len(self._refused) > _MAX_KEPT:
            self._refused.popitem(last=False)

    def has(self, provider: str, model: str) -> bool:
        at = self._refused.get((provider, model))
        return at is not None and self._now() - at < _KEPT_S
