"""The check of a release: tag, version, changelog and addresses agree, or it says what does not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
URL = "https://forge.test/owner/toolyard"

pytestmark = pytest.mark.requirement("release:check")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The files that a release changes, ready for version 1.2.3."""
    for name in ("scripts/check-release", "pyproject.toml", "src/toolyard/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    (tmp_path / "src/toolyard/__init__.py").write_text('"""Toolyard."""\n\n__version__ = "1.2.3"\n')
    project = (tmp_path / "pyproject.toml").read_text("utf-8")
    urls = f'[project.urls]\nRepository = "{URL}"\n'
    (tmp_path / "pyproject.toml").write_text(project.replace("[project.scripts]", f"{urls}\n[project.scripts]"))
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## Unreleased\n\n- Later.\n\n"
        "## 1.2.3 (2026-11-20)\n\n### Added\n\n- A thing.\n\n## 1.2.2\n\n- Old.\n"
    )
    return tmp_path


def _check(source: Path, tag: str = "v1.2.3", url: str = URL) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "scripts/check-release", tag, url], cwd=source, capture_output=True, text=True, check=False
    )


def test_a_release_that_is_ready_gives_its_notes(source: Path) -> None:
    done = _check(source)
    assert (done.returncode, done.stdout, done.stderr) == (0, "### Added\n\n- A thing.\n", "")


def test_a_tag_that_is_not_the_version_is_named(source: Path) -> None:
    done = _check(source, tag="v1.2.4")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "the tag is v1.2.4, but src/toolyard/__init__.py has 1.2.3: the tag must be v1.2.3\n"


@pytest.mark.parametrize(
    "changelog", ["# Changelog\n\n## Unreleased\n\n- A thing.\n", "# Changelog\n\n## 1.2.3\n\n## 1.2.2\n"]
)
def test_a_version_without_entries_in_the_changelog_is_named(source: Path, changelog: str) -> None:
    (source / "CHANGELOG.md").write_text(changelog)
    done = _check(source)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "CHANGELOG.md has no section '## 1.2.3' with entries: rename '## Unreleased'\n"


def test_metadata_that_do_not_name_the_repository_are_named(source: Path) -> None:
    done = _check(source, url="https://forge.test/fork/toolyard")
    assert (done.returncode, done.stdout) == (1, "")
    assert 'add Repository = "https://forge.test/fork/toolyard"' in done.stderr
