"""The seccomp filter, for each kind of machine: interpreted, so that no machine of that kind is needed."""

import errno
import socket

import pytest

from tests.confinement.bpf import ALLOW, ERRNO, decode, run_filter
from toolyard.confinement.seccomp import CallRules, build_filter

pytestmark = pytest.mark.requirement("confinement:seccomp")
X86, ARM = "x86_64", "aarch64"
ARCHITECTURES = {X86: 0xC000003E, ARM: 0xC00000B7}
CLOSED, OPEN, STREAMS = CallRules(internet=False), CallRules(unix=True), CallRules(datagrams=False)
BOTH = (False, True)
EVERY = [CallRules(internet=i, datagrams=d, unix=u, truncate=t)
         for i in BOTH for d in BOTH for u in BOTH for t in BOTH]  # fmt: skip
NEW_USER, THREAD = 0x10000000, 0x3D0F00
LOCKS, OPEN_FILES = 10, 7
POINTER, HIGH_POINTER = 0x7FFF00001000, 0x7FFF00000000
INET, INET6, UNIX, NETLINK, PACKET, VSOCK = 2, 10, 1, 16, 17, 40
STREAM, DATAGRAM, RAW, SEQUENCED = 1, 2, 3, 5
CLOEXEC = 0o2000000

# call: number on x86_64 and on aarch64
CALLS = {
    "read": (0, 63), "openat": (257, 56), "execve": (59, 221), "futex": (202, 98), "kill": (62, 129),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438),
    "kcmp": (312, 272), "io_uring_setup": (425, 425), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "add_key": (248, 217), "keyctl": (250, 219), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268), "clone": (56, 220),
    "clone3": (435, 435), "open_by_handle_at": (304, 265), "ioctl": (16, 29), "prlimit64": (302, 261),
    "setrlimit": (160, 164), "socket": (41, 198), "socketpair": (53, 199), "truncate": (76, 45),
    "shmat": (30, 196), "shmget": (29, 194), "semop": (65, 193), "msgrcv": (70, 188), "mq_open": (240, 180),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
}  # fmt: skip
REFUSED = ("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "io_uring_setup", "bpf",
           "perf_event_open", "userfaultfd", "add_key", "keyctl", "mount", "umount2", "pivot_root", "chroot", "unshare",
           "setns", "open_by_handle_at")  # fmt: skip


def call(machine: str, rules: CallRules, name: str, *arguments: int) -> str:
    """Return what a call meets: ``allowed``, or the name of an error."""
    number = CALLS[name][0 if machine == X86 else 1]
    result = run_filter(build_filter(rules, machine), ARCHITECTURES[machine], number, arguments)
    return "allowed" if result == ALLOW else errno.errorcode[result & ~ERRNO]


@pytest.fixture(params=[X86, ARM])
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("rules", EVERY, ids=str)
def test_every_path_through_a_filter_ends_inside_of_it(machine: str, rules: CallRules) -> None:
    lines = decode(build_filter(rules, machine))
    assert len(lines) <= 4096
    for position, (code, if_true, if_false, _) in enumerate(lines):
        if code != 0x06:
            assert position + 1 + max(if_true, if_false) < len(lines)
    assert lines[-1] == (0x06, 0, 0, ALLOW)


@pytest.mark.parametrize("name", ["read", "openat", "execve", "futex", "kill"])
def test_what_every_program_needs_is_allowed(machine: str, name: str) -> None:
    assert call(machine, CLOSED, name) == "allowed"


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("rules", [CLOSED, OPEN], ids=["closed", "open"])
def test_what_no_confined_program_needs_is_refused(machine: str, name: str, rules: CallRules) -> None:
    assert call(machine, rules, name) == "EPERM"


def test_calls_of_another_architecture_are_refused(machine: str) -> None:
    program = build_filter(OPEN, machine)
    for other in (0x40000003, *(value for name, value in ARCHITECTURES.items() if name != machine)):
        assert run_filter(program, other, 1) == ERRNO | errno.EPERM


def test_the_32_bit_calls_of_x86_64_are_unknown() -> None:
    assert run_filter(build_filter(OPEN, X86), ARCHITECTURES[X86], 0x40000000 | 101) == ERRNO | errno.ENOSYS


def test_threads_and_processes_start_but_namespaces_do_not(machine: str) -> None:
    assert call(machine, OPEN, "clone", THREAD) == "allowed"
    assert call(machine, OPEN, "clone", 17) == "allowed"
    assert call(machine, OPEN, "clone", NEW_USER | 17) == "EPERM"
    assert call(machine, OPEN, "clone3") == "ENOSYS"


@pytest.mark.parametrize("high", [0, 0x100000000])
def test_nothing_is_typed_into_a_terminal(machine: str, high: int) -> None:
    assert call(machine, OPEN, "ioctl", 0, high | 0x5412) == "EPERM"
    assert call(machine, OPEN, "ioctl", 0, high | 0x541C) == "EPERM"
    assert call(machine, OPEN, "ioctl", 0, 0x5413) == "allowed"


@pytest.mark.parametrize("pointer", [POINTER, HIGH_POINTER])
def test_a_program_limits_itself_alone_and_keeps_its_number(machine: str, pointer: int) -> None:
    assert call(machine, OPEN, "prlimit64", 0, OPEN_FILES, pointer) == "allowed"
    assert call(machine, OPEN, "prlimit64", 0, LOCKS, pointer) == "EPERM"
    assert call(machine, OPEN, "prlimit64", 1234, OPEN_FILES, pointer) == "EPERM"
    assert call(machine, OPEN, "prlimit64", 1234, LOCKS, 0, pointer) == "allowed", "it only asks"
    assert call(machine, OPEN, "setrlimit", OPEN_FILES, pointer) == "allowed"
    assert call(machine, OPEN, "setrlimit", LOCKS, pointer) == "EPERM"


def test_a_program_changes_the_priority_of_itself_alone(machine: str) -> None:
    for name, of_all in (("setpriority", 2), ("ioprio_set", 3)):
        assert call(machine, OPEN, name, of_all - 2, 0, 5) == "allowed"
        assert call(machine, OPEN, name, of_all - 2, 1234, 5) == "EPERM"
        assert call(machine, OPEN, name, of_all, 0, 5) == "EPERM", "all processes of the user"
    for name in ("sched_setaffinity", "sched_setscheduler"):
        assert call(machine, OPEN, name, 0) == "allowed"
        assert call(machine, OPEN, name, 1234) == "EPERM"


@pytest.mark.parametrize("name", ["shmat", "shmget", "semop", "msgrcv", "mq_open"])
def test_memory_and_messages_are_shared_only_with_local_sockets(machine: str, name: str) -> None:
    assert call(machine, CLOSED, name) == "EACCES"
    assert call(machine, OPEN, name) == "allowed"


@pytest.mark.parametrize(
    ("rules", "family", "kind", "protocol", "expected"),
    [
        (CLOSED, INET, STREAM, 0, "EACCES"),
        (CLOSED, INET6, DATAGRAM, 0, "EACCES"),
        (CLOSED, INET | 1 << 32, STREAM, 0, "EACCES"),
        (CLOSED, UNIX, STREAM, 0, "EACCES"),
        (CLOSED, UNIX, DATAGRAM | CLOEXEC, 0, "EACCES"),
        (CLOSED, NETLINK, RAW, 0, "EACCES"),
        (CLOSED, PACKET, RAW, 0, "EAFNOSUPPORT"),
        (CLOSED, VSOCK, STREAM, 0, "EAFNOSUPPORT"),
        (OPEN, INET, STREAM, 0, "allowed"),
        (OPEN, INET6, DATAGRAM | CLOEXEC, 0, "allowed"),
        (OPEN, UNIX, STREAM, 0, "allowed"),
        (OPEN, NETLINK, RAW, 0, "allowed"),
        (OPEN, NETLINK, RAW, 12, "EACCES"),
        (OPEN, VSOCK, STREAM, 0, "EAFNOSUPPORT"),
        (STREAMS, INET, STREAM | CLOEXEC, 0, "allowed"),
        (STREAMS, INET6, STREAM, socket.IPPROTO_TCP, "allowed"),
        (STREAMS, INET, STREAM, 262, "EACCES"),
        (STREAMS, INET, DATAGRAM, 0, "EACCES"),
        (STREAMS, INET, RAW, 1, "EACCES"),
    ],
)
def test_sockets_are_those_of_the_profile(
    machine: str, rules: CallRules, family: int, kind: int, protocol: int, expected: str
) -> None:
    assert call(machine, rules, "socket", family, kind, protocol) == expected


def test_pairs_of_sockets_stay_pairs(machine: str) -> None:
    assert call(machine, CLOSED, "socketpair", UNIX, STREAM | CLOEXEC) == "allowed"
    assert call(machine, CLOSED, "socketpair", UNIX, SEQUENCED) == "allowed"
    assert call(machine, CLOSED, "socketpair", UNIX, DATAGRAM) == "EACCES"
    assert call(machine, CLOSED, "socketpair", UNIX, RAW) == "EACCES"
    assert call(machine, OPEN, "socketpair", UNIX, DATAGRAM) == "allowed"
    assert call(machine, OPEN, "socketpair", 30, STREAM) == "EAFNOSUPPORT"


def test_emptying_by_path_is_refused_where_landlock_does_not_guard_it(machine: str) -> None:
    assert call(machine, CallRules(truncate=False), "truncate") == "EACCES"
    assert call(machine, CallRules(), "truncate") == "allowed"
