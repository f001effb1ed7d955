"""A chroot whose root is no mount of its own: there, root cannot have a view of the files of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# become the root of a folder that has everything the machine has, and start programs as a host does
ENTER = """
for entry in /*; do
    if [ -L "$entry" ]; then cp -P "$entry" "$1/"
    elif [ -d "$entry" ]; then mkdir "$1/${entry#/}" && mount --rbind "$entry" "$1/${entry#/}"; fi
done
exec chroot "$1" "$2" -c "$3"
"""
HOST = """
import json
from toolyard.confinement.level import measure_confinement
from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.start import start_process
for profile in (Profile(), Profile(network=Network.PORTS, ports=(18080,)), Profile(covered=("/usr",))):
    missing = [message.code for message in measure_confinement(profile).missing]
    try:
        ended = start_process(profile, ["/bin/sh", "-c", "exit 7"]).process.wait(60)
    except OSError as error:
        ended = error.strerror
    print(json.dumps([ended, missing]))
"""

pytestmark = [
    pytest.mark.requirement("confinement:chroot"),
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can enter a chroot"),
]


def start_in_chroot(folder: Path) -> list[Any]:
    """Return how programs ended under three profiles, and what is missing for each."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare (util-linux)")
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-euc", ENTER, "bash", folder, sys.executable, HOST],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if done.stderr.startswith(("unshare: ", "mount: ")):
        pytest.skip(f"this machine makes no mounts: {done.stderr.strip()[-300:]}")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_programs_start_confined_and_what_is_missing_is_named(tmp_path: Path) -> None:
    (ended, missing), with_hosts, covering = start_in_chroot(tmp_path)
    if "confinement.no_landlock" in missing:
        pytest.skip("this kernel has no Landlock")
    assert ended == 7
    assert with_hosts == [7, [*missing, "confinement.no_namespaces"]]
    assert covering == ["/usr cannot be hidden from it on this system", [*missing, "confinement.cannot_cover"]]
