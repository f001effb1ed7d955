"""LS: the entries of a folder, what was left out, and the next page."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolyard
from tests.workspace.answers import code, entries, paths, timeless
from tests.workspace.nobody import call_as_nobody, shared_project
from tests.workspace.vectors import put
from toolyard.blocking import BlockingYard
from toolyard.protocol.envelope import Envelope, ErrorCode, Status
from toolyard.protocol.result_limits import MAX_BYTES, MAX_LINES
from toolyard.tools import ls, search_report

WHEN = 1_700_000_000  # 2023-11-14T22:13:20Z


def set_times(root: Path) -> None:
    """Give everything below ``root`` one time, so that whole answers can be compared."""
    for path in root.rglob("*"):
        os.utime(path, (WHEN, WHEN), follow_symlinks=False)


def list_all_pages(yard: BlockingYard, limit: int) -> list[Envelope]:
    pages = [yard.call("LS", {"limit": limit})]
    while pages[-1].data["truncated"] is True:
        pages.append(yard.call("LS", {"limit": limit, "offset": sum(len(entries(page)) for page in pages)}))
    return pages


@pytest.mark.requirement(
    "ls:defaults",
    "ls:entries",
    "ls:types",
    "ls:folder-slash",
    "ls:sort",
    "ls:hidden",
    "ls:ignored",
    "envelope:data-paths",
)
def test_ls_without_parameters_lists_the_root(yard: BlockingYard, project: Path) -> None:
    put(
        project,
        {
            "zoo/x": "",
            "a.txt": "four",
            "Big.txt": "",
            ".hidden": "",
            "build/out": "",
            ".gitignore": "build/\n",
            "link": {"symlink": "zoo"},
        },
    )
    os.mkfifo(project / "pipe")
    set_times(project)
    when = "2023-11-14T22:13:20Z"
    assert timeless(yard.call("LS")) == {
        "status": "success",
        "data": {
            "entries": [
                {"path": "zoo/", "type": "dir", "mtime": when},
                {"path": "Big.txt", "type": "file", "size": 0, "mtime": when},
                {"path": "a.txt", "type": "file", "size": 4, "mtime": when},
                {"path": "link", "type": "link", "mtime": when},
            ],
            "truncated": False,
        },
        "text": "Listed 4 entries in '.'. Not listed: 2 hidden and 1 ignored (include_hidden, include_ignored).",
        "stats": {"total_entries": 4, "hidden": 2, "ignored": 1, "skipped_special": 1},
        "context": {"cwd": ".", "params_input": {}, "path_resolved": ".", "truncation_skip": True},
    }


@pytest.mark.requirement("ls:defaults", "ls:limit", "envelope:status:truncated", "envelope:text")
def test_a_hundred_entries_are_listed_unless_limit_says_otherwise(yard: BlockingYard, project: Path) -> None:
    put(project, {f"{number:03}": "" for number in range(250)})
    envelope = yard.call("LS")
    assert (envelope.status, envelope.data["truncated"], envelope.stats["total_entries"]) == (Status.PARTIAL, True, 250)
    assert paths(envelope) == [f"{number:03}" for number in range(100)]
    assert envelope.text == (
        "Listed 100 entries in '.' (truncated: 1-100 of 250)."
        " Use offset=100 for the next ones, or narrow the listing with path or ignore."
    )


@pytest.mark.requirement("ls:exact-limit")
@pytest.mark.parametrize(("offset", "limit"), [(0, 5), (2, 3), (0, 100)])
def test_a_listing_that_fits_exactly_is_not_truncated(
    yard: BlockingYard, project: Path, offset: int, limit: int
) -> None:
    put(project, dict.fromkeys("abcde", ""))
    envelope = yard.call("LS", {"offset": offset, "limit": limit})
    assert (envelope.status, envelope.data["truncated"], paths(envelope)) == (
        Status.SUCCESS,
        False,
        list("abcde")[offset:],
    )


@pytest.mark.requirement("ls:offset", "envelope:text")
@pytest.mark.parametrize(
    ("files", "offset", "text"),
    [
        (5, 3, "Listed 2 entries in '.' (4-5 of 5)."),
        (5, 5, "'.' has only 5 entries: none from offset 5 on. Use a smaller offset."),
        (1, 9, "'.' has only 1 entry: none from offset 9 on. Use a smaller offset."),
        (0, 9, "'.' has only 0 entries: none from offset 9 on. Use a smaller offset."),
        (0, 0, "Listed 0 entries in '.'."),
        (1, 0, "Listed 1 entry in '.'."),
    ],
)
def test_the_text_says_which_entries_are_listed(
    yard: BlockingYard, project: Path, files: int, offset: int, text: str
) -> None:
    put(project, {str(number): "" for number in range(files)})
    envelope = yard.call("LS", {"offset": offset})
    assert (envelope.status, envelope.data["truncated"], envelope.text) == (Status.SUCCESS, False, text)


NAMES = st.binary(min_size=1, max_size=6).filter(
    lambda name: not {0, ord("/")} & set(name) and not name.startswith(b".") and name != b"tool-output"
)


@pytest.mark.requirement("ls:offset", "ls:sort", "ls:limit")
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(names=st.sets(NAMES, max_size=12), folders=st.sets(NAMES, max_size=4), limit=st.integers(1, 6))
def test_pages_together_give_every_entry_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, names: set[bytes], folders: set[bytes], limit: int
) -> None:
    root = tmp_path_factory.mktemp("names")
    project = os.fsencode(root / "project")
    os.mkdir(project)
    for name in folders:
        os.mkdir(os.path.join(project, name))
    for name in names - folders:
        os.close(os.open(os.path.join(project, name), os.O_CREAT))
    with toolyard.open(project=os.fsdecode(project), home=root / "home") as yard:
        pages = list_all_pages(yard, limit)
    found = [entry for page in pages for entry in entries(page)]
    assert all(len(entries(page)) <= limit for page in pages)
    assert {page.stats["total_entries"] for page in pages} == {len(names | folders)} == {len(found)}
    assert len({entry["path"] for entry in found}) == len(found)
    assert found == sorted(found, key=lambda entry: (entry["type"] != "dir", entry["path"]))


@pytest.mark.requirement("ls:hidden")
def test_hidden_entries_are_counted_or_listed(yard: BlockingYard, project: Path) -> None:
    put(project, {".env": "", ".git/config": "", "a": "", "..odd": ""})
    without, listed = yard.call("LS"), yard.call("LS", {"include_hidden": True})
    assert (paths(without), without.stats["hidden"]) == (["a"], 3)
    assert (paths(listed), listed.stats["hidden"]) == ([".git/", "..odd", ".env", "a"], 0)
    assert without.text == "Listed 1 entry in '.'. Not listed: 3 hidden (include_hidden)."


TREE = {
    ".gitignore": "*.log\n/root-only\nbuild/\ndocs/*\n!docs/keep.md\n",
    "a.log": "",
    "root-only": "",
    "build/x": "",
    "docs/keep.md": "",
    "docs/drop.md": "",
    "sub/.gitignore": "!b.log\nsecret/\n",
    "sub/a.log": "",
    "sub/b.log": "",
    "sub/root-only": "",
    "sub/secret/s": "",
    "sub/deep/c.log": "",
    "sub/deep/b.log": "",
    "sub/deep/build": "",
}


@pytest.mark.requirement("ls:ignored", "ls:depth")
def test_ignore_files_of_every_level_decide_together(yard: BlockingYard, project: Path) -> None:
    put(project, TREE)
    envelope = yard.call("LS", {"depth": 3})
    assert paths(envelope) == [
        *("docs/", "sub/", "sub/deep/"),
        *("docs/keep.md", "sub/b.log", "sub/deep/b.log", "sub/deep/build", "sub/root-only"),
    ]
    assert envelope.stats["ignored"] == 7


@pytest.mark.requirement("ls:ignored")
@pytest.mark.parametrize(
    ("path", "listed", "ignored"),
    [
        ("sub", ["sub/deep/", "sub/b.log", "sub/root-only"], 2),
        ("sub/deep", ["sub/deep/b.log", "sub/deep/build"], 1),
        ("docs", ["docs/keep.md"], 1),
        ("build", ["build/x"], 0),  # a folder that is asked for is listed, though the one above leaves it out
        ("sub/secret", ["sub/secret/s"], 0),
    ],
)
def test_a_folder_is_listed_by_the_rules_above_it_and_its_own(
    yard: BlockingYard, project: Path, path: str, listed: list[str], ignored: int
) -> None:
    put(project, TREE)
    envelope = yard.call("LS", {"path": path})
    assert (paths(envelope), envelope.stats["ignored"]) == (listed, ignored)


@pytest.mark.requirement("ls:ignored")
def test_ignored_entries_are_listed_when_asked_for(yard: BlockingYard, project: Path) -> None:
    put(project, TREE)
    envelope = yard.call("LS", {"include_ignored": True, "depth": 3})
    assert set(paths(envelope)) == {
        *(name for name in TREE if not name.endswith(".gitignore")),
        *("build/", "docs/", "sub/", "sub/deep/", "sub/secret/"),
    }
    assert envelope.stats["ignored"] == 0


@pytest.mark.requirement("ls:ignored")
def test_a_name_that_is_not_utf8_is_left_out_by_a_rule_of_the_same_bytes(yard: BlockingYard, project: Path) -> None:
    (project / ".gitignore").write_bytes(b"caf\xe9\n")
    for name in (b"caf\xe9", b"caf\xe8"):
        (project / os.fsdecode(name)).touch()
    assert paths(yard.call("LS")) == [r"caf\xe8"]


@pytest.mark.requirement("ls:ignore")
@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        (["*.pyc"], ["build/", "sub/", "sub/build/", "a.txt", "build/x", "sub/a.txt", "sub/build/y"]),
        (["build/"], ["sub/", "a.pyc", "a.txt", "sub/a.pyc", "sub/a.txt"]),
        (["/build"], ["sub/", "sub/build/", "a.pyc", "a.txt", "sub/a.pyc", "sub/a.txt", "sub/build/y"]),
        (["sub/a.txt", "sub/*/"], ["build/", "sub/", "a.pyc", "a.txt", "build/x", "sub/a.pyc"]),
        (["*", "!*/", "!a.txt"], ["build/", "sub/", "sub/build/", "a.txt", "sub/a.txt"]),
        (["**/y", "?.pyc"], ["build/", "sub/", "sub/build/", "a.txt", "build/x", "sub/a.txt"]),
    ],
)
def test_patterns_of_the_caller_count_from_the_listed_folder(
    yard: BlockingYard, project: Path, patterns: list[str], left: list[str]
) -> None:
    files = {"a.txt": "", "a.pyc": "", "build/x": "", "sub/a.txt": "", "sub/a.pyc": "", "sub/build/y": ""}
    put(project / "base", files)
    envelope = yard.call("LS", {"path": "base", "ignore": list(patterns), "depth": 3})
    assert paths(envelope) == [f"base/{path}" for path in left]
    assert int(envelope.stats["ignored"]) > 0


@pytest.mark.requirement("ls:ignore", "ls:ignored")
def test_patterns_of_the_caller_hold_even_when_ignored_entries_are_listed(yard: BlockingYard, project: Path) -> None:
    put(project, {".gitignore": "a\n", "a": "", "b": "", "c": ""})
    envelope = yard.call("LS", {"include_hidden": True, "include_ignored": True, "ignore": ["b"]})
    assert paths(envelope) == [".gitignore", "a", "c"]
    assert envelope.text == "Listed 3 entries in '.'. Not listed: 1 ignored (by your own patterns)."


@pytest.mark.requirement("s:S-18:ls-ignore")
@pytest.mark.parametrize(
    "pattern",
    [
        "../../**/*.pem",
        "/etc/*",
        "/../b",
        "{a,b}",
        "{a,b}" * 20,
        "*a" * 50 + "z",
        "[" * 1000,
        "a\\",
        "**/" * 500 + "z",
        "",
        "#a",
    ],
    ids=lambda pattern: pattern[:12],
)
def test_a_strange_pattern_leaves_out_nothing(yard: BlockingYard, project: Path, pattern: str) -> None:
    put(project, {"a": "", "b": "", "aaaa": ""})
    envelope = yard.call("LS", {"ignore": [pattern]})
    assert (code(envelope), paths(envelope)) == (None, ["a", "aaaa", "b"])


@pytest.mark.requirement("ls:ignore")
@pytest.mark.parametrize("ignore", ["README.md", [1], {"a": 1}])
def test_ignore_must_be_a_list_of_texts(yard: BlockingYard, ignore: Any) -> None:
    assert code(yard.call("LS", {"ignore": ignore})) is ErrorCode.INVALID_PARAM


@pytest.mark.requirement("ls:depth", "ls:sort")
@pytest.mark.parametrize(
    ("depth", "listed"),
    [
        (1, ["a/", "b/", "link", "z"]),
        (2, ["a/", "a/a/", "b/", "a/f", "link", "z"]),
        (3, ["a/", "a/a/", "a/a/a/", "b/", "a/a/f", "a/f", "link", "z"]),
        (4, ["a/", "a/a/", "a/a/a/", "b/", "a/a/a/f", "a/a/f", "a/f", "link", "z"]),
    ],
)
def test_depth_lists_so_many_levels_and_enters_no_links(
    yard: BlockingYard, project: Path, depth: int, listed: list[str]
) -> None:
    put(project, {"a/a/a/f": "", "a/a/f": "", "a/f": "", "b": {"dir": True}, "z": "", "link": {"symlink": "a"}})
    assert paths(yard.call("LS", {"depth": depth})) == listed


@pytest.mark.requirement("ls:depth", "envelope:data-paths")
def test_a_folder_reached_through_a_link_is_listed_where_it_really_is(yard: BlockingYard, project: Path) -> None:
    put(project, {"real/a": "", "link": {"symlink": "real"}})
    envelope = yard.call("LS", {"path": "link"})
    assert (paths(envelope), envelope.context["path_resolved"]) == (["real/a"], "real")


@pytest.mark.requirement("s:S-13", "ls:depth")
def test_a_folder_swapped_for_a_link_before_it_is_entered_is_not_entered(
    yard: BlockingYard, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, {"outside/secret": "", "project/d/x": ""})
    describe = ls._describe_entry

    def describe_and_swap(entry: "os.DirEntry[str]", path: str, kind: str) -> Any:
        found = describe(entry, path, kind)
        if path == "d":
            (project / "d").rename(tmp_path / "kept")
            (project / "d").symlink_to(tmp_path / "outside")
        return found

    monkeypatch.setattr(ls, "_describe_entry", describe_and_swap)
    envelope = yard.call("LS", {"depth": 2})
    assert (paths(envelope), envelope.stats["skipped_unreadable"]) == (["d/"], 1)


@pytest.mark.requirement("ls:types")
def test_a_link_is_a_link_whatever_it_points_to(yard: BlockingYard, project: Path) -> None:
    targets = {"folder": "real", "file": "real/a", "dangling": "nowhere", "loop": "loop", "outside": "/etc"}
    put(project, {"real/a": "", **{name: {"symlink": target} for name, target in targets.items()}})
    kinds = {entry["path"]: entry["type"] for entry in entries(yard.call("LS"))}
    assert kinds == {"real/": "dir", **dict.fromkeys(targets, "link")}


@pytest.mark.requirement("ls:not-a-folder", "envelope:text")
@pytest.mark.parametrize("path", ["a.txt", "link"])
def test_ls_of_a_file_is_refused_and_points_to_read(yard: BlockingYard, project: Path, path: str) -> None:
    put(project, {"a.txt": "", "link": {"symlink": "a.txt"}})
    envelope = yard.call("LS", {"path": path})
    assert (code(envelope), envelope.text) == (
        ErrorCode.INVALID_PARAM,
        f"'{path}' is not a folder. Read a file with Read; LS lists folders.",
    )


@pytest.mark.requirement("ls:limit", "ls:offset", "ls:depth")
@pytest.mark.parametrize(
    "arguments",
    [{"limit": 0}, {"limit": MAX_LINES + 1}, {"offset": -1}, {"depth": 0}, {"depth": ls.MAX_DEPTH + 1}, {"limit": "x"}],
)
def test_a_number_out_of_range_is_refused(yard: BlockingYard, arguments: dict[str, Any]) -> None:
    assert code(yard.call("LS", arguments)) is ErrorCode.INVALID_PARAM


@pytest.mark.requirement("truncation:paging", "ls:offset")
def test_a_page_stops_at_the_bytes_an_answer_may_have(yard: BlockingYard, project: Path) -> None:
    names = [f"{number:04}{'x' * 196}" for number in range(900)]
    put(project, dict.fromkeys(names, ""))
    pages = list_all_pages(yard, MAX_LINES)
    sizes = [len(json.dumps(page.data["entries"], ensure_ascii=False).encode()) for page in pages]
    assert max(sizes) <= MAX_BYTES
    assert min(sizes[:-1]) > MAX_BYTES - 1000, "no page is much smaller than it may be"
    assert {page.context["truncation_skip"] for page in pages} == {True}
    assert [path for page in pages for path in paths(page)] == names


@pytest.mark.requirement("truncation:paging", "ls:limit")
def test_a_page_has_at_most_two_thousand_entries(yard: BlockingYard, project: Path) -> None:
    for number in range(MAX_LINES + 1):
        (project / f"{number:x}").symlink_to("x")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_report, "MAX_BYTES", 10_000_000)
        page = yard.call("LS", {"limit": MAX_LINES})
    assert (len(entries(page)), page.data["truncated"]) == (MAX_LINES, True)


@pytest.mark.requirement("ls:limit", "envelope:status:truncated", "envelope:text")
@pytest.mark.parametrize(("seen", "stopped"), [(6, False), (5, True), (2, True)])
def test_a_listing_of_too_many_entries_stops_and_says_so(
    yard: BlockingYard, project: Path, monkeypatch: pytest.MonkeyPatch, seen: int, stopped: bool
) -> None:
    monkeypatch.setattr(ls, "MAX_SEEN", seen)
    put(project, {"a/1": "", "a/2": "", "b/1": "", "c": ""})
    envelope = yard.call("LS", {"depth": 2})
    assert (envelope.data["truncated"], envelope.stats["total_entries"]) == (stopped, seen)
    assert envelope.text.endswith(f"Stopped after looking at {seen} entries: list a subfolder instead.") is stopped


@pytest.mark.requirement("ls:entries")
def test_a_time_that_no_calendar_has_is_left_out(tmp_path: Path) -> None:
    """Some file systems keep any 64-bit number as a time, and one such file must not hide the others."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        pytest.skip("there is no file system here that keeps such times")
    project = shared / f"toolyard-{os.getpid()}"
    project.mkdir()
    try:
        put(project, {"a": "", "b": ""})
        os.utime(project / "a", (0, 2**62))
        with toolyard.open(project=project, home=tmp_path / "home") as yard:
            listed = entries(yard.call("LS"))
    finally:
        for path in (project / "a", project / "b"):
            path.unlink()
        project.rmdir()
    assert [sorted(entry) for entry in listed] == [["path", "size", "type"], ["mtime", "path", "size", "type"]]


@pytest.mark.requirement("code:os-refusal", "ls:depth", "envelope:text")
def test_a_folder_that_may_not_be_read_is_counted_and_the_rest_is_listed() -> None:
    with shared_project() as project:
        put(project, {"closed/x": "", "open/y": ""})
        (project / "closed").chmod(0)
        [listed] = call_as_nobody(project, ("LS", {"depth": 2}))
    assert (listed["status"], [entry["path"] for entry in listed["data"]["entries"]]) == (
        "partial",
        ["closed/", "open/", "open/y"],
    )
    assert listed["stats"]["skipped_unreadable"] == 1
    assert listed["text"] == ("Listed 3 entries in '.'. Not readable: 1 of the folders. Check their permissions.")


@pytest.mark.requirement("ls:ignored")
@pytest.mark.parametrize("kind", ["folder", "fifo", "link"])
def test_an_ignore_file_that_is_none_does_not_disturb(yard: BlockingYard, project: Path, kind: str) -> None:
    put(project, {"a": "", "rules": "a\n"})
    match kind:
        case "folder":
            (project / ".gitignore").mkdir()
        case "fifo":
            os.mkfifo(project / ".gitignore")
        case _:
            (project / ".gitignore").symlink_to("rules")
    assert paths(yard.call("LS")) == ["a", "rules"]


@pytest.mark.requirement("ls:entries", "s:S-16")
def test_an_entry_at_the_end_of_a_very_deep_path_is_still_listed(yard: BlockingYard, project: Path) -> None:
    """Its path alone is longer than an answer should be, but a page without entries would never end."""
    fds = [os.open(project, os.O_RDONLY)]
    name = "d" * 255
    for _ in range(210):
        os.mkdir(name, dir_fd=fds[-1])
        fds.append(os.open(name, os.O_RDONLY, dir_fd=fds[-1]))
    try:
        os.close(os.open("leaf", os.O_CREAT, dir_fd=fds[-1]))
        path = f"{name}/" * 210 + "leaf"
        assert len(path) > MAX_BYTES
        assert paths(yard.call("LS", {"path": path.removesuffix("/leaf")})) == [path]
        os.unlink("leaf", dir_fd=fds[-1])
    finally:
        while len(fds) > 1:
            os.close(fds.pop())
            os.rmdir(name, dir_fd=fds[-1])
        os.close(fds.pop())
