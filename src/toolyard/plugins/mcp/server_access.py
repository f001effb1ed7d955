"""The access of an MCP server that is a program: what its reviewed declaration names.

A folder among its arguments or variables is what it is meant to work on; a file may be its script, whose folder it
reads, with the packages of Node above it. Programs and scripts are never writable for it. A file that it will create,
or a database of SQLite, which has further files beside it, needs its folder. Its ``permissions`` add to that, as in a
plugin's manifest. Nothing else of the project or of the user's files.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from toolyard.confinement.profile import Profile
from toolyard.confinement.program_files import (
    find_program_root,
    is_inside,
    is_program,
    list_editable_sources,
    list_packages,
    list_program_trees,
)
from toolyard.dialects.mcp_config import ServerDeclaration
from toolyard.plugins.package.config_env import is_shared_folder
from toolyard.plugins.package.fingerprint import is_code
from toolyard.plugins.package.plugin_access import (
    ConfinementPolicy,
    build_access_profile,
    find_links,
    find_own_place,
    list_changeable,
    make_plain,
)
from toolyard.protocol.access import ANY_HOST, Access

_DATABASES = (".db", ".db3", ".sqlite", ".sqlite3")


def effective_server_access(
    declared: ServerDeclaration, *, cwd: Path, project: Path, policy: ConfinementPolicy, links: Mapping[str, str]
) -> Access:
    """Return what a server may reach: the paths it names, and what its ``permissions`` add.

    ``links`` are those that its owner has seen; no others are followed, nor those that lead to nothing here.
    """
    plain = (make_plain(project, path) for path in _list_named_paths(declared, cwd))
    named = tuple(dict.fromkeys(lead for path in plain if (lead := links.get(path, path))))
    code = [path for path in named if is_program(path) or is_code(path)]
    folders = [os.path.dirname(path) for path in named if os.path.isfile(path)]
    wide = {"/", str(policy.protected.user_home)}
    read = [folder for folder in folders if folder not in wide and not is_inside(str(policy.protected.home), folder)]
    changeable = list_changeable(declared.access, project, policy.protected)
    read += [tree for path in code for tree in _list_code_trees(path, changeable)]
    read += [package for folder in (*map(Path, folders), cwd) for package in list_packages(folder)]
    if declared.cwd:
        read.append(str(cwd))
    data = [path for path in named if path not in code]
    kept = (str(project), str(policy.protected.home), str(policy.protected.user_home))
    write = [path for path in data if os.path.exists(path)]
    write += [os.path.dirname(path) for path in data if _needs_folder(path, kept)]
    access = declared.access
    network = access.network
    if network is None:
        network = () if policy.strict_network else ANY_HOST
    return replace(
        access,
        read=tuple(dict.fromkeys((*access.read, *read))),
        write=tuple(dict.fromkeys((*access.write, *write))),
        network=network,
    )


def list_server_links(
    declared: ServerDeclaration, *, cwd: Path, project: Path, policy: ConfinementPolicy
) -> dict[str, str]:
    """Return the links on the way to what a server may reach, and where they lead."""
    command = [find_program_root(str(cwd / declared.command))] if "/" in declared.command else []
    links = find_links(project, (*_list_named_paths(declared, cwd), *command))
    access = effective_server_access(declared, cwd=cwd, project=project, policy=policy, links=links)
    return links | find_links(project, (*access.read, *access.write))


def build_server_profile(
    access: Access, program: str, *, project: Path, data: Path, policy: ConfinementPolicy, links: Mapping[str, str]
) -> Profile:
    """Build the profile of a server; ``data`` is its data folder. Raises Failure when a protected folder is named."""
    changeable = list_changeable(access, project, policy.protected)
    read = [lead for path in list_program_trees(program, changeable) if (lead := links.get(path, path))]
    if not any(is_inside(program, folder) for folder in changeable):
        read += list_editable_sources(program)
    profile = build_access_profile(
        access, read=read, own=[find_own_place(data)], project=project, protected=policy.protected, links=links
    )
    return replace(profile, own_processes=policy.own_processes)


def _needs_folder(path: str, kept: Sequence[str]) -> bool:
    """Return whether files will be made beside ``path``, in a folder that holds none of ``kept`` and is not shared."""
    is_database = os.path.isfile(path) and path.lower().endswith(_DATABASES)
    folder = os.path.dirname(path)
    return (
        (is_database or not os.path.exists(path))
        and os.path.isdir(folder)
        and not is_shared_folder(folder)
        and not any(is_inside(one, folder) for one in kept)
    )


def _list_code_trees(path: str, changeable: Sequence[str]) -> tuple[str, ...]:
    return list_program_trees(path, changeable) if is_program(path) else (path,)


def _list_named_paths(declared: ServerDeclaration, cwd: Path) -> Iterator[str]:
    """Yield the paths among the arguments (also ``--name=path``) and variables: the existing and the absolute ones."""
    for word in declared.args:
        for text in (word, word.partition("=")[2]):
            if text and not text.startswith("-") and (os.path.isabs(text) or os.path.exists(cwd / text)):
                yield str(cwd / text)
    yield from (value for value in declared.env.values() if os.path.isabs(value))
