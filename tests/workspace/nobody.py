"""Calls by a user whom the operating system refuses something, also when the tests run as root."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOBODY = 65534

# Everything is imported before the rights are dropped: the interpreter may lie where only root can read.
_CHILD = """
import json, os, sys
import toolyard
project, home, calls = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
with toolyard.open(project=project, home=home) as yard:
    yard.call("Read", {"path": "no such file"})
if os.geteuid() == 0:
    home += "-of-nobody"
    os.mkdir(home)
    os.chown(home, int(sys.argv[4]), int(sys.argv[4]))
    os.setgroups([])
    os.setgid(int(sys.argv[4]))
    os.setuid(int(sys.argv[4]))
with toolyard.open(project=project, home=home) as yard:
    print(json.dumps([yard.call(tool, arguments).to_dict() for tool, arguments in calls]))
"""


@dataclass(frozen=True, slots=True)
class SharedPython:
    """A Python that every user can run, and the variables with which it finds the packages of the tests."""

    program: str
    variables: dict[str, str]


def find_shared_python() -> SharedPython | None:
    """Return the Python of the tests, or one of the system of the same version: ours may be in the home of root."""
    check = "import os, sys; os.setgid({0}); os.setuid({0}); os.execv(sys.argv[1], [sys.argv[1], '-c', sys.argv[2]])"
    version = f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    for program in (sys.executable, f"/usr/bin/python3.{sys.version_info[1]}"):
        words = [sys.executable, "-c", check.format(NOBODY), program, version]
        if subprocess.run(words, capture_output=True, check=False).returncode == 0:
            folders = [path for path in sys.path if path.endswith("site-packages") or Path(path, "toolyard").is_dir()]
            return SharedPython(program, {"PYTHONPATH": ":".join(folders)})
    return None


@contextmanager
def shared_project() -> Iterator[Path]:
    """An empty project root that every user can reach; pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        project = Path(name) / "project"
        project.mkdir()
        yield project
        for path in (project, *project.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o700)  # so that it can be removed again


def call_as_nobody(project: Path, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The envelopes of calls made without root's rights, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(project), str(project.parent / "home"), json.dumps(calls), str(NOBODY)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers
