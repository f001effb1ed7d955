"""A new plugin is whole, and nothing is written that could not be one."""

import json
import shutil
from pathlib import Path

import pytest

from tests.plugins.folders import plugins_in
from toolyard.errors import ToolyardError, UsageError
from toolyard.plugins.cases import cases_of
from toolyard.plugins.lint import lint
from toolyard.plugins.scaffold import Language, Tongue, files_of, scaffold

pytestmark = pytest.mark.requirement("plugin:cli:new")


@pytest.mark.parametrize("tongue", Tongue)
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("language", Language)
def test_a_new_plugin_has_no_problem_and_something_to_test(
    language: Language, asynchronous: bool, tongue: Tongue, tmp_path: Path
) -> None:
    if language is Language.NODE and not shutil.which("node"):
        pytest.skip("node is not installed")
    files = files_of("Made-1.0", language=language, asynchronous=asynchronous, tongue=tongue)
    assert not [name for name, text in files.items() if "@" in text]
    scaffold(tmp_path / "root/Made-1.0", files)
    plugins = plugins_in(tmp_path / "root", home=tmp_path / "home")
    plugins.refresh()
    (plugin,) = plugins.all
    assert (plugin.name, plugin.state, lint(plugin)) == ("Made-1.0", "ready", ())
    assert plugin.manifest is not None
    cases, problems = cases_of(plugin.manifest, plugin.folder)
    assert (len(cases) > 1, problems) == (True, [])
    chinese = any("\u4e00" <= char <= "\u9fff" for char in plugin.manifest.description)
    assert chinese == (tongue is Tongue.CHINESE)


@pytest.mark.parametrize("name", ["", "a b", "../x", "x/y", '"', 'x", "shell": true, "a": "', "名字", "-x", "x" * 200])
def test_a_name_that_no_plugin_can_have_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a plugin cannot be called"):
        files_of(name, language=Language.PYTHON, asynchronous=False, tongue=Tongue.ENGLISH)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(ToolyardError, match="there is already"):
        scaffold(tmp_path / "there", {"main.py": ""})
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolyardError, match="cannot be made"):
        scaffold(tmp_path / "file/inside", {"main.py": ""})
    assert list((tmp_path / "there").iterdir()) == []


def test_every_file_that_is_json_is_json() -> None:
    files = files_of("Made", language=Language.NODE, asynchronous=True, tongue=Tongue.CHINESE)
    assert json.loads(files["plugin-manifest.json"])["name"] == "Made"
    assert isinstance(json.loads(files["cases.json"]), list)
