"""The example project: a small shop with files worth asking about, for those who have no project at hand."""

import os
import tempfile
from pathlib import Path

from toolyard.errors import ToolyardError
from toolyard.shipped_files import find_shipped_folder

_NAME = "example"


def find_example_folder(home: Path) -> Path:
    """Return the place of the example project: beside the home, because tools reach nothing inside it."""
    return home.with_name(f"{home.name}-{_NAME}")


def create_example_project(folder: Path) -> bool:
    """Create the example project, complete or not at all; False when the folder exists. Raises ToolyardError."""
    source = find_shipped_folder(_NAME)
    if source is None:
        raise ToolyardError("the example project is not part of this installation: name a project with --project")
    try:
        if folder.is_dir():
            return False
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as draft:
            made = Path(draft, folder.name)
            _copy_files(source, made)
            made.rename(folder)
    except OSError as error:
        raise ToolyardError(
            f"the example project cannot be created in {folder}: {error.strerror or error}; name another project with "
            "--project"
        ) from error
    return True


def _copy_files(source: Path, target: Path) -> None:
    """Copy the contents of the files, with the rights of new ones: an installation may be read-only."""
    for place, folders, names in os.walk(source):
        folders[:] = [name for name in folders if name != "__pycache__"]
        into = target / Path(place).relative_to(source)
        into.mkdir()
        for name in names:
            (into / name).write_bytes(Path(place, name).read_bytes())
