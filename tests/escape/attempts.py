"""The attempts: what a plugin tries, the level that stops it, the operation that does it and its target.

Operations are functions of the attackers; ``target`` and ``other`` may name facts of the scene in braces.
"""

from dataclasses import dataclass
from enum import StrEnum

from tests.sampling import sample
from toolyard.protocol.access import ConfinementLevel

FILES, FULL = ConfinementLevel.FILES, ConfinementLevel.FULL


class Kind(StrEnum):
    """The right that an attempt would need; some start paths grant one of them."""

    PROTECTED = "protected"  # the homes of Toolyard and of the user, other plugins: granted to nobody
    SYSTEM = "system"
    SHARED = "shared"  # the temporary folders of all programs
    PROJECT = "project"
    OWN_CODE = "own code"
    PROCESS = "process"
    LOCAL_SOCKET = "local socket"
    NETWORK = "network"
    LISTENING = "listening"  # which is harmless in a network of its own
    PRIVILEGE = "privilege"


class Control(StrEnum):
    """The proof that an attempt works on an unconfined plugin."""

    ALWAYS = "always"
    ROOT = "root"  # it needs root
    NONE = "none"  # it would change the machine of whoever runs the tests, or the host stops it in another way


@dataclass(frozen=True, slots=True)
class Attempt:
    name: str
    kind: Kind
    level: ConfinementLevel
    operation: str
    target: str = ""
    other: str = ""
    control: Control = Control.ALWAYS


def _protected() -> list[Attempt]:
    """Files that no plugin may reach."""
    secrets = {
        "the host's key": "{home}/key",
        "the keys of clients": "{home}/keys.json",
        "config.toml": "{home}/config.toml",
        "the database": "{home}/state.db",
        "the trust file": "{home}/trust.json",
        "the publish keys": "{home}/publish-keys.json",
        "an old version in the undo store": "{home}/undo/version",
        "another plugin's config.env": "{victim}/config.env",
        "another plugin's code": "{victim}/main.py",
        "another plugin's data": "{home}/plugin-data/Victim/data.txt",
        "a key of the user": "{user}/.ssh/id_ed25519",
    }
    writes = {
        "the host's key": "{home}/key",
        "config.toml": "{home}/config.toml",
        "the database": "{home}/state.db",
        "the trust file": "{home}/trust.json",
        "the undo store": "{home}/undo/version",
        "another plugin's config.env": "{victim}/config.env",
        "another plugin's code": "{victim}/main.py",
        "another plugin's compiled code": "{home}/python-cache/Victim/main.pyc",
        "another plugin's data": "{home}/plugin-data/Victim/data.txt",
        "a setting of the user's shell": "{user}/.bashrc",
    }
    folders = {
        "the home of Toolyard": ("{home}", "trust.json"),
        "the home of the user": ("{user}", ".ssh"),
        "another plugin's folder": ("{victim}", "main.py"),
    }
    kind = Kind.PROTECTED
    return [
        *(Attempt(f"read {what}", kind, FILES, "read", path) for what, path in secrets.items()),
        *(Attempt(f"write {what}", kind, FILES, "write", path) for what, path in writes.items()),
        *(Attempt(f"list {what}", kind, FILES, "list", path, name) for what, (path, name) in folders.items()),
        Attempt("create a plugin", kind, FILES, "create", "{home}/plugins/planted-{run}"),
        Attempt("make a folder in the home", kind, FILES, "make folder", "{home}/folder-{run}"),
        Attempt("delete a file of the home", kind, FILES, "delete", "{home}/deletable"),
        Attempt("empty a file of the home by its path", kind, FILES, "truncate", "{home}/truncatable"),
        Attempt("run a program of the user", kind, FILES, "execute", "{user}/bin/program"),
        Attempt("read through a symbolic link", kind, FILES, "read by symlink", "{home}/key"),
        Attempt("write through a symbolic link", kind, FILES, "write by symlink", "{home}/trust.json"),
        Attempt("read through a hard link", kind, FILES, "read by hard link", "{home}/key"),
        Attempt("move a file out of the home", kind, FILES, "move out", "{home}/movable"),
        Attempt("move its own file over the trust file", kind, FILES, "move in", "{home}/replaceable"),
        Attempt("exchange its own file with the trust file", kind, FILES, "exchange", "{home}/exchangeable"),
        Attempt("read through a folder opened by path only", kind, FILES, "read at", "{home}", "key"),
        Attempt("read through its own root in /proc", kind, FILES, "read", "/proc/self/root{home}/key"),
        Attempt("read through its own working folder", kind, FILES, "read", "/proc/self/cwd/../../home/key"),
        Attempt("read by a file handle", kind, FILES, "read by handle", "{home}/key", control=Control.ROOT),
        Attempt("read by a program it starts", kind, FILES, "read by cat", "{home}/key"),
        Attempt("read after forking and a session of its own", kind, FILES, "read in session", "{home}/key"),
        Attempt("read in a thread", kind, FILES, "read in thread", "{home}/key"),
        Attempt("create by an unnamed file that gets a name", kind, FILES, "name unnamed", "{home}/unnamed-{run}"),
        Attempt("show the home at another place", kind, FILES, "bind mount", "{home}", "key", control=Control.ROOT),
        *(
            Attempt(f"change the {what} of a file of {owner}", kind, FULL, operation, path)
            for what, operation in {"mode": "change mode", "owner": "change owner", "times": "change times"}.items()
            for owner, path in {"the home": "{home}/key", "the user": "{user}/.bashrc"}.items()
        ),
        Attempt("add an attribute to a file of the home", kind, FULL, "add attribute", "{home}/key"),
    ]


def _other_files() -> list[Attempt]:
    return [
        Attempt("read the passwords of the system", Kind.SYSTEM, FILES, "open", "/etc/shadow", control=Control.ROOT),
        Attempt("read what only root may read below /etc", Kind.SYSTEM, FILES, "open", "{root_only}",
                control=Control.ROOT),
        Attempt("list the home of root", Kind.SYSTEM, FILES, "list", "/root", control=Control.ROOT),
        Attempt("write a program of the system", Kind.SYSTEM, FILES, "create", "/usr/local/bin/escape-{run}",
                control=Control.NONE),
        Attempt("write a setting of the system", Kind.SYSTEM, FILES, "create", "/etc/escape-{run}",
                control=Control.NONE),
        Attempt("write a setting of the kernel", Kind.SYSTEM, FILES, "open to write", "/proc/sys/kernel/core_pattern",
                control=Control.ROOT),
        Attempt("open the kernel's messages", Kind.SYSTEM, FILES, "open", "/dev/kmsg", control=Control.ROOT),
        Attempt("make a device", Kind.SYSTEM, FILES, "make device", control=Control.ROOT),
        Attempt("create a file for all programs", Kind.SHARED, FILES, "create", "/var/tmp/escape-{run}"),
        Attempt("create shared memory for all programs", Kind.SHARED, FILES, "create", "/dev/shm/escape-{run}"),
        Attempt("change the mode of a setting of the system", Kind.SYSTEM, FULL, "change mode", "/etc/passwd",
                control=Control.ROOT),
        Attempt("read the project", Kind.PROJECT, FILES, "read", "{project}/file.txt"),
        Attempt("write the project", Kind.PROJECT, FILES, "write", "{project}/file.txt"),
        Attempt("list the project", Kind.PROJECT, FILES, "list", "{project}"),
        Attempt("create a file in the project", Kind.PROJECT, FILES, "create", "{project}/new-{run}"),
        Attempt("change its own code", Kind.OWN_CODE, FILES, "append", "{own}/helper.txt"),
        Attempt("change its own manifest", Kind.OWN_CODE, FILES, "append", "{own}/plugin-manifest.json"),
        Attempt("create a file beside its code", Kind.OWN_CODE, FILES, "create", "{own}/new-{run}"),
    ]  # fmt: skip


def _processes() -> list[Attempt]:
    kind = Kind.PROCESS
    views = {
        "environ": "see secret",
        "maps": "see line",
        "fd/0": "follow",
        "cwd": "follow",
        "root": "list",
        "mem": "open",
        "stack": "see line",
        "auxv": "see line",
    }
    owners = {
        "the server": "{server}",
        "the guardian": "{guardian}",
        "another plugin": "{other_plugin}",
        "another call of the same plugin": "{other_call}",
        "a process that waits for a call of the same plugin": "{waiting}",
        "the process that forks for each call": "{forks}",
    }
    return [
        *(
            Attempt(f"see {view} of {owner}", kind, FILES, operation, f"/proc/{pid}/{view}",
                    control=Control.ROOT if view == "stack" else Control.ALWAYS)
            for owner, pid in owners.items() for view, operation in views.items()
        ),
        *(
            Attempt(f"forge the {what} of {owner}", kind, FILES, "open to write", f"/proc/{pid}/fd/{number}")
            for owner, pid in owners.items() if "plugin" in owner or "call" in owner
            for number, what in enumerate(("input", "output"))
        ),
        *(Attempt(f"signal {owner}", kind, FULL, "signal", pid) for owner, pid in owners.items()),
        *(Attempt(f"trace {owner}", kind, FILES, "trace", pid) for owner, pid in owners.items()),
        Attempt("read a file through the server's root", kind, FILES, "read", "/proc/{server}/root{home}/key"),
        Attempt("read a file that the server has open", kind, FILES, "read", "/proc/{server}/fd/{server_file}"),
        Attempt("write the memory of the server by /proc", kind, FILES, "open to write", "/proc/{server}/mem"),
        Attempt("change which process is killed for memory", kind, FILES, "write", "/proc/{server}/oom_score_adj", "0"),
        Attempt("change what the server's core shows", kind, FILES, "open to write", "/proc/{server}/coredump_filter"),
        Attempt("enter a namespace of the server", kind, FILES, "open", "/proc/{server}/ns/mnt"),
        Attempt("read the memory of the server", kind, FILES, "read memory", "{server}", "{server_memory}"),
        Attempt("write the memory of the server", kind, FILES, "write memory", "{server}", "{server_memory}"),
        Attempt("take a descriptor of the server", kind, FILES, "take descriptor", "{server}", "{server_file}"),
        Attempt("compare descriptors of the server", kind, FILES, "compare", "{server}"),
        Attempt("watch the server without stopping it", kind, FILES, "seize", "{server}"),
        Attempt("signal a thread of the server", kind, FULL, "signal thread", "{server}"),
        Attempt("signal the server by a descriptor", kind, FULL, "signal by descriptor", "{server}"),
        Attempt("signal the group of the server", kind, FULL, "signal", "-{group}"),
        Attempt("queue a signal to the server", kind, FULL, "queue signal", "{server}"),
        Attempt("signal the server by a pipe that is ready", kind, FULL, "signal by pipe", "{server}", "{wait_s}"),
        Attempt("signal every process", kind, FULL, "signal all", "{server}", control=Control.NONE),
        Attempt("change the limits of the server", kind, FULL, "limit", "{server}"),
        Attempt("change the priority of the server", kind, FULL, "renice", "{server}"),
        Attempt("change the processors of the server", kind, FULL, "pin", "{server}"),
        Attempt("change the scheduling of the server", kind, FULL, "schedule", "{server}"),
        Attempt("change the disk priority of the server", kind, FULL, "renice disk", "{server}"),
        Attempt("map shared memory of the server", Kind.LOCAL_SOCKET, FULL, "map shared memory", "{shared_memory}"),
        Attempt("read a message queue of the server", Kind.LOCAL_SOCKET, FULL, "read queue", "{queue}"),
        Attempt("change a semaphore of the server", Kind.LOCAL_SOCKET, FULL, "change semaphore", "{semaphore}"),
        Attempt("write to the user's terminal", kind, FILES, "open to write", "{terminal}"),
        Attempt("read the user's terminal", kind, FILES, "open", "{terminal}"),
        Attempt("type into the user's terminal", kind, FILES, "type", "{terminal}", control=Control.ROOT),
        Attempt("find an open descriptor of the host", kind, FILES, "inherited", control=Control.NONE),
        Attempt("open the descriptors of its parent", kind, FILES, "parent sockets", control=Control.NONE),
        Attempt("change its own process number", kind, FULL, "change number"),
        Attempt("change its own process number the old way", kind, FULL, "change number by setrlimit"),
        Attempt("leave a process behind", kind, FILES, "leave process", control=Control.NONE),
        Attempt("leave a process behind that changed its number", kind, FULL, "leave renumbered process"),
    ]  # fmt: skip


def _sockets() -> list[Attempt]:
    local, network, kind = Kind.LOCAL_SOCKET, Kind.NETWORK, Kind.PRIVILEGE
    return [
        Attempt("connect to a local socket", local, FULL, "unix stream", "{unix_stream}"),
        Attempt("send to a local socket", local, FULL, "unix datagram", "{unix_datagram}"),
        Attempt("connect to an abstract socket", local, FULL, "unix stream", "@{abstract}"),
        Attempt("send to an abstract socket", local, FULL, "unix datagram", "@{abstract}-datagram"),
        Attempt("connect a pair of datagram sockets elsewhere", local, FULL, "reconnect pair", "{unix_datagram}"),
        Attempt("connect a pair of stream sockets elsewhere", local, FULL, "reconnect stream pair", "{unix_stream}",
                control=Control.NONE),
        Attempt("listen on a local socket", local, FULL, "unix listen", "listening-{run}"),
        Attempt("connect by number", network, FULL, "tcp", "127.0.0.1", "{tcp}"),
        Attempt("connect by name", network, FULL, "tcp", "localhost", "{tcp}"),
        Attempt("connect by IPv6", network, FULL, "tcp", "::1", "{tcp6}"),
        Attempt("send a datagram", network, FULL, "udp", "127.0.0.1", "{udp}"),
        Attempt("send a datagram by IPv6", network, FULL, "udp", "::1", "{udp6}"),
        Attempt("ask a name server", network, FULL, "dns", "127.0.0.1", "{udp}"),
        Attempt("ping", network, FULL, "icmp", "127.0.0.1", control=Control.ROOT),
        Attempt("listen for connections", Kind.LISTENING, FULL, "listen", "127.0.0.1"),
        Attempt("connect by multipath TCP", network, FULL, "mptcp", "127.0.0.1", "{tcp}"),
        Attempt("connect while opening, without a call to connect", network, FULL, "fast open", "127.0.0.1", "{tcp}"),
        Attempt("call the API of the server without a key", network, FULL, "http", "127.0.0.1", "{tcp}"),
        *(
            Attempt(f"ask the proxy for {what}", network, FULL, "proxy", address, control=Control.NONE)
            for what, address in {
                "the server": "127.0.0.1:{tcp}",
                "the server by name": "localhost:{tcp}",
                "the server by another notation": "2130706433:{tcp}",
                "the server by IPv6": "[::ffff:127.0.0.1]:{tcp}",
                "an address of a cloud's metadata": "169.254.169.254:80",
                "an undeclared host": "192.0.2.1:443",
                "a name below the declared one": "sub.declared.invalid:443",
                "a name that ends like the declared one": "undeclared.invalid:443",
                "itself": "127.0.0.1:3128",
            }.items()
        ),
        Attempt("hear of devices by netlink", kind, FULL, "socket", "16 3 15"),
        Attempt("administer the firewall by netlink", kind, FULL, "socket", "16 3 12"),
        Attempt("hear the packets of the network", kind, FULL, "socket", "17 3 768", control=Control.ROOT),
        Attempt("make packets of the network", kind, FILES, "socket", "2 3 255", control=Control.ROOT),
        Attempt("reach the host of a virtual machine", kind, FULL, "socket", "40 1 0"),
        Attempt("use the kernel's cryptography sockets", kind, FULL, "socket", "38 5 0"),
        Attempt("use Bluetooth sockets", kind, FULL, "socket", "31 3 0"),
        Attempt("use a socket of a cluster", kind, FULL, "socket", "30 1 0"),
    ]  # fmt: skip


def _privileges() -> list[Attempt]:
    kind, root, none = Kind.PRIVILEGE, Control.ROOT, Control.NONE
    spaces = {"users": 0x10000000, "mounts": 0x20000, "networks": 0x40000000, "processes": 0x20000000,
              "messages": 0x8000000, "host names": 0x4000000, "control groups": 0x2000000}  # fmt: skip
    return [
        *(
            Attempt(f"make a namespace of {what}", kind, FULL, "unshare", str(flag), control=root)
            for what, flag in spaces.items()
        ),
        Attempt("start a process in a namespace of users", kind, FULL, "clone", control=root),
        Attempt("start a process in a namespace of users, the new way", kind, FULL, "clone3", control=root),
        Attempt("enter a namespace", kind, FULL, "enter namespace", control=root),
        Attempt("mount a file system", kind, FILES, "mount", control=root),
        Attempt("unmount a file system", kind, FULL, "unmount", control=none),
        Attempt("mount a file system, the new way", kind, FULL, "open file system", control=root),
        Attempt("copy a mount", kind, FULL, "open tree", control=root),
        Attempt("change its root", kind, FULL, "change root", control=root),
        Attempt("exchange its root", kind, FULL, "exchange root", control=none),
        Attempt("become another user", kind, FULL, "become user", control=root),
        Attempt("leave its groups", kind, FULL, "leave groups", control=root),
        Attempt("gain by a set-user-id program", kind, FILES, "set-id program", "{own}/set-id", control=root),
        Attempt("keep a capability of root", kind, FULL, "capabilities", control=root),
        Attempt("give a file a capability", kind, FULL, "file capability", control=root),
        Attempt("add a key to the kernel's keyring", kind, FULL, "add key"),
        Attempt("read the kernel's keyrings", kind, FULL, "keyring"),
        Attempt("use io_uring", kind, FULL, "io_uring"),
        Attempt("load a program into the kernel", kind, FULL, "bpf", control=root),
        Attempt("measure other processes", kind, FULL, "perf", "{server}", control=root),
        Attempt("handle page faults", kind, FULL, "userfaultfd", control=root),
        Attempt("read the kernel's messages", kind, FULL, "kernel messages", control=root),
        Attempt("set the name of the machine", kind, FULL, "host name", control=none),
        Attempt("set the clock", kind, FULL, "clock", control=none),
        Attempt("load a module of the kernel", kind, FULL, "module", control=none),
        Attempt("use the ports of the hardware", kind, FULL, "hardware ports", control=root),
        Attempt("raise its limit of open files", kind, FULL, "raise limit", "7", control=root),
        Attempt("raise its limit of memory", kind, FULL, "raise limit", "9", control=root),
        Attempt("raise its priority", kind, FULL, "raise priority", control=root),
    ]


ATTEMPTS: tuple[Attempt, ...] = (*_protected(), *_other_files(), *_processes(), *_sockets(), *_privileges())
# What unconfined plugins attempt too: of each operation the first, in a soak all.
CONTROLLED = sample((attempt for attempt in ATTEMPTS if attempt.control is not Control.NONE), lambda one: one.operation)
