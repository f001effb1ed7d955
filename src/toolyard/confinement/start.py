"""Start a process under a profile. See the package for how.

Wherever there are namespaces, a program has a view of the files of its own, in which nothing can be changed but what it
may write. Root enters them in the thread that starts the process. Anybody else needs a user namespace, which only a
process with a single thread can enter: then a small Python program (``confined_program``) enters it, restricts itself
and becomes the program. That takes about 20 ms more. So does bubblewrap, a program of the system that gives the same
program processes of its own, so that it sees no others.

A contained process leaves nothing behind: with the block that started it, everything that it has started ends. As root
it is the first process of a namespace, with which the kernel ends all others. Otherwise its processes are found by a
number that they cannot change, which takes some milliseconds, unless it may not start any.
"""

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from errno import EACCES, ENOENT, EPERM
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from toolyard import process_numbers
from toolyard.confinement import linux
from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.program_files import read_interpreter
from toolyard.confinement.thread import Probe, confine_thread, probe_namespaces
from toolyard.message import Message
from toolyard.threads import run_in_new_thread

_PROGRAM = str(Path(__file__).with_name("confined_program.py"))
_PROBE_S = 10.0
_BUBBLEWRAP: Final = "bwrap"


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
        hidden = Message("{path} cannot be hidden from it on this system", path=profile.covered[0])
        raise PermissionError(EPERM, hidden)
    if not own_mounts and profile.network is Network.PORTS:
        profile = replace(profile, network=Network.ANY)  # its level says so
    if profile.own_processes and can_use_bubblewrap():
        return _start_with_program(profile, argv, pass_fds, options, build_bubblewrap_command() or ())
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


@cache
def can_use_bubblewrap() -> bool:
    """Return whether it is installed and this system lets it work."""
    command = build_bubblewrap_command()
    if command is None:
        return False
    try:
        done = subprocess.run(  # noqa: S603 a program of the system, with arguments of ours
            [*command, "true"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def build_bubblewrap_command() -> tuple[str, ...] | None:
    """Return the words before a command that give it processes of its own; None when it is not installed."""
    program = shutil.which(_BUBBLEWRAP)
    if program is None:
        return None
    return (program, "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--")


@contextlib.contextmanager
def contain_process(
    profile: Profile, argv: Sequence[str], *, starts_others: bool, **options: Any
) -> "Iterator[subprocess.Popen[Any]]":
    """Start ``argv`` under ``profile``, in a session of its own. Options are those of Popen.

    Raises OSError or ValueError.
    """
    started = start_process(replace(profile, is_contained=True), argv, start_new_session=True, **options)
    with started.process as process:
        number = 0 if can_enter_directly() else _mark_process(process.pid, starts_others=starts_others)
        try:
            yield process
        finally:
            if process.returncode is None:  # else its group may be another one by now
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
            if number:
                _kill_numbered(number)


def _mark_process(pid: int, *, starts_others: bool) -> int:
    """Keep a process from starting others, or give it a number by which they are found; 0: neither is needed."""
    if not process_numbers.AVAILABLE:
        return 0
    number = process_numbers.NumberSequence().next()
    with contextlib.suppress(OSError, ValueError):  # it has ended, or this is the child of another host
        if not starts_others and os.geteuid() != 0:  # root's processes are not limited
            resource.prlimit(pid, resource.RLIMIT_NPROC, (0, 0))
            return 0
        process_numbers.set_number(pid, number)
    return number


def _kill_numbered(number: int) -> None:
    for pid in process_numbers.kill_all(partial(_find_numbered, number)):
        with contextlib.suppress(OSError):  # only those whose parent is gone became children of this process
            os.waitpid(pid, os.WNOHANG)


def _find_numbered(number: int) -> list[process_numbers.NumberedProcess]:
    return [one for one in process_numbers.find_processes(number) if one.number == number]
