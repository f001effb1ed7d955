"""Which files a search looks at: the pattern followed folder by folder, and the ignore rules asked quickly."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.workspace.vectors import put
from toolyard.workspace.search.file_glob import FileGlob
from toolyard.workspace.search.file_walk import FileWalk, FolderMatches, IgnoreSieve
from toolyard.workspace.search.ignore import IgnoreRules, to_byte_text
from toolyard.workspace.search.wildcard import compile_path, matches_path

NAMES = st.text("ab.~é", min_size=1, max_size=4).filter(lambda name: name.strip(".") != "")
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(tuple)
PATTERNS = st.text("ab.~*?/[]!-", min_size=1, max_size=8)
LINES = st.lists(st.text("ab.~é*?/[]!\\", min_size=1, max_size=8), max_size=8)


def found_by(glob: FileGlob, path: Sequence[str]) -> bool:
    state = glob.start
    for name in path[:-1]:
        inner = glob.enter_folder(state, name)
        if inner is None:
            return False
        state = inner
    test = glob.build_name_test(state)
    name = path[-1]
    return name.endswith(test.suffixes) or (test.regex is not None and bool(test.regex(name)))


def plainly(pattern: str, path: Sequence[str]) -> bool:
    """The same by comparing whole paths."""
    if pattern.endswith("/"):
        return False
    steps = [step for step in pattern.split("/") if step not in ("", ".")]
    return matches_path(compile_path("/".join(steps) if "/" in pattern else f"**/{pattern}"), path)


@pytest.mark.requirement("glob:pattern")
@given(pattern=PATTERNS.filter(lambda pattern: "[" not in pattern and pattern[0] != "!"), path=PATHS)
@example(pattern="**/a", path=("a",))
@example(pattern="a/**/b", path=("a", "b"))
@example(pattern="a/**", path=("a",))
@example(pattern="**/**/a", path=("b", "a"))
def test_following_a_pattern_folder_by_folder_gives_what_the_whole_path_gives(
    pattern: str, path: tuple[str, ...]
) -> None:
    assert found_by(FileGlob(pattern, hidden=True), path) == plainly(pattern, path)
    if pattern[0] != "/":
        assert found_by(FileGlob(f"!{pattern}", hidden=True), path) != plainly(pattern, path)


@pytest.mark.requirement("search:hidden-ignored")
@given(rules=st.lists(st.tuples(st.integers(0, 2), LINES), max_size=3), path=PATHS, is_folder=st.booleans())
@example(rules=[(0, ["a/**"])], path=("a", "b"), is_folder=False)
@example(rules=[(0, ["**/a/*"])], path=("b", "a", "b"), is_folder=False)
@example(rules=[(0, ["*.a", "!b.a"])], path=("b.a",), is_folder=False)
@example(rules=[(0, ["*.[ab]"])], path=("a.b",), is_folder=False)
@example(rules=[(0, ["é/?.??"])], path=("é", "a.é"), is_folder=False)
@example(rules=[(0, ["*~"]), (1, ["!a~"])], path=("b", "a~"), is_folder=True)
@example(rules=[(0, [f"*.{'a' * number}" for number in range(1, 40)])], path=("x.aa",), is_folder=False)
def test_the_sieve_decides_as_the_rules_do(
    rules: list[tuple[int, list[str]]], path: tuple[str, ...], is_folder: bool
) -> None:
    ignores = IgnoreRules()
    for depth, lines in sorted(rules, key=lambda layer: layer[0]):
        if depth < len(path):
            ignores = ignores.with_lines(lines, depth)
    sieve = IgnoreSieve.from_rules(ignores).for_folder(path[:-1])
    name = to_byte_text(path[-1])
    let_through = not (
        name[0] == "."
        or name in sieve.exact
        or name.endswith(sieve.tails)
        or name.rpartition(".")[2] in sieve.endings
        or (sieve.other is not None and sieve.other(name))
    )
    assert (not let_through and sieve.is_left_out(path, is_folder=is_folder)) == ignores.is_ignored(
        path, is_folder=is_folder
    )


@pytest.mark.requirement("glob:pattern", "s:S-13")
def test_only_folders_in_which_something_can_match_are_entered(project: Path) -> None:
    put(project, dict.fromkeys(("src/a.py", "src/deep/b.py", "lib/c.py", ".hidden/d.py"), ""))
    fd = os.open(project, os.O_RDONLY)

    def entered(pattern: str) -> list[FolderMatches]:
        glob = FileGlob(pattern, hidden=False)
        return list(FileWalk(fd, (), glob, rules=IgnoreRules(), hidden=False, pause=lambda: None))

    try:
        assert [folder.below for folder in entered("src/*.py")] == ["", "src/"]
        assert [folder.below for folder in entered("**/*.py")] == ["", "lib/", "src/", "src/deep/"]
        assert [folder.below for folder in entered(".hidden/*")] == ["", ".hidden/"]
        assert [folder.below for folder in entered("*.py/x")] == [""]
    finally:
        os.close(fd)


@pytest.mark.requirement("s:S-13", "r:R97")
def test_a_walk_that_is_left_in_the_middle_closes_what_it_opened(project: Path) -> None:
    put(project, {"a/b/c/d/e.txt": ""})
    fd = os.open(project, os.O_RDONLY)
    before = set(os.listdir("/dev/fd"))
    walk = iter(FileWalk(fd, (), FileGlob(hidden=False), rules=None, hidden=False, pause=lambda: None))
    for _ in range(4):
        next(walk)
    assert set(os.listdir("/dev/fd")) - before
    walk.close()  # type: ignore[attr-defined]
    assert set(os.listdir("/dev/fd")) <= before
    os.close(fd)
