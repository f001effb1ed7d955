"""A new plugin is whole, and nothing is written that could not be one."""

import json
import shutil
from pathlib import Path

import pytest

from tests.plugins.folders import plugins_in
from toolyard.errors import ToolyardError, UsageError
from toolyard.plugins.authoring.cases import collect_cases
from toolyard.plugins.authoring.lint import lint_plugin
from toolyard.plugins.authoring.scaffold import Language, TextLanguage, build_files, write_files

pytestmark = pytest.mark.requirement("plugin:cli:new")


@pytest.mark.parametrize("tongue", TextLanguage)
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("language", Language)
def test_a_new_plugin_has_no_problem_and_something_to_test(
    language: Language, asynchronous: bool, tongue: TextLanguage, tmp_path: Path
) -> None:
    if language is Language.NODE and not shutil.which("node"):
        pytest.skip("node is not installed")
    files = build_files("Made-1.0", language=language, asynchronous=asynchronous, tongue=tongue)
    assert not [name for name, text in files.items() if "@" in text]
    write_files(tmp_path / "root/Made-1.0", files)
    plugins = plugins_in(tmp_path / "root", home=tmp_path / "home")
    plugins.refresh()
    (plugin,) = plugins.all
    assert (plugin.name, plugin.state, lint_plugin(plugin)) == ("Made-1.0", "ready", ())
    assert plugin.manifest is not None
    cases, problems = collect_cases(plugin.manifest, plugin.folder)
    assert (len(cases) > 1, problems) == (True, [])
    chinese = any("\u4e00" <= char <= "\u9fff" for char in plugin.manifest.description)
    assert chinese == (tongue is TextLanguage.CHINESE)


@pytest.mark.parametrize("name", ["", "a b", "../x", "x/y", '"', 'x", "shell": true, "a": "', "名字", "-x", "x" * 200])
def test_a_name_that_no_plugin_can_have_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a plugin cannot be called"):
        build_files(name, language=Language.PYTHON, asynchronous=False, tongue=TextLanguage.ENGLISH)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(ToolyardError, match="there is already"):
        write_files(tmp_path / "there", {"main.py": ""})
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolyardError, match="cannot be made"):
        write_files(tmp_path / "file/inside", {"main.py": ""})
    assert list((tmp_path / "there").iterdir()) == []


def test_every_file_that_is_json_is_json() -> None:
    files = build_files("Made", language=Language.NODE, asynchronous=True, tongue=TextLanguage.CHINESE)
    assert json.loads(files["plugin-manifest.json"])["name"] == "Made"
    assert isinstance(json.loads(files["cases.json"]), list)
