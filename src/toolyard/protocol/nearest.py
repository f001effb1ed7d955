"""The lines of a text that are most like a text which does not stand in it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Nearest:
    first: int
    last: int
    shown: tuple[str, ...]  # "N\tline" with blanks made visible
    difference: str


_MAX_SHOWN = 20
_SIMILAR = 60.0  # percent; less alike is not worth showing


def nearest_lines(text: str, wanted: str, name: str = "old_string") -> Nearest | None:
    """The lines most like ``wanted`` (called ``name``) and where they first differ; None when nothing is like it."""
    from rapidfuzz import fuzz, process  # only a miss needs it

    lines = text.split("\n")
    targets = wanted.strip("\n").split("\n")
    anchor = max(range(len(targets)), key=lambda number: len(targets[number].strip()))
    best = process.extractOne(
        targets[anchor].strip(), lines, scorer=fuzz.ratio, processor=str.strip, score_cutoff=_SIMILAR
    )
    if best is None:
        return None
    first = max(0, best[2] - anchor)
    found = lines[first : first + len(targets)]
    shown = tuple(f"{first + number}\t{visible(line)}" for number, line in enumerate(found[:_MAX_SHOWN], 1))
    pairs = zip(targets, found, strict=False)
    different = next((number for number, (mine, real) in enumerate(pairs) if mine != real), len(found))
    mine = visible(targets[different]) if different < len(targets) else "nothing"
    real = visible(found[different]) if different < len(found) else "the end of the file"
    difference = f"line {first + different + 1} differs: the file has «{real[:200]}», {name} «{mine[:200]}»."
    return Nearest(first + 1, first + len(found), shown, difference)


def visible(line: str) -> str:
    """Blanks that decide a match, made visible: spaces at the ends, tabs, carriage returns, odd spaces."""
    body = line.strip(" ")
    left = "·" * (len(line) - len(line.lstrip(" ")))
    right = "·" * (len(line) - len(line.rstrip(" "))) if body else ""
    return (left + body + right).replace("\t", "→").replace("\r", "␍").replace("\u00a0", "⍽")
