"""What ``make test`` leaves to ``make soak``: of a sweep it runs the first case of each kind, the same in every run."""

import os
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"

Case = TypeVar("Case")


def sample(cases: Iterable[Case], kind: Callable[[Case], Hashable]) -> list[Case]:
    """Return the first case of each kind, in a soak all cases."""
    first: dict[Hashable, Case] = {}
    return [case for case in cases if SOAK or first.setdefault(kind(case), case) is case]
