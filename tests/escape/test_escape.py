"""A plugin can do what it declared, and nothing else: it tries, on every start path, and is stopped."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.escape.attempts import ATTEMPTS, CONTROLLED, Attempt, Control
from tests.escape.host import CONTROLS, START_PATHS, StartPath
from tests.programs import find_program
from tests.sampling import SOAK
from tests.workspace.nobody import NOBODY, find_shared_python
from toolyard.confinement.level import measure_confinement
from toolyard.confinement.profile import Profile
from toolyard.protocol.access import ConfinementLevel

REACHED = measure_confinement(Profile()).level
pytestmark = [
    pytest.mark.requirement("confinement:escape", "s:S-90"),
    pytest.mark.skipif(REACHED is ConfinementLevel.NONE, reason="this machine confines nothing"),
]
ROOT = Path(__file__).parents[2]
LIMIT_S = 400
USERS = ["this user", "unprivileged"] if SOAK else ["this user"]
NOT_OFFERED = ("ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ENOPROTOOPT", "EADDRNOTAVAIL")  # by this kernel


@dataclass(frozen=True)
class Report:
    """Reports of the attackers: start path -> attempt -> ``escaped`` or ``stopped``, and what happened."""

    results: dict[str, dict[str, tuple[str, str]]]
    levels: dict[str, str]
    is_root: bool

    def find(self, path: StartPath, attempt: Attempt) -> tuple[str, str] | None:
        """Return the result; None when the language cannot make the attempt, or the path grants what it needs."""
        return self.results.get(path.name, {}).get(attempt.name)


@pytest.fixture(scope="session", params=USERS)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Let the attackers run as the user of the tests, in a soak also as nobody, once for all workers."""
    is_unprivileged = request.param == "unprivileged"
    if is_unprivileged and os.geteuid() != 0:
        pytest.skip("the tests run without privileges already")
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"escape-{request.param.split()[0]}"
    with open(f"{place}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "results.json").exists():
            place.mkdir()
            (run_unprivileged_host if is_unprivileged else run_host)(place)
    results = json.loads((place / "results.json").read_text())
    return Report(**results, is_root=os.geteuid() == 0 and not is_unprivileged)


def run_unprivileged_host(place: Path) -> None:
    """Run the host in a folder of a user without privileges; the folders of pytest are closed to others."""
    python = find_shared_python()
    find_program("setpriv")
    with tempfile.TemporaryDirectory() as name:
        os.chown(name, NOBODY, NOBODY)
        user = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
        run_host(Path(name), *user, python=python.program, **python.variables, PATH=os.defpath)
        shutil.copy(Path(name) / "results.json", place)


def run_host(place: Path, *before: str, python: str = sys.executable, **variables: str) -> None:
    done = subprocess.run(
        [*before, python, "-m", "tests.escape.host", str(place)], cwd=ROOT,
        env={**os.environ, "HOME": str(place / "user"), **variables}, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=LIMIT_S, start_new_session=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_an_attempt_is_stopped_on_every_start_path(report: Report, attempt: Attempt) -> None:
    if not REACHED.reaches(attempt.level):
        pytest.skip(f"the level {attempt.level.value} stops it, and this machine reaches {REACHED.value}")
    found = {path.name: report.find(path, attempt) for path in START_PATHS}
    assert found["cold Python"] is not None, "nobody tried it"
    escaped = {path: result[1] for path, result in found.items() if result and result[0] != "stopped"}
    assert not escaped, f"a plugin could {attempt.name}"


@pytest.mark.requirement("confinement:escape:control")
@pytest.mark.parametrize("attempt", CONTROLLED, ids=lambda attempt: attempt.name)
def test_an_attempt_succeeds_without_confinement(report: Report, attempt: Attempt) -> None:
    """An attempt that could not succeed anyway would prove nothing: one of each operation, in a soak all of them."""
    if attempt.control is Control.ROOT and not report.is_root:
        pytest.skip("it needs root")
    found = {path.name: result for path in CONTROLS if (result := report.find(path, attempt))}
    failed = {path: result[1] for path, result in found.items() if result[0] != "escaped"}
    if any(text.startswith(NOT_OFFERED) for text in failed.values()):
        pytest.skip(f"this kernel does not offer it: {failed}")
    if failed and attempt.control is Control.ROOT and not has_all_capabilities():
        pytest.skip(f"root lacks a capability here: {failed}")
    assert found
    assert not failed


@pytest.mark.requirement("confinement:level")
def test_the_result_of_a_call_says_how_far_its_plugin_was_confined(report: Report) -> None:
    unconfined = {path.name for path in CONTROLS}
    expected = {name: "none" if name in unconfined else REACHED.value for name in report.levels}
    assert report.levels == {**expected, "files only": "files"}


def has_all_capabilities() -> bool:
    status = Path("/proc/self/status").read_text()
    effective = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff"))
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    return effective == (1 << last + 1) - 1
