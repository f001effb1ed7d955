"""A long series of edits is prepared, and gives what one edit after the other gives: every time, errors included."""

import os
from itertools import pairwise
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolyard.protocol.edits.text_edit import Edit, apply_splices, locate
from toolyard.protocol.envelope import Failure
from toolyard.tools import multi_edit
from toolyard.tools.multi_edit import MANY, EditedText

pytestmark = pytest.mark.requirement("multiedit:all-or-nothing")

EXAMPLES = 5000 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 250
TINY: dict[str, Any] = {
    "MANY": 1,
    "_SHORTEST": 3,
    "_STRIDE": 2,
    "_LONGEST_PIECE": 3,
    "_MOST_SLOTS": 3,
    "_MOST_AROUND": 60,
}
LINES = st.lists(st.text("ab\r ", max_size=8), max_size=12).map("\n".join)
LONGER_TEXTS = st.one_of(st.text("ab\n\r ", max_size=12), LINES)


class EditOutcome(NamedTuple):
    """What a series of edits led to: what each one put in, then the text or what the last one failed with."""

    put: list[tuple[str, ...]]
    end: object


def edit_one_by_one(text: str, edits: list[Edit]) -> EditOutcome:
    put: list[tuple[str, ...]] = []
    try:
        for edit in edits:
            splices = locate(text, edit).splices
            put.append(tuple(splice.text for splice in splices))
            text = apply_splices(text, splices)
    except Failure as failure:
        return EditOutcome(put, (failure.reason, failure.message, failure.hint, failure.data))
    return EditOutcome(put, text)


def edit_prepared(text: str, edits: list[Edit]) -> EditOutcome:
    edited = EditedText(text, edits)
    put: list[tuple[str, ...]] = []
    try:
        put.extend(edited.make_next() for _ in edits)
    except Failure as failure:
        return EditOutcome(put, (failure.reason, failure.message, failure.hint, failure.data))
    return EditOutcome(put, edited.text)


@st.composite
def series(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    """A text, and edits whose old texts mostly stand in it once the edits before them are made."""
    text = now = draw(LINES)
    edits: list[Edit] = []
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.integers(0, 9)) and now:
            start = draw(st.integers(0, len(now) - 1))
            old = now[start : start + draw(st.integers(1, 20))]
        else:
            old = draw(st.text("ab\n ", min_size=1, max_size=6))
        edits.append(Edit(old, draw(LONGER_TEXTS), draw(st.integers(0, 5)) == 0))
        after = edit_one_by_one(now, edits[-1:]).end
        if not isinstance(after, str):
            if draw(st.booleans()):
                break
            edits.pop()
        else:
            now = after
    return text, edits


@given(case=series())
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_series_of_edits_gives_what_one_after_the_other_gives(case: tuple[str, list[Edit]]) -> None:
    text, edits = case
    with patch.multiple(multi_edit, **TINY):
        assert edit_prepared(text, edits) == edit_one_by_one(text, edits)


LINE = "{:05d} the quick brown fox jumps over the lazy dog\n"
TEXT = "".join(LINE.format(number) for number in range(1000))


def lines_changed(count: int) -> list[Edit]:
    return [Edit(LINE[:-1].format(n), LINE[:-1].format(n).replace("dog", "cat")) for n in range(count)]


@pytest.mark.parametrize(
    "odd",
    [
        Edit("lazy cat", "lazy dog", replace_all=True),
        Edit("00700  the", "00700 the"),
        Edit("brown fox jumps over", "brown bear"),
        Edit("x", "y"),
        Edit("00150 the quick brown fox jumps over the lazy cat\n", ""),
        Edit("the lazy cat\n00150 the quick", "the lazy cat 00150 the quick"),
        Edit("00150 the quick brown fox jumps over the lazy cat", "00700 the quick brown fox jumps over the lazy dog"),
        Edit("00999 the quick brown fox jumps over the lazy dog\n", "one\ntwo"),
    ],
    ids=["everywhere", "nowhere", "ambiguous", "short", "a line gone", "lines joined", "copied", "the end"],
)
def test_an_edit_that_is_not_like_the_others_changes_nothing_for_them(odd: Edit) -> None:
    edits = [*lines_changed(300), odd, *lines_changed(900)[300:]]
    assert edit_prepared(TEXT, edits) == edit_one_by_one(TEXT, edits)


def test_a_text_that_stands_twice_because_two_lines_were_joined_is_not_unique() -> None:
    twice = "the lazy dog, 00151 the quick brown"
    joined = Edit(LINE.format(150), LINE[:-1].format(150) + ", ")
    edits = [joined, Edit(twice, "once"), *lines_changed(900)[200:]]
    made = edit_prepared(f"{TEXT}{twice}\n", edits)
    assert made == edit_one_by_one(f"{TEXT}{twice}\n", edits)
    assert made.put == [(joined.new,)]


def test_a_long_series_is_not_looked_for_in_the_whole_text() -> None:
    edits = lines_changed(MANY)
    with patch.object(multi_edit, "locate", wraps=locate) as looked:
        made = edit_prepared(TEXT, edits)
    assert made == edit_one_by_one(TEXT, edits)
    assert all(len(call.args[0]) < 1000 for call in looked.call_args_list)


def test_a_series_in_which_each_edit_needs_the_one_before_is_made_all_the_same() -> None:
    steps = [f"this is step number {number} of a long way" for number in range(400)]
    edits = [Edit(old, new) for old, new in pairwise(steps)]
    text = TEXT + steps[0] + "\n"
    assert edit_prepared(text, edits) == EditOutcome([(step,) for step in steps[1:]], TEXT + steps[-1] + "\n")


@pytest.mark.parametrize(("above", "below"), [(1, 0), (0, 1), (2, 2), (3, 0), (0, 3)])
def test_texts_of_several_lines_are_found_without_looking_through_the_whole_text(above: int, below: int) -> None:
    blocks = ["{\n" * above + LINE.format(number) + "}\n" * below for number in range(2 * MANY)]
    text = "".join(f"{block}--\n" for block in blocks)
    edits = [Edit(block[:-1], block[:-1].replace("lazy", "quick")) for block in blocks]
    with patch.object(multi_edit, "locate", wraps=locate) as looked:
        made = edit_prepared(text, edits)
    assert made == edit_one_by_one(text, edits)
    assert all(len(call.args[0]) < 500 for call in looked.call_args_list)
