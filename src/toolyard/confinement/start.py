"""Start a process under a profile. See the package for how.

A profile with ports or covered folders needs namespaces. Root enters them in the thread that starts the process.
Anybody else needs a user namespace, which only a process with a single thread can enter: then a small Python program
(``confined_program``) enters it, restricts itself and becomes the program. That takes about 20 ms more. So does
bubblewrap, which starts the same program with processes of its own.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from errno import EPERM
from functools import cache, partial
from pathlib import Path
from typing import Any

from toolyard.confinement import bubblewrap, linux, namespace
from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.thread import enter_namespaces, restrict_thread
from toolyard.message import Message
from toolyard.threads import run_in_new_thread

_PROGRAM = str(Path(__file__).with_name("confined_program.py"))
_PROBE_S = 10.0


@dataclass(frozen=True, slots=True)
class StartedProcess:
    process: "subprocess.Popen[Any]"
    listeners: tuple[socket.socket, ...] = ()  # on the ports of its profile, for the host to serve
    channel: socket.socket | None = None  # on which those sockets come later


def start_process(
    profile: Profile | None, argv: Sequence[str], *, pass_fds: Sequence[int] = (), **options: Any
) -> StartedProcess:
    """Start ``argv`` under ``profile``; None: unconfined. Options are those of Popen. Raises OSError or ValueError."""
    if profile is None or not can_confine(profile):
        return StartedProcess(subprocess.Popen(argv, pass_fds=pass_fds, **options))  # noqa: S603 the caller's command
    if profile.own_processes and bubblewrap.can_use():
        return _start_with_program(profile, argv, pass_fds, options, bubblewrap.build_command() or ())
    if needs_namespace(profile) and not can_enter_directly():
        if can_enter_with_program():
            return _start_with_program(profile, argv, pass_fds, options)
        if profile.covered:
            hidden = Message(
                "confinement.cannot_hide", "{path} cannot be hidden from it on this system", path=profile.covered[0]
            )
            raise PermissionError(EPERM, hidden)
        profile = replace(profile, network=Network.ANY)  # its level says so
    process, listeners = _run_in_confined_thread(profile, partial(subprocess.Popen, argv, pass_fds=pass_fds, **options))
    return StartedProcess(process, tuple(listeners))


def can_confine(profile: Profile | None) -> bool:
    """Return whether ``start_process`` confines a program with this profile here, as far as the kernel can."""
    return profile is not None and linux.IS_LINUX


def needs_namespace(profile: Profile) -> bool:
    return bool(profile.covered) or profile.network is Network.PORTS


@cache
def can_enter_directly() -> bool:
    """Return whether a thread of this process can enter a network and a view of the files of its own."""

    def try_it() -> None:
        linux.unshare(namespace.NEW_NETWORK)
        namespace.enter_mounts()  # not in a chroot whose root is no mount

    try:
        run_in_new_thread(try_it)
    except OSError:
        return False
    return True


@cache
def can_enter_with_program() -> bool:
    """Return whether a program can enter a user namespace, and so a network and a view of the files of its own."""
    try:
        done = subprocess.run(  # noqa: S603 our own file, run by our own interpreter
            [sys.executable, "-I", "-S", _PROGRAM, "probe"], stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_PROBE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _run_in_confined_thread(
    profile: Profile, work: "Callable[[], subprocess.Popen[Any]]"
) -> "tuple[subprocess.Popen[Any], list[socket.socket]]":
    listeners: list[socket.socket] = []

    def confine_and_work() -> "subprocess.Popen[Any]":
        listeners.extend(enter_namespaces(profile, own_mounts=can_enter_directly()))
        if profile.is_contained and can_enter_directly():
            linux.unshare(namespace.NEW_PROCESSES)  # the process is the first one there, and all others end with it
        restrict_thread(profile)
        return work()

    try:
        return run_in_new_thread(confine_and_work), listeners
    except BaseException:
        for listener in listeners:
            listener.close()
        raise


def _start_with_program(
    profile: Profile,
    argv: Sequence[str],
    pass_fds: Sequence[int],
    options: dict[str, Any],
    before: Sequence[str] = (),
) -> StartedProcess:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = (*before, sys.executable, "-I", "-S", _PROGRAM, str(theirs.fileno()), json.dumps(asdict(profile)), *argv)
    try:
        process = subprocess.Popen(command, pass_fds=(*pass_fds, theirs.fileno()), **options)  # noqa: S603
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    ours.setblocking(False)
    return StartedProcess(process, channel=ours)
