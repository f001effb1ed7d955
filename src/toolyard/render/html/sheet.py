"""The state of one rendering: attachments, those already shown, and the remaining budgets.

A reply of 2 MiB must not become a page of gigabytes or minutes. So colouring, formulas and repeated attachments each
have a budget for the whole reply; anything beyond it is shown too, in its plainest form.
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
    remaining: int

    def take(self, size: int) -> bool:
        """Take ``size`` from the budget; return whether it was available."""
        if size > self.remaining:
            return False
        self.remaining -= size
        return True


@dataclass(slots=True)
class Sheet:
    texts: Texts
    attachments: Mapping[str, Attachment]
    partial: bool = False  # more of it is to come
    writing: str = ""  # the id of the attachment that may be incomplete
    shown_ids: set[str] = field(default_factory=set)  # ids
    html_by_form: dict[tuple[str, bool], str] = field(default_factory=dict)  # by id, and whether in a line
    colouring: Budget = field(default_factory=lambda: Budget(_COLOURED))
    formulas: Budget = field(default_factory=lambda: Budget(_FORMULAS))
    repeats: Budget = field(default_factory=lambda: Budget(_REPEATED))
