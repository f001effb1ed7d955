"""Paths in the settings of a plugin: its owner wrote them there, so that it works on these files and folders."""

import os
import re
from collections.abc import Mapping

_SYSTEM = re.compile(r"//?$|/(?:usr|bin|sbin|lib\w*|etc|proc|sys|dev|boot|run|nix|snap)(?:/|$)")


def is_shared_folder(folder: str) -> bool:
    """Return whether a folder is one of the system, or of the temporary files of all programs."""
    return bool(_SYSTEM.match(folder)) or folder in ("/tmp", "/var/tmp", "/var", "/home", "/opt", "/srv", "/mnt")  # noqa: S108


def list_config_paths(config: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files and folders that settings name by absolute paths, also in lists; none of the system's."""
    words = (word.strip() for value in config.values() for word in re.split(r"[,;]", value))
    named = (os.path.normpath(word) for word in words if word.startswith("/"))
    return tuple(dict.fromkeys(path for path in named if not _SYSTEM.match(path) and os.path.exists(path)))
