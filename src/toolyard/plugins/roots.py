"""Plugin roots: folders of plugin folders, searched one level deep.

The order is: those given for this run, the home's, the project's, the shipped one; within one by name. Of plugins with
one name the first wins, so the owner's own comes before the one that ships. A folder that is
itself a plugin counts as one. Hidden folders are not looked at. A root that does not exist costs two ``stat`` calls.
Of a root with more than ``MAX_FOLDERS`` the first by name count, and the root itself is listed with how many do not.
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolyard.message import Message
from toolyard.plugins.plugin import Origin, PluginProblem
from toolyard.plugins.plugin_files import read_signature
from toolyard.shipped_files import find_shipped_folder

MAX_FOLDERS: Final = 2000  # in one root
_MAX_ENTRIES = 100_000  # of one root that are looked at to find them


@dataclass(frozen=True, slots=True)
class PluginRoot:
    """A folder of plugin folders; it need not exist."""

    folder: Path
    origin: Origin


def list_roots(project: Path, home: Path, given: Sequence[Path] = ()) -> tuple[PluginRoot, ...]:
    """Return the roots in the order in which they are searched."""
    shipped = shipped_folder()
    return (
        *(PluginRoot(folder, Origin.GIVEN) for folder in given),
        PluginRoot(home / "plugins", Origin.HOME),
        PluginRoot(project / "Plugin", Origin.PROJECT),
        PluginRoot(project / "plugins", Origin.PROJECT),
        *((PluginRoot(shipped, Origin.SHIPPED),) if shipped else ()),
    )


def shipped_folder() -> Path | None:
    """Return the folder of the shipped plugins."""
    return find_shipped_folder("plugins")


def find_plugin_folders(roots: Sequence[PluginRoot]) -> Iterator[tuple[Path, Origin, PluginProblem | None]]:
    """Yield every folder that may be a plugin by its real path, each once; a dead link by its own, with a problem.

    A root of which some are left out is there too, with that problem.
    """
    shipped = {os.path.realpath(root.folder) for root in roots if root.origin is Origin.SHIPPED}
    seen: set[str] = set()
    for root in roots:
        for path, problem in _list_root(os.path.realpath(root.folder)):
            if path not in seen:
                seen.add(path)
                origin = Origin.SHIPPED if os.path.dirname(path) in shipped else root.origin
                yield Path(path), origin, problem


def _list_root(root: str) -> Iterator[tuple[str, PluginProblem | None]]:
    if read_signature(root):
        yield root, None
        return
    try:
        with os.scandir(root) as listing:
            entries = [entry for entry in itertools.islice(listing, _MAX_ENTRIES) if _can_be_plugin(entry)]
    except OSError:
        return
    entries.sort(key=lambda entry: entry.name)
    for entry in entries[:MAX_FOLDERS]:
        yield _resolve_link(entry.path) if entry.is_symlink() else (entry.path, None)
    if len(entries) > MAX_FOLDERS:
        last = entries[MAX_FOLDERS - 1].name
        message = Message(
            "plugin.too_many_folders",
            "{left_out} of its {total} folders are left out: all after '{last}'",
            left_out=len(entries) - MAX_FOLDERS,
            total=len(entries),
            last=last,
        )
        yield (
            root,
            PluginProblem(
                message=message,
                fix=Message(
                    "plugin.keep_fewer",
                    "keep at most {max_folders} plugins in one folder",
                    max_folders=MAX_FOLDERS,
                ),
            ),
        )


def _can_be_plugin(entry: "os.DirEntry[str]") -> bool:
    return not entry.name.startswith(".") and (entry.is_symlink() or entry.is_dir())


def _resolve_link(path: str) -> tuple[str, PluginProblem | None]:
    try:
        return os.path.realpath(path, strict=True), None
    except OSError as error:
        fix = Message("plugin.remove_or_correct", "remove it, or correct where it leads")
        return path, PluginProblem(
            message=Message("plugin.dead_link", "the link leads nowhere: {strerror}", strerror=error.strerror),
            fix=fix,
        )
