"""Wildcards as git has them, and never slow."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.workspace.search.wildcard import compile_path, compile_segment, matches_path

pytestmark = pytest.mark.requirement("ls:ignore", "ls:ignored")

# A pattern as the pieces it is made of, so that the reference below needs no parser.
STAR, ANY = "*", "?"
LITERALS = st.sampled_from(["a", "b", "-", "\\*", "\\[", "]", "^", "é", "."])
SETS = st.sampled_from(["[ab]", "[!a]", "[^ab]", "[a-c]", "[]a]", "[!]a]", "[a-]", "[-a]", "[[:digit:]é]", "[b-a]"])
MEMBERS = {
    "[ab]": "ab",
    "[a-c]": "abc",
    "[]a]": "]a",
    "[a-]": "a-",
    "[-a]": "-a",
    "[[:digit:]é]": "0123456789é",
    "[b-a]": "b",
}
OTHERS = {"[!a]": "a", "[^ab]": "ab", "[!]a]": "]a"}
PIECES = st.lists(st.one_of(st.sampled_from([STAR, ANY]), LITERALS, SETS), max_size=6)
NAMES = st.text("ab-*[]^é.1", min_size=1, max_size=7)


def fits(pieces: Sequence[str], name: str) -> bool:
    """The plain meaning, slow and simple."""
    if not pieces:
        return not name
    piece, *rest = pieces
    if piece == STAR:
        return any(fits(rest, name[start:]) for start in range(len(name) + 1))
    if not name:
        return False
    if piece in MEMBERS or piece in OTHERS:
        there = name[0] in MEMBERS[piece] if piece in MEMBERS else name[0] not in OTHERS[piece]
    else:
        there = piece == ANY or name[0] == piece[-1]
    return there and fits(rest, name[1:])


def path_fits(segments: Sequence[Sequence[str] | None], path: Sequence[str]) -> bool:
    if not segments:
        return not path
    segment, *rest = segments
    if segment is None:
        fewest = 0 if rest else 1
        return any(path_fits(rest, path[start:]) for start in range(fewest, len(path) + 1))
    return bool(path) and fits(segment, path[0]) and path_fits(rest, path[1:])


@given(pieces=PIECES, name=NAMES)
def test_a_segment_matches_what_its_pieces_say(pieces: list[str], name: str) -> None:
    assert bool(compile_segment("".join(pieces)).fullmatch(name)) is fits(pieces, name)


@given(
    segments=st.lists(st.one_of(st.none(), PIECES.filter(lambda pieces: pieces not in ([], [STAR, STAR]))), max_size=5),
    path=st.lists(NAMES, min_size=1, max_size=5),
)
def test_a_path_matches_segment_by_segment_and_two_stars_cross_them(
    segments: list[list[str] | None], path: list[str]
) -> None:
    segments = [segment if segment is None or set(segment) != {STAR} else [STAR] for segment in segments]
    pattern = "/".join("**" if segment is None else "".join(segment) for segment in segments)
    assert matches_path(compile_path(pattern), path) is path_fits(segments or [[]], path)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*", "a/b", False),
        ("a/*", "a/b", True),
        ("a/*", "a", False),
        ("a/**", "a", False),
        ("a/**", "a/b/c", True),
        ("**/b", "b", True),
        ("**/b", "a/x/b", True),
        ("a/**/b", "a/b", True),
        ("a/**/**/b", "a/b", True),
        ("a/***/b", "a/x/y/b", True),
        ("a/x**y/b", "a/xzy/b", True),
        ("a/x**y/b", "a/x/y/b", False),
        ("a\\/b", "a/b", True),
        ("[a/]b", "ab", True),
        ("x/[!/]b", "x/ab", True),
        ("a//b", "a/b", False),
        ("/a", "a", False),
        ("a/", "a", False),
        ("", "a", False),
    ],
)
def test_slashes_part_segments(pattern: str, path: str, expected: bool) -> None:
    assert matches_path(compile_path(pattern), path.split("/")) is expected


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("[[:alnum:]]", "aZ5", "-_é "),
        ("[[:alpha:]]", "aZ", "5-é"),
        ("[[:blank:]]", " \t", "\na"),
        ("[[:cntrl:]]", "\x01\x1f\x7f", "a "),
        ("[[:digit:]]", "059", "a²"),
        ("[[:graph:]]", "a~!", " \té"),
        ("[[:lower:]]", "az", "A1é"),
        ("[[:print:]]", "a ~", "\té"),
        ("[[:punct:]]", "!/:@[`{~-]^\\", "a1 "),
        ("[[:space:]]", " \t\n\r", "\x0b\u3000a"),
        ("[[:upper:]]", "AZ", "a1"),
        ("[[:xdigit:]]", "09afAF", "gG"),
        ("[![:digit:]]", "a-", "0"),
        ("[[:digit:]-z]", "0-z", "ay"),
        ("[a-c-e]", "abc-e", "d"),
        ("[--a]", "-.9A_a", "b,"),
        ("[!--a]", "b,", "-a"),
        ("[\\]]", "]", "\\"),
        ("[\\a-c]", "abc", "\\d"),
        ("[a-\\c]", "abc", "\\d"),
        ("[]-a]", "]^_`a", "b["),
        ("[a^]", "a^", "b"),
        ("[[]", "[", "]"),
        ("[[:]", "[:", "]"),
        ("[[:a]", "[:a", "b"),
        ("[&&a]", "&a", "b"),
        ("[a||b]", "ab|", "c"),
        ("[~~a]", "~a", "b"),
        ("?", "a\né😀", ""),
    ],
)
def test_a_class_holds_the_characters_that_git_puts_into_it(pattern: str, yes: str, no: str) -> None:
    compiled = compile_segment(pattern)
    assert [char for char in yes if not compiled.fullmatch(char)] == []
    assert [char for char in no if compiled.fullmatch(char)] == []


@pytest.mark.parametrize(
    "pattern", ["[", "[a", "a[", "[]", "[!", "[!]", "[a-", "a\\", "\\", "[\\", "[[:nonsense:]]", "[[::]]"]
)
def test_a_pattern_that_git_could_never_match_matches_nothing(pattern: str) -> None:
    names = [pattern, "a", "[", "]", "\\", "", "!", "-", "a[", "[a", "[]"]
    assert [name for name in names if compile_segment(pattern).fullmatch(name)] == []
    assert [name for name in names if matches_path(compile_path(pattern), [name])] == []


@pytest.mark.requirement("s:S-18:ls-ignore")
def test_braces_are_plain_characters() -> None:
    assert [name for name in ["a", "b", "{a,b}"] if compile_segment("{a,b}").fullmatch(name)] == ["{a,b}"]
    assert matches_path(compile_path("{a,b}" * 20), ["{a,b}" * 20])


@pytest.mark.requirement("s:S-18:ls-ignore")
@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*a" * 50, "a" * 5000, True),
        ("*a" * 50 + "b", "a" * 5000, False),
        ("*?" * 500 + "b", "a" * 5000, False),
        ("*" * 10_000 + "b", "a" * 5000, False),
        ("**/" * 1000 + "b", "/".join("a" * 5000), False),
        ("a/**/" * 200 + "b", "/".join("a" * 5000), False),
        ("**/*a*a/" * 20 + "b", "/".join(["aa"] * 5000), False),
        ("[" * 100_000, "[", False),
        ("[" + "[:" * 100_000, "[", False),
        ("\\" * 100_001, "\\", False),
        ("[!b]" * 5000, "a" * 5000, True),
        (" " * 100_000 + "b", "b", False),
    ],
    ids=lambda value: str(value)[:12],
)
def test_no_pattern_is_slow(pattern: str, path: str, expected: bool) -> None:
    """Each of these would never end in a matcher that tries again from every star or bracket."""
    assert matches_path(compile_path(pattern), path.split("/")) is expected
