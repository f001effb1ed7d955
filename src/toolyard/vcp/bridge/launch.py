"""How the bridge process is started, and what it may reach.

It reads the installation. It writes the folders that VCPToolBox's plugins share, and those of the plugins that are
loaded: never the code of VCPToolBox, of other plugins, or of the packages. It gets VCPToolBox's own ``config.env``,
which its code reads, and from this host the few variables that every program needs; ``PORT`` and ``Key`` lead here.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from toolyard.plugins.package.environment import make_data_folder, temporary_folder
from toolyard.plugins.package.fingerprint import WRITABLE
from toolyard.plugins.package.plugin import Plugin
from toolyard.plugins.package.plugin_access import (
    ConfinementPolicy,
    build_access_profile,
    find_own_place,
    is_below,
    make_granted_folders,
)
from toolyard.plugins.process.launch import Launch
from toolyard.plugins.process.network_services import NetworkServices, add_callback
from toolyard.protocol.access import ANY_HOST, Access
from toolyard.protocol.manifests.manifest import Limits

NAME: Final = "vcp-bridge"
SCRIPT: Final = Path(__file__).with_name("bridge.js")
# where VCPToolBox's own code keeps what its plugins know: beside WRITABLE, which its old plugins write too
_STATE: Final = ("VectorStore", "config", "ToolConfigs", ".file_cache", "VCPTimedResults")
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


def build_launch(host: BridgeHost, plugins: Sequence[Plugin]) -> Launch:
    """Return the launch of a process with these plugins. Raises Failure when it may not run here as confined."""
    node = next(plugin.command.argv[0] for plugin in plugins if plugin.command is not None)
    data = make_data_folder(host.home, NAME)
    access = build_access(host, plugins)
    policy = host.policy
    roots = tuple(root for root in policy.protected.plugin_roots if not is_below(str(root), str(host.root)))
    profile = build_access_profile(
        access,
        read=[str(SCRIPT), *_list_node_trees(node, access, host)],
        own=[find_own_place(data)],
        project=host.root,
        protected=replace(policy.protected, plugin_roots=roots),
        links={},
    )
    profile = replace(profile, own_processes=policy.own_processes)
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
    launch, _ = add_callback(launch, f"http://127.0.0.1:{host.port}")
    return launch


def build_access(host: BridgeHost, plugins: Sequence[Plugin]) -> Access:
    shared = [*sorted(WRITABLE), *_STATE, *(os.path.relpath(plugin.folder, host.root) for plugin in plugins)]
    return Access(
        read=(str(host.root),),
        write=tuple(shared),
        network=() if host.policy.strict_network else ANY_HOST,
    )


def _list_node_trees(node: str, access: Access, host: BridgeHost) -> tuple[str, ...]:
    from toolyard.confinement.program_files import list_program_trees
    from toolyard.plugins.package.plugin_access import list_changeable

    return tuple(list_program_trees(node, list_changeable(access, host.root, host.policy.protected)))


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
