"""Files that other programs run or obey by themselves, as the table ``obeyed_files.toml`` lists them."""

import re
import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

_MAX_STEPS = 4096  # whose answers are kept


class ObeyedFile(NamedTuple):
    """A row of the table."""

    pattern: str
    reason: str


def find_reason(path: str) -> str | None:
    """Return the reason why a path, relative to the project's root, is listed; None when it is not."""
    *folders, last = path.casefold().split("/")
    reasons = map(_find_row, (*folders, f"{last}$"))
    return next((reason for reason in reasons if reason), None)


@cache
def load_table() -> tuple[ObeyedFile, ...]:
    text = files(__package__).joinpath("obeyed_files.toml").read_text(encoding="utf-8")
    return tuple(ObeyedFile(*row) for rows in tomllib.loads(text).values() for row in rows.items())


@lru_cache(_MAX_STEPS)
def _find_row(step: str) -> str | None:
    match = _expression().fullmatch(step)
    return load_table()[match.lastindex - 1].reason if match and match.lastindex else None


@cache
def _expression() -> re.Pattern[str]:
    """One group for each row; what is matched ends with ``$`` when it is the last step of a path."""
    return re.compile("|".join(f"({_translate(row.pattern)})" for row in load_table()), re.DOTALL)


def _translate(pattern: str) -> str:
    name = ".*".join(re.escape(part) for part in pattern.removesuffix("$").split("*"))
    return name + (r"\$" if pattern.endswith("$") else r"\$?")
