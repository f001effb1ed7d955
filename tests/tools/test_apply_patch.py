"""ApplyPatch on real files: all of a patch or nothing, also when the process dies in between."""

import errno
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import toolyard
from tests.protocol.test_apply_patch import CASES, DECISIONS
from toolyard.blocking import BlockingYard
from toolyard.config import load_config
from toolyard.protocol.envelope import Envelope, Status
from toolyard.yard.yard import Yard

STEP = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 3  # of the moments at which a process dies
WAIT_S = 120
TWO_FILES = """*** Begin Patch
*** Update File: a.txt
@@
-one
+ONE
*** Add File: sub/new.txt
+new
*** Delete File: gone.txt
*** Update File: b.txt
*** Move to: moved/b.txt
@@
 keep
-two
+TWO
*** End Patch
"""


def error_of(envelope: Envelope) -> tuple[str | None, Any]:
    return envelope.error.code.value if envelope.error else None, envelope.context.get("reason")


def lay_out(root: Path, files: dict[str, str]) -> None:
    for name, value in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(value.encode())


def read_files(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def four(project: Path) -> Path:
    lay_out(project, {"a.txt": "one\nrest\n", "gone.txt": "x\n", "b.txt": "keep\r\ntwo\r\n", "other.txt": "other\n"})
    return project


AFTER = {
    "a.txt": b"ONE\nrest\n",
    "sub/new.txt": b"new\n",
    "moved/b.txt": b"keep\r\nTWO\r\n",
    "other.txt": b"other\n",
}


@pytest.mark.requirement("applypatch:formats", "applypatch:data")
def test_a_patch_adds_updates_moves_and_deletes_files(four: Path, yard: BlockingYard) -> None:
    envelope = yard.call("ApplyPatch", {"patch": TWO_FILES})
    assert (envelope.status, read_files(four)) == (Status.SUCCESS, AFTER)
    files: Any = envelope.data["files"]
    assert [(file["path"], file["operation"]) for file in files] == [
        ("a.txt", "update"),
        ("sub/new.txt", "create"),
        ("gone.txt", "delete"),
        ("moved/b.txt", "move"),
    ]
    assert files[0]["structured_patch"] == [
        {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": ["-one", "+ONE", " rest"]}
    ]
    assert files[3]["from"] == "b.txt"
    assert envelope.text == (
        "Applied the patch: updated 'a.txt', created 'sub/new.txt', deleted 'gone.txt', moved 'b.txt' to 'moved/b.txt'."
    )


@pytest.mark.requirement("applypatch:formats")
def test_a_unified_diff_is_applied(four: Path, yard: BlockingYard) -> None:
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,3 @@\n one\n+between\n rest\n"
    assert yard.call("ApplyPatch", {"patch": patch}).status is Status.SUCCESS
    assert (four / "a.txt").read_text() == "one\nbetween\nrest\n"


@pytest.mark.requirement("applypatch:formats", "applypatch:all-or-none")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_case_of_another_tool_gives_its_files_or_changes_nothing(
    project: Path, yard: BlockingYard, case: dict[str, Any]
) -> None:
    lay_out(project, case["before"])
    before = read_files(project)
    envelope = yard.call("ApplyPatch", {"patch": case["patch"]})
    expected, _ = DECISIONS.get(case["id"], (case["after"], ""))
    assert (envelope.error is None) == isinstance(expected, dict)
    wanted = {name: text.encode() for name, text in expected.items()} if isinstance(expected, dict) else before
    assert read_files(project) == wanted


@pytest.mark.requirement("applypatch:all-or-none")
def test_one_file_that_does_not_fit_refuses_the_whole_patch(four: Path, yard: BlockingYard) -> None:
    before = read_files(four)
    envelope = yard.call("ApplyPatch", {"patch": TWO_FILES.replace("-two", "-three")})
    assert error_of(envelope) == ("INVALID_PARAM", "NOT_FOUND_IN_FILE")
    assert "b.txt" in envelope.text
    assert (read_files(four), list(four.rglob(".toolyard-*")), (four / "sub").exists()) == (before, [], False)


@pytest.mark.requirement("write:dry-run")
def test_a_dry_run_checks_and_writes_nothing(four: Path, yard: BlockingYard) -> None:
    before = read_files(four)
    envelope = yard.call("ApplyPatch", {"patch": TWO_FILES, "dry_run": True})
    assert (envelope.status, envelope.data["applied"], read_files(four)) == (Status.PARTIAL, False, before)
    assert envelope.text.startswith("Dry run: the patch fits, nothing was written. It would be: updated 'a.txt',")


@pytest.mark.requirement("edit:stale")
def test_a_patch_that_misses_because_the_file_changed_since_the_read_is_a_conflict(
    four: Path, yard: BlockingYard
) -> None:
    yard.call("Read", {"path": "a.txt"})
    (four / "a.txt").write_text("changed\nrest\n")
    assert error_of(yard.call("ApplyPatch", {"patch": TWO_FILES})) == ("CONFLICT", "STALE")


@pytest.mark.requirement("edit:stale")
def test_only_the_file_whose_text_does_not_fit_can_be_stale(four: Path, yard: BlockingYard) -> None:
    for path in ("a.txt", "b.txt"):
        yard.call("Read", {"path": path})
    (four / "a.txt").write_text("one\nmore\n")
    misfit = TWO_FILES.replace("-two", "-three")
    envelope = yard.call("ApplyPatch", {"patch": misfit})
    assert (*error_of(envelope), envelope.context["path_resolved"]) == ("INVALID_PARAM", "NOT_FOUND_IN_FILE", "b.txt")
    (four / "b.txt").write_text("keep\n2\n")
    envelope = yard.call("ApplyPatch", {"patch": misfit})
    assert (*error_of(envelope), envelope.context["path_resolved"]) == ("CONFLICT", "STALE", "b.txt")


@pytest.mark.requirement("s:S-10:write", "s:S-12:write")
@pytest.mark.parametrize("path", ["../out.txt", "/etc/out.txt", "link/out.txt"])
def test_a_patch_that_leads_outside_is_refused_whole(four: Path, yard: BlockingYard, tmp_path: Path, path: str) -> None:
    (tmp_path / "outside").mkdir()
    (four / "link").symlink_to(tmp_path / "outside")
    before = read_files(four)
    for header in (f"*** Add File: {path}\n+x", f"*** Update File: a.txt\n*** Move to: {path}\n@@\n-one\n+x"):
        envelope = yard.call("ApplyPatch", {"patch": f"*** Begin Patch\n{header}\n*** End Patch\n"})
        assert error_of(envelope)[0] == "ACCESS_DENIED"
    assert (read_files(four), list((tmp_path / "outside").iterdir())) == (before, [])


@pytest.mark.requirement("applypatch:all-or-none")
def test_two_names_of_one_file_are_refused(four: Path, yard: BlockingYard) -> None:
    (four / "same").symlink_to("a.txt")
    patch = (
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** Update File: same\n@@\n-rest\n+2\n*** End Patch\n"
    )
    envelope = yard.call("ApplyPatch", {"patch": patch})
    assert (error_of(envelope)[0], (four / "a.txt").read_text()) == ("INVALID_PARAM", "one\nrest\n")


@pytest.mark.requirement("applypatch:all-or-none")
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_file_that_another_one_needs_as_its_folder_is_refused(
    project: Path, yard: BlockingYard, dry_run: bool
) -> None:
    patch = "*** Begin Patch\n*** Add File: a/b\n+1\n*** Add File: a\n+2\n*** Add File: a.txt\n+3\n*** End Patch\n"
    envelope = yard.call("ApplyPatch", {"patch": patch, "dry_run": dry_run})
    assert (error_of(envelope)[0], list(project.iterdir())) == ("INVALID_PARAM", [])


@pytest.mark.requirement("applypatch:all-or-none")
def test_a_patch_that_fails_leaves_no_folder_behind(project: Path, yard: BlockingYard) -> None:
    """One of the two folders inside ``new`` is made by each of two files."""
    long = "x" * 300
    patch = f"*** Begin Patch\n*** Add File: new/a/f\n+1\n*** Add File: new/b/{long}\n+2\n*** End Patch\n"
    assert error_of(yard.call("ApplyPatch", {"patch": patch}))[0] == "INVALID_PARAM"
    assert list(project.iterdir()) == []


@pytest.mark.requirement("applypatch:all-or-none", "r:R94")
@pytest.mark.parametrize("call", ["fsync", "replace", "link", "unlink"])
def test_a_process_that_dies_leaves_all_of_a_patch_or_nothing(tmp_path: Path, call: str) -> None:
    """Kill at the Nth call of each kind until one run gets through, and look at the project as opened next."""
    code = (
        "import os, signal, sys, toolyard\n"
        "with toolyard.open(home=sys.argv[1]) as yard:\n"
        "    real, left = getattr(os, sys.argv[2]), [int(sys.argv[3])]\n"
        "    def count(*a, **k):\n"
        "        left[0] -= 1\n"
        "        if left[0] < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return real(*a, **k)\n"
        "    setattr(os, sys.argv[2], count)\n"
        "    e = yard.call('ApplyPatch', {'patch': sys.stdin.read()})\n"
        "    assert e.error is None, e.text\n"
    )
    before = {"a.txt": b"one\nrest\n", "gone.txt": b"x\n", "b.txt": b"keep\r\ntwo\r\n", "other.txt": b"other\n"}
    for number in range(0, 40, STEP):
        project, home = tmp_path / f"{number}", tmp_path / f"home{number}"
        project.mkdir()
        for name, value in before.items():
            (project / name).write_bytes(value)
        command = [sys.executable, "-c", code, str(home), call, str(number)]
        done = subprocess.run(
            command, cwd=project, input=TWO_FILES, text=True, capture_output=True, timeout=WAIT_S, check=False
        )
        toolyard.open(project=project, home=home).close()
        assert read_files(project) in (before, AFTER), (number, done.stderr)
        if done.returncode == 0:
            assert read_files(project) == AFTER
            return
        assert done.returncode == -9, done.stderr
    pytest.fail("the patch never got through")


@pytest.mark.requirement("applypatch:all-or-none")
def test_a_promise_does_not_overwrite_what_somebody_wrote_after_the_crash(four: Path, tmp_path: Path) -> None:
    code = (
        "import os, signal, sys, toolyard\n"
        "with toolyard.open(home=sys.argv[1]) as yard:\n"
        "    os.replace = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    yard.call('ApplyPatch', {'patch': sys.stdin.read()})\n"
    )
    home = str(tmp_path / "home")
    subprocess.run(
        [sys.executable, "-c", code, home], cwd=four, input=TWO_FILES, text=True, timeout=WAIT_S, check=False
    )
    (four / "a.txt").write_text("mine\n")
    toolyard.open(project=four, home=home).close()
    assert (four / "a.txt").read_text() == "mine\n"
    assert list(four.rglob(".toolyard-*")) == []
    assert os.listdir(Path(home) / "transactions") != []
    assert list(Path(home, "transactions").rglob("*.json")) == []


@pytest.mark.requirement("s:S-10:write")
def test_nothing_is_written_below_dot_git(four: Path, yard: BlockingYard) -> None:
    patch = "*** Begin Patch\n*** Add File: .git/hooks/post-commit\n+x\n*** End Patch\n"
    for envelope in (
        yard.call("ApplyPatch", {"patch": patch}),
        yard.call("Write", {"path": ".git/hooks/post-commit", "content": "x"}),
        yard.call("Write", {"path": "sub/.GIT/config", "content": "x"}),
    ):
        assert error_of(envelope) == ("ACCESS_DENIED", "DENIED")
    assert not (four / ".git").exists()


@pytest.mark.requirement("applypatch:formats")
def test_a_file_moved_onto_itself_is_only_updated(four: Path, yard: BlockingYard) -> None:
    header = "*** Update File: a.txt\n*** Move to: ./a.txt\n@@\n-one\n+1"
    envelope = yard.call("ApplyPatch", {"patch": f"*** Begin Patch\n{header}\n*** End Patch\n"})
    assert (envelope.error, (four / "a.txt").read_text()) == (None, "1\nrest\n")


MOVES = {
    "a move": "*** Begin Patch\n*** Update File: a.txt\n*** Move to: new/c.txt\n*** End Patch\n",
    "a move with a change": (
        "*** Begin Patch\n*** Update File: a.txt\n*** Move to: new/c.txt\n@@\n-one\n+1\n*** End Patch\n"
    ),
    "a git rename": "diff --git a/a.txt b/new/c.txt\nrename from a.txt\nrename to new/c.txt\n",
    "a git rename with a change": (
        "diff --git a/a.txt b/new/c.txt\nrename from a.txt\nrename to new/c.txt\n"
        "--- a/a.txt\n+++ b/new/c.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n rest\n"
    ),
}


def make_special(file: Path) -> tuple[Any, ...]:
    """Give a file a mode, an owner and, where there are any, an attribute that a new one would not have."""
    os.chown(file, *((65534, 65533) if os.geteuid() == 0 else (-1, -1)))
    file.chmod(0o640)
    with suppress(OSError, AttributeError):
        os.setxattr(file, "user.note", b"kept")
    return special(file)


def special(file: Path) -> tuple[Any, ...]:
    info = file.stat()
    attributes = {name: os.getxattr(file, name) for name in os.listxattr(file)} if hasattr(os, "listxattr") else {}
    return info.st_mode, info.st_uid, info.st_gid, attributes


@pytest.mark.requirement("write:bytes-outside", "r:R95", "journal:undo")
@pytest.mark.parametrize("patch", MOVES.values(), ids=MOVES)
async def test_a_moved_file_keeps_its_mode_owner_and_attributes_and_so_does_its_undoing(
    four: Path, tmp_path: Path, patch: str
) -> None:
    before = make_special(four / "a.txt")
    async with Yard(load_config(four, tmp_path / "home")) as yard:
        call = yard.calls.request("ApplyPatch", {"patch": patch}, force=True)
        assert (await yard.calls.settle(call)).envelope.error is None
        assert (special(four / "new/c.txt"), (four / "a.txt").exists()) == (before, False)
        await yard.calls.undo(call.id)
        assert (special(four / "a.txt"), (four / "new").exists()) == (before, False)
        await yard.calls.undo(f"undo:{call.id}")
        assert (special(four / "new/c.txt"), (four / "a.txt").exists()) == (before, False)


@pytest.mark.requirement("applypatch:all-or-none", "write:bytes-outside", "r:R95")
def test_a_patch_that_fails_half_way_leaves_every_file_with_its_mode_owner_and_attributes(
    four: Path, yard: BlockingYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_files(four)
    kept = {name: make_special(four / name) for name in before}
    real, left = os.fsync, [0]

    def fails_at_last(fd: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise OSError(errno.EIO, "broken")
        real(fd)

    monkeypatch.setattr(os, "fsync", fails_at_last)
    failures = 0
    for number in range(1, 40):
        left[0] = number
        envelope = yard.call("ApplyPatch", {"patch": TWO_FILES})
        if envelope.error is None:
            break
        failures += 1
        assert (read_files(four), {name: special(four / name) for name in before}) == (before, kept), number
    assert failures > 5
    assert read_files(four) == AFTER
