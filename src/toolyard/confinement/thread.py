"""Confine the calling thread: in the order in which each step is still allowed by the steps before it.

Every path of a profile is opened once, without following links, and what was opened then is what is mounted and
granted: a folder that is replaced while a program starts gives it nothing. Of the privileges of root it keeps those
for files, and neither it nor its children ever get others.
"""

import ctypes
import itertools
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from enum import IntEnum
from errno import ELOOP
from pathlib import PurePath

from toolyard.confinement import landlock, linux, namespace, seccomp
from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.program_files import DEVICES, list_readable_trees
from toolyard.message import Message

_ABSENT = (FileNotFoundError, NotADirectoryError)
_MISSING = (*_ABSENT, PermissionError)
_SET_NO_NEW_PRIVILEGES, _DROP_BOUND, _AMBIENT, _AMBIENT_CLEAR_ALL = 38, 24, 47, 4
_CAPABILITY_VERSION = 0x20080522
# root's files stay usable: change owner, ignore modes, act as owner, keep set-id bits
_KEPT_CAPABILITIES = frozenset({0, 1, 3, 4})
_MAX_CAPABILITIES = 64


class Probe(IntEnum):
    """The result of a probe: how much namespaces give to a program here."""

    READ_ONLY = 0  # a network, a view of the files of its own, and in that nothing to change but what it may write
    VIEW = 10  # all but the last
    REFUSED = 11


def probe_namespaces() -> Probe:
    """Enter namespaces, and return what they give. Raises OSError."""
    namespace.enter_network(())
    namespace.enter_mounts()  # not in a chroot whose root is no mount
    os.close(linux.make_empty_folder())
    try:
        namespace.make_read_only(())
    except OSError:  # some containers do not know the call for it
        return Probe.VIEW
    return Probe.READ_ONLY


def confine_thread(
    profile: Profile, *, own_mounts: bool, read_only: bool, own_processes: bool = False
) -> list[socket.socket]:
    """Restrict the thread and what it starts to ``profile``, as far as this kernel can.

    With ``own_mounts`` what is covered is not seen, and views are; without it, the files that have a view cannot be
    opened. With ``read_only`` as well, nothing outside of what it may write
    can be changed at all. With ``own_processes`` its first child has a number space of processes, and the others end
    with that one. Return the sockets that listen on the profile's ports. Raises OSError.
    """
    if own_mounts:
        namespace.enter_mounts()
        _hold_in_place(profile)
    covered, granted = _open_trees(profile.covered, _ABSENT), _open_trees((*profile.read, *profile.write))
    with covered as covers, granted as opened:
        if own_mounts:
            _show_views(profile.views)
            _cover_folders(covers, opened)
        if read_only:
            _make_read_only(profile, opened)
        listeners = namespace.enter_network(profile.ports) if profile.network is Network.PORTS else []
        try:
            if own_processes:
                linux.unshare(namespace.NEW_PROCESSES)
            _restrict_thread(profile, opened, hides_files=bool(profile.views) and not own_mounts)
        except BaseException:
            for listener in listeners:
                listener.close()
            raise
    return listeners


@contextmanager
def _open_trees(paths: Iterable[str], leave_out: tuple[type[OSError], ...] = _MISSING) -> Iterator[dict[str, int]]:
    """Open files and folders without following links, without those that fail with ``leave_out``. Raises OSError."""
    opened: dict[str, int] = {}
    try:
        for path in dict.fromkeys(paths):
            with suppress(*leave_out):
                opened[path] = _open(path)
        yield opened
    finally:
        for number in opened.values():
            os.close(number)


def _open(path: str) -> int:
    try:
        return linux.open_without_links(path)
    except OSError as error:
        if error.errno != ELOOP:
            raise
        message = Message("{path} has become a link, or leads through one, and is not granted", path=path)
        raise OSError(ELOOP, message) from error


def _hold_in_place(profile: Profile) -> None:
    """Keep the program from moving folders in which something is covered: at another place it would not be.

    What is mounted cannot be renamed or replaced by those who see the mount.
    """
    for folder in profile.covered:
        above = (str(place) for place in reversed(PurePath(folder).parents))
        for place in above:
            if any(place.startswith(f"{tree.rstrip('/')}/") for tree in profile.write):
                with _open_trees((place,)) as opened:
                    for number in opened.values():
                        namespace.hold_in_place(number)


def _cover_folders(covers: Mapping[str, int], opened: dict[str, int]) -> None:
    """Cover folders; of ``opened``, what is in them is opened anew as it is seen from then on."""
    for folder, cover in covers.items():
        below = {path.removeprefix(f"{folder}/"): path for path in opened if path.startswith(f"{folder}/")}
        shown = namespace.cover_folder(cover, {name: opened[path] for name, path in below.items()})
        for name, number in shown.items():
            os.close(opened[below[name]])
            opened[below[name]] = number


def _show_views(views: Iterable[tuple[str, str]]) -> None:
    for path, shown in views:
        with _open_trees((path,), _ABSENT) as hidden, _open_trees((shown,), ()) as instead:
            for number in hidden.values():
                namespace.show_in_place(instead[shown], number)


def _make_read_only(profile: Profile, opened: dict[str, int]) -> None:
    writable = [path for path in profile.write if path in opened]
    namespace.make_read_only(
        opened[path] for path in dict.fromkeys(writable) if not any(path.startswith(f"{outer}/") for outer in writable)
    )


def _restrict_thread(profile: Profile, opened: dict[str, int], *, hides_files: bool) -> None:
    forbid_new_privileges()
    version = landlock.interface_version()
    if version:
        own = (
            *((opened[path], landlock.READ) for path in profile.read if path in opened),
            *((opened[path], landlock.WRITE) for path in profile.write if path in opened),
        )
        if hides_files:
            with _open_around(profile, opened) as around:
                landlock.restrict_thread(itertools.chain(around, _open_system()))
        else:
            landlock.restrict_thread(itertools.chain(own, _open_system()))
    drop_capabilities()
    if seccomp.is_available():
        seccomp.restrict_thread(
            seccomp.CallRules(
                internet=profile.network is not Network.NONE,
                unix=profile.unix_sockets,
                truncate=version == 0 or version >= landlock.VERSION_TRUNCATE,
            )
        )


@contextmanager
def _open_around(profile: Profile, opened: Mapping[str, int]) -> Iterator[list[tuple[int, int]]]:
    """Open what a profile grants, but around the files that it has a view of: a tree with such a file as its entries.

    A folder of the program's own is granted as a whole: it has no view of what is in there.
    """
    hidden = {path for path, _ in profile.views}
    own = {path for path in (*profile.read, *profile.write) if path in opened}
    granted: list[tuple[int, int]] = []
    with ExitStack() as stack:

        def grant(path: str, number: int, access: int) -> None:
            if not any(file.startswith(f"{path.rstrip('/')}/") for file in hidden):
                granted.append((number, access))
                return
            granted.append((number, landlock.LIST))
            folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=number)
            stack.callback(os.close, folder)
            for name in os.listdir(folder):
                inner = os.path.join(path, name)
                if inner not in hidden and inner not in own:
                    with suppress(OSError):  # a link, or just removed
                        below = linux.open_without_links(name, number)
                        stack.callback(os.close, below)
                        grant(inner, below, access)

        for access, paths in ((landlock.READ, profile.read), (landlock.WRITE, profile.write)):
            for path in (path for path in paths if path in opened):
                grant(path, opened[path], access)
        yield granted


def _open_system() -> Iterator[tuple[int, int]]:
    """Yield what every program may reach of the system; each is open only until the next one is asked for."""
    readable = ((path, landlock.READ) for path in list_readable_trees())
    for path, access in (*readable, *((path, landlock.DEVICE) for path in DEVICES)):
        try:
            number = linux.open_without_links(path)
        except OSError:  # it is missing, or just replaced: it is not granted
            continue
        try:
            yield number, access
        finally:
            os.close(number)


def forbid_new_privileges() -> None:
    """Make sure that no program started from here gains privileges, by a set-id bit or otherwise. Raises OSError."""
    linux.prctl(_SET_NO_NEW_PRIVILEGES, ctypes.c_ulong(1))


def drop_capabilities() -> None:
    """Give up what root can do beyond files, for this thread and what it starts. Raises OSError.

    Another user gives up whatever it was given: a service may have a capability, which programs would inherit.
    """
    permitted = _read_permitted()
    kept_ones = _KEPT_CAPABILITIES if os.geteuid() == 0 else frozenset[int]()
    if not permitted and not kept_ones:
        return
    for capability in range(_MAX_CAPABILITIES):
        if capability not in kept_ones:
            try:
                linux.prctl(_DROP_BOUND, ctypes.c_ulong(capability))
            except OSError:  # EINVAL: there are no more; EPERM: the bound cannot be changed, and capset decides
                break
    linux.prctl(_AMBIENT, ctypes.c_ulong(_AMBIENT_CLEAR_ALL))
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    kept = sum(1 << capability for capability in kept_ones) & permitted
    linux.capset(header, (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0))


def _read_permitted() -> int:
    with open("/proc/thread-self/status", "rb", buffering=0) as file:
        for line in file.read().splitlines():
            if line.startswith(b"CapPrm:"):
                return int(line.split()[1], 16)
    return 0
