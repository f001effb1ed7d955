"""The texts and forms of the shipped plugins: in English and Chinese, with choices and what is required."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import run_server
from toolyard.dialects.tool_specs import to_function
from toolyard.protocol.manifests.manifest import Manifest
from toolyard.protocol.manifests.manifest_parser import parse_manifest
from toolyard.protocol.manifests.spec import tool_spec

FOLDERS = sorted(file.parent for file in (Path(__file__).parents[2] / "plugins").glob("*/plugin-manifest.json"))
HAN = re.compile(r"[\u4e00-\u9fff]")


def manifest(folder: Path) -> Manifest:
    parsed, faults = parse_manifest(json.loads((folder / "plugin-manifest.json").read_text()))
    assert parsed is not None
    assert faults == []
    return parsed


@pytest.mark.requirement("shipped:texts")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_everything_that_the_console_shows_of_a_manifest_is_in_english_too(folder: Path) -> None:
    one = manifest(folder)
    english = one.translations["en"]
    assert set(english.settings) == {key.name for key in one.config}
    commands = {command.name for command in one.commands}
    assert len(commands) == 1 or set(english.commands) == commands
    texts = [english.display_name, english.description]
    for part in (english.parameters, english.commands, english.settings):
        texts += part.values()
    assert [text for text in texts if HAN.search(text)] == []


@pytest.mark.requirement("shipped:texts")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_provider_gets_a_choice_at_the_top_of_a_function(folder: Path) -> None:
    parameters: Any = to_function(tool_spec(manifest(folder)))["parameters"]
    assert not {"anyOf", "oneOf", "allOf"} & set(parameters)


@pytest.mark.requirement("shipped:texts")
async def test_forms_have_choices_and_what_is_required_and_calls_without_it_start_nothing(tmp_path: Path) -> None:
    async with run_server(tmp_path) as server:
        tools: dict[str, Any] = {one["name"]: one for one in (await server.get("/v1/tools")).json["data"]}
        tools["ImageGen"] = (await server.get("/v1/tools/ImageGen")).json  # without a key it is in no list
        rows = {one["name"]: one for one in (await server.get("/v1/plugins")).json["data"]}
        refused = await server.post("/v1/tools/Plotter", {"title": "Nothing"})
        settings = (await server.get("/v1/plugins/Timelapse")).json["config"]
    plotter, image = tools["Plotter"]["parameters"], tools["ImageGen"]["parameters"]
    assert plotter["anyOf"] == [{"required": ["functions"]}, {"required": ["data"]}]
    assert "bar" in plotter["properties"]["type"]["enum"]
    assert image["required"] == ["prompt"]
    render = next(form for form in tools["Timelapse"]["forms"] if form["name"] == "render")
    assert render["parameters"]["properties"]["scene"]["enum"] == ["life", "mandelbrot", "heat", "pendulum"]
    assert render["translations"]["en"]["description"].startswith("Renders an animation")
    assert render["translations"]["en"]["parameters"]["fps"] == "Frames per second."
    assert settings[0]["translations"]["en"].startswith("The folder for the animations")
    assert "one of these is required: functions, data" in refused.json["error"]["message"]
    assert [rows[name]["state"] for name in ("ImageGen", "Wan2.1VideoGen")] == ["missing_config"] * 2
    assert rows["ImageGen"]["reason"].startswith("it needs configuration: set IMAGE_API_KEY on its page")


@pytest.mark.requirement("shipped:texts")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_plugins_answer_in_english_but_for_the_wording_of_the_source_documents(folder: Path) -> None:
    given = ("###计算结果：", "已成功提交。", "这是一个动态上下文占位符，", "请在你的回复中包含以下占位符原文：")
    sentences = re.compile(r"[\u4e00-\u9fff][，。：；？！]|[，。：；？！][\u4e00-\u9fff]")
    lines = [line.strip() for file in folder.glob("*.py") for line in file.read_text().splitlines()]
    found = [line for line in lines if sentences.search(line) and not any(words in line for words in given)]
    assert found == []
