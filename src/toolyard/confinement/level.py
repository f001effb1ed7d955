"""The level of confinement that a profile reaches on this machine, and the reasons why it is not higher."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from toolyard.confinement import landlock, linux, seccomp
from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.start import (
    can_enter_directly,
    can_enter_with_program,
    can_make_read_only,
    can_use_bubblewrap,
)
from toolyard.message import Message
from toolyard.protocol.access import ConfinementLevel


@dataclass(frozen=True, slots=True)
class Confinement:
    """The level that a program reaches here, and what is missing for the next one."""

    level: ConfinementLevel
    missing: tuple[str, ...] = ()


def measure_confinement(profile: Profile | None) -> Confinement:
    """Return how far ``profile`` is enforced on this machine; None: its owner wants it unconfined."""
    if profile is None:
        reason = Message("its owner allowed it to run without confinement")
        return Confinement(ConfinementLevel.NONE, (reason,))
    missing = list_missing_everywhere(own_processes=profile.own_processes)
    if not landlock.interface_version():
        return Confinement(ConfinementLevel.NONE, missing)
    missing += tuple(_describe_missing_namespaces(profile))
    return Confinement(ConfinementLevel.FILES if missing else ConfinementLevel.FULL, missing)


def _describe_missing_namespaces(profile: Profile) -> Iterator[Message]:
    if not can_make_read_only():
        yield Message(
            "this system does not allow a view of the files of its own to a program, so it can change the mode, owner "
            "and times of files that its user owns"
        )
    if can_enter_namespaces():
        return
    if profile.covered:
        yield Message(
            "{folder} cannot be hidden from it on this system, so it does not start", folder=profile.covered[0]
        )
    elif profile.network is Network.PORTS:
        yield Message(
            "this system does not allow a network of its own to a program, so its list of hosts is not enforced"
        )


@cache
def list_missing_everywhere(*, own_processes: bool = False) -> tuple[str, ...]:
    """Return what this machine cannot enforce, whatever the profile grants."""
    if not linux.IS_LINUX:
        return (Message("plugins can be confined on 64-bit Linux only"),)
    version = landlock.interface_version()
    missing: list[Message] = []
    if not version:
        missing.append(
            Message(
                "the kernel does not offer Landlock (it needs Linux 5.13 and `landlock` among its security modules)"
            )
        )
    elif version < landlock.VERSION_SCOPES and not (own_processes and can_use_bubblewrap()):
        missing.append(
            Message(
                "the kernel's Landlock (version {version}) cannot keep a program from signalling other processes of "
                "the same user: that needs Linux 6.12",
                version=version,
            )
        )
    if own_processes and not can_use_bubblewrap():
        missing.append(Message("bubblewrap is not installed, or this system does not let it work"))
    if not seccomp.is_available():
        missing.append(Message("system calls and sockets cannot be filtered on this kind of machine"))
    return tuple(missing)


def can_enter_namespaces() -> bool:
    return can_enter_directly() or can_enter_with_program()
