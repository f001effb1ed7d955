"""Confine the calling thread: in the order in which each step is still allowed by the steps before it."""

import socket
from collections.abc import Iterator

from toolyard.confinement import landlock, namespace, privileges, seccomp
from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.system_files import DEVICES, list_system_trees


def enter_namespaces(profile: Profile, *, own_mounts: bool) -> list[socket.socket]:
    """Enter the namespaces that a profile needs. Return the sockets that listen on its ports. Raises OSError.

    With ``own_mounts``, which the profile may do without, nothing outside of what it may write can be changed at all.
    """
    if own_mounts or profile.covered:
        namespace.enter_mounts()
        namespace.cover_folders(profile.covered, (*profile.read, *profile.write))
        namespace.make_read_only(profile.write)
    return namespace.enter_network(profile.ports) if profile.network is Network.PORTS else []


def restrict_thread(profile: Profile) -> None:
    """Restrict the thread and what it starts to ``profile``, as far as this kernel can. Raises OSError."""
    privileges.forbid_new()
    version = landlock.interface_version()
    if version:
        landlock.restrict_thread(_list_trees(profile))
    privileges.drop_capabilities()
    if seccomp.is_available():
        seccomp.restrict_thread(
            seccomp.CallRules(
                internet=profile.network is not Network.NONE,
                unix=profile.unix_sockets,
                truncate=version == 0 or version >= landlock.VERSION_TRUNCATE,
            )
        )


def _list_trees(profile: Profile) -> Iterator[tuple[str, int]]:
    for path in (*list_system_trees(), *profile.read):
        yield path, landlock.READ
    for path in profile.write:
        yield path, landlock.WRITE
    for path in DEVICES:
        yield path, landlock.DEVICE
