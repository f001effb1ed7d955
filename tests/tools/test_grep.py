"""Grep: the lines that match, how many there are, and what was not searched. With ripgrep and without."""

import asyncio
import json
import os
import resource
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import bounded_work
from tests.tools.searches import LONG, VECTORS, Searches, find_no_ripgrep, make_tree, matches, places, search_as_nobody
from tests.waiting import wait_until, wait_until_blocking
from tests.workspace.answers import code, timeless
from tests.workspace.nobody import NOBODY, shared_project
from tests.workspace.vectors import put
from toolyard.protocol.envelope import Envelope, ErrorCode, Status
from toolyard.protocol.result_limits import MAX_BYTES, MAX_LINE_CHARS
from toolyard.workspace.search import match_collector as found_module
from toolyard.workspace.search import ripgrep
from toolyard.workspace.search.file_walk import TimeLimit
from toolyard.workspace.search.ripgrep import find_ripgrep

ENGINES = pytest.mark.parametrize("engine", ["ripgrep", "python"])
SCOPES: dict[str, dict[str, bool]] = {
    "default": {},
    "hidden": {"include_hidden": True},
    "all": {"include_hidden": True, "include_ignored": True},
}


def with_engine(project: Path, engine: str, **options: Any) -> Searches:
    return (
        Searches(project, find_ripgrep=find_no_ripgrep, **options)
        if engine == "python"
        else Searches(project, **options)
    )


def to_arguments(case: Any) -> dict[str, Any]:
    """ripgrep's flags as our arguments."""
    flags = case["flags"]
    pattern = rf"\b{case['pattern']}\b" if "-w" in flags else case["pattern"]
    return {
        "pattern": pattern,
        "case_sensitive": "-i" not in flags,
        "literal": "-F" in flags,
        "multiline": "-U" in flags,
        **SCOPES[case["scope"]],
    }


def is_complete(engine: str) -> Status:
    """A whole result by the slower way is partial."""
    return Status.SUCCESS if engine == "ripgrep" else Status.PARTIAL


def texts(envelope: Envelope) -> list[str]:
    return [match["text"] for match in matches(envelope)]


@ENGINES
@pytest.mark.requirement("grep:vectors", "grep:matches", "grep:modes", "search:hidden-ignored", "grep:bad-pattern")
@pytest.mark.parametrize("case", VECTORS["grep"], ids=lambda case: f"{case['id']} {case['pattern']}")
def test_matches_are_those_of_ripgrep(project: Path, case: Any, engine: str) -> None:
    """Where ripgrep refuses look-around by default, Grep goes on with an engine that knows it."""
    make_tree(project, case["tree"])
    found = with_engine(project, engine).grep(**to_arguments(case))
    if "error" not in case:
        expected = [(file, line, text) for file, line, text in case["matches"]]
        shown = [(match["file"], match["line"], match["text"]) for match in matches(found)]
        assert [place[:2] for place in shown] == [place[:2] for place in expected]
        assert [text for *_, text in shown if len(text) < 1000] == [text for *_, text in expected if str(text) == text]
    elif "look-around" in case["error"]:
        assert places(found) == [] if case["tree"] == "nested_ignore" else ("nonl.txt", 1) in places(found)
    else:
        assert code(found) is ErrorCode.INVALID_PARAM
        assert engine == "python" or case["error"] in found.text


@pytest.mark.requirement("grep:matches", "grep:stats", "truncation:paging:search")
def test_an_answer_says_what_was_found_and_what_was_left_out(project: Path) -> None:
    put(
        project,
        {
            "a.txt": "one TODO\ntwo\nthree TODO TODO\n",
            "src/b.txt": "ünï TODO\n",
            ".env": "TODO\n",
            ".gitignore": "*.log\n",
            "c.log": "TODO\n",
            "bin": "TODO\0",
            "link": {"symlink": "a.txt"},
        },
    )
    assert timeless(Searches(project).grep("TODO")) == {
        "status": "success",
        "data": {
            "matches": [
                {"file": "a.txt", "line": 1, "text": "one TODO", "column": 5},
                {"file": "a.txt", "line": 3, "text": "three TODO TODO", "column": 7},
                {"file": "src/b.txt", "line": 1, "text": "ünï TODO", "column": 5},
            ],
            "truncated": False,
        },
        "text": "Found 3 matches for 'TODO' in 2 files below '.'. Not searched since they are binary: 1 file. "
        "Not looked at: 2 hidden and 1 ignored entries (include_hidden, include_ignored).",
        "stats": {
            "total_matches": 3,
            "files_searched": 2,
            "files_matched": 2,
            "hidden": 2,
            "ignored": 1,
            "skipped_binary": 1,
            "skipped_links": 1,
        },
        "context": {"cwd": ".", "params_input": {"pattern": "TODO"}, "path_resolved": ".", "truncation_skip": True},
    }


@pytest.mark.requirement("grep:fallback")
def test_without_ripgrep_the_same_matches_are_partial_and_the_text_says_why(project: Path) -> None:
    make_tree(project, "basic")
    fast, slow = (with_engine(project, engine).grep("TODO") for engine in ("ripgrep", "python"))
    assert slow.data == {**fast.data, "fallback": "python"}
    assert slow.status is Status.PARTIAL
    assert "ripgrep is not installed" in slow.text
    assert {**slow.stats, "time_ms": 0} == {**fast.stats, "time_ms": 0}


@pytest.mark.requirement("grep:fallback")
@pytest.mark.parametrize("mode", [0o644, 0o755])
def test_a_ripgrep_that_cannot_be_started_is_as_good_as_none(project: Path, tmp_path: Path, mode: int) -> None:
    program = tmp_path / "rg"
    program.write_bytes(b"\x7fnot a program")
    program.chmod(mode)
    put(project, {"a.txt": "TODO\n"})
    found = Searches(project, find_ripgrep=lambda: str(program)).grep("TODO")
    assert (found.data["fallback"], places(found)) == ("python", [("a.txt", 1)])


@ENGINES
@pytest.mark.requirement("grep:matches")
def test_lines_around_a_match_come_with_it(project: Path, engine: str) -> None:
    put(project, {"a.txt": "".join(f"line {number}{' x' * (number in (1, 4, 5, 9))}\n" for number in range(1, 11))})
    found = matches(with_engine(project, engine).grep("x", before=2, after=1))
    around = [
        (match["line"], [line["line"] for line in match["before"]], [line["line"] for line in match["after"]])
        for match in found
    ]
    assert around == [(1, [], [2]), (4, [2, 3], [5]), (5, [3, 4], [6]), (9, [7, 8], [10])]
    assert found[2]["before"] == [{"line": 3, "text": "line 3"}, {"line": 4, "text": "line 4 x"}]
    assert "before" not in matches(with_engine(project, engine).grep("x", after=1))[0]


@ENGINES
@pytest.mark.requirement("grep:matches", "grep:limit")
def test_the_last_match_before_the_limit_still_has_its_lines(project: Path, engine: str) -> None:
    put(project, {"a.txt": "x\nx\nx\ny\nx\n"})
    found = with_engine(project, engine).grep("x", limit=2, after=2)
    assert [match["after"] for match in matches(found)] == [
        [{"line": 2, "text": "x"}, {"line": 3, "text": "x"}],
        [{"line": 3, "text": "x"}, {"line": 4, "text": "y"}],
    ]
    assert found.stats["total_matches"] == 4


@ENGINES
@pytest.mark.requirement("grep:matches", "grep:limit")
def test_matches_that_the_limit_cuts_off_are_still_lines_around_the_last_one(project: Path, engine: str) -> None:
    put(project, {"a.txt": "foo\n", "b.txt": "foo 1\nfoo 2\nx\n"})
    found = with_engine(project, engine).grep("foo", limit=2, after=2)
    assert places(found) == [("a.txt", 1), ("b.txt", 1)]
    assert matches(found)[1]["after"] == [{"line": 2, "text": "foo 2"}, {"line": 3, "text": "x"}]


@ENGINES
@pytest.mark.requirement("grep:path", "path:relative", "path:link-inside", "path:absolute")
def test_path_may_be_a_file_or_a_folder(project: Path, engine: str) -> None:
    put(project, {"src/a.txt": "x\n", "src/b.txt": "x\n", ".hidden": "x\n", "link": {"symlink": "src/a.txt"}})
    searches = with_engine(project, engine)
    assert places(searches.grep("x", path="src")) == [("src/a.txt", 1), ("src/b.txt", 1)]
    for path in ("src/b.txt", str(project / "src/b.txt")):
        assert places(searches.grep("x", path=path)) == [("src/b.txt", 1)]
    linked = searches.grep("x", path="link")
    assert (places(linked), linked.context["path_resolved"]) == ([("src/a.txt", 1)], "src/a.txt")
    assert places(searches.grep("x", path=".hidden", glob="*.py")) == [(".hidden", 1)]
    assert code(searches.grep("x", path="nothing")) is ErrorCode.NOT_FOUND
    assert code(searches.grep("x", path="../x")) is ErrorCode.ACCESS_DENIED


@ENGINES
@pytest.mark.requirement("grep:path")
@pytest.mark.parametrize(
    ("glob", "files"),
    [
        ("*.py", ["a.py", "src/b.py"]),
        ("src/*", ["src/b.py", "src/c.md"]),
        ("/*.py", ["a.py"]),
        ("*.{md,txt}", ["src/c.md"]),
        ("!*.py", ["src/c.md"]),
        ("!src/**", ["a.py"]),
        (".config/*", [".config/d.py"]),
        ("*.log", []),
        ("nothing", []),
    ],
)
def test_glob_limits_the_files_and_brings_back_no_ignored_ones(
    project: Path, engine: str, glob: str, files: list[str]
) -> None:
    put(project, dict.fromkeys(("a.py", "src/b.py", "src/c.md", ".config/d.py", "x.log", "src/y.log"), "x\n"))
    put(project, {".gitignore": "*.log\n"})
    found = with_engine(project, engine).grep("x", glob=glob)
    assert [file for file, _ in places(found)] == files
    assert found.stats["files_searched"] == len(files)


@pytest.mark.requirement("s:S-18")
@pytest.mark.parametrize("glob", ["../*", "/etc/*", "{a,b}" * 9])
def test_a_glob_that_leads_outside_or_explodes_is_refused(project: Path, glob: str) -> None:
    assert code(Searches(project).grep("x", glob=glob)) in (ErrorCode.ACCESS_DENIED, ErrorCode.INVALID_PARAM)


@ENGINES
@pytest.mark.requirement("grep:modes")
@pytest.mark.parametrize(
    ("pattern", "options", "lines"),
    [
        ("todo", {}, [2]),
        ("todo", {"case_sensitive": False}, [1, 2]),
        ("a.c", {}, [3, 4]),
        ("a.c", {"literal": True}, [4]),
        ("(", {"literal": True}, [5]),
        ("-x", {}, [6]),
        ("--files", {"literal": True}, [7]),
        ("ÄÖ", {"case_sensitive": False}, [8]),
        (r"\bt\w+o\b", {}, [2]),
        (r"^$", {}, [9]),
        (r"(?P<q>a)b(?P=q)", {}, [10]),
        (r"(?<q>a)ba", {}, [10]),
        (r"\x{41}BA", {}, [11]),
        (r"^[[:upper:]]{3}$", {}, [11]),
        (r"(a)b\1", {}, [10]),
        (r"\<aba\>", {}, [10]),
        (r"b(?!a)", {}, [3]),
        (r"(?>ab)a", {}, [10]),
        ("es{", {}, [12]),
    ],
)
def test_the_ways_to_write_a_pattern(
    project: Path, engine: str, pattern: str, options: dict[str, Any], lines: list[int]
) -> None:
    put(project, {"a.txt": "TODO\ntodo\nabc\na.c\n(\n-x\n--files\näö\n\naba\nABA\nfiles{}\n"})
    found = with_engine(project, engine).grep(pattern, **options)
    assert [match["line"] for match in matches(found)] == lines
    assert found.status is is_complete(engine)


@ENGINES
@pytest.mark.requirement("grep:modes", "grep:matches")
@pytest.mark.parametrize(
    ("pattern", "rows"),
    [
        (r"start\nmiddle", [(1, "start\nmiddle", 1)]),
        (r"start.*?end", [(1, "start\nmiddle\nend", 1), (4, "start\nend", 1)]),
        (r"start.*end", [(1, "start\nmiddle\nend\nstart\nend", 1)]),
        ("t", [(1, "start", 2), (4, "start", 2), (6, "two t", 1)]),
        (r"d\ns|d\nt", [(3, "end\nstart", 3), (5, "end\ntwo t", 3)]),
        (r"^$\n", []),
        ("日本", [(7, "ü日本", 2)]),
        (r"ü.*", [(7, "ü日本", 1)]),
    ],
)
def test_a_match_over_lines_is_one_row_and_neighbours_are_their_own(
    project: Path, engine: str, pattern: str, rows: list[tuple[int, str, int]]
) -> None:
    put(project, {"a.txt": "start\nmiddle\nend\nstart\nend\ntwo t\nü日本"})
    found = with_engine(project, engine).grep(pattern, multiline=True)
    assert [(match["line"], match["text"], match["column"]) for match in matches(found)] == rows
    assert found.stats["total_matches"] == len(rows)


@ENGINES
@pytest.mark.requirement("grep:output", "grep:limit", "grep:stats")
def test_files_and_counts(project: Path, engine: str) -> None:
    put(project, {"b.txt": "x\ny\nx\n", "a/a.txt": "x x\n", "c.txt": "y\n"})
    searches = with_engine(project, engine)
    files = searches.grep("x", output="files")
    assert files.data["files"] == ["a/a.txt", "b.txt"]
    assert files.stats["total_matches"] == 3
    counts = searches.grep("x", output="count")
    assert counts.data["counts"] == [{"file": "a/a.txt", "count": 1}, {"file": "b.txt", "count": 2}]
    assert counts.status is is_complete(engine)
    first = searches.grep("x", output="files", limit=1)
    assert (first.status, first.data["files"], first.data["truncated"]) == (Status.PARTIAL, ["a/a.txt"], True)
    assert "the first 1 of 2 are shown" in first.text


@ENGINES
@pytest.mark.requirement("grep:limit", "truncation:paging:search")
def test_the_first_matches_are_shown_and_all_are_counted(project: Path, engine: str) -> None:
    put(project, {f"d{number % 7}/{number:03}.txt": "x\n" * 9 for number in range(150)})
    searches = with_engine(project, engine)
    every = [(file, line) for file in sorted(f"d{n % 7}/{n:03}.txt" for n in range(150)) for line in range(1, 10)]
    found = searches.grep("x")
    assert (found.status, found.data["truncated"]) == (Status.PARTIAL, True)
    assert places(found) == every[:100]
    assert found.stats["total_matches"] == 1350
    assert "truncated: the first 100 of 1350 are shown" in found.text
    most = places(searches.grep("x", limit=2000))
    assert most == every[: len(most)]
    assert len(most) > 500
    exact = searches.grep("x", path="d0/000.txt", limit=9)
    assert (exact.status, exact.data["truncated"]) == (is_complete(engine), False)


@pytest.mark.requirement("truncation:paging:search")
def test_an_answer_stays_within_the_bytes_that_are_shown(project: Path) -> None:
    put(project, {"a.txt": "".join(f"{number} {'x' * 1500}\n" for number in range(200))})
    found = Searches(project).grep("x", limit=2000)
    assert len(json.dumps(found.data["matches"], ensure_ascii=False)) <= MAX_BYTES
    assert (found.status, len(matches(found)) > 20) == (Status.PARTIAL, True)


@ENGINES
@pytest.mark.requirement("grep:limit", "r:R97")
def test_counting_stops_at_a_limit_and_says_so(project: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_module, "MAX_COUNTED", 5000)
    put(project, {"a.txt": "x\n" * 50_000, "b.txt": "x\n"})
    found = with_engine(project, engine).grep("x")
    assert (found.status, len(matches(found))) == (Status.PARTIAL, 100)
    assert "Stopped counting" in found.text


@ENGINES
@pytest.mark.requirement("grep:matches", "grep:stats")
def test_bytes_of_any_kind_in_lines_and_names(project: Path, engine: str) -> None:
    latin, chinese = "naïve café TODO".encode("latin-1"), "中文 TODO 行".encode("gb18030")
    (project / "latin.txt").write_bytes(latin + b"\n\xe9 a\n")
    (project / "chinese.txt").write_bytes(chinese + b"\n")
    (project / "separators.txt").write_bytes("a\u2028b\u0085c\x0bd TODO e\n".encode())
    (project / "crlf.txt").write_bytes(b"one\r\ntwo TODO\r\n")
    (project / "unended.txt").write_bytes(b"last TODO")
    (project / "bom.txt").write_bytes("\ufeffTODO bom\n".encode())
    (project / "wide.txt").write_bytes("one\n中 TODO\n".encode("utf-16"))
    (project / "backslash.txt").write_bytes(b'C:\\new "TODO"\t\x01\n')
    (project / os.fsdecode(b"n\xe9w TODO")).write_bytes(b"TODO\n")
    (project / "new\nline").write_bytes(b"TODO\n")
    found = with_engine(project, engine).grep("TODO")
    assert [(match["file"], match["line"], match["text"], match["column"]) for match in matches(found)] == [
        ("backslash.txt", 1, 'C:\\new "TODO"\t\x01', 9),
        ("bom.txt", 1, "TODO bom", 1),
        ("chinese.txt", 1, "中文 TODO 行", 4),
        ("crlf.txt", 2, "two TODO", 5),
        ("latin.txt", 1, "na\\xefve caf\\xe9 TODO", 18),
        ("new\nline", 1, "TODO", 1),
        ("n\\xe9w TODO", 1, "TODO", 1),
        ("separators.txt", 1, "a\u2028b\u0085c\x0bd TODO e", 9),
        ("unended.txt", 1, "last TODO", 6),
        ("wide.txt", 2, "中 TODO", 3),
    ]
    json.dumps(found.to_dict()).encode()


@ENGINES
@pytest.mark.requirement("grep:matches", "grep:limit")
def test_a_long_line_is_cut_around_its_match_and_says_so(project: Path, engine: str) -> None:
    put(project, {"a.txt": f"{LONG}\n", "b.txt": f"TODO{'ü' * 3000}\n", "c.txt": "x" * 1996 + "TODO\n"})
    found = with_engine(project, engine).grep("TODO")
    first, second, third = matches(found)
    assert (first["column"], first["text"].startswith("… xxx"), "TODOyyy" in first["text"]) == (3001, True, True)
    assert first["text"].endswith("yyy… [line cut: 6004 bytes in all]")
    assert second["text"] == f"TODO{'ü' * 1996}… [line cut: 6004 bytes in all]"
    assert third["text"] == "x" * 1996 + "TODO"
    assert max(len(text) for text in texts(found)) < MAX_LINE_CHARS + 50
    assert (found.status, found.data["truncated"]) == (Status.PARTIAL, True)
    assert "are cut around their first match: 2." in found.text


@ENGINES
@pytest.mark.requirement("r:R97")
@pytest.mark.parametrize("filling", [b"x", b"\xe9", b'"\\', "中".encode(), b"\t"])
def test_a_line_too_long_to_hold_is_cut_and_its_place_is_kept(project: Path, engine: str, filling: bytes) -> None:
    long = filling * (3_000_000 // len(filling))
    (project / "a.txt").write_bytes(b"one\n" + long + b"TODO" + long + b"\nthree TODO\n")
    found = with_engine(project, engine).grep("TODO", before=1)
    assert places(found) == [("a.txt", 2), ("a.txt", 3)]
    assert len(texts(found)[0]) < MAX_LINE_CHARS + 50
    assert "[line cut" in texts(found)[0]
    assert matches(found)[0]["before"] == [{"line": 1, "text": "one"}]
    assert texts(found)[1] == "three TODO"


@ENGINES
@pytest.mark.requirement("grep:stats", "grep:path")
def test_binary_files_are_counted_and_one_named_by_path_is_refused(project: Path, engine: str) -> None:
    put(project, {"a.txt": "TODO\n", "b.bin": "TODO\0", "late.log": "TODO\n" * 20_000 + "\0TODO\n"})
    searches = with_engine(project, engine)
    found = searches.grep("TODO", output="files")
    assert (found.data["files"], found.stats["skipped_binary"]) == (["a.txt"], 2)
    assert found.stats["total_matches"] == 1
    some = searches.grep("TODO", glob="*.bin")
    assert (matches(some), some.stats["skipped_binary"]) == ([], 1)
    assert code(searches.grep("TODO", path="b.bin")) is ErrorCode.BINARY_FILE
    assert searches.grep("TODO", path="late.log").stats["total_matches"] == 20_001


@ENGINES
@pytest.mark.requirement("saved:searches", "search:hidden-ignored")
def test_stored_outputs_and_git_are_searched_only_by_their_own_path(project: Path, engine: str) -> None:
    put(project, {"a.txt": "x\n", "tool-output/b.json": "x\n", ".git/c": "x\n", "sub/.git": "x\n", ".d": "x\n"})
    searches = with_engine(project, engine)
    assert places(searches.grep("x", **SCOPES["all"])) == [(".d", 1), ("a.txt", 1)]
    for path in ("tool-output", ".git"):
        assert [file.partition("/")[0] for file, _ in places(searches.grep("x", path=path))] == [path]


@ENGINES
@pytest.mark.requirement("search:hidden-ignored")
def test_ignored_files_of_a_searched_folder_are_not_searched_whatever_their_names(project: Path, engine: str) -> None:
    names = ["[a].log", "{b,c}.log", "*.log", "!d.log", "e\\f.log", "g h.log", "ü.log", "new\nline.log", "é.log"]
    put(project, dict.fromkeys(names, "x\n"))
    (project / os.fsdecode(b"h\xe9.log")).write_text("x\n")
    put(project, {".gitignore": "*.log\n!keep.log\n", "keep.log": "x\n", "a.log.txt": "x\n", "sub/i.log": "x\n"})
    searches = with_engine(project, engine)
    found = searches.grep("x")
    assert ([file for file, _ in places(found)], found.stats["ignored"]) == (["a.log.txt", "keep.log"], 11)
    assert len(places(searches.grep("x", include_ignored=True))) == 13


@ENGINES
@pytest.mark.requirement("search:hidden-ignored")
@pytest.mark.parametrize("blank", [" ", "  ", "\t", "\u3000", "\n", "\\ "])
def test_an_ignored_name_may_end_in_a_blank(project: Path, engine: str, blank: str) -> None:
    put(project, {".gitignore": "c*\n", f"c.tmp{blank}": "x\n", "d.tmp": "x\n", f"sub/c{blank}": "x\n"})
    assert places(with_engine(project, engine).grep("x")) == [("d.tmp", 1)]


@ENGINES
@pytest.mark.requirement("search:hidden-ignored")
@pytest.mark.parametrize("folder", [b"", b"f\xe9/"])
def test_an_ignored_name_that_is_no_utf8_hides_no_other(project: Path, engine: str, folder: bytes) -> None:
    for place in (folder, folder.replace(b"\xe9", b"e")):
        (project / os.fsdecode(place)).mkdir(exist_ok=True)
        for name in (b"x\xe9", b"xa", b"y"):
            (project / os.fsdecode(place + name)).write_text("x\n")
    (project / os.fsdecode(folder) / ".gitignore").write_bytes(b"x\xe9\ny\n")
    found = {file for file, _ in places(with_engine(project, engine).grep("x"))}
    assert found == ({"xa"} if not folder else {"f\\xe9/xa", "fe/x\\xe9", "fe/xa", "fe/y"})


@ENGINES
@pytest.mark.requirement("search:hidden-ignored", "r:R97")
def test_thousands_of_files_are_searched_once_each(project: Path, engine: str) -> None:
    names = [f"d{number % 11}/{'n' * 60}{number}.{'log' if number % 2 else 'txt'}" for number in range(6000)]
    put(project, dict.fromkeys(names, "x\n"))
    put(project, {".gitignore": "*.log\n"})
    searches = with_engine(project, engine)
    wanted = sorted(name for name in names if name.endswith(".txt"))
    for options in ({}, {"glob": "*.txt"}):
        found = searches.grep("x", output="files", limit=2000, **options)
        assert found.stats["total_matches"] == found.stats["files_searched"] == 3000
        files = found.data["files"]
        assert isinstance(files, list)
        assert files == wanted[: len(files)]


@pytest.mark.requirement("r:R97", "grep:stats")
def test_files_and_folders_that_cannot_be_read_are_named_and_the_rest_is_searched() -> None:
    with shared_project() as project:
        put(project, {"a.txt": "TODO\n", "closed/b.txt": "TODO\n", "sub/c.txt": "TODO\n"})
        (project / "closed").chmod(0)
        (project / "sub/c.txt").chmod(0)
        _, found = search_as_nobody(project)
    assert (found.status, places(found)) == (Status.PARTIAL, [("a.txt", 1)])
    assert (found.stats["skipped_unreadable"], found.stats["files_searched"]) == (2, 1)
    failed = found.data["failed_items"]
    assert isinstance(failed, list)
    assert [item["item"] for item in failed if isinstance(item, dict)] == ["closed/", "sub/c.txt"]
    assert "'sub/c.txt' (Permission denied)" in found.text


@ENGINES
@pytest.mark.requirement("grep:bad-pattern")
@pytest.mark.parametrize("pattern", ["[", "(", "a{2,1}", "*a", "(?P<n>a", "\\", "a\nb", r"a\nb", "(?<=a*)b"])
def test_a_pattern_that_is_none_is_refused_with_the_engines_own_words(project: Path, engine: str, pattern: str) -> None:
    searches = with_engine(project, engine)
    assert code(searches.grep(pattern)) is ErrorCode.INVALID_PARAM
    put(project, {"a.txt": "a\n"})
    found = searches.grep(pattern)
    assert code(found) is ErrorCode.INVALID_PARAM
    if "\n" in pattern or "\\n" in pattern:
        assert "multiline=true" in found.text
    elif engine == "ripgrep":
        assert "error" in found.text


@pytest.mark.requirement("grep:bad-pattern", "s:S-19")
def test_patterns_without_measure_are_refused_at_once(project: Path) -> None:
    put(project, {"a.txt": "a\n"})
    searches = Searches(project)
    with bounded_work():
        for pattern in ("a" * 10_000_000, "(a{1000}){1000}{1000}", "a\0b"):
            assert code(searches.grep(pattern)) is ErrorCode.INVALID_PARAM


@pytest.mark.requirement("s:S-19")
@pytest.mark.parametrize("engine", ["ripgrep", "python"])
@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(?=a)(a+)+$", r"(.*)*\1$", r"(a|aa)+$", r"(a+)+b\1"])
def test_an_exponential_pattern_ends_within_its_limit(project: Path, engine: str, pattern: str) -> None:
    put(project, {"a.txt": "a" * 40 + "!\n", "b.txt": "nothing\n"})
    searches = with_engine(project, engine, time_cap_s=1.0)
    with bounded_work():  # to its end it would take hours
        found = searches.grep(pattern)
    if found.error is not None:
        assert found.error.code is ErrorCode.TIMEOUT
    elif engine == "ripgrep" and "?=" in pattern:
        assert (found.status, found.stats["skipped_unreadable"]) == (Status.PARTIAL, 1)
        assert "match limit exceeded" in found.text


@pytest.mark.requirement("s:S-19")
async def test_other_calls_go_on_while_a_pattern_never_ends(project: Path) -> None:
    put(project, {"a.txt": "a" * 40 + "!\n"})
    searches = Searches(project, find_ripgrep=find_no_ripgrep, time_cap_s=2.0)
    endless = await searches.start_grep("(a+)+$")
    beats = 0

    def beat() -> bool:
        nonlocal beats
        beats += 1
        return endless.done()

    await wait_until(beat)
    assert (await endless).envelope.error.code is ErrorCode.TIMEOUT
    assert beats > 3


def fake_ripgrep(folder: Path, script: str) -> str:
    """A program in ripgrep's place; it writes its number into the file ``pid`` first."""
    program = folder / "rg"
    program.write_text(f"#!/bin/sh\necho $$ > {folder}/pid\n{script}\n")
    program.chmod(0o755)
    return str(program)


def wait_for_end(folder: Path) -> None:
    """Wait until nothing of the program's process group is alive; who is dead may still wait for its parent."""
    group = (folder / "pid").read_text().strip()

    def has_ended() -> bool:
        listing = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
        return not [line for line in listing.split("\n") if line.split()[:1] == [group] and "Z" not in line]

    wait_until_blocking(has_ended)


_ONE = (
    r"""printf '{"type":"begin","data":{"path":{"text":"./a.txt"}}}\n"""
    r"""{"type":"match","data":{"path":{"text":"./a.txt"},"lines":{"text":"TODO\\n"},"line_number":1,"absolute_offset":0,"submatches":[{"start":0,"end":4}]}}\n'"""
)


@pytest.mark.requirement("r:R97")
@pytest.mark.parametrize("found_before", [True, False])
def test_at_the_time_cap_the_search_ends_with_what_it_found(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found_before: bool
) -> None:
    put(project, {"a.txt": "TODO\n"})
    ready = tmp_path / "ready"
    program = fake_ripgrep(tmp_path, f"{_ONE if found_before else ''}\necho yes > {ready}\nsleep 600 & sleep 600")
    enters = TimeLimit.__enter__

    def when_it_runs(self: TimeLimit) -> TimeLimit:
        """Its time begins when the program is at work, however long that takes to start."""

        def begin() -> None:
            _wait_for(ready)
            enters(self)

        threading.Thread(target=begin, daemon=True).start()
        return self

    monkeypatch.setattr(TimeLimit, "__enter__", when_it_runs)
    found = Searches(project, find_ripgrep=lambda: program, time_cap_s=0.5).grep("TODO")
    if found_before:
        assert (found.status, places(found), found.data["truncated"]) == (Status.PARTIAL, [("a.txt", 1)], True)
        assert "Stopped after 0.5 s" in found.text
    else:
        assert code(found) is ErrorCode.TIMEOUT
    wait_for_end(tmp_path)


def limited_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str | None]:
    """ripgrep that begins when it has its limit, however long the host takes to give it."""
    if (program_path := find_ripgrep()) is None:
        return find_no_ripgrep
    real = resource.prlimit

    def limit(pid: int, *more: Any) -> None:
        real(pid, *more)
        (folder / f"limited-{pid}").touch()

    monkeypatch.setattr(ripgrep, "prlimit", limit)
    program = folder / "rg"
    program.write_text(f'#!/bin/sh\nuntil [ -e {folder}/limited-$$ ]; do sleep 0.01; done\nexec {program_path} "$@"\n')
    program.chmod(0o755)
    return lambda: str(program)


@ENGINES
@pytest.mark.requirement("r:R97", "grep:stats")
@pytest.mark.parametrize("glob", [None, "*"])
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no way here to limit another process")
def test_a_file_too_large_for_memory_is_named_and_the_others_are_searched(
    project: Path, tmp_path: Path, engine: str, glob: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep, "MAX_MEMORY", 64 * 1024 * 1024)
    monkeypatch.setattr(ripgrep, "_LARGE", 10 * 1024 * 1024)
    put(project, {"a.txt": "TODO\n", "sub/c.txt": "TODO\n"})
    with (project / "b.txt").open("wb") as file:
        for _ in range(60):
            file.write(b"x" * 1024 * 1024)
        file.write(b"TODO\n")
    program = find_no_ripgrep if engine == "python" else limited_first(tmp_path, monkeypatch)
    found = Searches(project, find_ripgrep=program).grep("TODO", **({"glob": glob} if glob else {}))
    assert (found.status, places(found)) == (Status.PARTIAL, [("a.txt", 1), ("sub/c.txt", 1)])
    assert (found.stats["files_searched"], found.stats["skipped_unreadable"]) == (2, 1)
    assert "'b.txt'" in found.text
    assert "broke down" not in found.text


@pytest.mark.requirement("r:R97")
def test_a_search_program_that_breaks_down_is_told(project: Path, tmp_path: Path) -> None:
    put(project, {"a.txt": "TODO\n"})
    program = fake_ripgrep(tmp_path, f"{_ONE}\nkill -9 $$")
    found = Searches(project, find_ripgrep=lambda: program).grep("TODO")
    assert (found.status, places(found)) == (Status.PARTIAL, [("a.txt", 1)])
    assert "broke down" in found.text


def _wait_for(file: Path) -> None:
    wait_until_blocking(lambda: file.exists() and file.read_text())


@pytest.mark.requirement("runner:cancel", "r:R97")
async def test_a_cancelled_search_leaves_no_process_behind(project: Path, tmp_path: Path) -> None:
    put(project, {"a.txt": "TODO\n"})
    program = fake_ripgrep(tmp_path, "sleep 600 & sleep 600")
    searches = Searches(project, find_ripgrep=lambda: program)
    running = await searches.start_grep("TODO")
    await asyncio.to_thread(_wait_for, tmp_path / "pid")
    assert searches.runner.cancel("c1")
    outcome = await asyncio.wait_for(running, 60)
    assert outcome.envelope.context["reason"] == "CANCELLED"
    wait_for_end(tmp_path)


@pytest.mark.requirement("s:S-12", "grep:stats")
@ENGINES
def test_links_are_not_followed_but_counted(project: Path, engine: str) -> None:
    put(project.parent, {"outside/secret.txt": "TODO\n"})
    put(project, {"a.txt": "TODO\n", "out": {"symlink": "../outside"}, "file": {"symlink": "../outside/secret.txt"}})
    searches = with_engine(project, engine)
    found = searches.grep("TODO", **SCOPES["all"])
    assert (places(found), found.stats["skipped_links"]) == ([("a.txt", 1)], 2)
    for path in ("out", "file", "out/secret.txt"):
        assert code(searches.grep("TODO", path=path)) is ErrorCode.ACCESS_DENIED


@pytest.mark.requirement("s:S-13")
@pytest.mark.parametrize("output", ["content", "files"])
def test_a_folder_swapped_for_a_link_never_shows_what_is_outside(project: Path, output: str) -> None:
    put(project.parent, {f"outside/{number}.txt": "TODO secret\n" for number in range(5)})
    put(project, {f"folder/{number}.txt": "nothing\n" for number in range(5)})
    put(project, {"a.txt": "TODO\n"})
    (project / "link").symlink_to(project.parent / "outside")
    searches = Searches(project)
    stop = threading.Event()

    def flip() -> None:
        while not stop.is_set():
            (project / "folder").rename(project / "kept")
            (project / "link").rename(project / "folder")
            (project / "folder").rename(project / "link")
            (project / "kept").rename(project / "folder")

    flipper = threading.Thread(target=flip)
    flipper.start()
    try:
        answers = [searches.grep("TODO", output=output) for _ in range(60)]
    finally:
        stop.set()
        flipper.join()
    for answer in answers:
        shown = answer.data.get("files") or [match["file"] for match in matches(answer)]
        assert shown == ["a.txt"]


@pytest.mark.requirement("s:S-13", "grep:stats")
def test_a_file_that_no_longer_holds_what_was_found_in_it_is_left_out(project: Path, tmp_path: Path) -> None:
    put(project, {"a.txt": "changed\n", "b.txt": "TODO\n"})
    other = _ONE.replace("a.txt", "b.txt")
    end = r"""printf '{"type":"end","data":{"path":{"text":"x"},"binary_offset":null}}\n'"""
    summary = r"""printf '{"data":{},"type":"summary"}\n'"""
    program = fake_ripgrep(tmp_path, f"{_ONE}\n{end}\n{other}\n{end}\n{summary}")
    found = Searches(project, find_ripgrep=lambda: program).grep("TODO")
    assert (found.status, places(found), found.stats["skipped_changed"]) == (Status.PARTIAL, [("b.txt", 1)], 1)
    assert "Search again" in found.text


@pytest.mark.requirement("s:S-14")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of another user")
def test_a_hard_link_to_a_file_of_another_user_is_not_shown(project: Path) -> None:
    secret = project.parent / "secret"
    secret.write_text("TODO secret\n")
    os.chown(secret, NOBODY, NOBODY)
    os.link(secret, project / "innocent.txt")
    found = Searches(project).grep("TODO")
    assert (matches(found), found.stats["skipped_changed"]) == ([], 1)


@ENGINES
@pytest.mark.requirement("s:S-16")
def test_special_files_are_counted_and_never_opened(project: Path, engine: str) -> None:
    put(project, {"a.txt": "TODO\n"})
    os.mkfifo(project / "pipe")
    assert stat.S_ISFIFO((project / "pipe").stat().st_mode)
    searches = with_engine(project, engine)
    for options in ({}, {"glob": "*"}):
        found = searches.grep("TODO", **options)
        assert (places(found), found.stats["skipped_special"]) == ([("a.txt", 1)], 1)
    assert code(searches.grep("TODO", path="pipe")) is ErrorCode.INVALID_PARAM
