"""A disk that is full, has no room for names, or fails to sync: clear words, nothing lost, and all well when it is."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.invariants import hold, read
from tests.crash.refuse import AVAILABLE
from tests.crash.scene import ENVIRONMENT, ROOT, Ended, Scene, ended

COMMANDS = ["schedule", "rule", "trust", "count", "write", "edit"]


def may_mount() -> bool:
    """Whether a test may have a file system of its own."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0


def starved(scene: Scene, fault: str, *before: str) -> Ended:
    command = [*before, sys.executable, "-m", "tests.crash.starved", str(scene.place), str(scene.port), fault]
    host = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=ENVIRONMENT
    )
    done = ended(host)
    assert done.code == 0, done.errors
    return done


def mounted(scene: Scene, fault: str, options: str) -> Ended:
    scene.place.mkdir()
    mount = f'mount -t tmpfs -o {options} tmpfs "$0" && exec "$@"'
    return starved(scene, fault, "unshare", "-rm", "sh", "-c", mount, str(scene.place))


def problems(host: Ended, when: str) -> dict[str, str]:
    return {ack["command"]: ack["problem"] for ack in host.of("command") if ack["when"] == when}


@pytest.mark.skipif(not may_mount(), reason="needs a file system of its own (unshare and mount)")
@pytest.mark.requirement("r:R62")
def test_a_full_disk_refuses_new_work_in_clear_words_and_room_makes_all_well(tmp_path: Path) -> None:
    host = mounted(Scene(tmp_path / "scene"), "full", "size=3m")
    nothing = dict.fromkeys(COMMANDS, "")
    assert (problems(host, "before"), problems(host, "after")) == (nothing, nothing)
    said = problems(host, "during")
    assert [command for command in COMMANDS if "the disk is full" not in said[command]] == []
    files = host.of("files")[0]
    assert (files["old.txt"], set(files)) == ("old\nbefore\nafter\n", {"what", "old.txt", "before.txt", "after.txt"})


@pytest.mark.skipif(not may_mount(), reason="needs a file system of its own (unshare and mount)")
@pytest.mark.requirement("r:R63")
def test_a_disk_without_room_for_another_file_is_treated_as_a_full_one(tmp_path: Path) -> None:
    host = mounted(Scene(tmp_path / "scene"), "inodes", "size=64m,nr_inodes=200")
    nothing = dict.fromkeys(COMMANDS, "")
    assert (problems(host, "before"), problems(host, "after")) == (nothing, nothing)
    said = problems(host, "during")
    assert "the disk is full" in said["trust"]
    assert [command for command in ("write", "edit") if "The disk is full" not in said[command]] == []
    files = host.of("files")[0]
    assert (files["old.txt"], set(files)) == ("old\nbefore\nafter\n", {"what", "old.txt", "before.txt", "after.txt"})


@pytest.mark.skipif(not AVAILABLE, reason="needs a kernel that can refuse a call (seccomp)")
@pytest.mark.requirement("r:R63", "r:R08", "p:P1")
async def test_nothing_is_acknowledged_that_could_not_be_synced(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "scene").lay_out()
    host = starved(scene, "fsync")
    assert problems(host, "before") == dict.fromkeys(COMMANDS, "")
    said = problems(host, "during")
    assert [command for command in ("schedule", "rule", "trust", "write", "edit") if not said[command]] == []
    assert said["count"] == ""  # the journal is no promise: it does not wait for the disk
    assert "EXECUTION_ERROR" in said["edit"]
    files = host.of("files")[0]
    assert (files["old.txt"], set(files)) == ("old\nbefore\n", {"what", "old.txt", "before.txt"})
    await hold(scene, host)
    assert len(read(scene).of("schedule")) == 1, "what was refused is not there either"
