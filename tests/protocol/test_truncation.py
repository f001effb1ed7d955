"""Where a result that is too long is cut, and what the shown envelope says (002 §2)."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolyard.dialects.model_parts import join_texts, list_parts
from toolyard.protocol.content import Media, Text
from toolyard.protocol.envelope import Envelope, ErrorCode, Extras, Fault, Status
from toolyard.protocol.json import JsonObject
from toolyard.protocol.result_limits import Direction
from toolyard.protocol.tool import BatchItem, Outcome, ToolCall
from toolyard.protocol.truncation import (
    Cut,
    StoredOutput,
    TextPages,
    break_long_lines,
    count_lines,
    cut_text,
    is_too_long,
    paginate,
    shorten_params,
    truncate_envelope,
)

LINES, BYTES, MIB = 2000, 51_200, 1024 * 1024
SAVED = "tool-output/tool_20261115_093000_Grep.json"
PAGES = "tool-output/tool_20261115_093000_Grep.txt"


def numbered(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(1, count + 1))


def envelope(status: Status = Status.SUCCESS, **changes: Any) -> Envelope:
    valid: dict[str, Any] = {
        "data": {"matches": ["a", "b"]},
        "text": "Found 2 matches.",
        "stats": {"time_ms": 12.5, "total_matches": 2},
        "context": {"cwd": "src", "params_input": {"pattern": "x"}, "path_resolved": "src/a", "reason": "STALE"},
    }
    return Envelope(status=status, **(valid | changes))


# --- Limits ---


FITTING = {
    "nothing": "",
    "2000 lines": numbered(LINES),
    "2000 lines, the last unended": numbered(LINES).rstrip("\n"),
    "2000 empty lines": "\n" * LINES,
    "51200 bytes": "x" * BYTES,
    "51198 bytes of Chinese": "中" * (BYTES // 3),
}
TOO_LONG = {
    "2001 lines": numbered(LINES + 1),
    "2001 lines, the last unended": numbered(LINES) + "x",
    "2001 lines, the last empty": numbered(LINES) + "\n",
    "51201 bytes": "x" * (BYTES + 1),
    "51201 bytes of Chinese": "中" * (BYTES // 3 + 1),  # 17067 characters
}


@pytest.mark.requirement("truncation:exact-fit")
@pytest.mark.parametrize("text", FITTING.values(), ids=FITTING)
def test_a_text_that_just_fits_is_not_cut(text: str) -> None:
    assert not is_too_long(text, skip=False)
    assert [cut_text(text, direction).preview for direction in Direction] == [text, text]


@pytest.mark.requirement("truncation:lines", "truncation:bytes")
@pytest.mark.parametrize("text", TOO_LONG.values(), ids=TOO_LONG)
def test_a_text_of_one_line_or_byte_more_is_cut(text: str) -> None:
    assert is_too_long(text, skip=False)
    assert all(len(cut_text(text, direction).preview) < len(text) for direction in Direction)


@pytest.mark.requirement("truncation:skip")
@pytest.mark.parametrize("text", [numbered(50_000), "x" * MIB, "\n" * MIB], ids=["lines", "one line", "newlines"])
def test_a_tool_that_pages_by_itself_is_shown_whole_up_to_1_mib(text: str) -> None:
    assert is_too_long(text, skip=False)
    assert not is_too_long(text, skip=True)


@pytest.mark.requirement("truncation:hard-cap")
@pytest.mark.parametrize("text", ["x" * (MIB + 1), "中" * (MIB // 3 + 1)], ids=["ascii", "chinese"])
def test_not_even_a_tool_that_pages_by_itself_is_shown_above_1_mib(text: str) -> None:
    assert is_too_long(text, skip=True)


@pytest.mark.requirement("truncation:lines")
@pytest.mark.parametrize(
    ("text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n", 1), ("\n\n", 2), ("a\r\nb\u2028c", 2)]
)
def test_a_line_ends_at_a_newline_and_the_last_one_needs_none(text: str, lines: int) -> None:
    assert count_lines(text) == lines


# --- Cuts ---


@pytest.mark.requirement("truncation:lines", "truncation:direction", "truncation:data")
def test_head_keeps_the_first_2000_lines() -> None:
    text, expected = numbered(5234), numbered(LINES)
    assert cut_text(text, Direction.HEAD) == Cut(expected, 5234, len(text), LINES, len(expected))


@pytest.mark.requirement("truncation:lines", "truncation:direction", "truncation:data")
@pytest.mark.parametrize("end", ["", "\n"])
def test_tail_keeps_the_last_2000_lines(end: str) -> None:
    text = numbered(5234).rstrip("\n") + end
    expected = text[text.index("line 3235\n") :]
    assert cut_text(text, Direction.TAIL) == Cut(expected, 5234, len(text), LINES, len(expected))


@pytest.mark.requirement("truncation:bytes", "truncation:direction")
@pytest.mark.parametrize("direction", Direction)
def test_one_endless_line_is_cut_at_51200_bytes(direction: Direction) -> None:
    text = "ab" * BYTES
    expected = text[:BYTES] if direction is Direction.HEAD else text[-BYTES:]
    assert cut_text(text, direction) == Cut(expected, 1, 2 * BYTES, 1, BYTES)


@pytest.mark.requirement("truncation:bytes", "truncation:preview")
@pytest.mark.parametrize("direction", Direction)
def test_a_cut_by_bytes_keeps_whole_lines(direction: Direction) -> None:
    line = "x" * 999 + "\n"
    assert cut_text(line * 100, direction) == Cut(line * 51, 100, 100_000, 51, 51_000)


@pytest.mark.requirement("truncation:bytes", "truncation:exact-fit")
@pytest.mark.parametrize("direction", Direction)
def test_a_line_that_just_fits_is_kept(direction: Direction) -> None:
    line = "x" * 511 + "\n"
    assert cut_text(line * 101, direction) == Cut(line * 100, 101, 51_712, 100, BYTES)


@pytest.mark.requirement("truncation:bytes", "truncation:preview")
def test_a_cut_by_bytes_does_not_lose_the_preview_to_one_long_line() -> None:
    head = cut_text("title\n" + "x" * 100_000, Direction.HEAD)
    tail = cut_text("x" * 100_000 + "\nthe end", Direction.TAIL)
    assert head.preview == "title\n" + "x" * (BYTES - 6)
    assert tail.preview == "x" * (BYTES - 8) + "\nthe end"


@pytest.mark.requirement("truncation:preview")
@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("offset", range(4))
def test_a_character_is_never_cut_in_two(direction: Direction, offset: int) -> None:
    text = "x" * offset + "𝄞" * BYTES + "x" * offset
    preview = cut_text(text, direction).preview
    assert preview == (text[: len(preview)] if direction is Direction.HEAD else text[-len(preview) :])
    assert BYTES - 4 < len(preview.encode()) <= BYTES


PIECES = st.lists(
    st.tuples(
        st.text("ab \r\n\t\0中𝄞é\u2028", min_size=1, max_size=12) | st.text(max_size=6),
        st.integers(0, 9) | st.integers(1990, 2010) | st.integers(3000, 9000),
    ),
    max_size=4,
)


@pytest.mark.requirement(
    "truncation:lines",
    "truncation:bytes",
    "truncation:exact-fit",
    "truncation:direction",
    "truncation:preview",
    "truncation:data",
)
@settings(max_examples=150, deadline=None)
@given(pieces=PIECES, direction=st.sampled_from(Direction))
def test_any_cut_is_a_true_piece_of_the_text_within_both_limits(
    pieces: list[tuple[str, int]], direction: Direction
) -> None:
    text = "".join(piece * times for piece, times in pieces)
    cut = cut_text(text, direction)
    assert (cut.original_lines, cut.original_bytes) == (count_lines(text), len(text.encode()))
    assert (cut.kept_lines, cut.kept_bytes) == (count_lines(cut.preview), len(cut.preview.encode()))
    assert cut.kept_lines <= LINES
    assert cut.kept_bytes <= BYTES
    assert text.startswith(cut.preview) if direction is Direction.HEAD else text.endswith(cut.preview)
    if is_too_long(text, skip=False):
        assert cut.preview != text
        assert cut.kept_lines == LINES or cut.kept_bytes >= BYTES // 2  # as much as makes a good preview
    else:
        assert cut.preview == text


# --- The text that a model would read ---


def to_readable(outcome: Outcome) -> str:
    return join_texts(list_parts(ToolCall(id="1", tool="Plugin"), outcome))


@pytest.mark.requirement("truncation:lines", "truncation:bytes")
def test_what_is_measured_is_the_text_and_then_the_data_as_it_would_be_read() -> None:
    outcome = Outcome(envelope=envelope(data={"matches": ["中", 'a "b"']}), root="/p")
    assert to_readable(outcome) == 'Found 2 matches.\n{"matches":["中","a \\"b\\""]}'


@pytest.mark.requirement("truncation:lines", "truncation:bytes")
def test_content_parts_stand_in_place_of_the_text_and_media_are_not_measured() -> None:
    extras = Extras(parts=(Text("Read 'a'."), Media("image/png", b"x" * MIB), Text("1\tline")))
    assert to_readable(Outcome(envelope=envelope(data={}), root="/p", extras=extras)) == "Read 'a'.\n1\tline"


@pytest.mark.requirement("truncation:lines", "truncation:bytes")
def test_a_text_that_the_content_has_is_not_measured_again_in_the_data() -> None:
    extras = Extras(parts=(Text("Read 'a'."), Text("1\tline")))
    outcome = Outcome(envelope=envelope(data={"content": "1\tline", "eol": "lf"}), root="/p", extras=extras)
    assert to_readable(outcome) == "Read 'a'.\n1\tline"


@pytest.mark.requirement("truncation:batch")
def test_a_batch_is_measured_by_the_texts_of_its_items_like_single_calls() -> None:
    """Newlines inside the data of a batch are no lines in JSON, but they are in what a model reads."""

    def read(name: str) -> BatchItem:
        content = "".join(f"{number}\t{name}\n" for number in range(1900))
        parts = (Text(f"Read '{name}'."), Text(content))
        item = Outcome(envelope=envelope(data={"content": content}), root="/p", extras=Extras(parts=parts))
        return BatchItem(call=ToolCall(id="1", tool="Read", arguments={}, caller="t"), outcome=item, reads=True)

    items = (read("a"), read("b"))
    full = envelope(data={"results": [item.outcome.envelope.data for item in items]}, text="Batch of 2 finished.")
    text = to_readable(Outcome(envelope=full, root="/p", batch=items))
    assert text.startswith("(1)\nRead 'a'.\n0\ta\n")
    assert count_lines(text) == 2 * 1902 + 1  # the blank line between the items
    assert is_too_long(text, skip=False)


# --- The text in pages ---


@pytest.mark.requirement("truncation:pages")
def test_the_pages_of_a_text_with_short_lines_are_the_text_itself() -> None:
    text = "".join(f"line {number:04} of the output, padded\n" for number in range(1, 5235))
    preview = cut_text(text, Direction.HEAD).preview
    assert paginate(text, preview, Direction.HEAD) == TextPages(text, count_lines(preview) + 1)


@pytest.mark.requirement("truncation:pages")
@pytest.mark.parametrize("length", [2000, 2001, 4000, 60_000])
def test_a_line_longer_than_read_shows_is_broken_and_nothing_is_lost(length: int) -> None:
    text = "title\n" + "x" * length + "\n\nend"
    broken = break_long_lines(text)
    assert max(map(len, broken.split("\n"))) <= 2000
    assert broken.replace("\n", "") == text.replace("\n", "")
    assert count_lines(broken) == 3 + -(-length // 2000)


@pytest.mark.requirement("truncation:pages")
def test_a_nul_is_drawn_because_it_would_make_the_pages_binary() -> None:
    assert paginate("a\0b", "a", Direction.HEAD).text == "a␀b"


@pytest.mark.requirement("truncation:pages")
@settings(max_examples=150, deadline=None)
@given(pieces=PIECES)
def test_the_preview_and_the_pages_from_the_next_line_on_hold_the_whole_text(pieces: list[tuple[str, int]]) -> None:
    text = "".join(piece * times for piece, times in pieces).replace("\0", "0")
    preview = cut_text(text, Direction.HEAD).preview
    pages = paginate(text, preview, Direction.HEAD)
    rest = "".join(pages.text.split("\n")[pages.next_line - 1 :])
    flat, seen = text.replace("\n", ""), preview.replace("\n", "")
    assert flat.endswith(rest)
    assert len(flat) - len(rest) <= len(seen) < len(flat) - len(rest) + 2000  # all of it, and little of it twice


# --- The shown envelope ---


def truncate(full: Envelope, text: str, direction: Direction = Direction.HEAD, **where: Any) -> Envelope:
    piece = cut_text(text, direction)
    pages = paginate(text, piece.preview, direction)
    return truncate_envelope(full, piece, direction, pages=pages, **({"stored": StoredOutput(SAVED, PAGES)} | where))


@pytest.mark.requirement("truncation:data", "truncation:status", "truncation:keeps", "truncation:text")
@pytest.mark.parametrize(
    ("direction", "side", "way_on"),
    [
        (Direction.HEAD, "first", f"Read on with: Read path={PAGES} start_line=2001."),
        (Direction.TAIL, "last", f"Read what comes before with: Read path={PAGES} start_line=1."),
    ],
)
def test_a_truncated_success_has_the_seeds_form(direction: Direction, side: str, way_on: str) -> None:
    """The JSON of 002 §2 with the numbers of this text."""
    text = numbered(5234)
    piece = cut_text(text, direction)
    assert truncate(envelope(), text, direction).to_dict() == {
        "status": "partial",
        "data": {
            "truncated": True,
            "truncation": {
                "direction": direction.value,
                "max_lines": 2000,
                "max_bytes": 51200,
                "original_lines": 5234,
                "original_bytes": len(text),
                "kept_lines": 2000,
                "kept_bytes": len(piece.preview),
                "full_output_path": SAVED,
            },
            "preview": piece.preview,
        },
        "text": (
            f"⚠️ Output too large, truncated: the preview is the {side} 2000 of 5234 lines "
            f"({piece.kept_bytes} of {len(text)} bytes). The whole text is in {PAGES} (5234 lines). {way_on} "
            f"Or search it with Grep path={PAGES}, or narrow the call. The whole result as JSON is in {SAVED}."
        ),
        "stats": {"time_ms": 12.5, "total_matches": 2},
        "context": {
            "cwd": "src",
            "params_input": {"pattern": "x"},
            "path_resolved": "src/a",
            "reason": "STALE",
            "full_text_path": PAGES,
        },
    }


@pytest.mark.requirement("truncation:status")
@pytest.mark.parametrize(("before", "after"), [(Status.SUCCESS, Status.PARTIAL), (Status.PARTIAL, Status.PARTIAL)])
def test_a_truncated_result_is_partial(before: Status, after: Status) -> None:
    assert truncate(envelope(before), numbered(3000)).status is after


@pytest.mark.requirement("truncation:status", "truncation:text")
def test_a_truncated_error_stays_an_error_and_its_text_begins_with_its_message() -> None:
    fault = Fault(ErrorCode.CONFLICT, "The file changed.")
    short = truncate(envelope(Status.ERROR, error=fault), numbered(3000))
    assert (short.status, short.error) == (Status.ERROR, fault)
    assert short.text.startswith("The file changed. ⚠️ Output too large, truncated: ")


@pytest.mark.requirement("truncation:status", "truncation:bytes")
def test_an_endless_error_message_is_not_shown_whole() -> None:
    message = "字" * MIB
    full = envelope(Status.ERROR, error=Fault(ErrorCode.EXECUTION_ERROR, message), text=message, data={})
    short = truncate(full, message)
    assert short.error == Fault(ErrorCode.EXECUTION_ERROR, "字" * 1365 + f"… [cut: {3 * MIB} bytes in all]")
    assert len(json.dumps(short.to_dict(), ensure_ascii=False).encode()) < BYTES + 3 * 4096


@pytest.mark.requirement("truncation:text", "truncation:data")
def test_a_result_that_could_not_be_stored_says_so_and_names_no_file() -> None:
    short = truncate(envelope(), numbered(3000), stored=None, problem="No space left on device")
    assert short.data["truncation"] == truncate(envelope(), numbered(3000)).data["truncation"] | {  # type: ignore[operator]
        "full_output_path": None
    }
    assert short.text.endswith("The whole result could not be stored (No space left on device): narrow the call.")


@pytest.mark.requirement("truncation:preview")
def test_a_preview_is_not_escaped_again() -> None:
    text = 'a "quoted"\tC:\\path\n' * 4000
    preview = truncate(envelope(), text).data["preview"]
    assert isinstance(preview, str)
    assert text.startswith(preview)


# --- What the caller sent ---


def sent(params: JsonObject) -> Envelope:
    return envelope(context={"cwd": ".", "params_input": params, "path_resolved": "a"})


@pytest.mark.requirement("envelope:context:params-cut")
def test_a_long_string_the_caller_sent_is_cut_with_a_marker_and_the_full_envelope_keeps_it() -> None:
    full = sent({"path": "a", "content": "x" * 5000, "edits": [{"old": "中" * 2000, "all": True}], "n": 5, "no": None})
    assert shorten_params(full) == sent(
        {
            "path": "a",
            "content": "x" * 4096 + "… [cut: 5000 bytes in all]",
            "edits": [{"old": "中" * 1365 + "… [cut: 6000 bytes in all]", "all": True}],
            "n": 5,
            "no": None,
        }
    )
    assert full.context["params_input"] == {
        "path": "a",
        "content": "x" * 5000,
        "edits": [{"old": "中" * 2000, "all": True}],
        "n": 5,
        "no": None,
    }


@pytest.mark.requirement("envelope:context:params-cut")
@pytest.mark.parametrize("text", ["x" * 4096, "中" * 1365 + "x", ""], ids=len)
def test_a_string_of_at_most_4_kib_is_not_cut(text: str) -> None:
    assert shorten_params(sent({"content": text})) == sent({"content": text})
