"""The console's sources, and npm for what needs its packages."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
SOURCES: Final = ROOT / "console"
# What the sources use of the checkout: types, and for their unit tests the server's messages.
FROM_OUTSIDE: Final = ("clients/typescript/toolyard.ts", "src/toolyard/messages.json")


def run_npm(folder: Path, *arguments: str) -> None:
    npm = str(shutil.which("npm"))
    done = subprocess.run([npm, *arguments], cwd=folder, check=False, timeout=1200, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def install_packages(folder: Path) -> Path:
    """Copy the sources into ``folder``, install the packages that the lock file names, and return the copy."""
    copy = folder / "console"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("node_modules", "licenses.json"))
    for name in ("LICENSE", *FROM_OUTSIDE):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    run_npm(copy, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    return copy
