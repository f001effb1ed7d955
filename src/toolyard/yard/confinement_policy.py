"""The rules for confining plugins and MCP servers, as the settings name them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.config import Config
from toolyard.protocol.manifest import Limits

if TYPE_CHECKING:
    from toolyard.plugins.plugin_access import ConfinementPolicy

_MIB = 2**20


def build_policy(config: Config) -> "ConfinementPolicy":
    from toolyard.plugins.plugin_access import ConfinementPolicy, ProtectedFolders
    from toolyard.plugins.roots import list_roots

    roots = list_roots(config.project, config.home, config.plugin_folders)
    return ConfinementPolicy(
        protected=ProtectedFolders(
            home=Path(os.path.realpath(config.home)),
            user_home=Path(os.path.realpath(Path.home())),
            plugin_roots=tuple(Path(os.path.realpath(root.folder)) for root in roots),
        ),
        minimum=config.settings.confinement.minimum,
        strict_network=config.settings.strict_network,
        own_processes=config.settings.bubblewrap,
        own_command=config.own_command,
        usual_limits=Limits(
            data_bytes=config.settings.plugin_memory_mib * _MIB,
            cpu_s=config.settings.plugin_cpu_minutes * 60,
            file_bytes=config.settings.plugin_file_mib * _MIB,
        ),
    )
