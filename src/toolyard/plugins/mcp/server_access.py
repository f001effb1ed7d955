"""The access of an MCP server that is a program: what its reviewed declaration names.

A folder among its arguments or variables is what it is meant to work on; a file may be its script, whose folder it
reads, with the packages of Node above it. Programs and scripts are never writable for it. Its ``permissions`` add to
that, as in a plugin's manifest. Nothing else of the project or of the user's files.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from toolyard.confinement.profile import Profile
from toolyard.confinement.program_files import is_program, list_packages, list_program_trees
from toolyard.dialects.mcp_config import ServerDeclaration
from toolyard.plugins.fingerprint import is_code
from toolyard.plugins.plugin_access import ConfinementPolicy, build_access_profile, is_inside
from toolyard.protocol.access import ANY_HOST, Access


def effective_server_access(declared: ServerDeclaration, *, cwd: Path, policy: ConfinementPolicy) -> Access:
    """Return what a server may reach: the paths it names, and what its ``permissions`` add."""
    named = [os.path.realpath(path) for path in _list_named_paths(declared, cwd)]
    code = [path for path in named if is_program(path) or is_code(path)]
    folders = [os.path.dirname(path) for path in named if os.path.isfile(path)]
    wide = {"/", str(policy.protected.user_home)}
    read = [folder for folder in folders if folder not in wide and not is_inside(str(policy.protected.home), folder)]
    read += [tree for path in code for tree in _list_code_trees(path)]
    read += [package for folder in (*folders, cwd) for package in list_packages(Path(folder))]
    if declared.cwd:
        read.append(os.path.realpath(cwd))
    access = declared.access
    network = access.network
    if network is None:
        network = () if policy.strict_network else ANY_HOST
    return replace(
        access,
        read=tuple(dict.fromkeys((*access.read, *read))),
        write=(*access.write, *dict.fromkeys(path for path in named if path not in code)),
        network=network,
    )


def build_server_profile(
    access: Access, program: str, *, project: Path, data: Path, policy: ConfinementPolicy
) -> Profile:
    """Build the profile of a server; ``data`` is its data folder. Raises Failure when a protected folder is named."""
    return build_access_profile(
        access, read=list_program_trees(program), own=[str(data)], project=project, protected=policy.protected
    )


def _list_code_trees(path: str) -> tuple[str, ...]:
    return list_program_trees(path) if is_program(path) else (path,)


def _list_named_paths(declared: ServerDeclaration, cwd: Path) -> Iterator[str]:
    """Yield the existing paths among the arguments (also ``--name=path``) and the absolute ones among the variables."""
    for word in declared.args:
        for text in (word, word.partition("=")[2]):
            if text and not text.startswith("-") and os.path.exists(cwd / text):
                yield str(cwd / text)
    for value in declared.env.values():
        if os.path.isabs(value) and os.path.exists(value):
            yield value
