"""Podman for the tests: a storage of its own, and images made from Debian's packages instead of a registry's."""

import base64
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.package_index import list_index_paths, make_pip_conf

ROOT: Final = Path(__file__).parents[2]
MIRROR: Final = "http://deb.debian.org/debian"
SUITE: Final = "trixie"
BASE: Final = "localhost/debian-python"
BUILD_BASE: Final = "localhost/debian-python-venv"
POSTGRES: Final = "localhost/debian-postgres"
IMAGE: Final = "localhost/toolyard"
WAIT_S: Final = 1800
# Does what the program of that name in the official image does with the same variables.
_DOCKER_ENTRYPOINT: Final = """#!/bin/sh
set -eu
data=/var/lib/postgresql/data
export PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
if [ ! -e $data/PG_VERSION ]; then
    initdb --pgdata=$data --username=$POSTGRES_USER --pwfile=$POSTGRES_PASSWORD_FILE --auth=scram-sha-256 -E UTF8
    echo 'host all all all scram-sha-256' >>$data/pg_hba.conf
    echo "CREATE DATABASE $POSTGRES_DB" | postgres --single -D $data postgres
fi
exec "$@" -D $data -k /tmp --listen-addresses='*'
"""


@cache
def find_obstacle() -> str:
    """Return why no containers can be run here; empty if they can."""
    if os.geteuid() != 0:
        return "making a base image from Debian's packages takes root"
    mounted = {line.split()[2] for line in Path("/proc/self/mounts").read_text().splitlines()}
    runtime = ["runc"] if {"cgroup", "cgroup2"} <= mounted else []  # crun refuses two versions of cgroups at once
    missing = [name for name in ("podman", "mmdebstrap", *runtime) if shutil.which(name) is None]
    return f"needs {' and '.join(missing)} (Debian: apt install {' '.join(missing)})" if missing else ""


@dataclass(frozen=True, slots=True)
class Podman:
    scratch: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "CONTAINERS_STORAGE_CONF": str(self.scratch / "storage.conf"),
            "CONTAINERS_CONF": str(self.scratch / "containers.conf"),
            "BUILDAH_FORMAT": "docker",  # the other one has no health check
        }

    def run(self, *arguments: str, text: str | None = None, expected: int = 0) -> str:
        """Run podman and return what it printed."""
        done = self.try_run(*arguments, text=text)
        assert done.returncode == expected, f"{arguments}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout.strip()

    def try_run(self, *arguments: str, text: str | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["podman", *arguments], env=self.environment, cwd=ROOT, input=text, capture_output=True, text=True,
            timeout=WAIT_S, check=False,
        )  # fmt: skip

    def inspect(self, name: str) -> Any:
        (found,) = json.loads(self.run("inspect", name))
        return found

    def configure(self) -> None:
        """Write the settings of an engine that needs no init system and leaves nothing behind."""
        limits = ["nofile=1024:1024", "nproc=4096:4096"]  # its own defaults may be more than this machine allows
        runtime = 'runtime = "runc"\n' if shutil.which("runc") else ""
        storage = self.scratch / "storage.conf"
        folders = f'graphroot = "{self.scratch}/storage"\nrunroot = "{self.scratch}/run"\n'
        storage.write_text(f'[storage]\ndriver = "overlay"\n{folders}')
        (self.scratch / "containers.conf").write_text(
            f'[containers]\nlog_driver = "k8s-file"\ndefault_ulimits = {json.dumps(limits)}\n'
            f'[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n{runtime}'
            '[network]\nnetwork_backend = "netavark"\n'
        )

    def make_base(self) -> None:
        """Make the image that stands for python:slim."""
        archive = self.scratch / "base.tar"
        done = subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=apt", "--include=python3", SUITE, str(archive), MIRROR],
            capture_output=True, text=True, timeout=WAIT_S, check=False,
        )  # fmt: skip
        if done.returncode:
            pytest.skip(f"no packages of Debian {SUITE} from {MIRROR}: {done.stderr.strip()[-300:]}")
        self.run("import", "--quiet", str(archive), BASE)
        archive.unlink()

    def build(self, tag: str, dockerfile: str) -> None:
        """Build an image from the text of a Dockerfile alone."""
        (self.scratch / "empty").mkdir(exist_ok=True)
        self._build(tag, "--file=-", str(self.scratch / "empty"), text=dockerfile)

    def build_checkout(self) -> None:
        """Build the image of this checkout, with the Python packages that this machine can get."""
        (self.scratch / "pip.conf").write_text(make_pip_conf())
        options = [f"--volume={path.resolve()}:{path}:ro" for path in list_index_paths()]
        options += [f"--secret=id=pip,src={self.scratch}/pip.conf"]
        self._build(IMAGE, f"--build-arg=BASE={BASE}", f"--build-arg=BUILD_BASE={BUILD_BASE}", *options, ".")

    def _build(self, tag: str, *options: str, text: str | None = None) -> None:
        self.run("build", "--quiet", "--format=docker", "--network=host", f"--tag={tag}", *options, text=text)

    def build_all(self) -> None:
        self.make_base()
        install = "RUN apt-get update && apt-get install -y --no-install-recommends"
        self.build(BUILD_BASE, f"FROM {BASE}\n{install} python3-venv\n")
        self.build_checkout()

    def build_postgres(self) -> None:
        """Make the image that stands for PostgreSQL's."""
        program = base64.b64encode(_DOCKER_ENTRYPOINT.encode()).decode()
        self.build(
            POSTGRES,
            f"""
FROM {BASE}
RUN apt-get update && apt-get install -y --no-install-recommends postgresql
RUN install -d -o postgres -g postgres -m 700 /var/lib/postgresql/data
RUN echo {program} | base64 -d >/usr/local/bin/docker-entrypoint.sh && chmod 755 /usr/local/bin/docker-entrypoint.sh
USER postgres
""",
        )

    def remove_all(self) -> None:
        self.try_run("rm", "--all", "--force", "--time=1", "--volumes")
        self.try_run("volume", "rm", "--all", "--force")
        self.try_run("rmi", "--all", "--force")
