"""A clean root file system made from Debian's packages, and commands that run in it.

Each command has mounts and processes of its own, which end with it; one without a network has only the loopback device.
The folder becomes the root of all mounts, as in a container: in a mere chroot nobody can make mounts of their own.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.package_index import list_index_paths, make_package_environment

MIRROR: Final = "http://deb.debian.org/debian"
SUITES: Final = ("bookworm", "trixie")  # Debian 12 and 13
USER: Final = "somebody"
WAIT_S: Final = 1800
# The documented needs: Python and make; git for the clone, certificates for pip.
PACKAGES: Final = ("python3", "python3-venv", "make", "git", "ca-certificates", "pipx")


@cache
def find_obstacle() -> str:
    """Return why no root file system can be made here; empty if one can."""
    if os.geteuid() != 0:
        return "making a root file system takes root"
    missing = [name for name in ("mmdebstrap", "unshare", "pivot_root", "ip") if shutil.which(name) is None]
    if missing:
        return f"needs {', '.join(missing)} (Debian: apt install mmdebstrap util-linux iproute2)"
    if subprocess.run(["unshare", "--mount", "--pid", "--net", "--fork", "true"], check=False).returncode:
        return "this machine makes no namespaces"
    return ""


@dataclass(frozen=True, slots=True)
class DebianRoot:
    folder: Path
    suite: str

    def run(
        self, script: str, *, user: str = "root", network: bool = True, environment: dict[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a shell script in the home of ``user``."""
        home = "/root" if user == "root" else f"/home/{user}"
        variables = {
            "HOME": home, "USER": user, "LANG": "C.UTF-8",
            "PATH": f"{home}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            **make_package_environment(), **(environment or {}),
        }  # fmt: skip
        inside = ["env", "--ignore-environment", f"--chdir={home}", *(f"{k}={v}" for k, v in variables.items()),
                  "bash", "-euo", "pipefail", "-c", script]  # fmt: skip
        outside = [*self._list_mounts(), *([] if network else ["ip link set lo up"])]
        outside += [f"cd {shlex.quote(str(self.folder))}", "pivot_root . mnt", "cd /", "umount --lazy /mnt"]
        outside += [shlex.join(["chroot", f"--userspec={user}", "/", *inside]) + " || exit"]  # the shell stays, as init
        namespaces = ["--mount", "--pid", "--fork", "--kill-child", *([] if network else ["--net"])]
        return subprocess.run(
            ["unshare", *namespaces, "bash", "-euc", "\n".join(outside)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WAIT_S, check=False,
        )  # fmt: skip

    def _list_mounts(self) -> Iterator[str]:
        root = shlex.quote(str(self.folder))
        yield f"mount --bind {root} {root}"
        yield f"mount -t proc proc {root}/proc"
        yield f"mount -t sysfs -o ro sysfs {root}/sys"
        yield f"mount --rbind /dev {root}/dev"
        for path in (*list_index_paths(), Path("/etc/resolv.conf")):
            place = shlex.quote(f"{self.folder}{path}")
            make = f"mkdir -p {place}" if path.is_dir() else f"mkdir -p $(dirname {place}) && touch {place}"
            yield f"{make} && mount --bind -o ro {shlex.quote(str(path.resolve()))} {place}"


@contextmanager
def make_debian_root(suite: str, folder: Path) -> Iterator[DebianRoot]:
    """Make a root file system of a Debian release with nothing but ``PACKAGES``, and remove it at the end."""
    if obstacle := find_obstacle():
        pytest.skip(obstacle)
    done = subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, str(folder), MIRROR],
        capture_output=True, text=True, timeout=WAIT_S, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"no packages of Debian {suite} from {MIRROR}: {done.stderr.strip()[-300:]}")
    root = DebianRoot(folder, suite)
    made = root.run(f"useradd --create-home --shell /bin/bash {USER}")
    assert made.returncode == 0, made.stderr
    yield root
    shutil.rmtree(folder)
