"""The make targets on a machine that has only Python, make and the package registries."""

import os
import shutil
import signal
import subprocess
import sys
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
def test_ci_runs_the_readmes_test_command_and_repeats_only_what_failed_in_it() -> None:
    commands = [
        line for line in (ROOT / ".ci/run").read_text().splitlines() if line and not line.startswith(("#", "set", "cd"))
    ]
    assert [command.partition(" || ")[0] for command in commands] == ["make test"]
    assert "--last-failed --last-failed-no-failures none" in commands[0].partition(" || ")[2]
    assert "make test" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.requirement("make:check", "make:test", "make:run", "make:install")
def test_every_target_of_the_contract_is_there() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = {line.split()[1] for line in shown.splitlines()}
    assert {"install", "run", "test", "soak", "check", "bench"} <= targets


@pytest.mark.requirement("make:check")
def test_a_machine_without_the_consoles_packages_is_told_that_the_console_is_not_checked(
    checkout: Path, tmp_path: Path
) -> None:
    done = _make(checkout, tmp_path, "check-console")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "The console is not checked: that needs Node 20 and its packages, which 'make console' installs.\n"
    )


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder with nothing but the set-up script, and the programs it needs but no Python."""
    (tmp_path / "checkout/scripts").mkdir(parents=True)
    (tmp_path / "checkout/scripts/setup").write_bytes((ROOT / "scripts/setup").read_bytes())
    (tmp_path / "bin").mkdir()
    for name in ("bash", "dirname", "id", "rm", "head", "env"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    (tmp_path / "bin/apt-get").write_text("#!/bin/bash\ntouch apt-was-called\n")
    (tmp_path / "bin/apt-get").chmod(0o755)
    return tmp_path


def _setup(bare: Path, **environment: str) -> str:
    """The last line that it says; it fails and asks Debian for nothing."""
    done = subprocess.run(
        ["bash", "scripts/setup"],
        cwd=bare / "checkout",
        env={"PATH": str(bare / "bin"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert not (bare / "checkout/apt-was-called").exists()
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.requirement("make:install")
def test_a_machine_without_python_gets_one_true_message(bare: Path) -> None:
    assert _setup(bare) == (
        "setup: Python 3.11 or newer is missing: install it, or name one with PYTHON=/path/to/python"
    )


@pytest.mark.requirement("make:install")
def test_a_wrong_python_is_named(bare: Path) -> None:
    assert "PYTHON=/nowhere/python is not a program" in _setup(bare, PYTHON="/nowhere/python")
    (bare / "bin/old").write_text('#!/bin/bash\n[ "$1" = --version ] && echo Python 3.9.2\nexit 1\n')
    (bare / "bin/old").chmod(0o755)
    assert "PYTHON=old is not Python 3.11 or newer: it is Python 3.9.2" in _setup(bare, PYTHON="old")


@pytest.mark.requirement("make:install")
def test_what_venv_says_when_it_fails_is_shown(bare: Path) -> None:
    script = "#!/bin/bash\n[ \"$2\" = venv ] && { echo 'Error: disk quota exceeded' >&2; exit 1; }\nexit 0\n"
    (bare / "bin/python3").write_text(script)
    (bare / "bin/python3").chmod(0o755)
    done = subprocess.run(
        ["bash", "scripts/setup"], cwd=bare / "checkout", env={"PATH": str(bare / "bin")}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert "disk quota exceeded" in done.stderr
    assert "cannot make a virtual environment" in done.stderr


@pytest.mark.requirement("make:install")
@pytest.mark.skipif(shutil.which("unshare") is None, reason="a read-only folder for root takes unshare (util-linux)")
def test_a_checkout_that_cannot_be_written_to_is_named(bare: Path) -> None:
    (bare / "bin/python3").symlink_to(sys.executable)
    mount = f"mount --bind -o ro {bare}/checkout {bare}/checkout && cd {bare}/checkout && PATH={bare}/bin"
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", f"{mount} bash scripts/setup"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "unshare failed" in done.stderr:
        pytest.skip("this machine makes no mount namespaces")
    assert "checkout cannot be written to: .venv is made in the checkout" in done.stderr


@pytest.mark.requirement("make:install")
def test_make_clean_keeps_the_home_with_its_key_and_its_database(checkout: Path) -> None:
    (checkout / ".home").mkdir(exist_ok=True)
    (checkout / ".home/key").write_text("ty-mine")
    shown = subprocess.run(["make", "-n", "clean"], cwd=checkout, capture_output=True, text=True, check=True).stdout
    assert ".venv" in shown
    assert ".home" not in shown
