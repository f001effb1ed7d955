"""Memory of media that models refuse, by provider and model, so that each is offered them once.

Bounded: ``MAX_MODELS`` are remembered, each for ``KEPT_S`` seconds: a name may stand for a better model by then.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from toolyard.gateway.faults import ChatFault

MAX_MODELS: Final = 256
KEPT_S: Final = 3600.0
NOTE: Final = ": this model takes none"  # in the marker that replaces a part
_REFUSING = frozenset({400, 404, 413, 415, 422})
_BROKEN = frozenset({500, 501})  # some servers answer so to what they cannot read
_ABOUT_MEDIA = re.compile(
    r"image|picture|vision|visual|audio|video|media|modal|content.?(?:type|part|block)", re.IGNORECASE
)
_ABOUT_SIZE = re.compile(r"too (?:large|big|long|many)|size|exceed|token|context|limit|maximum", re.IGNORECASE)

Model = tuple[str, str]
"""The name of a provider, and what it calls the model."""


class MediaRefusals:
    """The refused kinds by model; ``now`` is a monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._refused: OrderedDict[Model, tuple[float, frozenset[str]]] = OrderedDict()

    def find(self, model: Model) -> frozenset[str]:
        """Return the kinds of media that a model is known not to take."""
        until, kinds = self._refused.get(model, (0.0, frozenset[str]()))
        return kinds if self._now() < until else frozenset()

    def note(self, model: Model, kinds: frozenset[str], fault: ChatFault) -> None:
        """Note that a model took a request without these kinds, having refused it with them.

        A refusal for size is not noted: it says nothing about other media.
        """
        if fault.status == 413 or _ABOUT_SIZE.search(fault.words or fault.message):
            return
        self._refused[model] = (self._now() + KEPT_S, self.find(model) | kinds)
        self._refused.move_to_end(model)
        while len(self._refused) > MAX_MODELS:
            self._refused.popitem(last=False)


def may_refuse_media(fault: ChatFault, *, is_new: bool) -> bool:
    """Return whether a fault may be a refusal of the request's media; ``is_new``: no earlier request had them."""
    if not fault.code.startswith("upstream_") and not fault.is_overflow:
        return False
    about_media = _ABOUT_MEDIA.search(fault.words or fault.message) is not None
    return (fault.status in _REFUSING and (is_new or about_media)) or (fault.status in _BROKEN and about_media)
