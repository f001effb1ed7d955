"""The built console belongs to its sources: running Toolyard needs no Node, and nobody forgets to build."""

import gzip
import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.console.packages import ROOT, SOURCES, run_npm
from toolyard.server_paths import CONSOLE_PAGES

BUILT = ROOT / "src" / "toolyard" / "web" / "console"
ALONE = ("index.html", "package.json", "package-lock.json", "vite.config.ts", "tsconfig.json")
WHOLE = ("public", "licenses", "scripts")
FIRST_LOAD_KB = 100
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
WITH_NODE = pytest.mark.skipif(not SOAK or not shutil.which("npm"), reason="installs packages: with Node, in the soak")


def _sha(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def _hash_all(folder: Path, files: list[Path]) -> str:
    """The hash of files, of their names and of what is in each: ``scripts/seal.mjs`` makes the same."""
    total = hashlib.sha256()
    for name, file in sorted((file.relative_to(folder).as_posix(), file) for file in files):
        total.update(f"{name}\0{_sha(file)}\n".encode())
    return total.hexdigest()


@pytest.mark.requirement("console:root")
def test_every_page_is_an_address_of_the_server() -> None:
    table = (SOURCES / "src" / "pages.ts").read_text("utf-8")
    assert sorted(re.findall(r'path: "(/[a-z-]+)"', table)) == sorted(CONSOLE_PAGES)


@pytest.mark.requirement("console:root")
def test_the_built_files_are_those_of_these_sources() -> None:
    built = [file for file in _files(SOURCES / "src") if not file.name.endswith(".test.ts")]
    whole = [file for name in WHOLE for file in _files(SOURCES / name)]
    files = [*built, *whole, *(SOURCES / name for name in ALONE)]
    build = json.loads((BUILT / "build.json").read_text())
    assert build["sources"] == _hash_all(SOURCES, files), "the console's sources have changed: run 'make console'"


@pytest.mark.requirement("console:root")
def test_the_built_files_are_those_that_the_build_wrote() -> None:
    build = json.loads((BUILT / "build.json").read_text())
    assert _hash_all(BUILT, [file for file in _files(BUILT) if file.name != "build.json"]) == build["files"]


@pytest.mark.requirement("console:root")
def test_no_built_file_is_named_by_its_text_so_that_a_change_of_one_leaves_the_others_alone() -> None:
    names = [file.stem for file in _files(BUILT / "assets")]
    assert [name for name in names if re.search(r"-[\w-]*[A-Z0-9][\w-]{5,}$", name) and "KaTeX" not in name] == []


@pytest.mark.requirement("console:weight", "craft:first-load")
def test_the_first_load_of_every_page_is_light_and_what_draws_diagrams_and_formulas_comes_later() -> None:
    pages: dict[str, list[str]] = json.loads((BUILT / "build.json").read_text())["pages"]
    assert sorted(f"/{page}" for page in pages) == sorted(CONSOLE_PAGES)
    kilobytes = {
        page: sum(len(gzip.compress((BUILT / name).read_bytes(), 6)) for name in names) / 1000
        for page, names in pages.items()
    }
    assert {page: size for page, size in kilobytes.items() if size > FIRST_LOAD_KB} == {}
    first = [(BUILT / "index.html").read_text(), *(name for names in pages.values() for name in names)]
    assert [name for name in first if "mermaid" in name.lower() or "katex" in name.lower()] == []


@pytest.mark.requirement("console:root")
def test_the_lock_file_has_the_native_parts_of_every_system_and_names_no_registry() -> None:
    text = (SOURCES / "package-lock.json").read_text()
    packages = json.loads(text)["packages"]
    needed = {name for package in packages.values() for name in package.get("optionalDependencies", {})}
    assert sorted(name for name in needed if f"node_modules/{name}" not in packages) == []
    assert '"resolved"' not in text


@pytest.mark.requirement("console:root", "package:licences")
@WITH_NODE
def test_building_anew_gives_the_same_files(installed: Path) -> None:
    run_npm(installed, "run", "build")
    for name in ("THIRD-PARTY-LICENSES.txt", "console/public/licenses.json"):
        assert (installed.parent / name).read_text("utf-8") == (ROOT / name).read_text("utf-8")
    built = installed.parent / "src" / "toolyard" / "web" / "console"
    assert {file.relative_to(built).as_posix(): _sha(file) for file in _files(built)} == {
        file.relative_to(BUILT).as_posix(): _sha(file) for file in _files(BUILT)
    }


@pytest.mark.requirement("make:check")
@WITH_NODE
def test_the_sources_pass_types_lint_format_and_unit_tests(installed: Path) -> None:
    run_npm(installed, "run", "check")
