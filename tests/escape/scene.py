"""The scene of the escape suite: files, sockets and memory that belong to the test alone, as targets of attempts."""

import ctypes
import os
import pty
import shutil
import signal
import socket
import threading
from pathlib import Path

SECRET = b"ESCAPE-SECRET"
_SHARED_BY_ID = 0o1000 | 0o600  # IPC_CREAT, for this user alone
_HOME_FILES = (
    "key", "keys.json", "config.toml", "trust.json", "publish-keys.json", "undo/version", "deletable", "truncatable",
    "movable", "replaceable", "exchangeable", "plugin-data/Victim/data.txt", "python-cache/Victim/main.pyc",
)  # fmt: skip
_USER_FILES = (".ssh/id_ed25519", ".bashrc")

libc = ctypes.CDLL(None, use_errno=True)


class Scene:
    """Targets below one folder, and in the process that made it. ``facts`` fill in the targets of attempts."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.home, self.user, self.project, self.given = (place / name for name in ("home", "user", "project", "given"))
        self._kept: list[object] = []  # sockets, files and memory that must stay
        self.signals = 0
        for folder in (self.home / "plugins", self.user / "bin", self.project, self.given):
            folder.mkdir(parents=True)
        self._write_files()
        self.facts = {
            "home": str(self.home),
            "user": str(self.user),
            "project": str(self.project),
            "victim": str(self.given / "Victim"),
            "root_only": find_root_only_file(),
            "server": str(os.getpid()),
            "group": str(os.getpgrp()),
            **self._hold_memory(),
            **self._open_local_sockets(),
            **self._open_network(),
        }
        signal.signal(signal.SIGURG, self._count_signal)

    def refresh(self) -> None:
        """Put back what an attempt may have taken away or emptied."""
        for name in ("deletable", "truncatable", "movable", "replaceable", "exchangeable"):
            (self.home / name).write_bytes(SECRET)

    def close(self) -> None:
        """Remove what is not in the folder."""
        libc.shmctl(int(self.facts["shared_memory"]), 0, None)
        libc.msgctl(int(self.facts["queue"]), 0, None)
        libc.semctl(int(self.facts["semaphore"]), 0, 0)

    def _write_files(self) -> None:
        contents = {self.home / name: SECRET for name in _HOME_FILES} | {
            self.user / name: SECRET for name in _USER_FILES
        }
        contents[self.home / "config.toml"] = b"# ESCAPE-SECRET\n"
        contents[self.home / "trust.json"] = b"{}"
        contents[self.home / "publish-keys.json"] = b"{}"
        contents[self.home / "keys.json"] = b"{}"
        contents[self.project / "file.txt"] = SECRET
        contents[self.user / "bin/program"] = b"#!/bin/sh\necho ran\n"
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o600)
        (self.user / "bin/program").chmod(0o700)

    def _hold_memory(self) -> dict[str, str]:
        memory = ctypes.create_string_buffer(SECRET)
        file = (self.home / "key").open("rb")
        shared = libc.shmget(0, 4096, _SHARED_BY_ID)
        libc.shmat.restype = ctypes.c_void_p
        ctypes.memmove(libc.shmat(shared, None, 0), SECRET, len(SECRET))
        queue = libc.msgget(0, _SHARED_BY_ID)
        libc.msgsnd(queue, (1).to_bytes(8, "little") + SECRET, ctypes.c_size_t(len(SECRET)), 0)
        _, terminal = pty.openpty()
        self._kept += [memory, file]
        return {
            "server_memory": str(ctypes.addressof(memory)),
            "server_file": str(file.fileno()),
            "shared_memory": str(shared),
            "queue": str(queue),
            "semaphore": str(libc.semget(0, 1, _SHARED_BY_ID)),
            "terminal": os.ttyname(terminal),
        }

    def _open_local_sockets(self) -> dict[str, str]:
        stream, datagram = self.place / "stream.socket", self.place / "datagram.socket"
        abstract = f"toolyard-escape-{os.getpid()}"
        for address in (str(stream), f"\0{abstract}"):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(address)
            listener.listen(1000)
            self._kept.append(listener)
        for address in (str(datagram), f"\0{abstract}-datagram"):
            receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            receiver.bind(address)
            threading.Thread(target=_swallow, args=(receiver,), daemon=True).start()
        return {"unix_stream": str(stream), "unix_datagram": str(datagram), "abstract": abstract}

    def _open_network(self) -> dict[str, str]:
        facts: dict[str, str] = {}
        for suffix, family, host in (("", socket.AF_INET, "127.0.0.1"), ("6", socket.AF_INET6, "::1")):
            try:
                listener = socket.create_server((host, 0), family=family, backlog=1000)
                echo = socket.socket(family, socket.SOCK_DGRAM)
                echo.bind((host, 0))
            except OSError:  # a machine without IPv6
                facts |= {f"tcp{suffix}": "1", f"udp{suffix}": "1"}
                continue
            self._kept.append(listener)
            threading.Thread(target=_echo, args=(echo,), daemon=True).start()
            facts |= {f"tcp{suffix}": str(listener.getsockname()[1]), f"udp{suffix}": str(echo.getsockname()[1])}
        return facts

    def _count_signal(self, *_: object) -> None:
        self.signals += 1
        for folder in (self.home / "plugin-data").iterdir():
            (folder / "signals").write_text(str(self.signals))


def find_root_only_file() -> str:
    """Return a file that only root may read, as deep below /etc as there is one."""
    found = ["/etc/shadow"]
    for folder, _, names in os.walk("/etc"):
        paths = (os.path.join(folder, name) for name in names)
        found += [path for path in paths if not os.path.islink(path) and not os.lstat(path).st_mode & 0o044]
    return max(found, key=lambda path: path.count("/"))


def make_set_id_program(path: Path) -> None:
    """Make a program that runs as another user, whoever starts it; only root can."""
    shutil.copy("/usr/bin/id", path)
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
        path.chmod(0o4755)


def _echo(opened: socket.socket) -> None:
    while True:
        packet, sender = opened.recvfrom(512)
        opened.sendto(packet, sender)


def _swallow(opened: socket.socket) -> None:
    while True:
        opened.recv(512)
