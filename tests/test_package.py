"""The sdist and the wheel: complete, described, and the same bytes wherever and whenever they are built."""

import configparser
import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
import yaml

import toolyard
from tests.checkout import ROOT, copy_checkout, list_files

WAIT_S = 600
INFO = f"toolyard-{toolyard.__version__}.dist-info"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = SETTINGS["project"]
PLACES = SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["sources"]


@dataclass(frozen=True)
class Packages:
    sdist: Path
    wheel: Path


def _build(source: Path, target: str, **environment: str) -> Path:
    """Build one package in ``source`` and return it; the tools are those of this environment."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", f"dist/{target}"],
        cwd=source,
        env={"PATH": os.environ["PATH"], "SOURCE_DATE_EPOCH": "1700000000", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S,
    )
    assert done.returncode == 0, done.stderr
    (built,) = (source / "dist" / target).iterdir()
    return built


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Packages of a fresh copy of the checkout, with keys and files of its builder and the console's packages in it."""
    source = copy_checkout(tmp_path_factory.mktemp("package"))
    for name in (".env", "docs/.env", "drafts/Greeter/main.py", "my-project/notes.txt", "notes/diary.txt", "todo.txt"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("OPENAI_API_KEY=sk-secret\n")
    (source / "plugins/ImageGen/config.env").write_text("API_KEY=sk-secret\n")
    (source / "console/node_modules/preact").mkdir(parents=True)
    (source / "console/node_modules/preact/index.js").write_text("export {}\n")
    return Packages(_build(source, "sdist"), _build(source, "wheel"))


@pytest.fixture(scope="module")
def metadata(packages: Packages) -> Message:
    with zipfile.ZipFile(packages.wheel) as archive:
        return email.message_from_bytes(archive.read(f"{INFO}/METADATA"))


@pytest.mark.requirement("package:reproducible")
def test_a_build_in_another_folder_at_another_time_gives_the_same_bytes(packages: Packages, tmp_path: Path) -> None:
    source = copy_checkout(tmp_path / "a folder with another name")
    for file in source.rglob("*"):
        os.utime(file, (1_000_000_000, 1_000_000_000))
        file.chmod(file.stat().st_mode & 0o700)
    elsewhere = {"TZ": "Asia/Shanghai", "PYTHONHASHSEED": "7", "HOME": str(tmp_path), "LANG": "C"}
    assert _build(source, "sdist", **elsewhere).read_bytes() == packages.sdist.read_bytes()
    assert _build(source, "wheel", **elsewhere).read_bytes() == packages.wheel.read_bytes()


@pytest.mark.requirement("package:sdist")
def test_the_sdist_builds_the_same_wheel(packages: Packages, tmp_path: Path) -> None:
    with tarfile.open(packages.sdist) as archive:
        filtered: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # since 3.11.4
        archive.extractall(tmp_path, **filtered)
    (source,) = tmp_path.iterdir()
    assert _build(source, "wheel").read_bytes() == packages.wheel.read_bytes()


@pytest.mark.requirement("package:complete")
def test_the_wheel_has_every_file_of_the_sources_and_nothing_else(packages: Packages) -> None:
    expected = {
        place + name.removeprefix(folder)
        for name in list_files()
        for folder, place in PLACES.items()
        if name.startswith(f"{folder}/") and not name.startswith("docs/images/")
    }
    with zipfile.ZipFile(packages.wheel) as archive:
        names = set(archive.namelist())
        scripts = configparser.ConfigParser()
        scripts.read_string(archive.read(f"{INFO}/entry_points.txt").decode())
    own = {f"{INFO}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt")}
    licences = {f"{INFO}/licenses/{name}" for name in ("LICENSE", "THIRD-PARTY-LICENSES.txt")}
    assert names == expected | own | licences
    assert dict(scripts["console_scripts"]) == {"toolyard": "toolyard.cli:main"}


@pytest.mark.requirement("package:sdist")
def test_the_sdist_has_every_file_of_the_checkout_and_nothing_of_its_builder(packages: Packages) -> None:
    with tarfile.open(packages.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names == {name for name in list_files() if not name.startswith((".ci/", ".github/"))} | {"PKG-INFO"}


@pytest.mark.requirement("package:metadata")
def test_the_metadata_say_who_what_and_for_which_machines(metadata: Message) -> None:
    assert metadata["Name"] == "toolyard"
    assert metadata["Version"] == toolyard.__version__
    assert metadata["Author"] == "Toolyard contributors"
    assert metadata["License-Expression"] == PROJECT["license"]
    assert metadata.get_all("License-File") == ["LICENSE", "THIRD-PARTY-LICENSES.txt"]
    assert {"llm", "mcp", "tool calling"} <= set(metadata["Keywords"].split(","))
    assert {"Typing :: Typed", "Operating System :: POSIX :: Linux"} <= set(metadata.get_all("Classifier", []))
    assert metadata.get_all("Provides-Extra") == ["postgres"]
    assert metadata["Description-Content-Type"] == "text/markdown"


@pytest.mark.requirement("package:metadata")
def test_every_python_that_the_metadata_name_is_tested_by_the_workflow(metadata: Message) -> None:
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(metadata.get_all("Classifier", [])), re.MULTILINE)
    checks = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text("utf-8"))
    assert named == checks["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert metadata["Requires-Python"] == f">={named[0]}"


@pytest.mark.requirement("package:metadata")
def test_no_address_is_named_that_does_not_exist(metadata: Message) -> None:
    assert not re.search(r"example\.|REPOSITORY", str(metadata.get_all("Project-URL", [])))
