"""The access of a plugin: what it declares, or seems to need, and what its owner decided; as a profile for its child.

Every plugin may read the system, its interpreter and its own folder, and write its data folder, its temporary folder
and its cache of compiled Python. A plugin that declares nothing is an old one, written for a host that confined
nothing: it may also write its own folder and the shared folders of VCPToolBox that its code names. Nobody gets the
home of Toolyard, the folders of other plugins, or the home of the user: they are covered where a granted folder
contains them, and a grant of one of them is refused.

To a plugin of a VCPToolBox installation the installation is the project, and its siblings belong to that: with the
access ``installation``, which one decision of its owner gives to all of them, it reads the whole tree and writes the
folders that its plugins share. Of settings that are not its own it reads a view (see ``installation_view``).

A grant leads where its owner saw it lead. Any program could replace a folder that it may write by a link, also one that
belongs to the grant of another program. So no link is followed on the way to what a profile grants, except those that
a review has shown, and these only to where they led then.

Access to a path can be granted only when it is there, so missing folders of the project that a program may write are
made before it starts.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from toolyard.confinement.level import Confinement, measure_confinement
from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.program_files import (
    find_program_root,
    is_inside,
    is_program,
    is_python,
    list_packages,
    list_program_trees,
    list_system_trees,
    resolve_links,
)
from toolyard.message import Message, join_messages, to_fields
from toolyard.own_command import FOR_DEFAULT_HOME, OwnCommand
from toolyard.plugins.package.fingerprint import PROCESS_STATE, READABLE, SHARED, SHARED_MEMORY, WRITABLE
from toolyard.plugins.package.installation_view import find_named_siblings
from toolyard.plugins.package.plugin import Plugin, read_signature
from toolyard.protocol.access import ANY_HOST, Access, AccessChoice, ConfinementLevel, ProjectAccess
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.manifests.manifest import Limits, Manifest, PluginType

# for programs that insist on them
_SHARED_BY_ALL = tuple(map(os.path.realpath, ("/tmp", "/var/tmp", SHARED_MEMORY)))  # noqa: S108
_SEES_SIBLINGS = (AccessChoice.INSTALLATION, AccessChoice.WIDE)
PROXY_PORT: Final = 3128  # inside the network of a program with a list of hosts
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedFolders:
    """Folders that no confined program may reach, whatever it was granted."""

    home: Path  # of Toolyard
    user_home: Path
    plugin_roots: tuple[Path, ...] = ()

    def list_covered(self, granted: Sequence[str], kept: Sequence[str]) -> tuple[str, ...]:
        """Return those that are to be covered: a granted folder contains them, or the home of Toolyard is among the
        files of the system or in one of ``kept``, the program's own folders.

        Raises Failure when one is granted itself, or part of it.
        """
        roots = [str(root) for root in self.plugin_roots if _holds_plugins(root)]
        for path in granted:
            self._require_grantable(path, kept, roots)
        protected = (str(self.home), str(self.user_home), *roots)
        inside = [folder for folder in protected if _contains_folder(granted, folder)]
        if _contains_folder((*list_system_trees(), *kept), str(self.home)):
            inside.append(str(self.home))
        outermost = (folder for folder in inside if not any(is_below(folder, outer) for outer in inside))
        return tuple(dict.fromkeys(outermost))

    def _require_grantable(self, path: str, kept: Iterable[str], roots: Sequence[str]) -> None:
        is_own = any(is_inside(path, own) for own in kept)
        is_protected = any(is_inside(path, folder) for folder in (str(self.home), *roots)) and not is_own
        if is_protected or path == str(self.user_home):
            message = Message(
                "Access to {path} cannot be granted: it is the home of Toolyard or of the user, or of other plugins.",
                path=path,
            )
            hint = Message("Grant a folder inside it, or use another project.")
            raise Failure(Reason.START_FAILED, message, hint=hint)


def is_below(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip("/") + "/")


def _holds_plugins(root: Path) -> bool:
    """Return whether a folder in which plugins are looked for has any: many a project has other things there."""
    try:
        with os.scandir(root) as entries:
            return any(read_signature(entry.path) is not None for entry in entries)
    except OSError:
        return False


def _contains_folder(trees: Iterable[str], folder: str) -> bool:
    return any(is_below(folder, tree) for tree in trees) and os.path.isdir(folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinementPolicy:
    """The operator's rules for all plugins and MCP servers."""

    protected: ProtectedFolders
    minimum: ConfinementLevel = ConfinementLevel.NONE  # nothing runs below it
    strict_network: bool = False  # a plugin that declares no hosts reaches none
    own_processes: bool = False  # programs see no processes but their own
    own_command: OwnCommand = FOR_DEFAULT_HOME
    usual_limits: Limits = field(default_factory=Limits)  # of programs that declare none

    def require_level(self, name: str, profile: Profile | None, minimum: ConfinementLevel) -> Confinement:
        """Return how far a program is confined here. Raises Failure(DENIED) when it or the operator demands more."""
        confinement = measure_confinement(profile)
        demanded = self.minimum if self.minimum.reaches(minimum) else minimum
        if confinement.level.reaches(demanded):
            return confinement
        message = Message(
            "{name} may only run with the confinement '{demanded}', and here it would be '{level}': {missing}.",
            name=name,
            demanded=demanded.value,
            level=confinement.level.value,
            missing=join_messages(confinement.missing),
        )
        hint = Message(
            "See `{command}`, or change the setting confinement or the plugin's access.",
            command=self.own_command.format("doctor"),
        )
        raise Failure(Reason.DENIED, message, hint=hint)


def effective_access(plugin: Plugin, manifest: Manifest, *, strict_network: bool) -> Access | None:
    """Return what a plugin may reach; None: everything, by its owner's decision."""
    declared = _add_named_paths(manifest.access or _derive_access(plugin), plugin.paths)
    match plugin.access:
        case AccessChoice.STRICT:
            return Access(network=(), minimum=declared.minimum)
        case AccessChoice.READ_PROJECT if declared.project is ProjectAccess.NONE:
            declared = replace(declared, project=ProjectAccess.READ)
        case AccessChoice.INSTALLATION if plugin.installation:
            names = (*SHARED, *PROCESS_STATE) if plugin.is_in_process else SHARED
            shared = (name for name in names if (plugin.installation / name).is_dir())
            declared = replace(
                declared,
                write=tuple(sorted({*declared.write, *shared, *find_named_siblings(plugin)})),
                project=ProjectAccess.WRITE if declared.project is ProjectAccess.WRITE else ProjectAccess.READ,
                own_folder=ProjectAccess.WRITE,
            )
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


def _add_named_paths(access: Access, paths: Sequence[str]) -> Access:
    """Add the paths that a plugin's settings name: it writes there, but only reads and starts the programs."""
    programs = [path for path in paths if is_program(path)]
    return replace(
        access,
        read=(*access.read, *programs),
        write=(*access.write, *(path for path in paths if path not in programs)),
    )


def _derive_access(plugin: Plugin) -> Access:
    names = plugin.fingerprint.shared_folders if plugin.fingerprint else frozenset()
    return Access(
        own_folder=ProjectAccess.WRITE,
        read=tuple(sorted(names & READABLE)),
        write=tuple(sorted(names & {*WRITABLE, SHARED_MEMORY})),
    )


def build_profile(
    plugin: Plugin,
    access: Access,
    *,
    project: Path,
    own: Sequence[Path],
    protected: ProtectedFolders,
    views: tuple[tuple[str, str], ...] = (),
) -> Profile:
    """Build the profile of a plugin's child; ``own`` are its data folder and its caches, ``views`` files that it sees
    in place of others.

    Raises Failure(START_FAILED) when a protected folder would be granted.
    """
    folder = str(plugin.folder)
    if plugin.installation and plugin.access in _SEES_SIBLINGS:
        roots = tuple(root for root in protected.plugin_roots if root.parent != plugin.installation)
        protected = replace(protected, plugin_roots=roots)
    changeable = (folder, *list_changeable(access, project, protected))
    programs = [*(plugin.command.argv[:1] if plugin.command else ()), *filter(is_program, plugin.paths)]
    trees = (tree for one in programs for tree in list_program_trees(plugin.links.get(one, one), changeable))
    needed = (*dict.fromkeys(trees), *list_packages(plugin.folder))
    linked = tuple(path for path in needed if path in plugin.links)
    calls_back = plugin.manifest is not None and plugin.manifest.type is PluginType.ASYNCHRONOUS
    profile = build_access_profile(
        replace(access, read=(*(path for path in access.read if not is_python(path)), *linked)),
        read=(folder, *(path for path in needed if path not in plugin.links)),
        own=[*map(find_own_place, own), *([folder] if access.own_folder is ProjectAccess.WRITE else [])],
        project=project,
        protected=protected,
        links=plugin.links,
        calls_back=calls_back,
    )
    granted = (*profile.read, *profile.write)
    return replace(profile, views=tuple(view for view in views if any(is_below(view[0], tree) for tree in granted)))


def list_changeable(access: Access, project: Path, protected: ProtectedFolders) -> tuple[str, ...]:
    """Return folders in which programs may have written: what stands there does not decide what another may read."""
    written = (make_plain(project, path) for path in access.write)
    return (str(project), str(protected.home), *map(str, protected.plugin_roots), *written)


def find_own_place(folder: Path) -> str:
    """Return where a folder that Toolyard makes for a program is: only the folder itself could be a link of others."""
    return os.path.join(resolve_links(str(folder.parent)), folder.name)


def build_access_profile(
    access: Access,
    *,
    read: Sequence[str],
    own: Sequence[str],
    project: Path,
    protected: ProtectedFolders,
    links: Mapping[str, str],
    calls_back: bool = False,
) -> Profile:
    """Build the profile of a program that reads ``read``, writes ``own``, and reaches what ``access`` names besides.

    ``links`` are those that its owner has seen; what leads to nothing there is left out. Raises Failure(START_FAILED)
    when a protected folder would be granted.
    """

    def find_leads(paths: Iterable[str]) -> list[str]:
        plain = (make_plain(project, path) for path in paths)
        return [lead for path in plain if (lead := links.get(path, path))]

    granted_read, granted_write = find_leads(access.read), find_leads(access.write)
    if access.project is not ProjectAccess.NONE:
        (granted_write if access.project is ProjectAccess.WRITE else granted_read).append(str(project))
    covered = protected.list_covered([*granted_read, *granted_write], [*own, *read])
    return Profile(
        read=(*read, *granted_read),
        write=(*own, *granted_write),
        covered=covered,
        network=_choose_network(access, calls_back=calls_back),
        ports=tuple(sorted(list_host_ports(access))),
        unix_sockets=access.unix_sockets,
    )


def list_plugin_links(plugin: Plugin, manifest: Manifest, paths: Sequence[str], project: Path) -> dict[str, str]:
    """Return the links on the way to what a plugin is granted whatever its owner chooses, and where they lead.

    ``paths`` are those of its settings that count. The Python of a virtual environment is not among them:
    ``list_program_trees`` follows its links to nothing but a real Python.
    """
    settings = [path for path in paths if not is_python(path)]
    declared = _add_named_paths(manifest.access or _derive_access(plugin), settings)
    program = plugin.command.argv[0] if plugin.command else ""
    root = find_program_root(program)
    own_root = [root] if is_below(root, str(plugin.folder)) else []
    return find_links(project, (*declared.read, *declared.write, *list_packages(plugin.folder), *own_root))


def find_links(project: Path, paths: Iterable[str]) -> dict[str, str]:
    """Return where those of ``paths`` lead that are links or lead through some."""
    plain = (make_plain(project, path) for path in paths)
    return {path: real for path in plain if (real := resolve_links(path)) != path}


def make_plain(project: Path, path: str) -> str:
    """Return a path of an access as an absolute one; a link in ``/`` belongs to the system and is followed."""
    plain = os.path.normpath(os.path.join(project, path))
    top, slash, rest = plain.lstrip("/").partition("/")
    return f"{_resolve_top(top)}{slash}{rest}"


@lru_cache(maxsize=256)
def _resolve_top(name: str) -> str:
    return os.path.realpath(f"/{name}")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessOption:
    """One of the decisions that an owner can take, with what it means here."""

    choice: AccessChoice
    reach: tuple[Message, ...]
    confinement: Confinement

    def to_json(self) -> dict[str, Any]:
        return {
            "choice": self.choice.value,
            "reach": [to_fields("text", line) for line in self.reach],
            "confinement": self.confinement.level.value,
            "missing": [to_fields("text", line) for line in self.confinement.missing],
        }


def describe_access(access: Access | None, *, declares_network: bool) -> tuple[Message, ...]:
    """Describe what a program may reach beyond the system and its data folder; None: everything."""
    if access is None:
        return (Message("everything that Toolyard itself can reach: it is not confined"),)
    return (
        *_describe_files(access),
        _describe_network(access, declares_network=declares_network),
        *_describe_rest(access),
    )


def describe_links(links: Mapping[str, str]) -> tuple[Message, ...]:
    """Describe the links on the way to what a program may reach."""
    return tuple(
        Message("follows the link {path} to {lead}", path=path, lead=lead) for path, lead in sorted(links.items())
    )


def _describe_files(access: Access) -> Iterator[Message]:
    if access.own_folder is ProjectAccess.WRITE:
        yield Message("changes files in its own folder")
    else:
        yield Message("reads its own folder and writes its data folder")
    if access.project is ProjectAccess.WRITE:
        yield Message("reads and changes every file of the project")
    elif access.project is ProjectAccess.READ:
        yield Message("reads every file of the project")
    if access.read:
        yield Message("reads {paths}", paths=", ".join(access.read))
    if access.write:
        yield Message("reads and changes {paths}", paths=", ".join(access.write))


def _describe_network(access: Access, *, declares_network: bool) -> Message:
    if access.network == ANY_HOST:
        if declares_network:
            return Message("connects to any host on the network")
        return Message("connects to any host on the network: it does not say which it needs")
    if access.network:
        return Message("connects to {hosts} only", hosts=", ".join(access.network))
    return Message("has no network")


def _describe_rest(access: Access) -> Iterator[Message]:
    if access.unix_sockets:
        yield Message("opens local sockets: a session bus, a container engine, other programs of this user")


def make_granted_folders(project: Path, paths: Iterable[str]) -> None:
    """Create those of ``paths`` that are missing folders of the project; through a link nothing is created."""
    for path in paths:
        if _is_missing_folder(project, path):
            with suppress(OSError):  # the program will say what it misses
                _make_folders(project, os.path.relpath(make_plain(project, path), project))


def list_missing_paths(project: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Return those of ``paths`` that do not exist and are not created either: nothing can be granted there."""
    missing = (path for path in paths if not os.path.exists(os.path.join(project, path)))
    return tuple(path for path in missing if not _is_missing_folder(project, path))


def describe_missing_paths(paths: Iterable[str]) -> Message:
    return Message(
        "cannot write {paths}: there is no such file or folder, and only folders of the project are created",
        paths=", ".join(paths),
    )


def _is_missing_folder(project: Path, path: str) -> bool:
    """Return whether ``path`` is to be a folder in the project: a name with an ending, such as ``.db``, is a file."""
    place = make_plain(project, path)
    looks_like_folder = path.endswith("/") or not Path(path).suffix
    return (
        looks_like_folder
        and is_below(place, str(project))
        and not os.path.exists(place)
        and is_below(resolve_links(place), str(project))
    )


def _make_folders(project: Path, path: str) -> None:
    folder = os.open(project, _FOLDER)
    try:
        for name in path.split("/"):
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
            inner = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
    finally:
        os.close(folder)
