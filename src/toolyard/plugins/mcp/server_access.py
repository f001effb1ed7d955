"""The access of an MCP server that is a program: what its reviewed declaration names.

A folder among its arguments or variables is what it is meant to work on; a file may be its script, whose folder it
reads. Its ``permissions`` add to that, as in a plugin's manifest. Nothing else of the project or of the user's files.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from toolyard.confinement.profile import Profile
from toolyard.confinement.program_files import list_program_trees
from toolyard.dialects.mcp_config import ServerDeclaration
from toolyard.plugins.plugin_access import ConfinementPolicy, build_access_profile, is_inside
from toolyard.protocol.access import ANY_HOST, Access


def effective_server_access(declared: ServerDeclaration, *, cwd: Path, policy: ConfinementPolicy) -> Access:
    """Return what a server may reach: the paths it names, and what its ``permissions`` add."""
    named = [os.path.realpath(path) for path in _list_named_paths(declared, cwd)]
    scripts = [os.path.dirname(path) for path in named if os.path.isfile(path)]
    wide = {"/", str(policy.protected.user_home)}
    read = [folder for folder in scripts if folder not in wide and not is_inside(str(policy.protected.home), folder)]
    if declared.cwd:
        read.append(os.path.realpath(cwd))
    access = declared.access
    network = access.network
    if network is None:
        network = () if policy.strict_network else ANY_HOST
    return replace(access, read=(*access.read, *read), write=(*access.write, *dict.fromkeys(named)), network=network)


def build_server_profile(
    access: Access, program: str, *, project: Path, data: Path, policy: ConfinementPolicy
) -> Profile:
    """Build the profile of a server; ``data`` is its data folder. Raises Failure when a protected folder is named."""
    return build_access_profile(
        access, read=list_program_trees(program), own=[str(data)], project=project, protected=policy.protected
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
