"""Undo: the files of a call as they were before it, all of them or none."""

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import number_batch
from tests.workspace.test_arranger import tree
from tests.workspace.vectors import put
from toolyard.config import load_config
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.workspace.changes import undo_records
from toolyard.yard.yard import Yard

pytestmark = pytest.mark.requirement("journal:undo")

NOTEBOOK = (
    '{"cells":[{"cell_type":"code","source":"1","metadata":{},"outputs":[],"execution_count":null}],"metadata":{}}'
)
MOVE_PATCH = """*** Begin Patch
*** Update File: a.txt
*** Move to: new/b.txt
@@
-one
+ONE
*** Delete File: run.sh
*** End Patch"""


class Bench:
    def __init__(self, yard: Yard, project: Path, home: Path) -> None:
        self.yard, self.project, self.records = yard, project, home / "undo"

    async def run(self, tool: str, **arguments: Any) -> str:
        """The id of a call that succeeded."""
        call = self.yard.calls.request(tool, arguments, force=True)
        outcome = await self.yard.calls.settle(call)
        assert outcome.envelope.error is None, outcome.envelope.text
        return call.id

    async def refused(self, call_id: str) -> Failure:
        before = state(self.project)
        with pytest.raises(Failure) as caught:
            await self.yard.calls.undo(call_id)
        assert state(self.project) == before
        return caught.value


def state(root: Path) -> dict[str, Any]:
    """Every file, link and folder, with content and mode."""
    folders = {path.relative_to(root).as_posix(): None for path in root.rglob("*") if path.is_dir()}
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in root.rglob("*")}
    return {**folders, **tree(root), "modes": modes}


@pytest.fixture
async def bench(project: Path, tmp_path: Path) -> AsyncIterator[Bench]:
    put(project, {"a.txt": "one\ntwo\nthree\n", "run.sh": "echo\n", "d/x": "x", "l": {"symlink": "a.txt"}})
    put(project, {"nb.ipynb": NOTEBOOK})
    (project / "run.sh").chmod(0o750)
    home = tmp_path / "home"
    async with Yard(load_config(project, home)) as yard:
        yield Bench(yard, project, home)


def operator(command: str, **arguments: str) -> tuple[str, dict[str, Any]]:
    return "FileOperator", {"command": command, **arguments}


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "write": ("Write", {"path": "a.txt", "content": "other"}),
    "write new": ("Write", {"path": "deep/er/new.txt", "content": "new"}),
    "write through a link": ("Write", {"path": "l", "content": "other"}),
    "empty": ("Write", {"path": "a.txt", "content": ""}),
    "edit": ("Edit", {"path": "a.txt", "old_string": "two", "new_string": "2"}),
    "edit at the start": ("Edit", {"path": "a.txt", "old_string": "one", "new_string": "oone"}),
    "edit at the end": ("Edit", {"path": "a.txt", "old_string": "three\n", "new_string": ""}),
    "multi": ("MultiEdit", {"path": "a.txt", "edits": [{"old_string": "o", "new_string": "O", "replace_all": True}]}),
    "notebook": ("NotebookEdit", {"path": "nb.ipynb", "cell_number": 0, "new_source": "2"}),
    "patch": ("ApplyPatch", {"patch": MOVE_PATCH}),
    "WriteFile": operator("WriteFile", filePath="n/a.txt", content="new"),
    "WriteFile beside": operator("WriteFile", filePath="a.txt", content="new"),
    "AppendFile": operator("AppendFile", filePath="a.txt", content="four\n"),
    "EditFile": operator("EditFile", filePath="a.txt", content="all new"),
    "ApplyDiff": operator("ApplyDiff", filePath="a.txt", searchString="two", replaceString="2"),
    "CopyFile": operator("CopyFile", sourcePath="run.sh", destinationPath="new/"),
    "MoveFile": operator("MoveFile", sourcePath="run.sh", destinationPath="new/deep/there.sh"),
    "RenameFile folder": operator("RenameFile", sourcePath="d", destinationPath="e"),
    "MoveFile link": operator("MoveFile", sourcePath="l", destinationPath="d"),
    "DeleteFile": operator("DeleteFile", filePath="run.sh"),
    "DeleteFile folder": operator("DeleteFile", filePath="d"),
    "CreateDirectory": operator("CreateDirectory", directoryPath="f/g/h"),
    "CreateCanvas": operator("CreateCanvas", fileName="c.md", content="x"),
}


@pytest.mark.parametrize("name", CALLS)
async def test_every_way_to_change_files_can_be_undone_and_done_again(bench: Bench, name: str) -> None:
    tool, arguments = CALLS[name]
    before = state(bench.project)
    call_id = await bench.run(tool, **arguments)
    after = state(bench.project)
    assert after != before
    undone = await bench.yard.calls.undo(call_id)
    assert state(bench.project) == before
    assert undone.restored or undone.deleted
    assert all(path in before for path in undone.restored)
    assert all(path in after and path not in before for path in undone.deleted)
    again = await bench.yard.calls.undo(f"undo:{call_id}")
    assert state(bench.project) == after
    assert all(path in after for path in again.restored)
    assert set(undone.deleted) <= set(again.restored)
    assert await bench.yard.calls.undo(call_id) == undone
    assert state(bench.project) == before


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("write", "a.txt"),
        ("write new", "deep/er/new.txt"),
        ("edit", "a.txt"),
        ("patch", "new/b.txt"),
        ("CopyFile", "new/run.sh"),
        ("MoveFile", "new/deep/there.sh"),
    ],
)
@pytest.mark.parametrize("how", ["changed", "removed", "folder"])
async def test_a_file_that_changed_since_is_named_and_nothing_is_touched(
    bench: Bench, name: str, path: str, how: str
) -> None:
    tool, arguments = CALLS[name]
    call_id = await bench.run(tool, **arguments)
    file = bench.project / path
    times = file.stat()
    content = file.read_bytes()
    file.unlink()
    if how == "changed":
        file.write_bytes(content[:-1] + b"?")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # judged by content, never by time
    elif how == "folder":
        file.mkdir()
    failure = await bench.refused(call_id)
    assert (failure.code, failure.reason) == (ErrorCode.CONFLICT, Reason.STALE)
    assert f"'{path}'" in failure.message


async def test_a_file_with_the_same_content_again_is_unchanged(bench: Bench) -> None:
    call_id = await bench.run("Write", path="a.txt", content="other")
    (bench.project / "a.txt").write_text("else")
    (bench.project / "a.txt").write_text("other")
    assert (await bench.yard.calls.undo(call_id)).restored == ["a.txt"]
    assert (bench.project / "a.txt").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize("name", ["DeleteFile", "MoveFile", "patch"])
async def test_what_took_the_place_of_a_file_that_went_is_never_replaced(bench: Bench, name: str) -> None:
    tool, arguments = CALLS[name]
    call_id = await bench.run(tool, **arguments)
    (bench.project / "run.sh" if name != "patch" else bench.project / "a.txt").write_text("mine")
    failure = await bench.refused(call_id)
    assert failure.code is ErrorCode.CONFLICT


async def test_a_folder_on_the_way_that_became_a_link_is_not_followed(bench: Bench) -> None:
    call_id = await bench.run("Write", path="d/x", content="y")
    (bench.project / "d").rename(bench.project / "real")
    (bench.project / "d").symlink_to("real")
    assert (await bench.refused(call_id)).reason is Reason.STALE


async def test_a_made_folder_stays_when_something_else_stands_in_it(bench: Bench) -> None:
    call_id = await bench.run("Write", path="new/one.txt", content="1")
    (bench.project / "new/two.txt").write_text("2")
    await bench.yard.calls.undo(call_id)
    assert [path.name for path in (bench.project / "new").iterdir()] == ["two.txt"]
    folder = await bench.run("FileOperator", command="CreateDirectory", directoryPath="made")
    (bench.project / "made/x").write_text("x")
    assert "'made'" in (await bench.refused(folder)).message


async def test_a_batch_of_writes_is_undone_as_one(bench: Bench) -> None:
    before = state(bench.project)
    call_id = await bench.run(
        "Edit",
        **number_batch(
            [
                {"path": "a.txt", "old_string": "one", "new_string": "1"},
                {"path": "a.txt", "old_string": "1\ntwo", "new_string": "12"},
                {"path": "run.sh", "old_string": "echo", "new_string": "exit"},
            ]
        ),
    )
    assert (bench.project / "a.txt").read_text() == "12\nthree\n"
    after = state(bench.project)
    (bench.project / "run.sh").write_text("changed")
    assert "'run.sh'" in (await bench.refused(call_id)).message
    (bench.project / "run.sh").write_text("exit\n")
    assert (await bench.yard.calls.undo(call_id)).restored == ["a.txt", "run.sh"]
    assert state(bench.project) == before
    await bench.yard.calls.undo(f"undo:{call_id}")
    assert state(bench.project) == after
    assert (await bench.refused(f"{call_id}#2")).code is ErrorCode.INVALID_PARAM


MIXED = number_batch(
    [
        {"command": "WriteFile", "filePath": "w/new.txt", "content": "new"},
        {"command": "DeleteFile", "filePath": "run.sh"},
        {"command": "MoveFile", "sourcePath": "w/new.txt", "destinationPath": "moved.txt"},
        {"command": "AppendFile", "filePath": "moved.txt", "content": "er"},
        {"command": "RenameFile", "sourcePath": "d", "destinationPath": "e"},
    ]
)


async def test_a_batch_of_everything_is_undone_in_reverse_order(bench: Bench) -> None:
    before = state(bench.project)
    call_id = await bench.run("FileOperator", **MIXED)
    assert (bench.project / "moved.txt").read_text() == "newer"
    await bench.yard.calls.undo(call_id)
    assert state(bench.project) == before


async def test_a_batch_that_cannot_be_undone_to_its_beginning_is_as_it_was_and_can_be_undone_later(
    bench: Bench,
) -> None:
    before = state(bench.project)
    call_id = await bench.run("FileOperator", **MIXED)
    (bench.project / "run.sh").write_text("in the way")
    assert (await bench.refused(call_id)).code is ErrorCode.CONFLICT
    assert (bench.project / "moved.txt").read_text() == "newer"
    (bench.project / "run.sh").unlink()
    await bench.yard.calls.undo(call_id)
    assert state(bench.project) == before


async def test_the_whole_files_of_a_batch_are_those_before_its_first_write_and_after_its_last(bench: Bench) -> None:
    async def files() -> list[tuple[str, str | None, str | None]]:
        return [
            (one.path, one.before.text, one.after.text) for one in await bench.yard.calls.list_written_files(call_id)
        ]

    edits = [
        {"path": "a.txt", "old_string": "one", "new_string": "1"},
        {"path": "run.sh", "old_string": "echo", "new_string": "exit"},
        {"path": "l", "old_string": "1\ntwo", "new_string": "12"},  # a link to a.txt
    ]
    call_id = await bench.run("Edit", **number_batch(edits))
    both = [("a.txt", "one\ntwo\nthree\n", "12\nthree\n"), ("run.sh", "echo\n", "exit\n")]
    assert await files() == both
    (bench.project / "run.sh").unlink()
    assert await files() == [both[0], ("run.sh", None, None)]
    (bench.project / "run.sh").symlink_to(bench.project / "a.txt")
    assert await files() == [both[0], ("run.sh", None, None)]
    (bench.project / "run.sh").unlink()
    (bench.project / "run.sh").write_text("exit\n")
    await bench.yard.calls.undo(call_id)
    assert sorted(await files()) == both
    call_id = await bench.run("FileOperator", **MIXED)  # what was moved away after it was written is not there
    assert await files() == [("w/new.txt", None, None), ("moved.txt", "new", "newer")]


async def test_a_call_is_undone_once(bench: Bench) -> None:
    call_id = await bench.run("Write", path="a.txt", content="other")
    await bench.yard.calls.undo(call_id)
    failure = await bench.refused(call_id)
    assert (failure.code, failure.message) == (ErrorCode.CONFLICT, f"'{call_id}' was undone already.")
    assert f"undo:{call_id}" in failure.hint


async def test_unknown_calls_and_calls_that_changed_nothing_are_told_apart(bench: Bench) -> None:
    looked = await bench.run("Read", path="a.txt")
    tried = await bench.run("Write", path="a.txt", content="x", dry_run=True)
    for call_id, words in [
        ("call_x", "No call"),
        ("../../x", "No call"),
        (looked, "nothing to"),
        (tried, "nothing to"),
    ]:
        failure = await bench.refused(call_id)
        assert (failure.code, words in failure.message) == (ErrorCode.NOT_FOUND, True), failure.message


async def test_a_failed_write_leaves_nothing_to_undo(bench: Bench) -> None:
    call = bench.yard.calls.request("Edit", {"path": "a.txt", "old_string": "missing", "new_string": "x"})
    await bench.yard.calls.settle(call)
    assert (await bench.refused(call.id)).code is ErrorCode.NOT_FOUND


@pytest.mark.skipif(os.name != "posix", reason="names are bytes there only")
async def test_a_name_that_is_no_text_comes_back_with_its_own_bytes(bench: Bench) -> None:
    name = os.fsencode(bench.project) + b"/\xe9.txt"
    try:
        put(bench.project, {os.fsdecode(b"\xe9.txt"): "old\n"})
    except OSError:
        pytest.skip("this file system takes only text")
    before = sorted(os.listdir(os.fsencode(bench.project)))
    deleted = await bench.run("ApplyPatch", patch="*** Begin Patch\n*** Delete File: \\xe9.txt\n*** End Patch")
    assert name not in [os.fsencode(bench.project) + b"/" + left for left in os.listdir(os.fsencode(bench.project))]
    await bench.yard.calls.undo(deleted)
    moved = await bench.run("FileOperator", command="MoveFile", sourcePath="\\xe9.txt", destinationPath="d/plain")
    await bench.yard.calls.undo(moved)
    assert sorted(os.listdir(os.fsencode(bench.project))) == before


# --- what is kept


async def test_records_are_for_the_owner_only_and_hold_only_what_was_taken_away(bench: Bench) -> None:
    (bench.project / "big").write_text("0123456789\n" * 100_000 + "old" + "9876543210\n" * 100_000)
    await bench.run("Edit", path="big", old_string="old", new_string="new")
    assert stat.S_IMODE(bench.records.stat().st_mode) == 0o700
    (record,) = bench.records.iterdir()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert record.stat().st_size < 500


async def test_what_is_too_large_is_not_kept_and_said(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo_records, "MAX_BYTES", 1000)
    (bench.project / "a.txt").write_text("x" * 1001)
    call_id = await bench.run("Write", path1="d/x", content1="y", path2="a.txt", content2="", path3="d/z", content3="z")
    failure = await bench.refused(call_id)
    assert (failure.reason, "1000 bytes" in failure.message) == (Reason.TOO_LARGE, True)
    assert sum(record.stat().st_size for record in bench.records.iterdir()) < 1000


@pytest.mark.parametrize("cut", [0.2, 0.9])
async def test_a_record_that_was_cut_off_is_damaged_and_undoes_nothing(bench: Bench, cut: float) -> None:
    call_id = await bench.run("Write", path="a.txt", content="other" * 10)
    (record,) = bench.records.iterdir()
    content = record.read_bytes()
    record.write_bytes(content[: int(len(content) * cut)])
    assert "damaged" in (await bench.refused(call_id)).message


async def test_a_record_that_cannot_be_written_does_not_fail_the_call(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.records.parent.mkdir(exist_ok=True)
    bench.records.write_text("in the way")
    call_id = await bench.run("Write", path="a.txt", content="other")
    assert (bench.project / "a.txt").read_text() == "other"
    assert f"{call_id} cannot be undone" in caplog.text


async def test_calls_share_a_file_and_each_is_undone_by_itself_also_by_another_host(bench: Bench) -> None:
    for number in range(3):
        (bench.project / f"{number}.txt").write_text("old")
    ids = [await bench.run("Write", path=f"{number}.txt", content="new") for number in range(3)]
    assert len(list(bench.records.iterdir())) == 1
    async with Yard(load_config(bench.project, bench.records.parent)) as other:
        assert (await other.calls.undo(ids[1])).restored == ["1.txt"]
        assert (await other.calls.undo(f"undo:{ids[1]}")).restored == ["1.txt"]
        assert (await other.calls.undo(ids[0])).restored == ["0.txt"]
    assert "undone already" in (await bench.refused(ids[0])).message
    assert (await bench.yard.calls.undo(ids[1])).restored == ["1.txt"]
    found = [(bench.project / f"{number}.txt").read_text() for number in range(3)]
    assert found == ["old", "old", "new"]


async def test_the_steps_of_a_batch_are_in_order_over_several_files(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo_records, "_ENTRIES", 2)
    texts = [f"{number}" * 5 for number in range(9)]
    items = number_batch([{"path": "a.txt", "content": text} for text in texts])
    before = (bench.project / "a.txt").read_text()
    call_id = await bench.run("Write", **items)
    assert len(list(bench.records.iterdir())) == 5
    assert (await bench.yard.calls.undo(call_id)).restored == ["a.txt"]
    assert (bench.project / "a.txt").read_text() == before


async def test_an_entry_that_was_cut_off_takes_no_other_with_it(bench: Bench) -> None:
    ids = [await bench.run("Write", path="a.txt", content=f"{number}") for number in range(3)]
    (record,) = bench.records.iterdir()
    record.write_bytes(record.read_bytes()[:-1])
    assert "damaged" in (await bench.refused(ids[2])).message
    (bench.project / "a.txt").write_text("1")
    assert (await bench.yard.calls.undo(ids[1])).restored == ["a.txt"]
    assert (bench.project / "a.txt").read_text() == "0"


async def test_a_step_that_cannot_be_kept_takes_its_call_with_it_and_the_next_call_is_kept(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await bench.run("Write", path="a.txt", content="zero")
    real, written = undo_records._write_all, list[bytes]()

    def full(fd: int, content: bytes) -> None:
        written.append(content)
        if len(written) == 2:
            os.write(fd, content[:60])
            raise OSError(28, "No space left on device")
        real(fd, content)

    monkeypatch.setattr(undo_records, "_write_all", full)
    half = await bench.run("Write", path1="a.txt", content1="first", path2="a.txt", content2="second")
    after = await bench.run("Write", path="a.txt", content="third")
    assert len(written) == 3
    assert (await bench.refused(half)).code is ErrorCode.NOT_FOUND
    assert (await bench.yard.calls.undo(after)).restored == ["a.txt"]
    (bench.project / "a.txt").write_text("zero")
    assert (await bench.yard.calls.undo(before)).restored == ["a.txt"]


async def test_the_oldest_records_go(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo_records, "_ENTRIES", 1)
    ids = [await bench.run("Write", path="a.txt", content=f"{number}") for number in range(4)]
    old = bench.yard.clock.now().timestamp() - undo_records.RETENTION.total_seconds()
    for number, record in enumerate(sorted(bench.records.iterdir(), key=lambda record: record.stat().st_mtime_ns)):
        os.utime(record, (old - 60, old - 60) if number == 0 else (old + 60 * number, old + 60 * number))
    records = bench.yard._built_in.undo._records
    records.remove_oldest()
    assert (await bench.refused(ids[0])).code is ErrorCode.NOT_FOUND
    monkeypatch.setattr(undo_records, "MAX_FILES", 2)
    records.remove_oldest()
    assert len(list(bench.records.iterdir())) == 2
    monkeypatch.setattr(undo_records, "MAX_TOTAL", 300)
    records.remove_oldest()
    assert (await bench.yard.calls.undo(ids[3])).restored == ["a.txt"]
    assert (await bench.refused(ids[2])).code is ErrorCode.NOT_FOUND


async def test_large_records_are_bounded_as_they_are_written(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo_records, "_LARGE", 1000)
    monkeypatch.setattr(undo_records, "MAX_TOTAL", 5000)
    for number in range(8):
        (bench.project / "a.txt").write_text(f"{number}" * 2000)
        await bench.run("Write", path="a.txt", content="")
    assert 1 <= len(list(bench.records.iterdir())) <= 3


async def test_another_project_with_the_same_home_knows_nothing_of_the_call(bench: Bench, tmp_path: Path) -> None:
    call_id = await bench.run("Write", path="a.txt", content="other")
    put(tmp_path / "second", {"a.txt": "other"})
    async with Yard(load_config(tmp_path / "second", bench.records.parent)) as other:
        with pytest.raises(Failure, match="ran in the project"):
            await other.calls.undo(call_id)
    assert (tmp_path / "second/a.txt").read_text() == "other"


async def test_a_closed_yard_undoes_nothing(bench: Bench) -> None:
    call_id = await bench.run("Write", path="a.txt", content="other")
    await bench.yard.close()
    with pytest.raises(RuntimeError, match="closed"):
        await bench.yard.calls.undo(call_id)
