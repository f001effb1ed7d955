"""The first, the second, the third ... call or statement of an operation fails: old or new, and then all is well.

As SQLite tests itself: N grows until the operation comes through without meeting the fault.
"""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import toolyard
from toolyard.blocking import BlockingYard
from toolyard.errors import ToolyardError
from toolyard.protocol.store import NewEvent, Query, Record
from toolyard.storage import sqlite
from toolyard.storage.sqlite import SqliteStore
from toolyard.web.security import owner_key
from toolyard.workspace import home_folder
from toolyard.workspace.changes import arranger, file_draft, transaction, trash, undo_records
from toolyard.workspace.home_folder import StateFile

MODULES = (file_draft, transaction, transaction, trash, arranger, undo_records, home_folder, owner_key)
CALLS = frozenset({"open", "write", "pwrite", "fsync", "rename", "replace", "link", "mkdir"})
MOST = 60  # calls in one operation
FAULTS = [errno.EIO, errno.ENOSPC, errno.EMFILE]
PATCH = """*** Begin Patch
*** Update File: a.txt
@@
-one
+two
*** Update File: b.txt
@@
-one
+two
*** Delete File: gone.txt
*** End Patch
"""


class Faulty:
    """The module ``os``, one of whose calls fails."""

    def __init__(self, number: int, error: int) -> None:
        self._left, self._error = number, error
        self.met = False

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return self._failing(real) if name in CALLS else real

    def _failing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                self.met = True
                raise OSError(self._error, os.strerror(self._error))
            return real(*arguments, **named)

        return call


@contextmanager
def failing(number: int, error: int) -> Iterator[Faulty]:
    faulty = Faulty(number, error)
    with pytest.MonkeyPatch.context() as patched:
        for module in MODULES:
            patched.setattr(module, "os", faulty)
        yield faulty


def read_files(project: Path) -> dict[str, str]:
    return {path.relative_to(project).as_posix(): path.read_text() for path in project.rglob("*") if path.is_file()}


OPERATIONS: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "write": ("Write", {"path": "a.txt", "content": "two\n"}, {"a.txt": "two\n", "b.txt": "one\n"}),
    "create": ("Write", {"path": "c/d.txt", "content": "x"}, {"a.txt": "one\n", "b.txt": "one\n", "c/d.txt": "x"}),
    "patch": ("ApplyPatch", {"patch": PATCH}, {"a.txt": "two\n", "b.txt": "two\n"}),
    "delete": ("FileOperator", {"command": "DeleteFile", "filePath": "a.txt"}, {"b.txt": "one\n"}),
    "move": (
        "FileOperator",
        {"command": "MoveFile", "sourcePath": "a.txt", "destinationPath": "c.txt"},
        {"b.txt": "one\n", "c.txt": "one\n"},
    ),
}


@pytest.mark.requirement("p:P7", "r:R63", "r:R62:files")
@pytest.mark.parametrize("error", FAULTS, ids=lambda error: errno.errorcode[error])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_file_tool_whose_nth_call_fails_leaves_old_or_new(
    yard: BlockingYard, project: Path, tmp_path: Path, operation: str, error: int
) -> None:
    tool, arguments, after = OPERATIONS[operation]
    before = {"a.txt": "one\n", "b.txt": "one\n"} | ({"gone.txt": "x"} if operation == "patch" else {})
    for number in range(1, MOST):
        for name in list(read_files(project)):
            (project / name).unlink()
        for name, content in before.items():
            (project / name).write_text(content)
            yard.call("Read", {"path": name})
        with failing(number, error) as fault:
            envelope = yard.call(tool, arguments)
        now = read_files(project)
        if not fault.met:
            assert (number > 3, envelope.error, now) == (True, None, after)
            return
        both = {**before, **after}  # a move that was stopped half-way has both names, which loses nothing
        assert now in (before, after, both), number
        assert operation != "patch" or now == (before if envelope.error else after), number
        with toolyard.open(project=project, home=tmp_path / "home"):
            assert read_files(project) == now, f"{number}: the next start does what was said to have failed"
    pytest.fail(f"{operation} makes more than {MOST} calls")


@pytest.mark.requirement("p:P7", "r:R63")
@pytest.mark.parametrize("error", FAULTS, ids=lambda error: errno.errorcode[error])
def test_a_state_file_whose_nth_call_fails_is_old_or_new_and_the_next_change_works(tmp_path: Path, error: int) -> None:
    file = StateFile(tmp_path / "state.json")
    file.update(lambda value: value.update(step=0))
    for number in range(1, MOST):
        step = number
        told = ""
        with failing(number, error) as fault:
            try:
                file.update(lambda value, step=step: value.update(step=step))  # type: ignore[misc]
            except ToolyardError as problem:
                told = str(problem)
        now = StateFile(file.path).read()["step"]
        if not fault.met:
            assert (number > 2, told, now) == (True, "", step)
            return
        assert now == (0 if told else step)
        assert {path.name for path in tmp_path.iterdir()} <= {"state.json", ".state.json.lock"}
        file.update(lambda value: value.update(step=0))
    pytest.fail("a change makes too many calls")


class FaultyConnection(sqlite3.Connection):
    """One of its statements fails."""

    left = 0
    said = ""

    def _fault(self) -> sqlite3.OperationalError:
        fault = sqlite3.OperationalError(self.said)
        fault.sqlite_errorcode = sqlite3.SQLITE_FULL if "full" in self.said else sqlite3.SQLITE_IOERR
        return fault

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        type(self).left -= 1
        if type(self).left == 0:
            raise self._fault()
        return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        type(self).left -= 1
        if type(self).left == 0:
            raise self._fault()
        return super().executemany(*arguments)


@pytest.mark.requirement("r:R62", "r:R63", "p:P1")
@pytest.mark.parametrize("said", ["database or disk is full", "disk I/O error"])
async def test_a_commit_whose_nth_statement_fails_is_stored_whole_or_not_at_all_and_the_next_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    class Module:
        """The module ``sqlite3`` with connections that fail."""

        def __getattr__(self, name: str) -> Any:
            return getattr(sqlite3, name)

        def connect(self, *arguments: Any, **named: Any) -> sqlite3.Connection:
            return sqlite3.connect(*arguments, **named, factory=FaultyConnection)

    monkeypatch.setattr(sqlite, "sqlite3", Module())
    monkeypatch.setattr(FaultyConnection, "said", said)
    store = SqliteStore(tmp_path / "state.db")
    await store.event_span()
    kept = 0
    for number in range(1, MOST):
        records = [Record(kind="thing", id=f"{number}-{half}", state="open", created=1, updated=1, text="word")
                   for half in "ab"]  # fmt: skip
        FaultyConnection.left = number
        told = ""
        try:
            stored = await store.commit(records, [NewEvent(type="made", at=1.0)])
        except ToolyardError as problem:
            stored, told = False, str(problem)
        FaultyConnection.left = 0
        assert ("the disk is full" in told) == (bool(told) and "full" in said)
        kept += stored
        assert await store.count("thing", Query(text="word")) == 2 * kept
        assert await store.event_span() == (1, kept)
        if not told:
            break
        assert await store.commit([Record(kind="other", id=str(number), state="open", created=1, updated=1)])
    assert (kept, number > 8) == (1, True)
    await store.close()
