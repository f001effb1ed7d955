"""Glob: the files that match a pattern, what was left out, and the next page."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import bounded_work
from tests.tools.searches import VECTORS, Searches, make_tree, paths, search_as_nobody
from tests.workspace.answers import code, timeless
from tests.workspace.nobody import shared_project
from tests.workspace.vectors import put
from toolyard.protocol.envelope import ErrorCode, Status
from toolyard.protocol.result_limits import MAX_BYTES, MAX_LINES
from toolyard.workspace.search import file_walk
from toolyard.workspace.search.file_walk import TimeLimit

ALL = {"include_hidden": True, "include_ignored": True}


@pytest.fixture
def searches(project: Path) -> Searches:
    return Searches(project)


@pytest.mark.requirement("grep:vectors", "glob:pattern", "search:hidden-ignored")
@pytest.mark.parametrize("case", VECTORS["glob"], ids=lambda case: f"{case['id']} {case['pattern']}")
def test_patterns_find_what_ripgrep_finds_without_hidden_and_ignored_files(project: Path, case: Any) -> None:
    """ripgrep's own ``--glob`` brings ignored files back; the contract keeps them out unless they are asked for."""
    make_tree(project, case["tree"])
    searches = Searches(project)
    assert paths(searches.glob(case["pattern"])) == sorted(case["paths"])
    assert paths(searches.glob(case["pattern"], **ALL)) == sorted(case["everything"])


@pytest.mark.requirement("glob:pattern", "glob:page", "search:hidden-ignored", "truncation:paging:search")
def test_an_answer_says_what_was_found_and_what_was_left_out(searches: Searches, project: Path) -> None:
    put(project, {"a.py": "", "src/b.py": "", "src/c.txt": "", ".env": "", ".gitignore": "build/\n", "build/d.py": ""})
    assert timeless(searches.glob("**/*.py")) == {
        "status": "success",
        "data": {"paths": ["a.py", "src/b.py"], "truncated": False},
        "text": "Found 2 files in '.' that match '**/*.py'. Not looked at: 2 hidden and 1 ignored entries "
        "(include_hidden, include_ignored).",
        "stats": {"total_matches": 2, "hidden": 2, "ignored": 1},
        "context": {
            "cwd": ".",
            "params_input": {"pattern": "**/*.py"},
            "path_resolved": ".",
            "truncation_skip": True,
        },
    }


@pytest.mark.requirement("glob:pattern")
@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("b.py", ["b.py", "src/b.py", "src/sub/b.py"]),
        ("/b.py", ["b.py"]),
        ("./src/b.py", ["src/b.py"]),
        ("src//b.py", ["src/b.py"]),
        ("**/sub/*", ["src/sub/b.py"]),
        ("src/**", ["src/b.py", "src/sub/b.py"]),
        ("src/*", ["src/b.py"]),
        ("src/", []),
        ("src", []),
        ("{src/sub,lib}/*.py", ["src/sub/b.py"]),
        ("b.{py,{md,txt}}", ["b.py", "b.txt", "src/b.py", "src/sub/b.py"]),
        ("b{,.lock}.py", ["b.py", "src/b.py", "src/sub/b.py"]),
        ("??.py", ["名前.py"]),
        ("[[:lower:]].txt", ["b.txt"]),
        ("!*.py", ["b.txt", "brace{x}.ts", "star*.md"]),
        ("!src/**", ["b.py", "b.txt", "brace{x}.ts", "star*.md", "名前.py"]),
        ("star\\*.md", ["star*.md"]),
        ("brace\\{x\\}.ts", ["brace{x}.ts"]),
        ("[b{]*.ts", ["brace{x}.ts"]),
    ],
)
def test_the_pattern_language(searches: Searches, project: Path, pattern: str, found: list[str]) -> None:
    names = ("b.py", "b.txt", "src/b.py", "src/sub/b.py", "brace{x}.ts", "star*.md", "名前.py")
    put(project, dict.fromkeys(names, ""))
    assert paths(searches.glob(pattern)) == found


@pytest.mark.requirement("glob:pattern", "path:relative", "path:link-inside")
def test_a_pattern_counts_from_path_and_paths_from_the_root(searches: Searches, project: Path) -> None:
    put(project, {"src/a.py": "", "src/sub/a.py": "", "a.py": "", "link": {"symlink": "src"}})
    for path in ("src", "link", str(project / "src")):
        found = searches.glob("/a.py", path=path)
        assert (paths(found), found.context["path_resolved"]) == (["src/a.py"], "src")
    assert paths(searches.glob(f"{project}/src/*.py")) == ["src/a.py"]
    assert paths(searches.glob(f"{project}/src/*.py", path="src")) == ["src/a.py"]
    assert code(searches.glob(f"{project}/lib/*.py", path="src")) is ErrorCode.INVALID_PARAM


@pytest.mark.requirement("glob:pattern")
def test_a_pattern_for_folders_says_how_to_find_their_files(searches: Searches, project: Path) -> None:
    put(project, {"src/a.py": ""})
    assert "only files are found: add **" in searches.glob("src/").text


@pytest.mark.requirement("search:hidden-ignored")
@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["a"]),
        ("**/x", []),
        (".*", [".env", "sub/.env"]),
        (".config/**", [".config/sub/x", ".config/x"]),
        (".config/.*", [".config/.deep"]),
        ("**/.config/*", [".config/x"]),
        ("{.config,sub}/*", [".config/x"]),
        ("\\.env", [".env", "sub/.env"]),
        ("[.]env", []),
        ("?env", []),
    ],
)
def test_a_hidden_name_needs_a_dot_in_the_pattern(
    searches: Searches, project: Path, pattern: str, found: list[str]
) -> None:
    names = ("a", ".env", "sub/.env", ".config/x", ".config/sub/x", ".config/.deep", ".git/x", ".git/.env")
    put(project, dict.fromkeys(names, ""))
    assert paths(searches.glob(pattern)) == found


@pytest.mark.requirement("search:hidden-ignored")
def test_the_rules_of_every_folder_from_the_root_down_count_and_none_from_above(project: Path) -> None:
    put(project, {".gitignore": "*.log\n/lib/gen/\nlib/*.tmp\n", "lib/.gitignore": "!keep.log\n", ".ignore": "a.py\n"})
    put(project.parent, {".gitignore": "*.py\n", ".ignore": "*.py\n"})
    put(project, dict.fromkeys(("lib/a.py", "lib/a.log", "lib/keep.log", "lib/a.tmp", "lib/gen/b.py"), ""))
    searches = Searches(project)
    for path in (".", "lib"):
        assert paths(searches.glob("*", path=path)) == ["lib/a.py", "lib/keep.log"]
    assert paths(searches.glob("*", path="lib/gen")) == ["lib/gen/b.py"]


@pytest.mark.requirement("search:hidden-ignored")
def test_a_link_for_an_ignore_file_has_no_rules(searches: Searches, project: Path) -> None:
    put(project, {"rules": "*.py\n", "a.py": "", ".gitignore": {"symlink": "rules"}})
    assert paths(searches.glob("*.py")) == ["a.py"]


@pytest.mark.requirement("saved:searches", "search:hidden-ignored")
def test_stored_outputs_and_git_are_found_only_below_their_own_path(searches: Searches, project: Path) -> None:
    put(project, {"a.json": "", "tool-output/b.json": "", ".git/c.json": "", "sub/tool-output/d.json": ""})
    assert paths(searches.glob("**/*.json", **ALL)) == ["a.json", "sub/tool-output/d.json"]
    assert paths(searches.glob("*.json", path="tool-output")) == ["tool-output/b.json"]
    assert paths(searches.glob("*.json", path=".git")) == [".git/c.json"]


@pytest.mark.requirement("glob:pattern")
def test_sort_modified_gives_the_newest_first(searches: Searches, project: Path) -> None:
    for age, name in enumerate(("b.py", "new/a.py", "c.py", "new/d.py")):
        put(project, {name: ""})
        os.utime(project / name, (1_700_000_000 - age, 1_700_000_000 - age))
    put(project, {"link.py": {"symlink": "c.py"}})
    found = paths(searches.glob("*.py", sort="modified"))
    assert found == ["b.py", "new/a.py", "c.py", "link.py", "new/d.py"]
    assert paths(searches.glob("*.py", sort="modified", limit=1)) == ["b.py"]


@pytest.mark.requirement("glob:page")
def test_pages_follow_each_other_and_an_exact_fit_is_not_truncated(searches: Searches, project: Path) -> None:
    put(project, {f"{number:03}.txt": "" for number in range(250)})
    first = searches.glob("*.txt")
    assert (first.status, len(paths(first)), first.data["truncated"]) == (Status.PARTIAL, 100, True)
    assert first.stats["total_matches"] == 250
    assert "truncated: 1-100 of 250" in first.text
    assert "offset=100" in first.text
    last = searches.glob("*.txt", offset=200)
    assert (last.status, paths(last)[-1]) == (Status.SUCCESS, "249.txt")
    whole = searches.glob("*.txt", limit=250)
    assert (whole.status, len(paths(whole)), whole.data["truncated"]) == (Status.SUCCESS, 250, False)
    beyond = searches.glob("*.txt", offset=300)
    assert (beyond.status, paths(beyond)) == (Status.SUCCESS, [])
    assert "Use a smaller offset" in beyond.text


@pytest.mark.requirement("truncation:paging:search", "glob:page")
def test_an_answer_stays_within_the_bytes_that_are_shown(searches: Searches, project: Path) -> None:
    put(project, {f"{number:04}{'n' * 200}": "" for number in range(400)})
    found: list[str] = []
    while len(found) < 400:
        page = searches.glob("*", limit=2000, offset=len(found))
        assert sum(len(path) + 4 for path in paths(page)) <= MAX_BYTES
        found += paths(page)
    assert found == sorted(path.name for path in project.iterdir())


@pytest.mark.requirement("s:S-18", "s:S-10")
@pytest.mark.parametrize(
    ("pattern", "refusal"),
    [
        ("../../**/*.pem", ErrorCode.ACCESS_DENIED),
        ("..", ErrorCode.ACCESS_DENIED),
        ("src/../../x", ErrorCode.ACCESS_DENIED),
        ("!../x", ErrorCode.ACCESS_DENIED),
        ("/etc/passwd", ErrorCode.ACCESS_DENIED),
        ("/etc/**/*.pem", ErrorCode.ACCESS_DENIED),
        ("/home/*/.ssh/*", ErrorCode.ACCESS_DENIED),
        ("src/../*.py", ErrorCode.INVALID_PARAM),
        ("[a-", ErrorCode.INVALID_PARAM),
        ("a\\", ErrorCode.INVALID_PARAM),
        ("{a,b", ErrorCode.INVALID_PARAM),
        ("a}", ErrorCode.INVALID_PARAM),
        ("{a,{b,{c,d}}}", ErrorCode.INVALID_PARAM),
        ("{a,b}" * 20, ErrorCode.INVALID_PARAM),
        ("{a,b,c,d,e,f}" * 5, ErrorCode.INVALID_PARAM),
        ("x" * 5000, ErrorCode.INVALID_PARAM),
    ],
)
def test_patterns_that_lead_outside_or_explode_are_refused(
    searches: Searches, project: Path, pattern: str, refusal: ErrorCode
) -> None:
    put(project.parent, {"x.pem": ""})
    assert code(searches.glob(pattern)) is refusal


@pytest.mark.requirement("s:S-18", "s:S-10")
@pytest.mark.parametrize("pattern", ["~/.ssh/*", "file:///etc/passwd", "C:\\x", "/src/*.py", "//host/share/*"])
def test_patterns_for_elsewhere_find_nothing(searches: Searches, pattern: str) -> None:
    assert paths(searches.glob(pattern)) == []


@pytest.mark.requirement("s:S-18")
def test_a_folder_named_like_one_of_the_system_is_found(searches: Searches, project: Path) -> None:
    put(project, {"etc/app.conf": ""})
    assert paths(searches.glob("/etc/*.conf")) == ["etc/app.conf"]


@pytest.mark.requirement("s:S-18")
@pytest.mark.parametrize("pattern", ["*a" * 60 + "b", "**/" * 30 + "x", "{a*,*a,*}" * 4 + "b", "[a-z]*" * 100])
def test_no_pattern_is_slow(searches: Searches, project: Path, pattern: str) -> None:
    put(project, {"/".join("a" * 100 for _ in range(5)) + f"/{'a' * 200}{number}": "" for number in range(20)})
    with bounded_work():
        found = searches.glob(pattern)
    assert found.error is None or found.error.code is not ErrorCode.TIMEOUT


@pytest.mark.requirement("s:S-12", "glob:pattern")
def test_links_to_files_inside_are_found_and_nothing_behind_other_links(searches: Searches, project: Path) -> None:
    put(project.parent, {"outside/secret.py": "", "secret.py": ""})
    put(
        project,
        {
            "a.py": "",
            "inside.py": {"symlink": "a.py"},
            "twice.py": {"symlink": "inside.py"},
            "out.py": {"symlink": "../secret.py"},
            "broken.py": {"symlink": "nothing"},
            "loop.py": {"symlink": "loop.py"},
            "folder": {"symlink": "../outside"},
            "here": {"symlink": "."},
        },
    )
    found = searches.glob("**/*.py")
    assert paths(found) == ["a.py", "inside.py", "twice.py"]
    assert found.stats["skipped_links"] == 3


@pytest.mark.requirement("s:S-13")
def test_a_folder_swapped_for_a_link_never_shows_what_is_outside(searches: Searches, project: Path) -> None:
    put(project.parent, {"outside/secret.txt": ""})
    put(project, {f"folder/{number}.txt": "" for number in range(20)})
    (project / "link").symlink_to(project.parent / "outside")
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
        found = {path for _ in range(300) for path in paths(searches.glob("**"))}
    finally:
        stop.set()
        flipper.join()
    assert not [path for path in found if "secret" in path]


@pytest.mark.requirement("s:S-16", "glob:pattern")
def test_special_files_are_counted_and_not_opened(searches: Searches, project: Path) -> None:
    os.mkfifo(project / "pipe.py")
    put(project, {"a.py": "", "sub.py/b.txt": ""})
    os.mkfifo(project / "sub.py/.gitignore")
    found = searches.glob("**/*.py")
    assert (paths(found), found.stats["skipped_special"]) == (["a.py"], 1)


@pytest.mark.requirement("glob:pattern")
def test_names_of_any_bytes_are_found_and_can_be_typed_back(searches: Searches, project: Path) -> None:
    for name in (b"caf\xe9.py", "名前.py".encode(), b"new\nline.py", b"*.py"):
        (project / os.fsdecode(name)).touch()
    (project / os.fsdecode(b"d\xe9")).mkdir()
    (project / os.fsdecode(b"d\xe9/a.py")).touch()
    found = searches.glob("*.py")
    assert paths(found) == ["*.py", "caf\\xe9.py", "d\\xe9/a.py", "new\nline.py", "名前.py"]
    assert paths(searches.glob("*.py", path="d\\xe9")) == ["d\\xe9/a.py"]


@pytest.mark.requirement("r:R97", "glob:pattern")
def test_a_folder_that_cannot_be_read_is_named_and_the_rest_is_found() -> None:
    with shared_project() as project:
        put(project, {"a.txt": "TODO\n", "closed/b.txt": "TODO\n", "sub/closed.txt": "TODO\n"})
        (project / "closed").chmod(0)
        found, _ = search_as_nobody(project)
    assert (found.status, paths(found)) == (Status.PARTIAL, ["a.txt", "sub/closed.txt"])
    assert found.stats["skipped_unreadable"] == 1
    assert found.data["failed_items"] == [
        {
            "item": "closed/",
            "code": "PERMISSION_DENIED",
            "message": "The operating system refuses access to 'closed/': Permission denied.",
        }
    ]
    assert "Not readable: 'closed/' (Permission denied). Check their permissions." in found.text


@pytest.mark.requirement("glob:pattern")
def test_a_path_that_is_no_folder_is_refused(searches: Searches, project: Path) -> None:
    put(project, {"a.txt": ""})
    assert code(searches.glob("*", path="a.txt")) is ErrorCode.INVALID_PARAM
    assert code(searches.glob("*", path="b")) is ErrorCode.NOT_FOUND
    assert code(searches.glob("*", path="..")) is ErrorCode.ACCESS_DENIED


@pytest.mark.requirement("r:R97")
def test_a_walk_that_takes_too_long_ends_with_what_it_found(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(project, {"a.txt": "", "sub/b.txt": ""})
    searches, started = Searches(project), list[TimeLimit]()
    looked = file_walk.FileWalk._scan_folder

    def enters(self: TimeLimit) -> TimeLimit:
        started.append(self)  # its time is over when we say so
        return self

    def slowly(self: file_walk.FileWalk, place: Any) -> file_walk.FolderMatches:
        found = looked(self, place)
        started[-1]._over.set()
        return found

    monkeypatch.setattr(TimeLimit, "__enter__", enters)
    monkeypatch.setattr(file_walk.FileWalk, "_scan_folder", slowly)
    found = searches.glob("*.txt")
    assert (found.status, paths(found), found.data["truncated"]) == (Status.PARTIAL, ["a.txt"], True)
    assert code(searches.glob("nothing")) is ErrorCode.TIMEOUT


@pytest.mark.requirement("r:R97")
def test_a_walk_with_too_many_entries_says_so(
    searches: Searches, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_walk, "MAX_SEEN", 10)
    put(project, {f"{folder}/{number}": "" for folder in "abc" for number in range(20)})
    found = searches.glob("**")
    assert (found.status, found.data["truncated"]) == (Status.PARTIAL, True)
    assert "search a subfolder instead" in found.text


@pytest.mark.requirement("r:R97")
def test_folders_nested_deeper_than_can_be_held_open_are_named(searches: Searches, project: Path) -> None:
    depth = file_walk.MAX_DEPTH + 5
    put(project, {"d/" * depth + "a.txt": "", "b.txt": ""})
    found = searches.glob("*.txt")
    assert (found.status, paths(found), found.stats["skipped_unreadable"]) == (Status.PARTIAL, ["b.txt"], 1)


@pytest.mark.requirement("glob:pattern", "glob:page")
def test_thousands_of_files_are_found_once_each(searches: Searches, project: Path) -> None:
    names = [f"d{number % 37}/e{number % 5}/f{number}.py" for number in range(3000)]
    put(project, dict.fromkeys(names, ""))
    found = searches.glob("**/*.py", limit=MAX_LINES)
    assert found.stats["total_matches"] == 3000
    assert paths(found) == sorted(names)[: len(paths(found))]
    assert len(paths(found)) == 2000
