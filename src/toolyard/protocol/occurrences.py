"""Where a text stands in another, letter by letter; a place that would cut a ``\\r\\n`` in two is none."""

from collections.abc import Iterator

from toolyard.protocol.edit import Edit, Splice
from toolyard.protocol.failure import Failure, Reason

_MOST_COUNTED = 10_000  # places of a text that should stand in one
_MOST_SOUGHT = 5_000_000  # characters: to look for a long text again costs its length
_MOST_REPLACED = 1_000_000


def match_everywhere(text: str, edit: Edit) -> Iterator[Splice]:
    size = len(edit.old)
    found = _find_disjoint(text, edit.old) if edit.replace_all else find_occurrences(text, edit.old)
    yield from (Splice(at, at + size, edit.new) for at in found if not cuts_line_ending(text, at, at + size))


def cuts_line_ending(text: str, start: int, end: int) -> bool:
    """Whether a place begins or ends between the two characters of one line ending."""
    return "\r\n" in (text[max(0, start - 1) : start + 1], text[end - 1 : end + 1])


def _find_disjoint(text: str, wanted: str) -> Iterator[int]:
    if text.count(wanted) > _MOST_REPLACED:
        raise Failure(Reason.TOO_LARGE, f"old_string stands in more than {_MOST_REPLACED} places of the file.")
    at = text.find(wanted)
    while at >= 0:
        yield at
        behind = at + len(wanted)
        at = text.find(wanted, at + 1 if cuts_line_ending(text, at, behind) else behind)


def find_occurrences(text: str, wanted: str) -> list[int]:
    """Every place, overlapping and cutting ones too: counting only disjoint ones would call an ambiguous edit unique.

    Not all of them when there are more than ``_MOST_COUNTED``, or so many of a long text that finding them takes long.
    """
    found: list[int] = []
    at = text.find(wanted)
    while at >= 0 and are_all(len(found), len(wanted)):
        found.append(at)
        at = text.find(wanted, at + 1)
    return found


def are_all(found: int, length: int) -> bool:
    """Whether so many places of a text of this length can be all that there are: beyond that they are not counted."""
    return found < _MOST_COUNTED and found * length < _MOST_SOUGHT
