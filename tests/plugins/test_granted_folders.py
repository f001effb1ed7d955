"""Folders that a program may write are there when it starts; what cannot be granted is named."""

from pathlib import Path

import pytest

from tests.plugins.yards import PluginYard
from toolyard.plugins.authoring.lint import lint_plugin
from toolyard.plugins.package.plugin_access import list_missing_paths, make_granted_folders
from toolyard.protocol.access import AccessChoice

pytestmark = pytest.mark.requirement("confinement:missing-paths")

WRITER = """
import json, os, sys
project = os.environ["PROJECT_BASE_PATH"]
path = json.load(sys.stdin)["path"]
try:
    open(os.path.join(project, path), "w").write("x")
except OSError as error:
    print(json.dumps({"status": "error", "error": str(error)}))
else:
    print(json.dumps({"status": "success", "result": "written"}))
"""


def test_missing_folders_of_the_project_are_made_and_nothing_else(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "outside").mkdir()
    (project / "link").symlink_to(tmp_path / "outside")
    paths = ["image", "a/b", "v1.2/", "notes.db", "../beside", "link/inner", str(tmp_path / "absolute"), "."]
    make_granted_folders(project, paths)
    made = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*"))
    assert made == sorted(
        ["project", "outside", "project/link", "project/image", "project/a", "project/a/b", "project/v1.2"]
    )
    assert list_missing_paths(project, paths) == ("notes.db", "../beside", "link/inner", str(tmp_path / "absolute"))


def test_a_project_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    make_granted_folders(tmp_path / "file", ["image"])
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


async def test_a_plugin_writes_a_declared_folder_that_was_not_there(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as yards:
        yards.add("Writer", WRITER, permissions={"write": ["out/pictures"], "network": []})
        outcome = await yards.call("Writer", path="out/pictures/a.png")
    assert outcome.envelope.error is None, outcome.envelope.error
    assert (tmp_path / "project/out/pictures/a.png").read_text() == "x"


async def test_a_path_that_cannot_be_granted_is_named_by_the_review_lint_and_the_error(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as yards:
        yards.add("Writer", WRITER, permissions={"write": ["notes.db"], "network": []})
        outcome = await yards.call("Writer", path="notes.db")
        plugin = yards.yard.plugins.plugins.get("Writer")
        assert plugin is not None
        assert plugin.manifest is not None
        options = {one.choice: one for one in yards.yard.plugins.review(plugin).access}
        problems = lint_plugin(plugin, yards.yard.plugins.host.list_remarks(plugin))
    assert "It may write notes.db, which does not exist: create it." in outcome.envelope.text
    assert any("cannot write notes.db" in line for line in options[AccessChoice.DECLARED].reach)
    assert not any("notes.db" in line for line in options[AccessChoice.STRICT].reach)
    assert any("cannot write notes.db" in problem.message for problem in problems)
