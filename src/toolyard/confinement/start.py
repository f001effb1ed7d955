"""Start a process under a profile. See the package for how.

Wherever there are namespaces, a program has a view of the files of its own, in which nothing can be changed but what it
may write. Root enters them in the thread that starts the process. Anybody else needs a user namespace, which only a
process with a single thread can enter: then a small Python program (``confined_program``) enters it, restricts itself
and becomes the program. That takes about 20 ms more. So does bubblewrap, which starts the same program with processes
of its own.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from errno import EACCES, ENOENT, EPERM
from functools import cache, partial
from pathlib import Path
from typing import Any

from toolyard.confinement import bubblewrap, linux
from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.program_files import read_interpreter
from toolyard.confinement.thread import Probe, confine_thread, probe_namespaces
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
    own_mounts = can_enter_directly() or can_enter_with_program()
    if not own_mounts and profile.covered:
        hidden = Message(
            "confinement.cannot_hide", "{path} cannot be hidden from it on this system", path=profile.covered[0]
        )
        raise PermissionError(EPERM, hidden)
    if not own_mounts and profile.network is Network.PORTS:
        profile = replace(profile, network=Network.ANY)  # its level says so
    if profile.own_processes and bubblewrap.can_use():
        return _start_with_program(profile, argv, pass_fds, options, bubblewrap.build_command() or ())
    if own_mounts and not can_enter_directly():
        return _start_with_program(profile, argv, pass_fds, options)
    process, listeners = _run_in_confined_thread(profile, partial(subprocess.Popen, argv, pass_fds=pass_fds, **options))
    return StartedProcess(process, tuple(listeners))


def can_confine(profile: Profile | None) -> bool:
    """Return whether ``start_process`` confines a program with this profile here, as far as the kernel can."""
    return profile is not None and linux.IS_LINUX


def can_enter_directly() -> bool:
    """Return whether a thread of this process can enter a network and a view of the files of its own."""
    return _probe_thread() is not Probe.REFUSED


def can_enter_with_program() -> bool:
    """Return whether a program can enter a user namespace, and so a network and a view of the files of its own."""
    return _probe_program() is not Probe.REFUSED


def can_make_read_only() -> bool:
    """Return whether nothing can be changed in that view of the files but what a program may write."""
    return (_probe_thread() if can_enter_directly() else _probe_program()) is Probe.READ_ONLY


@cache
def _probe_thread() -> Probe:
    try:
        return run_in_new_thread(probe_namespaces)
    except OSError:
        return Probe.REFUSED


@cache
def _probe_program() -> Probe:
    try:
        done = subprocess.run(  # noqa: S603 our own file, run by our own interpreter
            [sys.executable, "-I", "-S", _PROGRAM, "probe"], stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_PROBE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return Probe.REFUSED
    return Probe(done.returncode) if done.returncode in list(Probe) else Probe.REFUSED


def _run_in_confined_thread(
    profile: Profile, work: "Callable[[], subprocess.Popen[Any]]"
) -> "tuple[subprocess.Popen[Any], list[socket.socket]]":
    listeners: list[socket.socket] = []

    def confine_and_work() -> "subprocess.Popen[Any]":
        own = can_enter_directly()
        listeners.extend(
            confine_thread(
                profile,
                own_mounts=own,
                read_only=own and can_make_read_only(),
                own_processes=profile.is_contained and own,
            )
        )
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
    _require_startable(argv[0], options)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    read_only = _probe_program() is Probe.READ_ONLY
    fields = json.dumps({**asdict(profile), "own_mounts": can_enter_with_program(), "read_only": read_only})
    command = (*before, sys.executable, "-I", "-S", _PROGRAM, str(theirs.fileno()), fields, *argv)
    try:
        process = subprocess.Popen(command, pass_fds=(*pass_fds, theirs.fileno()), **options)  # noqa: S603
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    ours.setblocking(False)
    return StartedProcess(process, channel=ours)


def _require_startable(program: str, options: Mapping[str, Any]) -> None:
    """Raise the OSError with which the start of a program would fail, as far as that can be seen before."""
    folder = options.get("cwd") or "."
    if not os.path.isdir(folder):
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), str(folder))
    variables = options.get("env")
    search = None if variables is None else variables.get("PATH", os.defpath)
    place = os.path.join(folder, program) if "/" in program else shutil.which(program, path=search) or program
    for needed in filter(None, (place, read_interpreter(place))):
        if not os.path.exists(needed):
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT), needed)
        if os.path.isdir(needed) or not os.access(needed, os.X_OK):
            raise PermissionError(EACCES, os.strerror(EACCES), needed)
