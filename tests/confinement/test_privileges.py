"""A confined program has no capability, also where the service was given one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import find_program
from tests.workspace.nobody import NOBODY, find_shared_python

SOURCES = Path(__file__).parents[2] / "src"
# print the capabilities of a confined program, and of the process that started it
HOST = """
from toolyard.confinement.profile import Profile
from toolyard.confinement.start import start_process
command = ["grep", "-E", "^Cap(Inh|Prm|Eff|Amb)", "/proc/self/status"]
started = start_process(Profile(read=("/usr",)), ["/usr/bin/env", *command], stdout=-1, cwd="/")
print(started.process.communicate(timeout=60)[0].decode())
print(open("/proc/self/status").read())
"""


@pytest.mark.requirement("confinement:capabilities")
@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can give capabilities away")
def test_a_capability_of_the_service_is_not_inherited_by_its_programs() -> None:
    python = find_shared_python()
    user = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    given = ("--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service")
    done = subprocess.run(
        [find_program("setpriv"), *user, *given, python.program, "-c", HOST],
        capture_output=True, text=True, timeout=60, check=True,
        env={**python.variables, "PATH": os.defpath, "PYTHONPATH": f"{SOURCES}:{python.variables['PYTHONPATH']}"},
    )  # fmt: skip
    program, service = done.stdout.split("\n\n", 1)
    assert "CapAmb:\t0000000000000400" in service, "the service has it"
    assert {line.split()[1] for line in program.splitlines()} == {"0" * 16}
