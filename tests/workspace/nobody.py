"""Calls by a user whom the operating system refuses something, also when the tests run as root."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest

import toolyard

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


@cache
def can_nobody_read(path: str) -> bool:
    check = "import os, sys; os.setgid({0}); os.setuid({0}); sys.exit(not os.access(sys.argv[1], os.R_OK))"
    return subprocess.run([sys.executable, "-c", check.format(NOBODY), path], check=False).returncode == 0


def require_shared_checkout() -> None:
    """Skip the test where only root can read Toolyard and its packages, so that nobody else can run them."""
    for package in (toolyard, click):
        if os.geteuid() == 0 and not can_nobody_read(str(package.__file__)):
            pytest.skip(
                f"only root can read {Path(str(package.__file__)).parent}: use a checkout outside of root's home"
            )


def find_shared_python() -> SharedPython:
    """Return the Python of the tests, or one of the system of the same version: ours may be in the home of root.

    Where there is none, or only root can read the checkout, the test is skipped.
    """
    require_shared_checkout()
    check = "import os, sys; os.setgid({0}); os.setuid({0}); os.execv(sys.argv[1], [sys.argv[1], '-c', sys.argv[2]])"
    version = f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    for program in (sys.executable, f"/usr/bin/python3.{sys.version_info[1]}"):
        words = [sys.executable, "-c", check.format(NOBODY), program, version]
        if subprocess.run(words, capture_output=True, check=False).returncode == 0:
            folders = [path for path in sys.path if path.endswith("site-packages") or Path(path, "toolyard").is_dir()]
            return SharedPython(program, {"PYTHONPATH": ":".join(folders)})
    pytest.skip(f"there is no Python {sys.version_info[0]}.{sys.version_info[1]} that every user can run")


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
    require_shared_checkout()
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
