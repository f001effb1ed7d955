"""The tree of an expression, and the one error every part of the calculator raises."""

from typing import Any

Value = Any  # int, Fraction, float, complex, Quantity, list, bool or str: told apart where it matters


class CalcError(Exception):
    """Something the person who wrote the expression can mend: what is wrong, where, and how to write it."""

    def __init__(self, what: str, how: str = "", at: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.how = how
        self.at = at

    def told(self) -> str:
        """One line: what, where (counted from 1), how to mend it."""
        where = "" if self.at is None else f" (at character {self.at + 1})"
        return f"{self.what}{where}" + (f". {self.how}" if self.how else "")


class Node:
    """One operation: ``op`` is an operator or function name; a leaf is ``num``, ``name`` or ``text`` with a value."""

    __slots__ = ("args", "at", "op", "value")

    def __init__(self, op: str, args: tuple["Node", ...] = (), value: Value = None, at: int | None = None) -> None:
        self.op = op
        self.args = args
        self.value = value
        self.at = at

    def same(self, other: "Node") -> bool:
        """Whether the two trees are written alike."""
        return (
            self.op == other.op
            and self.value == other.value
            and len(self.args) == len(other.args)
            and all(mine.same(theirs) for mine, theirs in zip(self.args, other.args, strict=True))
        )

    def names(self) -> set[str]:
        """Every name that stands in the tree."""
        found = {self.value} if self.op == "name" else set()
        for arg in self.args:
            found |= arg.names()
        return found


def number(value: Value) -> Node:
    """A leaf that is a number."""
    return Node("num", value=value)
