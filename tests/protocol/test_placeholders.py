"""Placeholders: found by one tokenizer, filled in one pass."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.protocol.placeholders import (
    MAX_NAME,
    Kind,
    Placeholder,
    fill_placeholders,
    find_placeholders,
    remove_unfinished,
)
from toolyard.protocol.replies import attachment_placeholders as replies

pytestmark = pytest.mark.requirement("placeholder:one-pass")


@pytest.mark.parametrize(
    ("text", "kind", "parts", "span"),
    [
        ("{{VCPAllTools}}", Kind.ALL_TOOLS, (), (0, 15)),
        ("{{VCPSciCalculator}}", Kind.TOOL, ("SciCalculator",), (0, 20)),
        ("{{Date}}", Kind.CLOCK, (), (0, 8)),
        ("{{Time}}", Kind.CLOCK, (), (0, 8)),
        ("{{Today}}", Kind.CLOCK, (), (0, 9)),
        ("{{mermaid:login_flow}}", Kind.REPLY, ("mermaid", "login_flow"), (0, 22)),
        ("{{code:bubble_impl}}", Kind.REPLY, ("code", "bubble_impl"), (0, 20)),
        ("{{agent:Nova}}", Kind.OTHER, (), (0, 14)),
        ("{{天气}}", Kind.OTHER, (), (0, 6)),
        ("{{VCP_ASYNC_RESULT::Video::a1}}", Kind.ASYNC_RESULT, ("Video", "a1"), (0, 31)),
        ("{{{VCP_ASYNC_RESULT::Video::a1}}}", Kind.ASYNC_RESULT, ("Video", "a1"), (0, 33)),
        ("{{{{VCP_ASYNC_RESULT::Video::a1}}}}", Kind.ASYNC_RESULT, ("Video", "a1"), (0, 35)),
        ("{{{{{VCP_ASYNC_RESULT::Video::a1}}}}}", Kind.ASYNC_RESULT, ("Video", "a1"), (1, 36)),
        ("{{{VCP_ASYNC_RESULT::Video::a1}}", Kind.ASYNC_RESULT, ("Video", "a1"), (1, 32)),
        (
            "{{VCP_ASYNC_RESULT::Wan2.1VideoGen::some-request-id}}",
            Kind.ASYNC_RESULT,
            ("Wan2.1VideoGen", "some-request-id"),
            (0, 53),
        ),
        ("{{VCP_ASYNC_RESULT::Video}}", Kind.OTHER, (), (0, 27)),
        ("{{VCP_ASYNC_RESULT::::a1}}", Kind.OTHER, (), (0, 26)),
        ("{{{Date}}}", Kind.CLOCK, (), (1, 9)),
        ("😀{{VCP}}", Kind.OTHER, (), (1, 8)),
    ],
)
def test_every_language_has_its_kind(text: str, kind: Kind, parts: tuple[str, ...], span: tuple[int, int]) -> None:
    assert list(find_placeholders(text)) == [Placeholder(kind, text.strip("{}😀"), parts, span)]


@pytest.mark.parametrize(
    "text",
    [
        "{{}}",
        "{Date}",
        "{{Date}",
        "{{Da\nte}}",
        "{{a{b}}",
        "{\u200b{Date}}",
        "}}Date{{",
        "{{" + "x" * (MAX_NAME + 1) + "}}",
    ],
)
def test_what_is_no_placeholder(text: str) -> None:
    assert list(find_placeholders(text)) == []
    assert fill_placeholders(text, lambda _: "X") == text


@pytest.mark.requirement("s:S-23:text")
def test_inserted_text_is_never_looked_at_again() -> None:
    resolved = []

    def resolve(placeholder: Placeholder) -> str | None:
        resolved.append(placeholder.name)
        return {"A": "{{B}}", "B": "{{A}} and {{B}}", "half": "{{"}.get(placeholder.name)

    assert fill_placeholders("{{A}} {{B}} {{C}} {{half}}A}}", resolve) == "{{B}} {{A}} and {{B}} {{C}} {{A}}"
    assert resolved == ["A", "B", "C", "half"]


def test_dollars_and_backslashes_are_inserted_as_they_are() -> None:
    value = r"price $$5, match $&, $' $1 \1 \g<0> \n"
    assert fill_placeholders("a {{VCPx}} b", lambda _: value) == f"a {value} b"


@given(st.lists(st.sampled_from(["{", "{{", "}}", "}", "A", "VCPx", "::", ":", "\n", " "]), max_size=40))
def test_what_nobody_resolves_stays_to_the_letter(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert fill_placeholders(text, lambda _: None) == text
    spans = [place.span for place in find_placeholders(text)]
    assert all(text[start : start + 2] == "{{" and text[end - 2 : end] == "}}" for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


@pytest.mark.requirement("s:S-23:text")
@pytest.mark.parametrize(
    "text", ["{{" * 100_000, "{{a" * 100_000, "{{a}" * 100_000, "{" * 200_000 + "a" + "}" * 200_000]
)
def test_unclosed_braces_take_no_longer_per_character(text: str) -> None:
    """A hundred thousand of them: anything quadratic would take minutes."""
    assert len(fill_placeholders(text, lambda _: None)) == len(text)


@pytest.mark.requirement("s:S-23:text")
def test_ten_thousand_placeholders_are_filled() -> None:
    assert fill_placeholders("{{Date}}," * 10_000, lambda _: "{{Date}}") == "{{Date}}," * 10_000


@given(st.lists(st.sampled_from(["{", "{{", "}}", "}", "code:a", "Image ： b", ":", "\n", " "]), max_size=40))
def test_replies_and_prompts_share_the_tokenizer(pieces: list[str]) -> None:
    text = "".join(pieces)
    spans = {place.span for place in find_placeholders(text)}
    assert {(place.start, place.end) for place in replies.find_placeholders(text)} <= spans


@pytest.mark.parametrize("cut", ["{", "{{", "{{code", "{{code:a", "{{code:a}"])
def test_an_unfinished_placeholder_at_the_end_is_removed(cut: str) -> None:
    assert remove_unfinished(f"See {cut}") == "See "
    assert remove_unfinished(f"See {cut} and {{{{code:b}}}}\n") == f"See {cut} and {{{{code:b}}}}\n"
