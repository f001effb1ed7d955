"""A seccomp filter: system calls that no confined program needs, and sockets that its profile does not allow.

It is a list of what is refused, not of what is allowed: a program that asks for something new still runs, and what
Landlock guards does not depend on this list. Refused calls fail with an error that programs know (EPERM, EACCES,
EAFNOSUPPORT); nothing is killed. Calls of another architecture are refused whole, since the numbers would not match.
"""

import ctypes
import functools
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from errno import EACCES, EAFNOSUPPORT, ENOSYS, EPERM

from toolyard.confinement import linux

_MODE_FILTER, _SET_SECCOMP = 2, 22
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _AND, _IF_EQUAL, _IF_ANY_BIT, _IF_AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x45, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
_NAMESPACES = 0x7E020080  # CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_TYPE_BITS = 0xF
_UNIX, _INET, _INET6, _NETLINK, _NETLINK_ROUTE = 1, 2, 10, 16, 0
_OF_A_USER, _DISK_OF_A_USER = 2, 3  # PRIO_USER and IOPRIO_WHO_USER: all processes of a user
_RLIMIT_LOCKS = 10  # carries the number of a call: see ``toolyard.process_numbers``
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

# name: number on x86_64 and on aarch64; None where there is no such call
_CALLS: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280), "chroot": (161, 51),
    "clock_adjtime": (305, 266), "clock_settime": (227, 112), "clone": (56, 220), "clone3": (435, 435),
    "delete_module": (176, 106), "finit_module": (313, 273), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fsopen": (430, 430), "fspick": (433, 433), "init_module": (175, 105), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "io_uring_setup": (425, 425), "ioctl": (16, 29), "ioperm": (173, None),
    "iopl": (172, None), "ioprio_set": (251, 30), "kcmp": (312, 272), "kexec_file_load": (320, 294),
    "kexec_load": (246, 104), "keyctl": (250, 219), "lookup_dcookie": (212, 18), "migrate_pages": (256, 238),
    "mount": (165, 40), "mount_setattr": (442, 442), "move_mount": (429, 429), "move_pages": (279, 239),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "msgctl": (71, 187), "msgget": (68, 186), "msgrcv": (70, 188),
    "msgsnd": (69, 189), "open_by_handle_at": (304, 265), "open_tree": (428, 428), "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438), "pivot_root": (155, 41), "prlimit64": (302, 261), "process_madvise": (440, 440),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "ptrace": (101, 117), "quotactl": (179, 60),
    "reboot": (169, 142), "request_key": (249, 218), "sched_setaffinity": (203, 122), "sched_setattr": (314, 274),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "semctl": (66, 191), "semget": (64, 190),
    "semop": (65, 193), "semtimedop": (220, 192), "setdomainname": (171, 162), "sethostname": (170, 161),
    "setns": (308, 268), "setpriority": (141, 140), "setrlimit": (160, 164), "settimeofday": (164, 170),
    "shmat": (30, 196), "shmctl": (31, 195), "shmget": (29, 194), "socket": (41, 198), "socketpair": (53, 199),
    "swapoff": (168, 225), "swapon": (167, 224), "syslog": (103, 116), "truncate": (76, 45), "umount2": (166, 39),
    "unshare": (272, 97), "userfaultfd": (323, 282), "vhangup": (153, 58),
}  # fmt: skip
# memory, semaphores and messages that processes of one user share by a number or a name, without any file
_SHARED_BY_NUMBER = (
    "mq_open", "mq_unlink", "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat",
    "shmctl", "shmget",
)  # fmt: skip
_OF_A_PROCESS = ("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler")

Instruction = tuple[int, int, int, int]  # code, instructions to skip if true, and if false, constant
_ALLOWED: Instruction = (_RETURN, 0, 0, _ALLOW)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRules:
    """The calls that a filter leaves to one program and refuses to another."""

    internet: bool = True
    datagrams: bool = True  # internet sockets other than TCP: UDP, and so DNS
    unix: bool = False  # sockets and shared memory by which it could reach a session bus or another program
    truncate: bool = True  # by path: False where Landlock does not guard that


def is_available() -> bool:
    return linux.MACHINE in _ARCHITECTURE and os.path.exists("/proc/sys/kernel/seccomp")


def restrict_thread(rules: CallRules) -> None:
    """Install the filter in the calling thread, which must not be able to gain privileges. Raises OSError."""
    program = build_filter(rules, linux.MACHINE)
    code = ctypes.create_string_buffer(program, len(program))
    described = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code)))
    linux.prctl(_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), described)


@functools.lru_cache(maxsize=32)
def build_filter(rules: CallRules, machine: str) -> bytes:
    """Return the filter for a kind of machine, as the kernel reads it."""
    column = 0 if machine == "x86_64" else 1
    lines: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, _ARCHITECTURE[machine]),
        _refuse(EPERM),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine == "x86_64":
        lines += [(_IF_AT_LEAST, 0, 1, _X32), _refuse(ENOSYS)]
    decisions = dict(_list_decisions(rules))
    for name, row in _CALLS.items():
        number = row[column]
        decision = decisions.get(name, [_refuse(EPERM)])
        if number is not None and decision:
            lines += _if_equal(number, decision)
    lines.append(_ALLOWED)
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def _list_decisions(rules: CallRules) -> Iterator[tuple[str, list[Instruction]]]:
    """Yield the calls that are refused for some arguments only, with the code that decides; empty: never refused."""
    yield "clone", [_load(0), (_IF_ANY_BIT, 0, 1, _NAMESPACES), _refuse(EPERM), _ALLOWED]
    yield "clone3", [_refuse(ENOSYS)]  # its flags are in memory, where a filter cannot look; libraries then use clone
    yield (
        "ioctl",
        [_load(1), *_if_equal(_TIOCSTI, [_refuse(EPERM)]), *_if_equal(_TIOCLINUX, [_refuse(EPERM)]), _ALLOWED],
    )
    yield "setrlimit", [_load(0), *_if_equal(_RLIMIT_LOCKS, [_refuse(EPERM)]), _ALLOWED]
    yield (
        "prlimit64",
        [
            *(_load(2), *_if_equal(0, [_load_high(2), *_if_equal(0, [_ALLOWED])])),  # it only asks
            *(_load(0), (_IF_EQUAL, 1, 0, 0), _refuse(EPERM)),  # another process
            *(_load(1), *_if_equal(_RLIMIT_LOCKS, [_refuse(EPERM)])),
            _ALLOWED,
        ],
    )
    for name in _OF_A_PROCESS:
        yield name, [_load(0), *_if_equal(0, [_ALLOWED]), _refuse(EPERM)]
    yield "setpriority", _decide_priority(_OF_A_USER)
    yield "ioprio_set", _decide_priority(_DISK_OF_A_USER)
    for name in _SHARED_BY_NUMBER:
        yield name, [] if rules.unix else [_refuse(EACCES)]
    yield "socket", _decide_socket(rules)
    yield "socketpair", _decide_socketpair(rules)
    yield "truncate", [] if rules.truncate else [_refuse(EACCES)]


def _decide_socket(rules: CallRules) -> list[Instruction]:
    if not rules.internet:
        internet = [_refuse(EACCES)]
    elif rules.datagrams:
        internet = [_ALLOWED]
    else:
        tcp = [_load(2), *_if_equal(0, [_ALLOWED]), *_if_equal(socket.IPPROTO_TCP, [_ALLOWED]), _refuse(EACCES)]
        internet = [_load(1), (_AND, 0, 0, _TYPE_BITS), *_if_equal(socket.SOCK_STREAM, tcp), _refuse(EACCES)]
    # programs look up addresses and interfaces by netlink
    netlink = (
        [_load(2), *_if_equal(_NETLINK_ROUTE, [_ALLOWED]), _refuse(EACCES)] if rules.internet else [_refuse(EACCES)]
    )
    return [
        _load(0),
        *_if_equal(_INET, internet),
        *_if_equal(_INET6, internet),
        *_if_equal(_UNIX, [_ALLOWED] if rules.unix else [_refuse(EACCES)]),
        *_if_equal(_NETLINK, netlink),
        _refuse(EAFNOSUPPORT),
    ]


def _decide_socketpair(rules: CallRules) -> list[Instruction]:
    """Allow pairs that stay pairs: one of datagrams could be connected to somebody else."""
    stream = [*_if_equal(socket.SOCK_STREAM, [_ALLOWED]), *_if_equal(socket.SOCK_SEQPACKET, [_ALLOWED])]
    pair = [_ALLOWED] if rules.unix else [_load(1), (_AND, 0, 0, _TYPE_BITS), *stream, _refuse(EACCES)]
    return [_load(0), *_if_equal(_UNIX, pair), _refuse(EAFNOSUPPORT)]


def _decide_priority(of_a_user: int) -> list[Instruction]:
    """Allow a program to change its own priority or that of its group, and nobody else's."""
    own = _if_equal(0, [_ALLOWED])
    return [_load(0), *_if_equal(of_a_user, [_refuse(EPERM)]), _load(1), *own, _refuse(EPERM)]


def _if_equal(value: int, then: list[Instruction]) -> list[Instruction]:
    return [(_IF_EQUAL, 0, len(then), value), *then]


def _load(argument: int) -> Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument)


def _load_high(argument: int) -> Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument + 4)


def _refuse(error: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | error)
