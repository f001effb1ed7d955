"""The system unit under a real systemd, which is process 1 of namespaces of its own: for the soak."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.waiting import wait_for_value, wait_until
from tests.web.test_service_manager import find_free_port

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
SYSTEMD = Path("/lib/systemd/systemd")
pytestmark = [
    pytest.mark.requirement("service:boot"),
    pytest.mark.skipif(not SOAK, reason="boots a systemd: only in the soak"),
    pytest.mark.skipif(
        os.geteuid() != 0 or not SYSTEMD.exists() or shutil.which("unshare") is None,
        reason="needs root, systemd and unshare",
    ),
]
BOOT = """
umount -l /proc; mount -t proc proc /proc
mount -t tmpfs none /run
umount -R /sys/fs/cgroup 2>/dev/null; mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs none /etc/systemd/system
S=$(readlink -f /lib/systemd/system); mount -t tmpfs none $S
for t in sysinit basic shutdown sockets multi-user network-online; do
    printf '[Unit]\\nDefaultDependencies=no\\n' > $S/$t.target
done
cp "$UNITS"/* /etc/systemd/system/
printf '[Unit]\\nRequires=toolyard.socket toolyard.service\\n' > /etc/systemd/system/try.target
export container=test
exec "$SYSTEMD" --system --unit=try.target --log-target=null --show-status=no --default-standard-output=null
"""


def make_units(place: Path, port: int) -> Path:
    """Write the units as they would be installed."""
    for name in ("project", "home", "units"):
        (place / name).mkdir()
    words = ["service", "install", "--system", "--run-as", "root", "--print", "--json", "--port", str(port)]
    common = ["--home", str(place / "home"), "--project", str(place / "project")]
    done = subprocess.run([sys.executable, "-m", "toolyard", *words, *common], capture_output=True, check=True)
    for file, content in json.loads(done.stdout).items():
        (place / "units" / Path(file).name).write_text(content)
    return place / "units"


@asynccontextmanager
async def booted(units: Path) -> AsyncIterator[int]:
    """A systemd with these units; its process, seen from here."""
    namespaces = ["--pid", "--fork", "--mount", "--uts", "--ipc", "--cgroup", "--kill-child"]
    process = await asyncio.create_subprocess_exec(
        "unshare", *namespaces, "sh", "-c", BOOT, env={**os.environ, "UNITS": str(units), "SYSTEMD": str(SYSTEMD)}
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:

        def find_child() -> int:
            if process.returncode is not None:
                pytest.skip("systemd cannot be process 1 of a namespace here")
            pids = children.read_text().split()
            return int(pids[0]) if pids else 0

        yield await wait_until(find_child)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def test_the_unit_starts_confines_plugins_and_restarts_without_a_refused_connection(tmp_path: Path) -> None:
    port = find_free_port()
    url = f"http://127.0.0.1:{port}"
    units = await asyncio.to_thread(make_units, tmp_path, port)
    timeout = aiohttp.ClientTimeout(total=180)
    async with booted(units) as pid, aiohttp.ClientSession(timeout=timeout) as client:

        async def is_ready() -> bool:
            try:
                async with client.get(f"{url}/readyz") as answer:
                    return answer.status == 200
            except aiohttp.ClientConnectionError:
                return False

        await wait_for_value(is_ready)
        key = {"Authorization": f"Bearer {(tmp_path / 'home/key').read_text().strip()}"}

        async def call_plugin() -> dict[str, Any]:
            sent = client.post(f"{url}/v1/tools/SciCalculator", json={"expression": "2*21"}, headers=key)
            async with sent as answer:
                envelope: dict[str, Any] = await answer.json()
                return envelope

        envelope = await wait_for_value(call_plugin, lambda one: one["status"] == "success")  # plugins come later
        inside = envelope["context"]["confinement"]
        outside = subprocess.run(  # noqa: ASYNC221 nothing else runs here
            [
                sys.executable,
                "-m",
                "toolyard",
                "call",
                "SciCalculator",
                "expression=2*21",
                "--home",
                str(tmp_path / "b"),
            ],
            capture_output=True,
            check=True,
        )
        assert inside == json.loads(outside.stdout)["context"]["confinement"]
        restarting = await asyncio.create_subprocess_exec(
            "nsenter", "-t", str(pid), "-m", "-p", "-C", "systemctl", "restart", "toolyard.service"
        )
        statuses = set()
        while restarting.returncode is None:
            async with client.get(f"{url}/readyz", headers={"Connection": "close"}) as answer:
                statuses.add(answer.status)
        assert (restarting.returncode, statuses) == (0, {200})
