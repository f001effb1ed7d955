"""The make targets on a machine that has only Python, make and the package registries."""

import os
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.fakes import free_port

ROOT = Path(__file__).parents[1]
WAIT_S = 900


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tracked and new files, as a clone would have them."""
    folder = tmp_path_factory.mktemp("checkout")
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    for name in filter(None, files.decode().split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
            (folder / name).chmod((ROOT / name).stat().st_mode)
    return folder


def _environment(home: Path) -> dict[str, str]:
    keep = ("PATH", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "PIP_CACHE_DIR", "SSL_CERT_FILE")
    return {name: os.environ[name] for name in keep if name in os.environ} | {"HOME": str(home)}


def _make(checkout: Path, home: Path, target: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["make", target],
        cwd=checkout,
        env=_environment(home),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


@pytest.mark.requirement("make:install", "make:run", "make:run:serve")
def test_install_and_run_work_in_a_fresh_checkout_and_are_quick_when_nothing_changed(
    checkout: Path, tmp_path: Path
) -> None:
    first = _make(checkout, tmp_path, "install")
    assert first.returncode == 0, first.stderr
    assert (checkout / ".venv/bin/toolyard").exists()
    assert _make(checkout, tmp_path, "install").stdout == "make: Nothing to be done for 'install'.\n"
    port = str(free_port())
    environment = _environment(tmp_path) | {"TOOLYARD_PORT": port}
    with subprocess.Popen(
        ["make", "run"], cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        try:
            assert running.stdout is not None
            said = running.stdout.readline()
            assert f"http://127.0.0.1:{port}" in said
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=WAIT_S) as answer:
                assert answer.status == 200
        finally:
            os.killpg(running.pid, signal.SIGTERM)
            running.wait(WAIT_S)
    assert (checkout / ".home/state.db").exists()
    assert not (tmp_path / ".local/share/toolyard").exists()


@pytest.mark.requirement("make:test")
def test_ci_runs_the_readmes_test_command_and_nothing_else() -> None:
    commands = [
        line for line in (ROOT / ".ci/run").read_text().splitlines() if line and not line.startswith(("#", "set", "cd"))
    ]
    assert commands == ["make test"]
    assert "make test" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.requirement("make:check", "make:test", "make:run", "make:install")
def test_every_target_of_the_contract_is_there() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = {line.split()[1] for line in shown.splitlines()}
    assert {"install", "run", "test", "soak", "check", "bench"} <= targets
