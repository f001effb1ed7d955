"""Whole results that were too long to show: complete under a name of their own, for seven days."""

import json
import os
import resource
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.workspace.answers import entries, paths
from tests.workspace.vectors import put
from toolyard.blocking import BlockingYard
from toolyard.workspace.outputs import Outputs
from toolyard.workspace.workspace import Workspace

NOW = datetime(2026, 11, 15, 9, 30, 5, tzinfo=UTC)


@pytest.fixture
def outputs(workspace: Workspace) -> Outputs:
    return Outputs(workspace)


def list_stored(project: Path) -> dict[str, str]:
    """All that lies in the folder, but for the file that hides it from git."""
    return {path.name: path.read_text() for path in (project / "tool-output").iterdir() if path.name != ".gitignore"}


def save(outputs: Outputs, tool: str, content: str) -> str:
    """Store ``content`` as the envelope, with an equal text; the path of the envelope."""
    saved = outputs.save(tool, content, content, NOW)
    assert saved.text_path == saved.json_path.removesuffix(".json") + ".txt"
    return saved.json_path


def both(names: dict[str, str]) -> dict[str, str]:
    """What the folder holds for these envelopes and their texts."""
    return names | {name.removesuffix(".json") + ".txt": content for name, content in names.items()}


def age(path: Path, days: float) -> None:
    when = (NOW - timedelta(days=days)).timestamp()
    os.utime(path, (when, when), follow_symlinks=False)


@pytest.mark.requirement("saved:first", "saved:name")
def test_the_whole_result_is_there_before_the_shown_envelope_names_it(yard: BlockingYard, project: Path) -> None:
    put(project, {"a.txt": {"lines": 2000, "of": "line {n} of a"}, "b.txt": {"lines": 2000, "of": "line {n} of b"}})
    arguments = {"path1": "a.txt", "path2": "b.txt"}
    shown = yard.call("Read", dict(arguments), shown=True).to_dict()
    saved = json.loads((project / shown["data"]["truncation"]["full_output_path"]).read_text())
    full = yard.call("Read", dict(arguments)).to_dict()
    assert {**saved, "stats": None} == {**full, "stats": None}
    assert sorted(list_stored(project)) == [
        Path(shown["data"]["truncation"]["full_output_path"]).name,
        Path(shown["context"]["full_text_path"]).name,
    ]


@pytest.mark.requirement("saved:name")
def test_a_result_is_stored_under_its_time_and_tool(outputs: Outputs, project: Path) -> None:
    saved = outputs.save("Read", '{"ä": 1}', "ä is 1", NOW)
    assert (saved.json_path, saved.text_path) == (
        "tool-output/tool_20261115_093005_Read.json",
        "tool-output/tool_20261115_093005_Read.txt",
    )
    for path, content in ((project / saved.json_path, '{"ä": 1}'), (project / saved.text_path, "ä is 1")):
        assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o777) == (content, 0o600)


@pytest.mark.requirement("saved:name", "s:S-17")
@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("../../evil", "evil"),
        ("/etc/passwd", "etcpasswd"),
        ("a/b\\c:d*e?f", "abcdef"),
        ("mcp__server-1.tool", "mcp__server-1tool"),
        ("名前", ""),
        ("..", ""),
        ("\0\n", ""),
        ("x" * 500, "x" * 64),
    ],
)
def test_a_tool_name_is_reduced_and_makes_new_files_inside_the_folder_only(
    outputs: Outputs, project: Path, tmp_path: Path, tool: str, name: str
) -> None:
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    saved = outputs.save(tool, "{}", "", NOW)
    assert saved.json_path == f"tool-output/tool_20261115_093005_{name}.json"
    new = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert new == {project / saved.json_path, project / saved.text_path, project / "tool-output/.gitignore"}


@pytest.mark.requirement("r:R98", "saved:exclusive")
def test_results_of_one_second_are_numbered(outputs: Outputs, project: Path) -> None:
    names = [Path(save(outputs, "LS", str(number))).name for number in range(4)]
    assert names == [f"tool_20261115_093005_LS{end}.json" for end in ("", "_2", "_3", "_4")]
    assert list_stored(project) == both({name: str(number) for number, name in enumerate(names)})


@pytest.mark.requirement("r:R98", "saved:exclusive")
def test_results_of_one_second_from_many_threads_and_yards_are_all_kept(project: Path) -> None:
    """Several Yards on one project know nothing of each other."""
    workspaces = [Workspace(project) for _ in range(4)]
    gate = threading.Barrier(4)

    def save_one(number: int) -> str:
        gate.wait(60)
        return save(Outputs(workspaces[number % 4]), "LS", str(number))

    with ThreadPoolExecutor(4) as pool:
        saved = list(pool.map(save_one, range(40)))
    for workspace in workspaces:
        workspace.close()
    assert both({Path(name).name: str(number) for number, name in enumerate(saved)}) == list_stored(project)
    assert len(list_stored(project)) == 80


@pytest.mark.requirement("saved:exclusive")
def test_what_is_there_is_never_overwritten_and_no_link_is_followed(
    outputs: Outputs, project: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("precious")
    (project / "tool-output").mkdir()
    (project / "tool-output/tool_20261115_093005_LS.json").symlink_to(outside)
    (project / "tool-output/tool_20261115_093005_LS_2.json").symlink_to(tmp_path / "dangling")
    (project / "tool-output/tool_20261115_093005_LS_3.json").mkdir()
    (project / "tool-output/tool_20261115_093005_LS_4.txt").symlink_to(outside)
    assert save(outputs, "LS", "whole") == "tool-output/tool_20261115_093005_LS_5.json"
    assert sorted(path.name for path in (project / "tool-output").glob("*.txt")) == [
        f"tool_20261115_093005_LS_{number}.txt" for number in (4, 5)
    ]
    assert (outside.read_text(), (tmp_path / "dangling").exists()) == ("precious", False)


@pytest.mark.requirement("saved:exclusive")
@pytest.mark.parametrize("in_the_way", ["link", "file"])
def test_a_folder_that_is_not_ours_is_not_used(
    outputs: Outputs, project: Path, tmp_path: Path, in_the_way: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if in_the_way == "link":
        (project / "tool-output").symlink_to(elsewhere)
    else:
        (project / "tool-output").write_text("mine")
    before = set(os.listdir("/dev/fd"))
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        save(outputs, "LS", "whole")
    assert list(elsewhere.iterdir()) == []
    assert set(os.listdir("/dev/fd")) <= before


@pytest.mark.requirement("saved:first")
def test_a_result_that_does_not_fit_on_the_disk_leaves_nothing_behind(outputs: Outputs, project: Path) -> None:
    save(outputs, "LS", "first")
    before = set(os.listdir("/dev/fd"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            save(outputs, "LS", "x" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert list_stored(project) == both({"tool_20261115_093005_LS.json": "first"})
    assert set(os.listdir("/dev/fd")) <= before


@pytest.mark.requirement("saved:exclusive")
def test_drafts_that_a_crash_left_behind_are_in_nobodys_way(outputs: Outputs, project: Path) -> None:
    save(outputs, "LS", "first")
    for number in range(1, 9):  # whatever an earlier process with our number may have begun
        (project / f"tool-output/.writing-{os.getpid()}-{number}").write_text("half")
    assert save(outputs, "LS", "second") == "tool-output/tool_20261115_093005_LS_2.json"


@pytest.mark.requirement("saved:retention")
def test_what_is_older_than_seven_days_is_removed_and_what_is_younger_is_kept(outputs: Outputs, project: Path) -> None:
    folder = project / "tool-output"
    ages = {
        "tool_20261101_000000_LS.json": 14,
        "tool_20261108_093004_LS_2.json": 7.001,
        "tool_20261108_093004_LS_2.txt": 7.001,
        "tool_20261108_093006_LS.json": 6.999,
        ".writing-0123456789abcdef": 8,
        ".writing-fedcba9876543210": 1,
        "notes.txt": 100,
        "tool_x.json": 100,
    }
    put(folder, dict.fromkeys(ages, "x"))
    for name, days in ages.items():
        age(folder / name, days)
    save(outputs, "Read", "x")
    kept = {"tool_20261108_093006_LS.json", ".writing-fedcba9876543210", "notes.txt", "tool_x.json"}
    assert set(list_stored(project)) == kept | {"tool_20261115_093005_Read.json", "tool_20261115_093005_Read.txt"}


def a_folder(path: Path, _: Path) -> None:
    path.mkdir()


def a_full_folder(path: Path, _: Path) -> None:
    put(path, {"x": ""})


def a_link(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


@pytest.mark.requirement("saved:retention")
@pytest.mark.parametrize("make", [a_folder, a_full_folder, a_link])
def test_an_old_thing_that_is_no_file_keeps_nothing_from_being_stored(
    outputs: Outputs, project: Path, tmp_path: Path, make: Callable[[Path, Path], None]
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("precious")
    old = project / "tool-output/tool_20200101_000000_LS.json"
    old.parent.mkdir()
    make(old, outside)
    age(old, 100)
    assert save(outputs, "Read", "x") == "tool-output/tool_20261115_093005_Read.json"
    assert outside.read_text() == "precious"


@pytest.mark.requirement("saved:ignored")
def test_git_does_not_see_the_folder(outputs: Outputs, project: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    save(outputs, "LS", "x")
    seen = subprocess.run(["git", "status", "--porcelain", "-uall"], cwd=project, capture_output=True, check=True)
    assert seen.stdout == b""


@pytest.mark.requirement("saved:ignored")
def test_the_owners_own_ignore_file_in_the_folder_is_kept(outputs: Outputs, project: Path) -> None:
    put(project, {"tool-output/.gitignore": "mine\n"})
    save(outputs, "LS", "x")
    assert (project / "tool-output/.gitignore").read_text() == "mine\n"


@pytest.mark.requirement("saved:ignored", "ls:ignored")
def test_ls_leaves_the_folder_out_unless_it_is_asked_for(outputs: Outputs, yard: BlockingYard, project: Path) -> None:
    put(project, {"a.txt": "", "sub/tool-output/x": ""})
    saved = outputs.save("LS", "x", "x", NOW)
    assert paths(yard.call("LS", {"depth": 2})) == ["sub/", "sub/tool-output/", "a.txt"]
    assert paths(yard.call("LS", {"include_ignored": True})) == ["sub/", "tool-output/", "a.txt"]
    assert paths(yard.call("LS", {"path": "tool-output", "include_ignored": True})) == [
        saved.json_path,
        saved.text_path,
    ]
    assert entries(yard.call("LS", {"path": "tool-output"})) == []
    assert yard.call("Read", {"path": saved.json_path}).data["content"] == "1\tx"
