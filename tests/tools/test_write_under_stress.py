"""Writes when the ground moves: closed Yards, private homes, broken records, late cancels, parallel makers."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import toolyard
from tests.waiting import run_loop_once
from toolyard.blocking import BlockingYard
from toolyard.config import load_config
from toolyard.errors import UsageError
from toolyard.protocol.envelope import Envelope, Status
from toolyard.workspace.changes import transaction
from toolyard.yard.yard import Yard

WAIT_S = 120


def error_of(envelope: Envelope) -> tuple[str | None, Any]:
    return envelope.error.code.value if envelope.error else None, envelope.context.get("reason")


def records(home: Path) -> list[Path]:
    return [path for path in (home / "transactions").rglob("*") if path.is_file()]


@pytest.mark.requirement("s:S-13:write")
async def test_a_call_that_begins_after_its_yard_was_closed_reaches_no_folder_at_all(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    yard = Yard(load_config(tmp_path / "a", tmp_path / "home"))
    gate = threading.Event()
    loop = asyncio.get_running_loop()
    busy = [loop.run_in_executor(None, gate.wait, WAIT_S) for _ in range(64)]
    late = asyncio.create_task(yard.call("Write", {"path": "x.txt", "content": "x"}))
    await run_loop_once()
    await yard.close()
    async with toolyard.open_async(project=tmp_path / "b", home=tmp_path / "home"):
        gate.set()
        assert error_of(await late) == ("EXECUTION_ERROR", "CANCELLED")
        await asyncio.gather(*busy)
    assert [list((tmp_path / name).iterdir()) for name in ("a", "b")] == [[], []]


@pytest.mark.requirement("s:S-15:home")
def test_no_tool_enters_a_home_inside_the_project(project: Path) -> None:
    home = project / "state"
    home.mkdir()
    (home / "config.toml").write_text('upstream_key = "sk-needle"\n')
    (project / "seen.txt").write_text("needle\n")
    with toolyard.open(project=project, home=home) as yard:
        for tool, arguments in (
            ("Read", {"path": "state/config.toml"}),
            ("LS", {"path": "state"}),
            ("Write", {"path": "state/transactions/x.json", "content": "{}"}),
            ("Write", {"path": "state/new.txt", "content": "x"}),
            ("Grep", {"pattern": "needle", "path": "state"}),
            ("FileOperator", {"command": "DeleteFile", "filePath": "state/config.toml"}),
        ):
            assert error_of(yard.call(tool, arguments))[0] == "ACCESS_DENIED", tool
        everything = {"include_hidden": True, "include_ignored": True}
        found: Any = yard.call("Grep", {"pattern": "needle", **everything}).data["matches"]
        assert [match["file"] for match in found] == ["seen.txt"]
        assert yard.call("Glob", {"pattern": "**/*", **everything}).data["paths"] == ["seen.txt"]
        listed: Any = yard.call("LS", {"depth": 5, **everything}).data["entries"]
        assert [entry["path"] for entry in listed] == ["state/", "seen.txt"]


@pytest.mark.requirement("r:R94")
def test_one_record_serves_all_writes_and_goes_with_the_yard(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with toolyard.open(project=project, home=home) as yard:
        for number in range(3):
            assert yard.call("Write", {"path": f"{number}.txt", "content": "x"}).error is None
        [record] = records(home)
        assert record.read_bytes() == b""
        with toolyard.open(project=project, home=home) as other:  # which sees that its process lives
            assert other.call("Write", {"path": "3.txt", "content": "x"}).error is None
            assert len(records(home)) == 2
        assert records(home) == [record]
    assert records(home) == []


@pytest.mark.requirement("r:R94")
def test_a_record_that_somebody_removed_is_made_again_before_the_next_write(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (project / "a.txt").write_text("0")
    with toolyard.open(project=project, home=home) as yard:
        yard.call("Edit", {"path": "a.txt", "old_string": "0", "new_string": "1"})
        [record] = records(home)
        record.unlink()
        yard.call("Edit", {"path": "a.txt", "old_string": "1", "new_string": "2"})
        [again] = records(home)
        assert again != record


@pytest.mark.requirement("applypatch:all-or-none")
def test_a_record_that_held_a_promise_is_not_used_again(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (project / "a.txt").write_text("one\n")
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** Add File: b.txt\n+n\n*** End Patch\n"
    with toolyard.open(project=project, home=home) as yard:
        assert yard.call("ApplyPatch", {"patch": patch}).error is None
        assert records(home) == []


@pytest.mark.requirement("r:R94", "s:S-12:write")
@pytest.mark.parametrize(
    "record",
    [
        {"state": "prepare", "drafts": [[".", "../outside.txt"]]},
        {"state": "prepare", "drafts": [1]},
        {"state": "prepare", "drafts": [["..", ".toolyard-" + "0" * 32 + "-0"]]},
    ],
)
def test_a_record_that_was_tampered_with_harms_nothing_and_is_set_aside(
    project: Path, tmp_path: Path, record: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "home"
    (tmp_path / "outside.txt").write_text("mine")
    with toolyard.open(project=project, home=home) as yard:
        yard.call("Write", {"path": "a.txt", "content": "x"})
    [folder] = (home / "transactions").iterdir()
    (folder / "z.json").write_text(json.dumps(record))
    promise = {"folder": ".", "name": "../planted.txt", "draft": ".toolyard-" + "0" * 32 + "-1", "removes": False}
    (folder / "y.json").write_text('{"state": "prepare"}\n' + json.dumps({"writes": [{**promise, "old": None}]}) + "\n")
    with caplog.at_level(logging.WARNING), toolyard.open(project=project, home=home) as yard:
        assert yard.call("Read", {"path": "a.txt"}).status is Status.SUCCESS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "outside.txt", "project"]
    assert not list(folder.glob("*.json"))
    assert "could not be cleared up" in caplog.text


@pytest.mark.requirement("applypatch:all-or-none")
def test_a_patch_that_fails_after_its_promise_is_taken_back(
    project: Path, yard: BlockingYard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (project / name).write_text("one\n")
    patch = (
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** Add File: new/n.txt\n+n\n*** Delete File: b.txt\n"
    )
    real, calls = transaction._put_in_place, []

    def fail_last(*words: Any, **more: Any) -> None:
        calls.append(words)
        if len(calls) == 4:
            raise OSError(5, "Input/output error")
        real(*words, **more)

    with monkeypatch.context() as patched:
        patched.setattr(transaction, "_put_in_place", fail_last)
        envelope = yard.call("ApplyPatch", {"patch": patch + "*** Update File: c.txt\n@@\n-one\n+1\n*** End Patch\n"})
    assert error_of(envelope)[0] == "EXECUTION_ERROR"
    found = {path.name: path.read_text() for path in project.rglob("*") if path.is_file()}
    assert found == {"a.txt": "one\n", "b.txt": "one\n", "c.txt": "one\n"}
    assert (project / "new").exists() is False


@pytest.mark.requirement("applypatch:all-or-none")
def test_a_link_is_not_deleted_through(project: Path, yard: BlockingYard) -> None:
    (project / "real.txt").write_text("x\n")
    (project / "lnk").symlink_to("real.txt")
    envelope = yard.call("ApplyPatch", {"patch": "*** Begin Patch\n*** Delete File: lnk\n*** End Patch\n"})
    assert (error_of(envelope)[0], (project / "real.txt").read_text()) == ("INVALID_PARAM", "x\n")


@pytest.mark.requirement("r:R93")
def test_parallel_makers_of_one_new_file_all_land(project: Path, yard: BlockingYard) -> None:
    for folder in range(10):

        def append(number: int, path: str = f"new{folder}/log.txt") -> str | None:
            call = {"command": "AppendFile", "filePath": path, "content": f"{number}\n"}
            return error_of(yard.call("FileOperator", call))[0]

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(append, range(16)))
        landed = sorted((project / f"new{folder}/log.txt").read_text().split())
        assert landed == sorted(str(number) for number, answer in enumerate(answers) if answer is None)
        assert answers.count(None) >= 9  # only those that met while the folder itself was made are asked to repeat


@pytest.mark.requirement("edit:create", "write:bytes-outside")
def test_an_empty_utf16_file_is_filled_in_utf16(project: Path, yard: BlockingYard) -> None:
    (project / "u.txt").write_bytes(b"\xff\xfe")
    yard.call("Edit", {"path": "u.txt", "old_string": "", "new_string": "abc"})
    assert (project / "u.txt").read_bytes() == b"\xff\xfe" + "abc".encode("utf-16-le")


@pytest.mark.requirement("write:bytes-outside")
def test_a_mark_is_not_written_twice(project: Path, yard: BlockingYard) -> None:
    (project / "b.txt").write_bytes(b"\xef\xbb\xbfhi")
    yard.call("Read", {"path": "b.txt"})
    yard.call("Write", {"path": "b.txt", "content": "\ufeffho"})
    assert (project / "b.txt").read_bytes() == b"\xef\xbb\xbfho"


@pytest.mark.requirement("write:data")
def test_a_path_that_ends_in_a_slash_is_no_file(project: Path, yard: BlockingYard) -> None:
    assert error_of(yard.call("Write", {"path": "folder/", "content": "x"}))[0] == "IS_DIRECTORY"
    assert list(project.iterdir()) == []


@pytest.mark.requirement("write:data", "cli:home")
def test_a_home_that_cannot_be_written_is_named(project: Path) -> None:
    (project / "a.txt").write_text("x\n")
    command = [sys.executable, "-m", "toolyard", "call", "--home", "/dev/null/home"]
    forgotten = "WARNING toolyard.workspace.read_history: what was read could not be remembered: "
    for arguments, before in (  # what reads is recorded or not answered, what writes is recorded or not run
        (["Read", "path=a.txt"], f"{forgotten}/dev/null/home/reads: Not a directory\n"),
        (["Write", "path=n.txt", "content=x"], ""),
    ):
        done = subprocess.run([*command, *arguments], cwd=project, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        why = "cannot be written (Not a directory): make the file and its folder writable"
        assert done.stderr == f"{before}toolyard: /dev/null/home/state.db {why}\n"
    assert not (project / "n.txt").exists()


def until_exists(path: Path) -> None:
    pause = threading.Event()
    for _ in range(WAIT_S * 1000):
        if path.exists():
            return
        pause.wait(0.001)
    pytest.fail(f"{path} was never made")


@pytest.mark.requirement("runner:cancel")
def test_work_that_was_done_before_it_could_be_stopped_is_told_as_done(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolyard.engine.runner._GRACE_S", 60.0)  # however slow the disk is

    async def run() -> Envelope:
        async with toolyard.open_async(project=project, home=tmp_path / "home") as yard:
            files = "".join(f"*** Add File: d/{number}.txt\n+x\n" for number in range(40))
            call = yard.calls.request("ApplyPatch", {"patch": f"*** Begin Patch\n{files}*** End Patch\n"})
            running = asyncio.create_task(yard.calls.settle(call))
            await asyncio.to_thread(until_exists, project / "d")
            yard.calls.cancel(call.id)
            return (await running).envelope

    envelope = asyncio.run(run())
    made = len(list((project / "d").iterdir())) if (project / "d").exists() else 0
    assert made == (40 if envelope.error is None else 0)


@pytest.mark.requirement("python:threads")
def test_a_yard_says_so_when_it_is_used_after_a_fork(project: Path, yard: BlockingYard) -> None:
    yard.call("LS")
    child = os.fork()
    if child == 0:  # pragma: no cover
        signal.alarm(60)
        try:
            yard.call("LS")
        except RuntimeError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.requirement("python:call")
def test_a_call_that_is_no_call_is_refused_clearly(yard: BlockingYard) -> None:
    wrong: list[tuple[Any, Any]] = [("LS", ["a"]), (None, {}), (b"LS", {})]
    for tool, arguments in wrong:
        with pytest.raises(UsageError, match="a call takes the tool's name"):
            yard.call(tool, arguments)
