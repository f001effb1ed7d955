"""A copy of the checkout, as a clone would have it."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]


def list_files() -> list[str]:
    """Return the paths of the tracked and the new files, without those that git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    return [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


def copy_checkout(folder: Path) -> Path:
    """Copy the files to ``folder`` and return it; their times are those of the copy."""
    for name in list_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
        shutil.copymode(ROOT / name, folder / name)
    return folder
