"""The licences of the packages in the built console: complete, without Node, and as the metadata declare them."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src/toolyard/web/console"
LOCK: dict[str, dict[str, Any]] = json.loads((ROOT / "console/package-lock.json").read_text("utf-8"))["packages"]
LICENSES = json.loads((ROOT / "console/public/licenses.json").read_text("utf-8"))
COMPONENTS = {(one["name"], one["version"]): one for one in LICENSES["components"]}
NAMES = {name for name, _ in COMPONENTS}
NOTICE = (ROOT / "THIRD-PARTY-LICENSES.txt").read_text("utf-8")

pytestmark = pytest.mark.requirement("package:licences")


def _find_place(folder: str, name: str) -> str:
    """Return the key of a dependency in the lock file, as Node looks for it: in the folder, then further up."""
    place = f"{folder}/node_modules/{name}".removeprefix("/")
    if place in LOCK:
        return place
    assert folder, f"the lock file has no {name}"
    return _find_place(folder.rpartition("/node_modules/")[0], name)


def _list_installed() -> set[str]:
    """Return the names of all packages that the console's dependencies bring, but for mere types."""
    waiting = [("", name) for name in LOCK[""]["dependencies"]]
    places: set[str] = set()
    while waiting:
        place = _find_place(*waiting.pop())
        if place not in places:
            places.add(place)
            waiting += [(place, name) for name in LOCK[place].get("dependencies", {}) if not name.startswith("@types/")]
    return {place.rpartition("node_modules/")[2] for place in places}


def test_every_package_of_the_lock_file_is_named() -> None:
    installed = _list_installed()
    assert len(installed) > 50
    assert sorted(installed - NAMES) == []


def test_what_the_console_depends_on_itself_is_named_with_the_version_of_the_lock_file() -> None:
    direct = {(name, LOCK[f"node_modules/{name}"]["version"]) for name in LOCK[""]["dependencies"]}
    assert sorted(direct - set(COMPONENTS)) == []


def test_packages_that_mermaid_was_built_with_are_named_although_the_lock_file_has_them_not() -> None:
    script = (BUILT / "draw/mermaid.min.js").read_text("utf-8")
    noted = {
        re.sub(r"^(@[^/]+/[^/]+|[^/]+)/.*$", r"\1", path)
        for comment in re.findall(r"/\*! Bundled license information:(.*?)\*/", script, re.DOTALL)
        for path in re.findall(r"^(\S+\.m?js):$", comment, re.MULTILINE)
    }
    assert {"dompurify", "lodash-es"} <= noted
    assert sorted(noted - NAMES) == []
    (purify,) = set(re.findall(r"@license DOMPurify (\S+)", script))
    assert ("dompurify", purify) in COMPONENTS
    assert {"chevrotain", "langium"} <= NAMES - _list_installed(), "its parser is made of these"


def test_fonts_are_named_with_their_own_licence() -> None:
    assert list(BUILT.glob("assets/KaTeX_*.woff2"))
    fonts = COMPONENTS["KaTeX fonts", LOCK["node_modules/katex"]["version"]]
    assert fonts["license"] == "OFL-1.1"
    assert "SIL OPEN FONT LICENSE" in LICENSES["texts"][fonts["text"]]


def test_the_notice_has_every_package_with_its_licence_and_its_text() -> None:
    sections = NOTICE.split(f"\n{'-' * 80}\n")
    for component in COMPONENTS.values():
        text = LICENSES["texts"][component["text"]]
        head = f"{component['name']} {component['version']} ({component['license']})"
        assert len(text) > 200, component
        (section,) = [one for one in sections if head in one.splitlines()]
        assert section.rstrip().endswith(text), component
    named = sum(len(section.strip().partition("\n\n")[0].splitlines()) for section in sections[1:])
    assert named == len(COMPONENTS), "the notice names a package that is not there"


def test_the_expression_of_the_metadata_is_that_of_toolyard_and_of_all_packages() -> None:
    expression = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["license"].split(" AND ")
    choices = [set(one["license"].strip("()").split(" OR ")) for one in COMPONENTS.values()]
    assert [choice for choice in choices if not choice & set(expression)] == []
    assert LICENSES["license"] in expression
    assert [name for name in expression if not any(name in choice for choice in choices)] == []
    own = (ROOT / "LICENSE").read_text("utf-8").strip()
    assert LICENSES["texts"][LICENSES["text"]] == own
