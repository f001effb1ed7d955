"""Programs of the machine that a test runs; not every machine has them."""

import shutil

import pytest

_PACKAGES = {"nginx": "nginx-light"}


def find_program(name: str) -> str:
    """Return where the program is, also if only root has its folder on the PATH; without it, the test is skipped."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    return found or pytest.skip(f"needs {name} (Debian: apt install {_PACKAGES.get(name, name)})")
