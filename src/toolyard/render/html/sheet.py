"""What is known while one reply is drawn: its attachments, which of them have been shown, and how much may still be.

A reply of 2 MiB must not become a page of gigabytes or minutes. So colouring, formulas and repeated attachments each
have a share for the whole reply; what comes after that is shown too, in its plainest form.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolyard.protocol.reply import Attachment
from toolyard.render.html.texts import Texts

_COLOURED = 100_000  # characters of code
_FORMULAS = 50_000  # characters of TeX
_REPEATED = 1_000_000  # characters of HTML of attachments that were shown before


@dataclass(slots=True)
class Budget:
    left: int

    def take(self, size: int) -> bool:
        """Whether so much is still there; then it is taken."""
        if size > self.left:
            return False
        self.left -= size
        return True


@dataclass(slots=True)
class Sheet:
    texts: Texts
    attachments: Mapping[str, Attachment]
    partial: bool = False  # more of it is to come
    writing: str = ""  # the id of the attachment that may not be whole yet
    shown: set[str] = field(default_factory=set)  # ids
    drawn: dict[tuple[str, bool], str] = field(default_factory=dict)  # by id, and whether in a line
    colouring: Budget = field(default_factory=lambda: Budget(_COLOURED))
    formulas: Budget = field(default_factory=lambda: Budget(_FORMULAS))
    repeats: Budget = field(default_factory=lambda: Budget(_REPEATED))
