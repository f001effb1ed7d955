"""Hunks: equal to npm ``diff`` 7 where its vectors reach, and always a true account of the change."""

import json
import tracemalloc
from itertools import pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolyard
from toolyard.protocol.edits import diff
from toolyard.protocol.edits.diff import NO_NEWLINE, Hunk, build_patch, find_changes, split_lines, structured_patch

pytestmark = pytest.mark.requirement("hunk:shape", "patch:npm")
VECTORS = json.loads((Path(__file__).parents[1] / "vectors/structured_patch.json").read_text("utf-8"))

few_lines = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "d", "e\r\n"]), max_size=14).map("".join)


few_words = st.lists(st.sampled_from(["", "a", "b", "ab", "c\r", "same"]), max_size=14).map("\n".join)
LINES = [f"line {number}\n" for number in range(200)]


def of_the_whole_texts(old: str, new: str, context: int = 3) -> list[Hunk]:
    """The hunks as they come out when no part of the texts is left out."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(diff, "_cut_around_change", lambda old, new, _: (0, old, new))
        return structured_patch(old, new, context)


def applied(old: str, hunks: list[Hunk]) -> str:
    """Apply hunks the plain way, checking every context and removed line."""
    lines, result, at = old.split("\n"), [], 0
    lines = [f"{line}\n" for line in lines[:-1]] + lines[-1:]
    for hunk in hunks:
        result += lines[at : hunk["oldStart"] - 1]
        at = hunk["oldStart"] - 1
        marked = [*hunk["lines"], ""]
        for line, after in pairwise(marked):
            if line == NO_NEWLINE:
                continue
            text = line[1:] + ("" if after == NO_NEWLINE else "\n")
            if line[0] in " -":
                assert lines[at] == text
                at += 1
            if line[0] in " +":
                result.append(text)
        assert at == hunk["oldStart"] - 1 + hunk["oldLines"]
        assert len(result) == hunk["newStart"] - 1 + hunk["newLines"]
    return "".join([*result, *lines[at:]])


@pytest.mark.parametrize("case", VECTORS, ids=range(len(VECTORS)))
def test_hunks_equal_those_of_npm_diff(case: Any) -> None:
    old, new, context, hunks = case
    assert structured_patch(old, new, context) == hunks
    assert toolyard.structured_patch(old, new, context) == hunks


@given(old=few_lines, new=few_lines, context=st.integers(0, 4))
def test_applying_the_hunks_to_the_old_text_gives_the_new_one(old: str, new: str, context: int) -> None:
    assert applied(old, structured_patch(old, new, context)) == new


@given(text=few_lines)
def test_equal_texts_have_no_hunks(text: str) -> None:
    assert structured_patch(text, text) == []


@settings(max_examples=300)
@given(old=few_lines, new=few_lines)
def test_hunks_of_texts_too_different_for_the_exact_search_are_still_true(old: str, new: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(diff, "MAX_STEPS", 0)
        patched.setattr(diff, "_GAP_STEPS", 2)
        assert applied(old, structured_patch(old, new)) == new


class CountedLine(int):
    """A line number that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedLine.compared += 1
        return int(self) == other

    __hash__ = int.__hash__


REVERSED = {
    "lines of their own": [f"{number:x}" for number in range(3000)],
    "lines that repeat": [f"{number % 100}" for number in range(3000)],
    "two lines": Random(1).choices("ab", k=6000),
}


@pytest.mark.requirement("patch:budget")
@pytest.mark.parametrize("lines", REVERSED.values(), ids=REVERSED)
def test_the_search_keeps_to_its_budget_of_steps_and_memory(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 20_000
    monkeypatch.setattr(diff, "MAX_STEPS", steps)
    monkeypatch.setattr(diff, "MAX_COARSE_STEPS", steps)
    numbers: dict[str, int] = {}
    old: list[int] = [CountedLine(numbers.setdefault(line, len(numbers))) for line in lines]
    CountedLine.compared = 0
    assert not diff.find_equal_runs(old, old[::-1]).exact
    assert CountedLine.compared < 20 * (steps + len(lines))
    plain = [int(line) for line in old]
    tracemalloc.start()
    try:
        diff.find_equal_runs(plain, plain[::-1])
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.requirement("patch:budget")
@pytest.mark.parametrize("lines", REVERSED.values(), ids=REVERSED)
def test_a_patch_beyond_the_budget_is_coarse_and_still_true(lines: list[str]) -> None:
    old, new = "\n".join(lines) + "\n", "\n".join(lines[::-1]) + "\n"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(diff, "MAX_STEPS", 20_000)
        found = build_patch(old, new)
    assert (found.exact, applied(old, found.hunks)) == (False, new)
    assert build_patch(old[:200], new[:200]).exact


@pytest.mark.requirement("patch:budget")
def test_texts_of_more_lines_than_are_searched_differ_between_their_equal_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "MAX_LINES", 20)
    old = "".join(f"{line}\n" for line in ("same", *range(10), "end"))
    new = "".join(f"{line}\n" for line in ("same", *reversed(range(10)), "end"))
    found = build_patch(old, new, 0)
    assert [(hunk["oldStart"], hunk["oldLines"]) for hunk in found.hunks] == [(2, 10)]
    assert (found.exact, applied(old, found.hunks)) == (False, new)


@given(old=few_lines, new=few_lines)
def test_between_two_changes_stands_an_equal_line(old: str, new: str) -> None:
    found = find_changes(split_lines(old), split_lines(new)).regions
    assert all(later.old_start > earlier.old_end for earlier, later in pairwise(found))


def test_a_text_with_thousands_of_changed_lines_ends_in_true_hunks() -> None:
    old = "".join(f"line {number}\n" for number in range(20_000))
    new = "".join(f"line {number if number % 3 else -number}\n" for number in range(20_000))
    assert applied(old, structured_patch(old, new)) == new


@given(old=few_words, new=few_words, context=st.integers(0, 4))
@settings(deadline=None)
def test_two_texts_give_the_hunks_of_the_whole_texts(old: str, new: str, context: int) -> None:
    assert structured_patch(old, new, context) == of_the_whole_texts(old, new, context)


@given(old=few_words, start=st.integers(0, 30), length=st.integers(0, 12), put=few_words, stride=st.integers(1, 8))
@settings(max_examples=1000, deadline=None)
def test_one_changed_place_gives_the_hunks_of_the_whole_texts(
    old: str, start: int, length: int, put: str, stride: int
) -> None:
    new = old[:start] + put + old[start + length :]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(diff, "_STRIDE", stride)
        assert structured_patch(old, new) == of_the_whole_texts(old, new)


@pytest.mark.parametrize("end", ["", "\n"])
def test_one_changed_line_gives_the_hunks_of_the_whole_texts_whatever_stands_around_it(end: str) -> None:
    for count in range(1, 6):
        for lines, at, put in product(product("abc", repeat=count), range(count), "abcd"):
            old, new = "\n".join(lines) + end, "\n".join([*lines[:at], put, *lines[at + 1 :]]) + end
            assert structured_patch(old, new, 1) == diff._build_hunks(split_lines(old), split_lines(new), 0, 1).hunks, (
                old,
                new,
            )


@pytest.mark.requirement("edit:data")
@pytest.mark.parametrize("at", [0, 1, 100, 198, 199])
@pytest.mark.parametrize("put", [["changed\n"], [], ["one\n", "two\n"], ["no newline"]])
def test_only_the_lines_around_one_changed_place_are_split(
    monkeypatch: pytest.MonkeyPatch, at: int, put: list[str]
) -> None:
    old, new = "".join(LINES), "".join([*LINES[:at], *put, *LINES[at + 1 :]])
    whole = of_the_whole_texts(old, new)
    split: list[str] = []

    def watched(text: str) -> list[str]:
        split.append(text)
        return split_lines(text)

    monkeypatch.setattr(diff, "split_lines", watched)
    assert structured_patch(old, new) == whole
    if at or put:  # else the new text is the end of the old one
        assert max(map(len, split)) < 100
