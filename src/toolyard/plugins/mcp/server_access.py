"""The access of an MCP server that is a program: the files and folders that its reviewed declaration names.

A folder among its arguments or variables is what it is meant to work on; a file may be its script, whose folder it
reads. Nothing else of the project or of the user's files. Its network is open: there is no way to declare it.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.program_files import list_program_trees
from toolyard.dialects.mcp_config import ServerDeclaration
from toolyard.plugins.plugin_access import ProtectedFolders, is_inside


def build_server_profile(
    declared: ServerDeclaration, program: str, *, cwd: Path, data: Path, protected: ProtectedFolders
) -> Profile:
    """Build the profile of a server; ``data`` is its data folder. Raises Failure when a protected folder is named."""
    named = [os.path.realpath(path) for path in _list_named_paths(declared, cwd)]
    scripts = [os.path.dirname(path) for path in named if os.path.isfile(path)]
    wide = {"/", str(protected.user_home)}
    read = [folder for folder in scripts if folder not in wide and not is_inside(str(protected.home), folder)]
    if declared.cwd:
        read.append(os.path.realpath(cwd))
    own = str(data)
    return Profile(
        read=(*list_program_trees(program), *read),
        write=(own, *named),
        covered=protected.list_inside([*read, *named], [own]),
        network=Network.ANY,
    )


def _list_named_paths(declared: ServerDeclaration, cwd: Path) -> Iterator[str]:
    """Yield the existing paths among the arguments (also ``--name=path``) and the absolute ones among the variables."""
    for word in declared.args:
        for text in (word, word.partition("=")[2]):
            if text and not text.startswith("-") and os.path.exists(cwd / text):
                yield str(cwd / text)
    for value in declared.env.values():
        if os.path.isabs(value) and os.path.exists(value):
            yield value
