"""The access of a plugin: what it declares, or seems to need, and what its owner decided; as a profile for its child.

Every plugin may read the system, its interpreter and its own folder, and write its data folder, its temporary folder
and its cache of compiled Python. A plugin that declares nothing is an old one, written for a host that confined
nothing: it may also write its own folder and the shared folders of VCPToolBox that its code names. Nobody gets the
home of Toolyard, the folders of other plugins, or the home of the user: they are covered where a granted folder
contains them, and a grant of one of them is refused.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from toolyard.confinement.level import Confinement, measure_confinement
from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.program_files import list_program_trees
from toolyard.message import Message, join_messages
from toolyard.plugins.plugin import Plugin
from toolyard.plugins.project_folders import READABLE, WRITABLE
from toolyard.protocol.access import ANY_HOST, Access, AccessChoice, ConfinementLevel, ProjectAccess
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.manifest import Manifest, PluginType

_SHARED_BY_ALL = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 for programs that insist on them
PROXY_PORT: Final = 3128  # inside the network of a program with a list of hosts
_MAX_PARENTS = 3  # in which Node looks for packages of a plugin


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedFolders:
    """Folders that no confined program may reach, whatever it was granted."""

    home: Path  # of Toolyard
    user_home: Path
    plugin_roots: tuple[Path, ...] = ()

    def list_inside(self, granted: Sequence[str], kept: Iterable[str]) -> tuple[str, ...]:
        """Return those that a granted folder contains. Raises Failure when one is granted itself, or part of it."""
        inside: dict[str, None] = {}
        for path in granted:
            self._require_grantable(path, kept)
            for folder in (str(self.home), str(self.user_home), *map(str, self.plugin_roots)):
                if folder != path and is_inside(folder, path) and os.path.isdir(folder):
                    inside[folder] = None
        return tuple(
            folder for folder in inside if not any(folder != outer and is_inside(folder, outer) for outer in inside)
        )

    def _require_grantable(self, path: str, kept: Iterable[str]) -> None:
        in_home = is_inside(path, str(self.home)) and not any(is_inside(path, own) for own in kept)
        if in_home or path == str(self.user_home):
            message = Message(
                "confinement.protected_folder",
                "Access to {path} cannot be granted: it is the home folder of Toolyard or of the user.",
                path=path,
            )
            hint = Message("confinement.choose_inner_folder", "Grant a folder inside it, or use another project.")
            raise Failure(Reason.START_FAILED, message, hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinementPolicy:
    """The operator's rules for all plugins and MCP servers."""

    protected: ProtectedFolders
    minimum: ConfinementLevel = ConfinementLevel.NONE  # nothing runs below it
    strict_network: bool = False  # a plugin that declares no hosts reaches none

    def require_level(self, name: str, profile: Profile | None, minimum: ConfinementLevel) -> Confinement:
        """Return how far a program is confined here. Raises Failure(DENIED) when it or the operator demands more."""
        confinement = measure_confinement(profile)
        demanded = self.minimum if self.minimum.reaches(minimum) else minimum
        if confinement.level.reaches(demanded):
            return confinement
        message = Message(
            "confinement.level_too_low",
            "{name} may only run with the confinement '{demanded}', and here it would be '{level}': {missing}.",
            name=name,
            demanded=demanded.value,
            level=confinement.level.value,
            missing=join_messages(confinement.missing),
        )
        hint = Message(
            "confinement.level_hint", "See `toolyard doctor`, or change the setting confinement or the plugin's access."
        )
        raise Failure(Reason.DENIED, message, hint=hint)


def is_inside(path: str, folder: str) -> bool:
    """Return whether ``path`` is ``folder`` or below it; both are absolute and without links."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def effective_access(plugin: Plugin, manifest: Manifest, *, strict_network: bool) -> Access | None:
    """Return what a plugin may reach; None: everything, by its owner's decision."""
    declared = manifest.access or _derive_access(plugin)
    declared = replace(declared, write=(*declared.write, *plugin.paths))
    match plugin.access:
        case AccessChoice.STRICT:
            return Access(network=(), minimum=declared.minimum)
        case AccessChoice.WIDE:
            return replace(
                declared,
                write=(*declared.write, *_SHARED_BY_ALL),
                project=ProjectAccess.WRITE,
                own_folder=ProjectAccess.WRITE,
                network=ANY_HOST,
                unix_sockets=True,
            )
        case AccessChoice.UNCONFINED:
            return None
    if declared.network is None:
        return replace(declared, network=() if strict_network else ANY_HOST)
    return declared


def _derive_access(plugin: Plugin) -> Access:
    names = plugin.fingerprint.project_folders if plugin.fingerprint else frozenset()
    return Access(
        own_folder=ProjectAccess.WRITE,
        read=tuple(sorted(names & READABLE)),
        write=tuple(sorted(names & WRITABLE)),
    )


def build_profile(
    plugin: Plugin, access: Access, *, project: Path, own: Sequence[Path], protected: ProtectedFolders
) -> Profile:
    """Build the profile of a plugin's child; ``own`` are its data folder and its caches.

    Raises Failure(START_FAILED) when a protected folder would be granted.
    """
    folder = str(plugin.folder)
    read = (folder, *_list_command_trees(plugin), *_list_packages(plugin.folder))
    write = [*map(str, own), *([folder] if access.own_folder is ProjectAccess.WRITE else [])]
    calls_back = plugin.manifest is not None and plugin.manifest.type is PluginType.ASYNCHRONOUS
    return build_access_profile(
        access, read=read, own=write, project=project, protected=protected, calls_back=calls_back
    )


def build_access_profile(
    access: Access,
    *,
    read: Sequence[str],
    own: Sequence[str],
    project: Path,
    protected: ProtectedFolders,
    calls_back: bool = False,
) -> Profile:
    """Build the profile of a program that reads ``read``, writes ``own``, and reaches what ``access`` names besides.

    Raises Failure(START_FAILED) when a protected folder would be granted.
    """
    granted_read = [_resolve(project, path) for path in access.read]
    granted_write = [_resolve(project, path) for path in access.write]
    if access.project is not ProjectAccess.NONE:
        (granted_write if access.project is ProjectAccess.WRITE else granted_read).append(str(project))
    covered = protected.list_inside([*granted_read, *granted_write], [*own, *read])
    return Profile(
        read=(*read, *granted_read),
        write=(*own, *granted_write),
        covered=covered,
        network=_choose_network(access, calls_back=calls_back),
        ports=tuple(sorted(list_host_ports(access))),
        unix_sockets=access.unix_sockets,
    )


def _choose_network(access: Access, *, calls_back: bool) -> Network:
    if access.network == ANY_HOST:
        return Network.ANY
    return Network.PORTS if access.network or calls_back else Network.NONE


def list_host_ports(access: Access) -> set[int]:
    """Return the ports that the host serves to a program with a list of hosts: a proxy, and those of ``localhost``."""
    if not access.network or access.network == ANY_HOST:
        return set()
    local = (entry.rpartition(":") for entry in access.network)
    return {PROXY_PORT, *(int(port) for host, _, port in local if host == "localhost" and port.isdigit())}


def _resolve(project: Path, path: str) -> str:
    return os.path.realpath(os.path.join(project, path))


def _list_command_trees(plugin: Plugin) -> Iterator[str]:
    if plugin.command is not None:
        yield from list_program_trees(plugin.command.argv[0])


def _list_packages(folder: Path) -> Iterator[str]:
    """Yield the folders in which Node looks for packages above a plugin's own folder."""
    for parent in list(folder.parents)[:_MAX_PARENTS]:
        packages = parent / "node_modules"
        if packages.is_dir():
            yield str(packages)
