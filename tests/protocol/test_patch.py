"""Hunks: equal to npm ``diff`` 7 where its vectors reach, and always a true account of the change."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolyard
from toolyard.protocol import patch
from toolyard.protocol.patch import NO_NEWLINE, Hunk, changes, split_lines, structured_patch

pytestmark = pytest.mark.requirement("hunk:shape", "patch:npm")
VECTORS = json.loads((Path(__file__).parents[1] / "vectors/structured_patch.json").read_text("utf-8"))

few_lines = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "d", "e\r\n"]), max_size=14).map("".join)


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
        patched.setattr(patch, "_MAX_STEPS", 0)
        patched.setattr(patch, "_GAP_STEPS", 2)
        assert applied(old, structured_patch(old, new)) == new


@given(old=few_lines, new=few_lines)
def test_between_two_changes_stands_an_equal_line(old: str, new: str) -> None:
    found = list(changes(split_lines(old), split_lines(new)))
    assert all(later.old_start > earlier.old_end for earlier, later in pairwise(found))


def test_a_text_with_thousands_of_changed_lines_ends_in_true_hunks() -> None:
    old = "".join(f"line {number}\n" for number in range(20_000))
    new = "".join(f"line {number if number % 3 else -number}\n" for number in range(20_000))
    assert applied(old, structured_patch(old, new)) == new
