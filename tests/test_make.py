"""The make targets on a machine that has only Python, make and the package registries."""

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.checkout import copy_checkout
from tests.fakes import free_port

ROOT = Path(__file__).parents[1]
WAIT_S = 900


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tracked and new files, as a clone would have them."""
    return copy_checkout(tmp_path_factory.mktemp("checkout"))


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


@pytest.mark.requirement(
    "make:install", "make:install:path", "make:run", "make:run:serve", "make:run:example", "home:one", "home:hints"
)
def test_install_and_run_work_in_a_fresh_checkout_and_are_quick_when_nothing_changed(
    checkout: Path, tmp_path: Path
) -> None:
    data, program = tmp_path / ".local/share", checkout / ".venv/bin/toolyard"
    with (tmp_path / "said").open("w+") as said:
        with _make_run(checkout, tmp_path, said=said) as (served, key_command):
            assert served == data / "toolyard-example"
            assert key_command == f"{program} config show --key"
        said.seek(0)
        _check_progress(said.read())
    first = _make(checkout, tmp_path, "install")
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines()[-3:] == [
        "    uv tool install .",
        "    pipx install .",
        f"    alias toolyard='{checkout}/.venv/bin/toolyard'",
    ]
    assert _make(checkout, tmp_path, "install").stdout == first.stdout  # the hint alone: nothing is installed again
    with _make_run(checkout, tmp_path) as (_, key_command):
        key = subprocess.run(["sh", "-c", key_command], env=_environment(tmp_path), capture_output=True, check=True)
        assert key.stdout.decode().strip() == (data / "toolyard/key").read_text().strip()
        called = [str(program), "call", "LS", "path=src"]
        subprocess.run(called, cwd=checkout, env=_environment(tmp_path), capture_output=True, check=True)
    assert (data / "toolyard/state.db").exists()
    assert not (checkout / ".home").exists()
    assert _count_calls(data / "toolyard") == 1


def _check_progress(said: str) -> None:
    """What is installed is counted while it is, up to its end."""
    total = len(re.findall(r"(?m)^\w[\w.-]*==", (ROOT / "requirements/run.txt").read_text()))
    assert f"setup: installing {total} packages into .venv" in said
    counted = [int(count) for count in re.findall(rf"setup: (\d+) of {total} packages", said)]
    assert len(counted) >= 10, said
    assert counted == sorted(counted)
    assert counted[-1] == total
    assert "setup: unpacking them\nsetup: compiling" in said


@pytest.mark.requirement("make:run:example")
@pytest.mark.parametrize("typed", ["~/my shop", "{home}/my shop"])
def test_make_run_serves_another_project_when_one_is_named(checkout: Path, tmp_path: Path, typed: str) -> None:
    (tmp_path / "my shop").mkdir()
    commands = subprocess.run(
        ["make", "-n", "-o", ".venv/.installed-run", "run", f"PROJECT={typed.format(home=tmp_path)}"],
        cwd=checkout,
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert f".venv/bin/toolyard serve --project '{tmp_path}/my shop'" in commands
    assert "--example" not in commands


@contextmanager
def _make_run(checkout: Path, home: Path, *, said: IO[str] | None = None) -> Iterator[tuple[Path, str]]:
    """Start the server with ``make run``; the project that it serves, and the command that prints its key."""
    port = str(free_port())
    environment = _environment(home) | {"TOOLYARD_PORT": port}
    with subprocess.Popen(
        ["make", "run"],
        cwd=checkout,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=said,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            assert running.stdout is not None
            first = running.stdout.readline()
            assert f"http://127.0.0.1:{port}" in first
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=WAIT_S) as answer:
                assert answer.status == 200
            lines = iter(running.stdout.readline, "")
            command = next(line for line in lines if "print the key again" in line).partition(": ")[2].strip()
            yield Path(first.removeprefix("Toolyard serves ").partition(" on ")[0]), command
        finally:
            os.killpg(running.pid, signal.SIGTERM)
            running.wait(WAIT_S)


def _count_calls(home: Path) -> int:
    with contextlib.closing(sqlite3.connect(home / "state.db")) as state:
        (count,) = state.execute("SELECT count(*) FROM records WHERE kind = 'call'").fetchone()
    return int(count)


@pytest.mark.requirement("make:run:example")
def test_make_run_takes_a_port_and_any_name_of_a_project(checkout: Path, tmp_path: Path) -> None:
    words = ["make", "-n", "-o", ".venv/.installed-run", "run", "PROJECT=/it's here", "PORT=7001"]
    commands = subprocess.run(
        words, cwd=checkout, env=_environment(tmp_path), capture_output=True, text=True, check=True
    ).stdout
    assert "serve --project '/it'\\''s here' --port 7001\n" in commands


@pytest.mark.requirement("make:install:path")
def test_the_alias_works_in_a_folder_with_a_space_and_a_quote(tmp_path: Path) -> None:
    checkout = tmp_path / "it's a folder"
    for name in ("scripts", ".venv/bin"):
        (checkout / name).mkdir(parents=True)
    shutil.copy(ROOT / "scripts/show-path-hint", checkout / "scripts")
    (checkout / ".venv/bin/toolyard").write_text("#!/bin/sh\necho it runs\n")
    (checkout / ".venv/bin/toolyard").chmod(0o755)
    environment = {"PATH": "/usr/bin:/bin"}
    hint = subprocess.run(
        [checkout / "scripts/show-path-hint"], env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()[-1]
    done = subprocess.run(
        ["sh", "-c", f"{hint.strip()}\neval toolyard"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "it runs\n", (hint, done)


@pytest.mark.requirement("make:install")
@pytest.mark.parametrize("is_moved", [True, False])
def test_a_virtual_environment_that_was_moved_is_made_anew(tmp_path: Path, is_moved: bool) -> None:
    (tmp_path / ".venv/bin").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("pyproject.toml", "requirements/run.txt", "scripts/setup", ".venv/.installed-run"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    place = "/elsewhere" if is_moved else tmp_path
    (tmp_path / ".venv/bin/toolyard").write_text(f"#!{place}/.venv/bin/python\n")
    commands = subprocess.run(
        ["make", "-n", "install"], cwd=tmp_path, env=_environment(tmp_path), capture_output=True, text=True, check=True
    ).stdout
    assert ("scripts/setup run" in commands) == is_moved


@pytest.mark.requirement("make:install:path")
def test_a_command_that_is_on_the_path_already_is_named(tmp_path: Path) -> None:
    (tmp_path / "toolyard").write_text("#!/bin/sh\n")
    (tmp_path / "toolyard").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [ROOT / "scripts/show-path-hint"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        f"'toolyard' is on your PATH: {tmp_path}/toolyard",
        f"This checkout has its own: {ROOT}/.venv/bin/toolyard",
    ]


UNSTEADY = """
import pathlib

def test_that_passes(): pass

def test_that_fails_first():
    again = pathlib.Path("again")
    assert again.exists() or again.touch()

def test_that_fails_always():
    assert not pathlib.Path("broken").exists()
"""


@pytest.fixture
def ci(tmp_path: Path) -> Path:
    """A folder in which ``.ci/run`` finds a suite of three tests instead of this one."""
    for name in (".ci", ".venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    (tmp_path / ".venv/bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / ".venv/bin/python").chmod(0o755)
    check = "check:\n\t@echo it is checked; test ! -e unformatted\n"
    (tmp_path / "Makefile").write_text(f"{check}test:\n\t@.venv/bin/python -m pytest -q -n 2\n")
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "test_it.py").write_text(UNSTEADY)
    return tmp_path


def _run_ci(folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        [folder / ".ci/run"], env=_environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=WAIT_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.requirement("make:test")
def test_ci_names_what_passed_only_when_repeated_last(ci: Path) -> None:
    code, said = _run_ci(ci)
    assert code == 0
    assert "it is checked" in said
    assert said.endswith("\n\n=== passed only when repeated ===\ntest_it.py::test_that_fails_first\n")
    assert _run_ci(ci)[1].splitlines()[-1].startswith("3 passed")


@pytest.mark.requirement("make:test", "make:check")
@pytest.mark.parametrize("fault", ["broken", "unformatted"])
def test_ci_fails_for_a_test_that_fails_twice_and_for_a_check(ci: Path, fault: str) -> None:
    (ci / fault).touch()
    code, said = _run_ci(ci)
    assert code == 1
    assert said.endswith("\n\n=== passed only when repeated ===\ntest_it.py::test_that_fails_first\n")


@pytest.mark.requirement("make:test")
def test_the_readme_names_the_command_that_ci_runs() -> None:
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
    (tmp_path / "checkout/requirements").mkdir()
    for group in ("run", "dev"):
        (tmp_path / f"checkout/requirements/{group}.txt").touch()
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


@pytest.mark.requirement("make:test")
@pytest.mark.parametrize(
    ("user", "apt", "is_asked"), [("0", "exit 0", True), ("0", "exit 100", True), ("1000", "", False)]
)
def test_programs_that_only_tests_need_are_installed_by_root_or_named(
    bare: Path, user: str, apt: str, is_asked: bool
) -> None:
    python = '#!/bin/bash\n[ "$2" != venv ] || { mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; }\n'
    programs = {"python3": python, "id": f"#!/bin/bash\necho {user}\n"}
    programs |= {"apt-get": f"#!/bin/bash\necho $DEBIAN_FRONTEND $@ >>asked\n{apt}\n"}
    for name, script in programs.items():
        (bare / "bin" / name).unlink(missing_ok=True)
        (bare / "bin" / name).write_text(script)
        (bare / "bin" / name).chmod(0o755)
    for name in ("mkdir", "cp", "touch"):
        (bare / "bin" / name).symlink_to(shutil.which(name) or name)
    done = subprocess.run(
        ["bash", "scripts/setup", "dev"], cwd=bare / "checkout", env={"PATH": str(bare / "bin")}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (bare / "checkout/.venv/.installed-dev").exists()
    is_skipped = "setup: tests that need these are skipped: chromium fonts-noto-cjk curl (Debian: " in done.stderr
    assert is_skipped == (apt != "exit 0")
    asked = (bare / "checkout/asked").read_text() if is_asked else ""
    command = "noninteractive -qq -o DPkg::Lock::Timeout=300 install -y chromium fonts-noto-cjk curl\n"
    assert asked.endswith(command) is is_asked


@pytest.mark.requirement("make:install")
@pytest.mark.skipif(shutil.which("unshare") is None, reason="a read-only folder for root takes unshare (util-linux)")
def test_a_checkout_that_cannot_be_written_to_is_named(bare: Path) -> None:
    (bare / "bin/python3").symlink_to(sys.executable)
    mount = f"mount --bind -o ro {bare}/checkout {bare}/checkout && cd {bare}/checkout && PATH={bare}/bin"
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", f"{mount} bash scripts/setup"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.stderr.startswith(("unshare: ", "mount: ")):
        pytest.skip(f"this machine makes no mounts: {done.stderr.strip()[-300:]}")
    assert "checkout cannot be written to: .venv is made in the checkout" in done.stderr


@pytest.mark.requirement("make:install")
def test_make_clean_keeps_the_home_with_its_key_and_its_database(checkout: Path) -> None:
    shown = subprocess.run(["make", "-n", "clean"], cwd=checkout, capture_output=True, text=True, check=True).stdout
    assert ".venv" in shown
    assert not any(word in shown for word in (".home", ".local", "$", "~"))  # one of an earlier version is .home
