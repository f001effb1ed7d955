"""The launch of the bridge process, with all that it may reach.

It reads the installation. It writes the folders that VCPToolBox's plugins share, and those of the plugins that are
loaded: never the code of VCPToolBox, of other plugins, or of the packages. VCPToolBox's own code reads ``config.env``
and those of all plugins. Here it sees views: in place of the first, one whose ``PORT`` and ``Key`` lead to this host,
with the secrets that this code or the loaded plugins name; and nothing in those of plugins that are not loaded.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from toolyard.confinement.program_files import list_program_trees
from toolyard.message import Message
from toolyard.plugins.package.config_env import edit_config, parse_config
from toolyard.plugins.package.environment import make_data_folder, temporary_folder
from toolyard.plugins.package.fingerprint import PROCESS_STATE, SHARED
from toolyard.plugins.package.installation_view import VIEWS_FOLDER, list_process_settings
from toolyard.plugins.package.plugin import CONFIG, Plugin
from toolyard.plugins.package.plugin_access import (
    ConfinementPolicy,
    build_access_profile,
    find_own_place,
    list_changeable,
    make_granted_folders,
)
from toolyard.plugins.process.launch import Launch
from toolyard.plugins.process.network_services import NetworkServices
from toolyard.plugins.process.refusals import FOLDER as REFUSALS
from toolyard.protocol.access import ANY_HOST, Access
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.manifests.manifest import Limits
from toolyard.workspace.home_folder import make_private_folder, write_private_file

NAME: Final = "vcp-bridge"
SCRIPT: Final = Path(__file__).with_name("bridge.js")
# descriptor 3 is the way out, 4 the way in: what plugins print goes with their errors, and nothing comes in from stdin
_SHELL: Final = ("/bin/sh", "-c", 'exec "$0" "$@" 3>&1 4<&0 1>&2 0</dev/null')


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeHost:
    """The facts of the host that the process needs."""

    root: Path  # of the installation
    home: Path
    environ: Mapping[str, str] = field(repr=False)
    policy: ConfinementPolicy
    port: int  # of this server, or where it would be
    key: str = field(repr=False)  # with which its plugins call this server
    network: NetworkServices
    add_packages: Callable[[Launch], Launch]  # that were installed for its plugins


def build_launch(host: BridgeHost, plugins: Sequence[Plugin]) -> Launch:
    """Return the launch of a process with these plugins. Raises Failure when it may not run here as confined."""
    node = next(plugin.command.argv[0] for plugin in plugins if plugin.command is not None)
    data = make_data_folder(host.home, NAME)
    access, policy = build_access(host, plugins), host.policy
    siblings = host.root / "Plugin"
    protected = replace(
        policy.protected, plugin_roots=tuple(root for root in policy.protected.plugin_roots if root != siblings)
    )
    profile = build_access_profile(
        access,
        read=[str(SCRIPT), REFUSALS, *list_program_trees(node, list_changeable(access, host.root, protected))],
        own=[find_own_place(data)],
        project=host.root,
        protected=protected,
        links={},
    )
    try:
        views = tuple(_write_views(host, plugins))
    except (OSError, ValueError) as error:
        message = Message("What the plugins of VCPToolBox see of its settings cannot be written: {error}.", error=error)
        raise Failure(Reason.START_FAILED, message) from error
    profile = replace(profile, views=views, own_processes=policy.own_processes)
    policy.require_level(NAME, profile, access.minimum)
    make_granted_folders(host.root, access.write)
    launch = Launch(
        argv=(*_SHELL, node, str(SCRIPT), str(host.root)),
        cwd=host.root,
        profile=profile,
        environment=_build_environment(host, data),
        limits=Limits().or_usual(replace(policy.usual_limits, cpu_s=None)),  # it lives for as long as it is used
        version=" ".join(sorted(plugin.fingerprint.digest for plugin in plugins if plugin.fingerprint)),
    )
    launch = host.network.add_to(launch, NAME, access)
    return host.add_packages(launch)


def build_access(host: BridgeHost, plugins: Sequence[Plugin]) -> Access:
    """Return what the process may reach: a review of the installation shows it."""
    folders = (os.path.relpath(plugin.folder, host.root) for plugin in plugins)
    return Access(
        read=(str(host.root),),
        write=tuple(dict.fromkeys((*sorted(SHARED), *PROCESS_STATE, *folders))),
        network=(f"localhost:{host.port}",) if host.policy.strict_network else ANY_HOST,
    )


def _write_views(host: BridgeHost, plugins: Sequence[Plugin]) -> Iterator[tuple[str, str]]:
    """Write and yield the views: of each file the one that is read in its place. Raises OSError or ValueError."""
    views = host.home / VIEWS_FOLDER / NAME
    make_private_folder(views)
    own, nothing = views / "root.env", views / "nothing.env"
    file = host.root / CONFIG
    if file.is_file():
        text = file.read_text("utf-8", "replace")
        values = parse_config(text).values
        seen = list_process_settings(host.root, values, plugins)
        unseen = [name for name in values if name not in seen]
        shown = edit_config(text, {**dict.fromkeys(unseen), "PORT": str(host.port), "Key": host.key})
        write_private_file(own, f"# Toolyard hides {len(unseen)} other settings of this file\n{shown}".encode())
        yield str(file), str(own)
    write_private_file(nothing, b"# Toolyard hides the settings of a plugin that is not loaded here\n")
    loaded = {plugin.folder for plugin in plugins}
    with os.scandir(host.root / "Plugin") as entries:
        folders = sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    for folder in folders:
        hidden = folder / CONFIG
        if folder not in loaded and hidden.is_file() and not hidden.is_symlink():
            yield str(hidden), str(nothing)


def _build_environment(host: BridgeHost, data: Path) -> dict[str, str]:
    given = host.environ
    return {
        "PATH": given.get("PATH") or os.defpath,
        "HOME": str(data),
        "LANG": given.get("LANG") or "C.UTF-8",
        "TMPDIR": str(temporary_folder(host.home, NAME)),
        **({"TZ": given["TZ"]} if given.get("TZ") else {}),
        "PROJECT_BASE_PATH": str(host.root),
        "PORT": str(host.port),
        "SERVER_PORT": str(host.port),
        "Key": host.key,
        "CALLBACK_BASE_URL": f"http://127.0.0.1:{host.port}/plugin-callback",
    }
