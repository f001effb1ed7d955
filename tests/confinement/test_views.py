"""Where this system gives no view of the files of its own, a file that has a view cannot be opened at all."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from toolyard.confinement import landlock

SOURCES = Path(__file__).parents[2] / "src"
PROGRAM = """
import json, os, sys, threading
sys.path[:0] = [{sources!r}]
from toolyard.confinement.profile import Profile
from toolyard.confinement.thread import confine_thread
seen = {{}}
def look():
    confine_thread(Profile(read=({tree!r},), write=({own!r},), views=(({hidden!r}, {shown!r}),)), own_mounts=False,
        read_only=False)
    for name in {names!r}:
        try: seen[name] = open(os.path.join({tree!r}, name)).read()
        except OSError as error: seen[name] = type(error).__name__
    seen["listed"] = sorted(os.listdir({tree!r} + "/a"))
    open({own!r} + "/new", "w").close()
thread = threading.Thread(target=look)
thread.start(); thread.join()
print(json.dumps(seen))
"""


@pytest.mark.requirement("confinement:views")
@pytest.mark.skipif(not landlock.interface_version(), reason="this kernel has no Landlock")
def test_without_mounts_everything_but_the_file_is_read_and_it_is_refused(tmp_path: Path) -> None:
    tree, names = tmp_path / "tree", ["top", "a/hidden", "a/beside", "a/b/deep", "own/file"]
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)
    (tree / "a/link").symlink_to("/etc/hostname")
    (tmp_path / "shown").write_text("the view")
    code = PROGRAM.format(
        sources=str(SOURCES), tree=str(tree), own=str(tree / "own"), hidden=str(tree / "a/hidden"),
        shown=str(tmp_path / "shown"), names=names,
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(done.stdout) == {
        "top": "top", "a/hidden": "PermissionError", "a/beside": "a/beside", "a/b/deep": "a/b/deep",
        "own/file": "own/file", "listed": ["b", "beside", "hidden", "link"],
    }  # fmt: skip
