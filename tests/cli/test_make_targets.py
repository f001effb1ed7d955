"""The make targets that take long, as far as a short test can see: what they run, and with which profile."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bench.__main__
import bench.bypass_off
import bench.bypasses
import bench.startup

ROOT = Path(__file__).parents[2]


def list_commands(target: str) -> str:
    """Return the commands that make would run, with every target considered up to date."""
    made = [word for name in ("run", "dev") for word in ("-o", f".venv/.installed-{name}")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # make runs us too
    done = subprocess.run(
        ["make", "-n", "--no-print-directory", *made, target],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.requirement("make:bench")
def test_make_bench_runs_every_measurement_and_prints_ratios(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list_commands("bench").strip() == ".venv/bin/python -m bench"
    modules = {file.stem: file.read_text("utf-8") for file in (ROOT / "bench").glob("*.py")}
    ran = {measure.__module__.removeprefix("bench.") for measure in bench.__main__.ALL.values()}
    ran |= {name for one in ran for name in re.findall(r"^    (\w+)\.main\(\)", modules[one], re.MULTILINE)}
    assert ran == {name for name, code in modules.items() if re.search(r"^def main\(", code, re.MULTILINE)}
    monkeypatch.setattr(bench.startup, "RUNS", 2)
    bench.__main__.ALL["startup"]()
    head, *rows = capsys.readouterr().out.splitlines()
    assert "x base" in head
    ratios = [float(re.split(r"\s{2,}", row)[2]) for row in rows]
    assert 1.0 in ratios
    assert all(ratio > 0 for ratio in ratios)


@pytest.mark.requirement("make:bench")
@pytest.mark.parametrize("name", bench.bypass_off.SWITCHES)
def test_every_bypass_can_be_switched_off(name: str) -> None:
    words = [sys.executable, "-m", "bench.bypass_off", name, "--version"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.requirement("make:bench")
def test_what_a_measurement_replaces_is_there() -> None:
    code = (ROOT / "bench/bypasses.py").read_text("utf-8")
    replaced = re.findall(r'patch\.object\((\w+), "(\w+)"', code)
    assert replaced
    assert [name for owner, name in replaced if not hasattr(getattr(bench.bypasses, owner), name)] == []


@pytest.mark.requirement("make:check")
def test_make_check_looks_at_format_lint_types_and_imports() -> None:
    ran = [line.removeprefix(".venv/bin/") for line in list_commands("check").splitlines()]
    assert ran[:4] == ["ruff format --check .", "ruff check .", "mypy", "lint-imports --no-logo"]


@pytest.mark.requirement("make:soak")
def test_make_soak_runs_the_whole_suite_with_the_long_profile() -> None:
    pytest_ = "HYPOTHESIS_PROFILE=soak .venv/bin/python -m pytest -q"
    ran = [line for line in list_commands("soak").splitlines() if not line.startswith("#")]
    assert ran == [f"{pytest_} -n auto --dist worksteal --ignore tests/containers", f"{pytest_} -n 0 tests/containers"]
    assert list_commands("test").strip() == ".venv/bin/python -m pytest -q -n auto --dist worksteal"
    program = "import hypothesis, tests.conftest; print(hypothesis.settings.default.max_examples)"
    result = {
        profile: int(
            subprocess.run(
                [sys.executable, "-c", program],
                cwd=ROOT,
                env={"PATH": "", "HYPOTHESIS_PROFILE": profile},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for profile in ("test", "soak")
    }
    assert result["soak"] >= 10 * result["test"]
