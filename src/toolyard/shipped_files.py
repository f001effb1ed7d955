"""Folders that come with Toolyard beside its code: plugins, documentation, the example project."""

from pathlib import Path


def find_shipped_folder(name: str) -> Path | None:
    """Return a shipped folder: inside the installed package, or beside the sources in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / f"_{name}"
    if installed.is_dir():
        return installed
    checkout = package.parents[1] / name
    return checkout if package.parent.name == "src" and checkout.is_dir() else None
