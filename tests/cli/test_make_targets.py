"""The make targets that take long, as far as a short test can see: what they run, and with which profile."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bench.__main__

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
def test_make_bench_runs_every_measurement_and_prints_ratios() -> None:
    assert list_commands("bench").strip() == ".venv/bin/python -m bench"
    modules = {file.stem: file.read_text("utf-8") for file in (ROOT / "bench").glob("*.py")}
    ran = {measure.__module__.removeprefix("bench.") for measure in bench.__main__.ALL.values()}
    ran |= {name for one in ran for name in re.findall(r"^    (\w+)\.main\(\)", modules[one], re.MULTILINE)}
    assert ran == {name for name, code in modules.items() if re.search(r"^def main\(", code, re.MULTILINE)}
    done = subprocess.run(
        [sys.executable, "-m", "bench", "startup"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=600
    )
    head, *rows = done.stdout.splitlines()
    assert "x base" in head
    ratios = [float(re.split(r"\s{2,}", row)[2]) for row in rows]
    assert 1.0 in ratios
    assert all(ratio > 0 for ratio in ratios)


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
