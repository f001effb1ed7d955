"""The ignore rules of one folder, arranged so that most names are let through after two quick looks.

The decision itself is that of ``workspace.ignore``: the last rule that matches counts. Arranging the rules matters
because a search asks it of every name in the project.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from toolyard.workspace.ignore import IgnoreRules, to_byte_text
from toolyard.workspace.search.file_glob import literal_text
from toolyard.workspace.wildcard import Segment, matches_path

_MANY = 24  # beyond so many endings a table is faster than trying one after the other
_SMALL_CLASS = re.compile(r"([^\[\]]*)\[(\w+)\]([^\[\]]*)")


class Rule(Protocol):
    @property
    def segments(self) -> tuple[Segment, ...]: ...
    @property
    def negated(self) -> bool: ...
    @property
    def folders_only(self) -> bool: ...


class _OrderedRule:
    """A rule in its place among the others."""

    __slots__ = ("_fixed", "_open_end", "_steps", "depth", "order", "rule")

    def __init__(self, order: int, depth: int, rule: Rule) -> None:
        self.order = order  # the highest one that matches decides
        self.depth = depth  # where its paths begin
        self.rule = rule
        self._fixed = None not in rule.segments
        self._steps = list(rule.segments[:-1])  # which lead to the folder of the name
        self._open_end = rule.segments[-1] is None
        while self._steps and self._steps[-1] is None:
            self._open_end = True
            self._steps.pop()

    def can_match_in(self, folder: tuple[str, ...]) -> bool:
        """Return whether the rule can match any name in ``folder``."""
        below = folder[self.depth :]
        if self._fixed and len(below) != len(self._steps):
            return False
        first = self._steps[0] if self._steps else None
        if first is not None and not (below and first.fullmatch(below[0])):
            return False
        return matches_path(self._steps, below) or (self._open_end and matches_path((*self._steps, None), below))


@dataclass(slots=True)
class IgnoreSieve:
    """Rules by the names they may match. A name without a dot in front that no table knows is let through.

    The tables know names as ``to_byte_text`` gives them.
    """

    exact: dict[str, list[_OrderedRule]] = field(default_factory=dict)  # one name
    tails: tuple[str, ...] = ()  # names that end so
    endings: dict[str, list[_OrderedRule]] = field(
        default_factory=dict
    )  # the same by what follows the last dot, when many
    other: Callable[[str], object] | None = None
    _tailed: list[tuple[str, _OrderedRule]] = field(default_factory=list)
    _others: list[_OrderedRule] = field(default_factory=list)
    _dotted: list[_OrderedRule] = field(default_factory=list)  # for names that begin with a dot
    _anchored: list[_OrderedRule] = field(
        default_factory=list
    )  # those that hold in some folders only: not in the tables

    @classmethod
    def from_rules(cls, rules: IgnoreRules) -> "IgnoreSieve":
        sieve = cls()
        placed = [(depth, rule) for depth, layer in rules.layers for rule in layer]
        for order, (depth, rule) in enumerate(placed):
            bare = len(rule.segments) == 2 and rule.segments[0] is None and rule.segments[1] is not None
            if bare:
                sieve._add(_OrderedRule(order, depth, rule))
            else:
                sieve._anchored.append(_OrderedRule(order, depth, rule))
        return sieve._build_tables()

    def for_folder(self, folder: tuple[str, ...]) -> "IgnoreSieve":
        folder = tuple(map(to_byte_text, folder)) if self._anchored else folder
        near = [placed for placed in self._anchored if placed.can_match_in(folder)]
        if not near:
            return self
        own = IgnoreSieve({name: [*placed] for name, placed in self.exact.items()})
        own.endings = {ending: [*placed] for ending, placed in self.endings.items()}
        own._tailed, own._others, own._dotted = [*self._tailed], [*self._others], [*self._dotted]
        for placed in near:
            own._add(placed)
        return own._build_tables()

    def is_left_out(self, path: tuple[str, ...], *, is_folder: bool) -> bool:
        """Return whether the rules leave out ``path``, one of the folder's entries."""
        path = tuple(map(to_byte_text, path))
        best: _OrderedRule | None = None
        for placed in self._find_candidates(path[-1]):
            counts = (best is None or placed.order > best.order) and (is_folder or not placed.rule.folders_only)
            if counts and matches_path(placed.rule.segments, path[placed.depth :]):
                best = placed
        return best is not None and not best.rule.negated

    def _find_candidates(self, name: str) -> Iterator[_OrderedRule]:
        yield from self.exact.get(name, ())
        yield from self.endings.get(name.rpartition(".")[2], ())
        yield from (placed for tail, placed in self._tailed if name.endswith(tail))
        if self.other is not None and self.other(name):
            yield from self._others
        if name.startswith("."):
            yield from self._dotted

    def _add(self, placed: _OrderedRule) -> None:
        source = _last_step(placed)
        text = literal_text(source)
        tails = _list_tails(source)
        if text is not None:
            self.exact.setdefault(text, []).append(placed)
        elif source.startswith(r"\."):
            self._dotted.append(placed)
        elif tails:
            self._tailed += [(tail, placed) for tail in tails]
        else:
            self._others.append(placed)

    def _build_tables(self) -> "IgnoreSieve":
        if len(self._tailed) > _MANY:
            for tail, placed in self._tailed:
                if "." in tail:
                    self.endings.setdefault(tail.rpartition(".")[2], []).append(placed)
            self._tailed = [(tail, placed) for tail, placed in self._tailed if "." not in tail]
        self.tails = tuple({tail for tail, _ in self._tailed})
        if self._others:
            self.other = re.compile("|".join(map(_last_step, self._others)), re.DOTALL).fullmatch
        return self


def _last_step(placed: _OrderedRule) -> str:
    last = placed.rule.segments[-1]
    return ".*" if last is None else last.pattern


def _list_tails(source: str) -> tuple[str, ...]:
    """List the endings of names that match; none when they are not known. ``*.py[co]`` gives two."""
    tail = source.rpartition(".*")[2]
    match = _SMALL_CLASS.fullmatch(tail)
    sources = [match[1] + char + match[3] for char in match[2]] if match else [tail]
    texts = [literal_text(source) for source in sources]
    return tuple(text for text in texts if text) if ".*" in source and all(texts) else ()
