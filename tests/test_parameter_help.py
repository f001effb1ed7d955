"""The help of parameters that the console shows: in English and in Chinese, for every tool that comes with Toolyard."""

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from toolyard.protocol.manifests.manifest_parser import read_manifest
from toolyard.protocol.manifests.spec import tool_spec
from toolyard.protocol.tool import ToolSpec

ROOT = Path(__file__).parent.parent
PLUGINS = sorted((ROOT / "plugins").glob("*/plugin-manifest.json"))
HAN = re.compile(r"[\u4e00-\u9fff]")
BUILT_IN = [
    *("apply_patch", "edit", "file_operator", "glob", "grep"),
    *("ls", "multi_edit", "notebook_edit", "read", "write"),
]

pytestmark = pytest.mark.requirement("console:languages")


def helps(schema: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """The name of every field of a form, as translations write it, and its description."""
    for name, one in schema.get("properties", {}).items():
        yield before + name, one.get("description", "")
        yield from helps(one, f"{before}{name}.")
        if isinstance(one.get("items"), dict):
            yield from helps(one["items"], f"{before}{name}.")


def spec_of(module: str) -> ToolSpec:
    spec = import_module(f"toolyard.tools.{module}").SPEC
    assert isinstance(spec, ToolSpec)
    return spec


def test_every_parameter_of_a_built_in_tool_is_explained_in_english_and_chinese() -> None:
    specs = [spec_of(module) for module in BUILT_IN]
    for spec in specs:
        chinese = spec.translations["zh"]
        english, other = dict(helps(spec.parameters)), chinese.parameters
        assert list(other) == list(english), spec.name
        assert [name for name, text in english.items() if not text or HAN.search(text)] == [], spec.name
        assert [name for name, text in other.items() if not HAN.search(text)] == [], spec.name
        assert HAN.search(chinese.description)


@pytest.mark.parametrize("file", PLUGINS, ids=lambda file: str(file.parent.name))
def test_every_shipped_plugin_and_its_parameters_are_explained_in_english_and_chinese(file: Path) -> None:
    read = read_manifest(file.read_text("utf-8"))
    manifest = read.manifest
    assert manifest is not None
    assert [problem.field for problem in read.problems if problem.field.startswith("translations")] == []
    english = manifest.translations["en"]
    own = dict(helps(tool_spec(manifest).parameters))
    assert own
    assert english.display_name
    assert english.description
    assert HAN.search(manifest.description)
    chinese = manifest.translations["zh"].parameters if "zh" in manifest.translations else {}
    assert [name for name in own if not english.parameters.get(name) or HAN.search(english.parameters[name])] == []
    assert [name for name, text in own.items() if not HAN.search(chinese.get(name, text))] == []
