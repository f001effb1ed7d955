"""Write, and what all writing tools promise about the files they touch."""

import errno
import hashlib
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import toolyard
from toolyard.blocking import BlockingYard
from toolyard.protocol.envelope import Envelope, Status

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give files to another user")
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
RACES = 300 if SOAK else 50  # writes into a folder that is swapped meanwhile
WAIT_S = 120


def error_of(envelope: Envelope) -> tuple[str | None, Any]:
    """The error code and the reason of an envelope."""
    return envelope.error.code.value if envelope.error else None, envelope.context.get("reason")


def leftovers(root: Path) -> list[Path]:
    return list(root.rglob(".toolyard-*"))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.requirement("write:data")
def test_a_new_file_is_created_with_the_folders_on_the_way(project: Path, yard: BlockingYard) -> None:
    envelope = yard.call("Write", {"path": "a/b/new.txt", "content": "one\ntwo\n"})
    assert (project / "a/b/new.txt").read_bytes() == b"one\ntwo\n"
    assert envelope.status is Status.SUCCESS
    assert envelope.data == {
        "applied": True,
        "operation": "create",
        "hash": sha256(b"one\ntwo\n"),
        "structured_patch": [{"oldStart": 1, "oldLines": 0, "newStart": 1, "newLines": 2, "lines": ["+one", "+two"]}],
    }
    assert envelope.text == "Created 'a/b/new.txt' (8 bytes)."


@pytest.mark.requirement("patch:budget", "write:data", "applypatch:data")
def test_a_write_whose_patch_is_coarse_says_so_and_is_done(project: Path, yard: BlockingYard) -> None:
    lines = [f"{number:x}\n" for number in range(3000)]
    (project / "a.txt").write_text("".join(lines))
    yard.call("Read", {"path": "a.txt"})
    for envelope in (
        yard.call("Write", {"path": "a.txt", "content": "".join(lines[::-1])}),
        yard.call("ApplyPatch", {"patch": whole_file_patch("a.txt", lines[::-1], lines)}),
    ):
        assert (envelope.status, envelope.context.get("patch")) == (Status.SUCCESS, "coarse"), envelope.text
    assert (project / "a.txt").read_text() == "".join(lines)
    exact = yard.call("Edit", {"path": "a.txt", "old_string": "\nbb7\n", "new_string": "\nend\n"})
    assert (exact.status, "patch" in exact.context) == (Status.SUCCESS, False)


def whole_file_patch(path: str, old: list[str], new: list[str]) -> str:
    gone, come = "".join(f"-{line}" for line in old), "".join(f"+{line}" for line in new)
    return f"--- a/{path}\n+++ b/{path}\n@@ -1,{len(old)} +1,{len(new)} @@\n{gone}{come}"


@pytest.mark.requirement("write:data")
def test_a_new_file_has_the_mode_of_any_new_file(project: Path, yard: BlockingYard) -> None:
    yard.call("Write", {"path": "new.txt", "content": "x"})
    (project / "other.txt").touch()
    modes = [stat.S_IMODE((project / name).stat().st_mode) for name in ("new.txt", "other.txt")]
    assert modes[0] == modes[1]


@pytest.mark.requirement("write:read-first", "write:data")
def test_a_file_that_was_read_is_replaced_and_the_own_write_counts_as_a_read(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_text("old\n")
    yard.call("Read", {"path": "a.txt"})
    first = yard.call("Write", {"path": "a.txt", "content": "new\n"})
    second = yard.call("Write", {"path": "a.txt", "content": "newer\n"})
    assert [envelope.data["operation"] for envelope in (first, second)] == ["update", "update"]
    assert (project / "a.txt").read_text() == "newer\n"


@pytest.mark.requirement("write:read-first")
def test_a_file_that_this_caller_has_not_read_is_not_replaced(
    project: Path, tmp_path: Path, yard: BlockingYard
) -> None:
    (project / "a.txt").write_text("old\n")
    with toolyard.open(project=project, home=tmp_path / "home") as other:
        other.call("Read", {"path": "a.txt"})
    envelope = yard.call("Write", {"path": "a.txt", "content": "new\n"})
    assert error_of(envelope) == ("CONFLICT", "STALE")
    assert "you have not read it" in envelope.text
    assert (project / "a.txt").read_text() == "old\n"


@pytest.mark.requirement("write:read-first", "write:stale-by-hash")
def test_a_file_changed_since_the_read_is_not_replaced_even_at_the_same_time(project: Path, yard: BlockingYard) -> None:
    file = project / "a.txt"
    file.write_text("old\n")
    yard.call("Read", {"path": "a.txt"})
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    file.write_text("odd\n")
    os.utime(file, ns=times)
    envelope = yard.call("Write", {"path": "a.txt", "content": "new\n"})
    assert error_of(envelope) == ("CONFLICT", "STALE")
    assert envelope.context["hash"] == sha256(b"odd\n")
    assert file.read_text() == "odd\n"


@pytest.mark.requirement("write:stale-by-hash")
def test_a_file_that_was_only_touched_is_not_stale(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_text("old\n")
    yard.call("Read", {"path": "a.txt"})
    os.utime(project / "a.txt", (1, 1))
    assert yard.call("Write", {"path": "a.txt", "content": "new\n"}).status is Status.SUCCESS


@pytest.mark.requirement("write:expected-hash")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Write", {"content": "new\n"}),
        ("Edit", {"old_string": "old", "new_string": "new"}),
        ("MultiEdit", {"edits": [{"old_string": "old", "new_string": "new"}]}),
    ],
)
def test_an_expected_hash_is_always_enforced(
    project: Path, yard: BlockingYard, tool: str, arguments: dict[str, Any]
) -> None:
    (project / "a.txt").write_text("old\n")
    wrong = yard.call(tool, {"path": "a.txt", "expected_hash": sha256(b"other"), **arguments})
    assert (error_of(wrong), (project / "a.txt").read_text()) == (("CONFLICT", "STALE"), "old\n")
    right = yard.call(tool, {"path": "a.txt", "expected_hash": sha256(b"old\n").upper(), **arguments})
    assert (right.status, (project / "a.txt").read_text()) == (Status.SUCCESS, "new\n")
    missing = yard.call(tool, {"path": "b.txt", "expected_hash": sha256(b""), **arguments})
    assert error_of(missing) == ("CONFLICT", "STALE")


@pytest.mark.requirement("write:create-only")
def test_create_only_refuses_an_existing_file(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_text("old\n")
    envelope = yard.call("Write", {"path": "a.txt", "content": "new\n", "create_only": True})
    assert (error_of(envelope), (project / "a.txt").read_text()) == (("CONFLICT", "ALREADY_EXISTS"), "old\n")


@pytest.mark.requirement("write:dry-run", "envelope:status:dry-run")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Write", {"content": "new\n", "expected_hash": sha256(b"old\n")}),
        ("Edit", {"old_string": "old", "new_string": "new"}),
        ("MultiEdit", {"edits": [{"old_string": "old", "new_string": "new"}]}),
    ],
)
def test_a_dry_run_shows_the_change_and_writes_nothing(
    project: Path, yard: BlockingYard, tool: str, arguments: dict[str, Any]
) -> None:
    (project / "a.txt").write_text("old\n")
    envelope = yard.call(tool, {"path": "a.txt", "dry_run": True, **arguments})
    assert (envelope.status, envelope.data["applied"]) == (Status.PARTIAL, False)
    assert envelope.data["structured_patch"] == [
        {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-old", "+new"]}
    ]
    assert envelope.text.startswith("Dry run: nothing was written.")
    assert sorted(project.iterdir()) == [project / "a.txt"]
    assert (project / "a.txt").read_text() == "old\n"


@pytest.mark.requirement("write:force")
def test_a_person_at_the_command_line_may_force_a_write_and_is_remembered(project: Path, tmp_path: Path) -> None:
    (project / "a.txt").write_text("old\n")

    def run(*words: str) -> int:
        command = [sys.executable, "-m", "toolyard", "call", *words, "--home", str(tmp_path / "home")]
        return subprocess.run(command, cwd=project, capture_output=True, timeout=WAIT_S, check=False).returncode

    assert run("Write", "path=a.txt", "content=new") == 1
    assert run("Write", "path=a.txt", "content=new", "--force") == 0
    assert run("Write", "path=a.txt", "content=newer") == 0
    (project / "a.txt").write_text("outside")
    assert run("Write", "path=a.txt", "content=x") == 1
    assert run("Read", "path=a.txt") == 0
    assert run("Write", "path=a.txt", "content=y") == 0
    assert (project / "a.txt").read_text() == "y"


@pytest.mark.requirement("write:bytes-outside", "r:R95")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbfold\n", b"\xef\xbb\xbfnew\nline\n"),
        (b"old\r\nold\r\n", b"new\r\nline\r\n"),
        ("旧\n".encode("gb18030"), "new\nline\n".encode("gb18030")),
        (b"\xff\xfeo\0l\0d\0\n\0", b"\xff\xfe" + "new\nline\n".encode("utf-16-le")),
    ],
)
def test_a_replaced_file_keeps_its_encoding_mark_and_line_endings(
    project: Path, yard: BlockingYard, before: bytes, after: bytes
) -> None:
    (project / "a.txt").write_bytes(before)
    yard.call("Read", {"path": "a.txt"})
    envelope = yard.call("Write", {"path": "a.txt", "content": "new\nline\n"})
    assert (envelope.status, (project / "a.txt").read_bytes()) == (Status.SUCCESS, after)


@pytest.mark.requirement("write:bytes-outside", "r:R95")
@pytest.mark.parametrize("mode", [0o600, 0o755, 0o444, 0o4711])
def test_the_mode_is_kept(project: Path, yard: BlockingYard, mode: int) -> None:
    file = project / "run.sh"
    file.write_text("echo a\n")
    file.chmod(mode)
    assert yard.call("Edit", {"path": "run.sh", "old_string": "a\n", "new_string": "b\n"}).status is Status.SUCCESS
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("echo b\n", mode)


@NEEDS_ROOT
@pytest.mark.requirement("write:bytes-outside", "r:R95")
def test_the_owner_is_kept(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_text("a\n")
    os.chown(project / "a.txt", 65534, 65533)
    yard.call("Edit", {"path": "a.txt", "old_string": "a", "new_string": "b"})
    info = (project / "a.txt").stat()
    assert (info.st_uid, info.st_gid) == (65534, 65533)


@pytest.mark.requirement("write:bytes-outside", "r:R95")
def test_extended_attributes_are_kept(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_text("a\n")
    try:
        os.setxattr(project / "a.txt", "user.note", b"kept")
    except (OSError, AttributeError) as error:
        pytest.skip(f"no extended attributes here: {error}")
    yard.call("Edit", {"path": "a.txt", "old_string": "a", "new_string": "b"})
    assert os.getxattr(project / "a.txt", "user.note") == b"kept"


@pytest.mark.requirement("write:bytes-outside", "r:R95", "path:link-inside")
def test_a_link_stays_a_link_and_its_target_changes(project: Path, yard: BlockingYard) -> None:
    (project / "real.txt").write_text("a\n")
    (project / "l1").symlink_to("real.txt")
    (project / "l2").symlink_to("l1")
    envelope = yard.call("Edit", {"path": "l2", "old_string": "a", "new_string": "b"})
    assert envelope.context["path_resolved"] == "real.txt"
    assert ((project / "real.txt").read_text(), (project / "l2").is_symlink()) == ("b\n", True)


@pytest.mark.requirement("s:S-14:write", "r:R95")
def test_other_hard_links_keep_the_old_content(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_text("a\n")
    os.link(project / "a.txt", project / "b.txt")
    yard.call("Edit", {"path": "a.txt", "old_string": "a", "new_string": "b"})
    assert [(project / name).read_text() for name in ("a.txt", "b.txt")] == ["b\n", "a\n"]


@pytest.mark.requirement("r:R95", "s:S-16")
def test_special_files_and_folders_are_refused(project: Path, yard: BlockingYard) -> None:
    os.mkfifo(project / "pipe")
    (project / "folder").mkdir()
    (project / "zero").symlink_to("/dev/zero")
    found = [
        error_of(yard.call("Write", {"path": name, "content": "x", "expected_hash": sha256(b"")}))[0]
        for name in ("pipe", "folder", "zero", ".")
    ]
    assert found == ["INVALID_PARAM", "IS_DIRECTORY", "ACCESS_DENIED", "IS_DIRECTORY"]


@pytest.mark.requirement("r:R95")
def test_a_file_too_large_to_change_is_refused(project: Path, yard: BlockingYard) -> None:
    with (project / "big").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    assert error_of(yard.call("Edit", {"path": "big", "old_string": "a", "new_string": "b"})) == (
        "INVALID_PARAM",
        "TOO_LARGE",
    )


@pytest.mark.requirement("s:S-10:write")
@pytest.mark.parametrize(
    "path", ["../x", "/etc/x", "a/../../x", "sub/../../../x", "//host/share", "../project-evil/x", "..", "x/../../../y"]
)
@pytest.mark.parametrize("tool", ["Write", "Edit", "MultiEdit"])
def test_a_path_that_leads_outside_is_refused_and_nothing_is_written(
    project: Path, yard: BlockingYard, tmp_path: Path, tool: str, path: str
) -> None:
    (project / "sub").mkdir()
    (tmp_path / "home").mkdir(exist_ok=True)  # the journal's
    before = sorted([*tmp_path.glob("*"), *project.rglob("*")])
    edit = {"old_string": "", "new_string": "x"}
    rest: dict[str, dict[str, Any]] = {"Write": {"content": "x"}, "Edit": edit, "MultiEdit": {"edits": [edit]}}
    call = {"path": path, **rest[tool]}
    assert error_of(yard.call(tool, call))[0] == "ACCESS_DENIED"
    assert sorted([*tmp_path.glob("*"), *project.rglob("*")]) == before


@pytest.mark.requirement("s:S-12:write")
def test_a_new_name_in_a_linked_folder_outside_is_refused(project: Path, yard: BlockingYard, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / "link").symlink_to(outside)
    (project / "dangling").symlink_to(outside / "new.txt")
    for path in ("link/new.txt", "link/deep/new.txt", "dangling"):
        assert error_of(yard.call("Write", {"path": path, "content": "x"}))[0] == "ACCESS_DENIED"
    assert list(outside.iterdir()) == []


@pytest.mark.requirement("s:S-13:write")
def test_swapping_a_folder_for_a_link_never_lets_a_write_out(project: Path, yard: BlockingYard, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / "real").mkdir()
    (project / "swap").mkdir()
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            with suppress(OSError):  # the writer may have made the folder anew while it was away
                os.rename(project / "swap", project / "aside")
                os.symlink(outside, project / "swap")
            with suppress(OSError):
                os.unlink(project / "swap")
                os.rename(project / "aside", project / "swap")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(RACES):
            yard.call("Write", {"path": f"swap/{number}.txt", "content": "x"})
    finally:
        stop.set()
        thread.join()
    assert list(outside.iterdir()) == []


@pytest.mark.requirement("r:R93")
def test_parallel_edits_of_one_file_all_land(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_text("".join(f"line {number}\n" for number in range(40)))

    def edit(number: int) -> Status:
        arguments = {"path": "a.txt", "old_string": f"line {number}\n", "new_string": f"LINE {number}\n"}
        return yard.call("Edit", arguments).status

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(edit, range(40))) == {Status.SUCCESS}
    assert (project / "a.txt").read_text() == "".join(f"LINE {number}\n" for number in range(40))


@pytest.mark.requirement("r:R93")
def test_edits_of_two_hosts_on_one_file_all_land(project: Path, tmp_path: Path) -> None:
    (project / "a.txt").write_text("".join(f"line {number}\n" for number in range(20)))
    code = (
        "import sys, toolyard\n"
        "with toolyard.open(home=sys.argv[1]) as yard:\n"
        "    for n in range(int(sys.argv[2]), 20, 2):\n"
        "        e = yard.call('Edit', {'path': 'a.txt', 'old_string': f'line {n}\\n', 'new_string': f'LINE {n}\\n'})\n"
        "        assert e.error is None, e.text\n"
    )
    hosts = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "home"), str(first)], cwd=project)
        for first in (0, 1)
    ]
    assert [host.wait(WAIT_S) for host in hosts] == [0, 0]
    assert (project / "a.txt").read_text() == "".join(f"LINE {number}\n" for number in range(20))


@pytest.mark.requirement("r:R93")
def test_a_write_by_somebody_else_in_the_middle_is_not_lost(
    project: Path, yard: BlockingYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.txt").write_text("old\n")
    sync = os.fsync

    def outsider(fd: int) -> None:
        sync(fd)
        (project / "a.txt").write_text("outside\n")

    monkeypatch.setattr(os, "fsync", outsider)
    envelope = yard.call("Edit", {"path": "a.txt", "old_string": "old", "new_string": "new"})
    assert error_of(envelope) == ("CONFLICT", "STALE")
    assert ((project / "a.txt").read_text(), leftovers(project)) == ("outside\n", [])


@pytest.mark.requirement("write:atomic")
def test_a_reader_sees_the_old_or_the_new_bytes_and_nothing_between(project: Path, yard: BlockingYard) -> None:
    file = project / "a.txt"
    texts = ["a" * 200_000, "b" * 200_000]
    file.write_text(texts[0])
    stop, odd = threading.Event(), []

    def look() -> None:
        while not stop.is_set():
            found = file.read_text()
            if found not in texts:
                odd.append(found)

    thread = threading.Thread(target=look)
    thread.start()
    yard.call("Read", {"path": "a.txt"})
    try:
        for number in range(60):
            content = texts[(number + 1) % 2]
            yard.call("Write", {"path": "a.txt", "content": content, "expected_hash": sha256(file.read_bytes())})
    finally:
        stop.set()
        thread.join()
    assert odd == []


@pytest.mark.requirement("r:R94")
@pytest.mark.parametrize("moment", ["write", "fsync", "replace"])
def test_a_crash_while_writing_leaves_the_old_file_and_no_draft(project: Path, tmp_path: Path, moment: str) -> None:
    (project / "a.txt").write_text("old\n")
    code = (
        "import os, signal, sys, toolyard\n"
        "with toolyard.open(home=sys.argv[1]) as yard:\n"
        "    real = getattr(os, sys.argv[2])\n"
        "    def die(*a, **k):\n"
        "        if sys.argv[2] != 'write' or bytes(a[1]).startswith(b'new'): os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return real(*a, **k)\n"
        "    setattr(os, sys.argv[2], die)\n"
        "    yard.call('Edit', {'path': 'a.txt', 'old_string': 'old', 'new_string': 'new'})\n"
    )
    home = tmp_path / "home"
    done = subprocess.run([sys.executable, "-c", code, str(home), moment], cwd=project, timeout=WAIT_S, check=False)
    assert done.returncode == -9
    assert (project / "a.txt").read_text() == "old\n"
    with toolyard.open(project=project, home=home) as yard:
        assert leftovers(project) == []
        assert yard.call("Edit", {"path": "a.txt", "old_string": "old", "new_string": "new"}).status is Status.SUCCESS
    assert list((home / "transactions").rglob("*.json")) == []


@pytest.mark.requirement("r:R62:files")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_disk_that_fails_leaves_the_old_file_and_no_draft(
    project: Path, yard: BlockingYard, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    (project / "a.txt").write_text("old\n")

    def fail(*words: object, **more: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, fail)
        envelope = yard.call("Edit", {"path": "a.txt", "old_string": "old", "new_string": "new"})
    assert error_of(envelope)[0] == "EXECUTION_ERROR"
    assert ("disk is full" in envelope.text) == (code != errno.EIO)
    assert ((project / "a.txt").read_text(), leftovers(project)) == ("old\n", [])
    assert yard.call("Edit", {"path": "a.txt", "old_string": "old", "new_string": "new"}).status is Status.SUCCESS


@pytest.mark.requirement("write:data")
def test_writing_what_already_stands_there_changes_nothing(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_text("same\n")
    yard.call("Read", {"path": "a.txt"})
    before = (project / "a.txt").stat()
    envelope = yard.call("Write", {"path": "a.txt", "content": "same\n"})
    assert (envelope.status, envelope.text) == (Status.SUCCESS, "'a.txt' already has exactly this content.")
    assert (project / "a.txt").stat().st_ino == before.st_ino


@pytest.mark.requirement("validate:after-write", "validate:status")
def test_what_the_checker_finds_is_told_and_changes_nothing_else(project: Path, yard: BlockingYard) -> None:
    envelope = yard.call("Write", {"path": "bad.py", "content": "def f(:\n"})
    assert (envelope.status, (project / "bad.py").read_text()) == (Status.SUCCESS, "def f(:\n")
    findings: Any = envelope.data["validation"]
    [finding] = findings
    assert (finding["line"], finding["severity"]) == (1, "error")
    assert "validation" not in yard.call("Write", {"path": "good.py", "content": "x = 1\n"}).data
