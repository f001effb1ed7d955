"""Where an edit applies: exactly, or by forgiving format only; never by guessing."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolyard.protocol.edits.text_edit import (
    Edit,
    Splice,
    Strategy,
    apply_splices,
    cuts_line_ending,
    find_nearest_lines,
    locate,
    make_visible,
)
from toolyard.protocol.envelope import Failure, Reason

pytestmark = pytest.mark.requirement("edit:matching")
VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "vectors/edit_requests.json").read_text("utf-8")
)
BOM = "\ufeff"


def attempt(text: str, edit: Edit) -> tuple[str | None, Reason | None]:
    """The text after the edit, or why there is none; a byte-order mark is not part of the text."""
    mark = BOM if text.startswith(BOM) else ""
    try:
        return mark + apply_splices(text[len(mark) :], locate(text[len(mark) :], edit).splices), None
    except Failure as failure:
        return None, failure.reason


@pytest.mark.parametrize("case", [c for c in VECTORS if c["old_string"]], ids=lambda case: case["id"])
def test_nine_agents_edit_requests_never_write_a_wrong_byte(case: dict[str, Any]) -> None:
    result, reason = attempt(case["content"], Edit(case["old_string"], case["new_string"], case["replace_all"]))
    expected = case.get("normative_result")
    if case["norm"] == "required":
        assert (result, reason) == (expected, case.get("normative_error"))
    elif case["norm"] == "forbidden":
        assert result is None
    elif result is not None and expected is not None:
        assert result == expected


@pytest.mark.parametrize(
    ("text", "old", "new", "result", "strategy"),
    [
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n", Strategy.LINE_ENDINGS),
        ("a\rb\rc", "a\nb", "x\ny", "x\ry\rc", Strategy.LINE_ENDINGS),
        ("one\r\ntwo\nthree\r\n", "one\ntwo\nthree", "1\n2\n3\n4", "1\r\n2\n3\n4\r\n", Strategy.LINE_ENDINGS),
        ("a  \n\tb\t\nc\n", "a\n\tb", "x\ny", "x\ny\nc\n", Strategy.TRAILING_BLANKS),
        ("say “hi” – now\n", 'say "hi" - now', "bye", "bye\n", Strategy.PUNCTUATION),
        ("你好，世界！\n", "你好,世界!", "再见", "再见\n", Strategy.PUNCTUATION),
        ("  if a:\n    b\n", "if a:\n  b", "if c:\n  d\n\n  e", "  if c:\n    d\n\n    e\n", Strategy.INDENTATION),
        ("if a:\n  b\n", "    if a:\n      b", "    if c:\n      d", "if c:\n  d\n", Strategy.INDENTATION),
    ],
)
def test_differences_of_format_are_forgiven_and_named(
    text: str, old: str, new: str, result: str, strategy: Strategy
) -> None:
    match = locate(text, Edit(old, new))
    assert (apply_splices(text, match.splices), match.strategy) == (result, strategy)


@pytest.mark.parametrize(
    ("text", "old", "why"),
    [
        ("retries = 3\n", "retries = 5", Reason.NOT_FOUND_IN_FILE),
        ("Value\n", "value", Reason.NOT_FOUND_IN_FILE),
        ("a b\n", "a  b", Reason.NOT_FOUND_IN_FILE),
        ("a\n\nb\n", "a\nb", Reason.NOT_FOUND_IN_FILE),
        ("x \ny\nx\t\ny\n", "x\ny", Reason.NOT_UNIQUE),
        ("  a\n    b\n", "a\nb", Reason.NOT_FOUND_IN_FILE),
        ("aaa", "aa", Reason.NOT_UNIQUE),
        ("a\tb\n", "   ", Reason.NOT_FOUND_IN_FILE),
        ("a\\nb\n", "a\nb", Reason.NOT_FOUND_IN_FILE),
    ],
)
def test_what_is_not_format_is_not_forgiven(text: str, old: str, why: Reason) -> None:
    assert attempt(text, Edit(old, "NEW")) == (None, why)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_text_that_stands_twice_is_refused_with_the_numbers_of_its_lines(newline: str) -> None:
    with pytest.raises(Failure) as caught:
        locate(newline.join(["a", "b", "x", "a"]), Edit("a", "c"))
    assert caught.value.data["lines"] == [1, 4]


@pytest.mark.parametrize(
    ("text", "edit", "expected"),
    [
        ("a\r\nb\r\n", Edit("\nb", "\nX\nb"), "a\r\nX\r\nb\r\n"),
        ("a\r\nb\r\n", Edit("\nb", "X"), "aX\r\n"),
        ("a\r\nb\r\nc\r\n", Edit("\n", "", replace_all=True), "abc"),
        ("a\r\nb\r\nc\r\n", Edit("\n", "\n\n", replace_all=True), "a\r\n\r\nb\r\n\r\nc\r\n\r\n"),
        ("a\r\nb\r\n", Edit("a\r", "X"), None),
        ("a\r\nb\nc", Edit("\nc", "\nd"), "a\r\nb\nd"),
        ("a\r\n\n\nb\n\n", Edit("\n\n", "X", replace_all=True), "a\r\nXbX"),
    ],
    ids=["begins", "joins", "joins-all", "doubles-all", "ends", "mixed", "hides"],
)
def test_no_edit_cuts_a_line_ending_in_two(text: str, edit: Edit, expected: str | None) -> None:
    assert attempt(text, edit)[0] == expected


@pytest.mark.parametrize(
    ("text", "edit", "expected"),
    [
        ("x\n50%\r100%\ndone\n", Edit("50%", "start\n50%"), "x\nstart\n50%\r100%\ndone\n"),
        ("x\r\n50%\r100%\r\n", Edit("50%", "start\n50%"), "x\r\nstart\r\n50%\r100%\r\n"),
        ("x\n50%\r100%\ndone\n", Edit("50%\r100%\n", "a\nb\nc\n"), "x\na\nb\nc\ndone\n"),
        ("a\rb\nfoo\n", Edit("a\rb", "a\nb"), "a\nb\nfoo\n"),
        ("x\ny\r50%", Edit("50%", "a\nb"), "x\ny\ra\nb"),
        ("a\rb\r", Edit("a\nb", "a\nX\nb"), "a\rX\rb\r"),
    ],
    ids=["lf", "crlf", "replaced", "made-a-newline", "at-the-end", "old-macintosh"],
)
def test_a_carriage_return_inside_a_line_is_no_line_ending(text: str, edit: Edit, expected: str) -> None:
    assert attempt(text, edit)[0] == expected


@pytest.mark.parametrize(
    ("text", "edit", "expected"),
    [
        ("a\r\nb\nc\n", Edit("a\nb\nc", "new\na\nb\nc"), "new\r\na\r\nb\nc\n"),
        ("a\r\nb\nc\n", Edit("a\nb\nc", "a\nb\nnew\nc"), "a\r\nb\nnew\nc\n"),
        ("a\r\nb\nc\r\nd\n", Edit("a\nb\nc\nd", "a\nd"), "a\r\nd\n"),
        ("a\nb\r\nc\n", Edit("a\nb\nc\n", "a\nX\nY\nc\n"), "a\nX\r\nY\r\nc\n"),
    ],
    ids=["before", "behind", "removed", "replaced"],
)
def test_a_line_that_stays_keeps_its_ending_among_mixed_ones(text: str, edit: Edit, expected: str) -> None:
    assert attempt(text, edit)[0] == expected


_LINES = st.lists(st.tuples(st.text("ab\r ", max_size=3), st.sampled_from(["\n", "\r\n"])), min_size=1, max_size=6)


@given(_LINES, st.text("ab\n", min_size=1, max_size=4), st.text("ab\n", max_size=4), st.booleans())
def test_an_edit_reads_as_it_does_with_plain_newlines_and_keeps_every_ending_that_it_does_not_replace(
    lines: list[tuple[str, str]], old: str, new: str, every: bool
) -> None:
    endings = {ending for _, ending in lines}
    assume(len(endings) == 1 and not any(line.endswith("\r") for line, _ in lines))
    plain = "".join(f"{line}\n" for line, _ in lines)
    result, reason = attempt("".join(map("".join, lines)), Edit(old, new, every))
    expected, why = attempt(plain, Edit(old, new, every))
    assert (result, reason) == (expected and expected.replace("\n", endings.pop()), why)


def test_texts_of_equal_lines_are_searched_in_linear_time_and_comparing_them_has_a_bound() -> None:
    many, expected = 20_000, "foo\n" * 5_000
    assert attempt("foo \n" * many, Edit(expected, "x", replace_all=True)) == ("x" * 4, None)
    assert attempt("foo \n" * many, Edit(expected, "x"))[1] is Reason.NOT_UNIQUE
    assert attempt("  foo\n" * many, Edit(expected, "x"))[1] is Reason.TOO_LARGE
    with pytest.raises(Failure, match="10000 times or more"):
        locate("a" * 20_000, Edit("a", "b"))
    assert attempt("a" * 20_000, Edit("aa", "b", replace_all=True)) == ("b" * 10_000, None)
    assert attempt("a" * 1_000_001, Edit("a", "b", replace_all=True))[1] is Reason.TOO_LARGE
    with pytest.raises(Failure, match="50 times or more"):
        locate("a" * 400_000, Edit("a" * 100_000, "b"))
    one_line = '{"a":1,' * 60_000  # has no line ending: whoever looks for one anew at each place takes minutes
    assert attempt(one_line, Edit(",", ",\n", replace_all=True)) == (one_line.replace(",", ",\n"), None)


def test_an_exact_place_is_taken_even_when_a_forgiving_one_exists_as_well() -> None:
    assert attempt("a \nb\na\nb\n", Edit("a\nb", "X")) == ("a \nb\nX\n", None)


def test_new_text_that_does_not_share_the_margin_of_the_old_one_is_not_reindented() -> None:
    assert attempt("  // c\n  old()\n", Edit("// c\nold()", "  // c\n  new()")) == (None, Reason.NOT_FOUND_IN_FILE)


def test_the_same_text_again_is_no_change() -> None:
    assert attempt("a\r\nb", Edit("a\nb", "a\nb")) == (None, Reason.NO_CHANGE)
    assert attempt("a\r\nb", Edit("a\nb", "a\r\nb")) == (None, Reason.NO_CHANGE)


def test_not_unique_names_the_lines_and_the_way_out() -> None:
    with pytest.raises(Failure, match=r"stands 3 times in the file \(in lines 1, 2, 4\)") as raised:
        locate("x\nx\ny\nx\n", Edit("x", "z"))
    assert raised.value.data == {"occurrences": 3, "lines": [1, 2, 4]}
    assert "replace_all" in raised.value.hint


def test_a_miss_shows_the_nearest_lines_with_visible_blanks_and_the_first_difference() -> None:
    text = "def f():\n    total = 1\n\treturn total \n"
    with pytest.raises(Failure) as raised:
        locate(text, Edit("def f():\n    total = 2\n    return total", "x"))
    assert raised.value.message == (
        "old_string does not stand in the file. The nearest lines are 1-3; line 2 differs: "
        "the file has «····total = 1», old_string «····total = 2»."
    )
    assert raised.value.data == {
        "nearest": {
            "first_line": 1,
            "last_line": 3,
            "lines": ["1\tdef f():", "2\t····total = 1", "3\t→return total·"],
        }
    }


ALIKE = "They look alike: the file has U+0065, old_string U+00E9."
AROUND = "the empty lines around them, or in where the file ends."


@pytest.mark.parametrize(
    ("text", "expected", "difference"),
    [
        ("foo\u200bbar\n", "foobar", "line 1 differs: the file has «foo⟨U+200B⟩bar», old_string «foobar»."),
        ("head\n", "\ufeffhead", "line 1 differs: the file has «head», old_string «⟨U+FEFF⟩head»."),
        (
            "cafe\u0301\n",
            "caf\u00e9",
            f"line 1 differs: the file has «cafe\u0301», old_string «caf\u00e9». {ALIKE}",
        ),
        (
            "x" * 300 + "A" + "y" * 300,
            "x" * 300 + "B" + "y" * 300,
            f"line 1 differs: the file has «…{'x' * 100}A{'y' * 99}…», old_string «…{'x' * 100}B{'y' * 99}…».",
        ),
        ("if f():\n  a = 1\n", "f():\n  a = 2\n", "line 2 differs: the file has «··a = 1», old_string «··a = 2»."),
        ("a long line\n", "a long line\nmore", "line 2 differs: the file has «», old_string «more»."),
        ("a long line", "a long line\nmore", "the file ends before line 2, where old_string has «more»."),
        ("a long line\n", "\n\na long line", f"they differ from old_string only in {AROUND}"),
    ],
)
def test_the_first_difference_is_one_that_can_be_seen(text: str, expected: str, difference: str) -> None:
    near = find_nearest_lines(text, expected)
    assert near is not None
    assert near.difference == difference


def test_of_a_long_line_that_is_near_the_beginning_is_shown() -> None:
    near = find_nearest_lines("x" * 100_000 + "y", "x" * 100_000 + "z")
    assert near is not None
    assert near.lines == (f"1\t{'x' * 500}… [cut: 100001 characters]",)


def test_nothing_alike_is_said_plainly() -> None:
    assert find_nearest_lines("alpha\nbeta\n", "zzzzzz") is None
    assert find_nearest_lines("alpha\n\nbeta\n", "\n\n\n") is None
    with pytest.raises(Failure, match="nor anything like it"):
        locate("alpha\nbeta\n", Edit("zzzzzz", "x"))


def test_blanks_that_decide_a_match_are_made_visible() -> None:
    assert make_visible("  a b\t\r") == "··a b→␍"
    assert make_visible("   ") == "···"


texts = st.text(st.sampled_from("ab \t\r\n$\\'\u2019"), max_size=30)


@given(before=texts, old=texts, after=texts, new=texts)
def test_an_exact_edit_changes_its_place_and_nothing_else(before: str, old: str, after: str, new: str) -> None:
    text = before + old + after
    assume(old and old != new and text.find(old) == len(before) and text.find(old, len(before) + 1) < 0)
    assume("\n" not in new and not cuts_line_ending(text, len(before), len(before) + len(old)))
    assert attempt(text, Edit(old, new)) == (before + new + after, None)


@given(text=texts, old=texts, new=texts, everywhere=st.booleans())
def test_any_edit_ends_in_splices_or_a_failure_and_splices_never_overlap(
    text: str, old: str, new: str, everywhere: bool
) -> None:
    assume(old)
    result, reason = attempt(text, Edit(old, new, everywhere))
    if result is None:
        assert reason in (Reason.NOT_FOUND_IN_FILE, Reason.NOT_UNIQUE, Reason.NO_CHANGE)
        return
    match = locate(text, Edit(old, new, everywhere))
    ends = [0, *(splice.end for splice in match.splices)]
    assert all(splice.start >= end for splice, end in zip(match.splices, ends, strict=False))
    assert len(match.splices) == 1 or everywhere


def test_apply_puts_each_splice_in_its_place() -> None:
    assert apply_splices("abcdef", (Splice(0, 1, "X"), Splice(3, 3, "-"), Splice(5, 6, ""))) == "Xbc-de"
