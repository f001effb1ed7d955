"""The text of a tool in prompts: its language, its parameters, and examples that run."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.built_in_tools import BUILT_IN_TOOLS
from toolyard.blocking import BlockingYard
from toolyard.gateway.offer import Offers, Selection
from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.json import JsonObject
from toolyard.protocol.requests.scanner import parse_requests
from toolyard.protocol.tool import ToolSpec
from toolyard.protocol.tool_text import is_explained, write_example_request, write_tool
from toolyard.tools.file_operator import FileOperator
from toolyard.tools.tool_words import load_text

pytestmark = pytest.mark.requirement("offer:text")
LANGUAGES = ("en", "zh")
HAN = re.compile("[\u4e00-\u9fff]")
README = "# Sample\n\nHello world\n\nThe colour of the sky.\n"
NOTEBOOK = {
    "cells": [{"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": ["1"]}],
    "metadata": {}, "nbformat": 4, "nbformat_minor": 4,
}  # fmt: skip
WEB = {"WebReadFile", "DownloadFile"}  # commands that reach the web: their calls are only checked
ABROAD = {"ImageGen", "Wan2.1VideoGen", "WebFetch"}  # they need the network: their calls are only checked
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where.", "examples": ["Oslo"]},
        "unit": {"enum": ["C", "F"], "default": "C"},
        "days": {"type": ["integer", "null"], "default": 3, "description": "How far ahead:"},
        "more": {},
    },
    "required": ["city", "unit"],
}
WEATHER = ToolSpec(name="weather", description="Tells the weather.\n", parameters=SCHEMA)


def prepare(project: Path) -> None:
    (project / "README.md").write_text(README)
    (project / "analysis.ipynb").write_text(json.dumps(NOTEBOOK))
    (project / "history.json").write_text(json.dumps([{"role": "assistant", "content": "teh end"}]))
    for path, text in {"notes/todo.md": "Buy milk", "docs/report.txt": "All is well."}.items():
        (project / path).parent.mkdir(exist_ok=True)
        (project / path).write_text(text)


def examples_in(text: str) -> list[tuple[str, dict[str, Any]]]:
    requests = [one for block in text.split("\n\n- ") for one in parse_requests(block)]
    assert [one["problem"] for one in requests if not one["ok"]] == []
    return [(str(one["tool"]), dict(one["args"])) for one in requests if isinstance(one["args"], dict)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_example_of_the_listing_runs_as_it_is(project: Path, tmp_path: Path, language: str) -> None:
    import toolyard

    with toolyard.open(project=project, home=tmp_path / "home") as yard:
        offers = Offers(lambda: (tool.spec for tool in yard.tools.list_built_in_first()), yard.tools.version)
        names = frozenset(tool.spec.name for tool in yard.tools)
        listing = offers.text(Selection(names), language).listing
        ran: set[str] = set()
        for tool, arguments in examples_in(listing):
            ran.add(tool)
            if tool in ABROAD or arguments.get("command") in WEB:
                accept_arguments(yard.tools.get(tool).spec, arguments)
            elif arguments.get("command") != "query":  # of a task that nobody has begun
                prepare(project)
                if tool == "Write":
                    (project / arguments["path"]).unlink(missing_ok=True)
                if tool == "ApplyPatch":
                    (project / "notes.txt").unlink(missing_ok=True)
                envelope = yard.call(tool, arguments)
                assert envelope.status.value == "success", (tool, arguments, envelope.text)
        assert ran == names


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_listing_shows_every_parameter_of_the_built_in_tools_in_its_language(
    yard: BlockingYard, language: str
) -> None:
    built_in = [tool.spec for tool in yard.tools if yard.tools.get_built_in(tool.spec.name)]
    assert [spec.name for spec in built_in] == sorted(BUILT_IN_TOOLS)
    for spec in (spec for spec in built_in if not spec.commands):
        text = write_tool(spec, language)
        described, listed = text.split("<<<[TOOL_REQUEST]>>>")[0].splitlines()[:2]
        named = [re.split("[*=:]", sign)[0] for sign in re.split("[:：] ", listed, maxsplit=1)[1].split(", ")]
        assert named == [name for name in spec.parameter_names if name not in spec.unlisted], spec.name
        assert all(is_explained(name, described) for name in named), spec.name
        assert bool(HAN.search(described)) is bool(HAN.search(listed)) is (language in spec.translations), spec.name
        assert "N/A" not in text
        assert "(What to do.)" not in text
        assert text.startswith(f"- {spec.name}")


def file_operator(yard: BlockingYard) -> FileOperator:
    tool = yard.tools.get("FileOperator")
    assert isinstance(tool, FileOperator)
    return tool


@pytest.mark.requirement("placeholder:file-operator")
@pytest.mark.parametrize("language", LANGUAGES)
def test_file_operator_is_shown_command_by_command_each_with_its_parameters(yard: BlockingYard, language: str) -> None:
    tool = file_operator(yard)
    sections = write_tool(tool.spec, language).split("\n\n")
    assert len(sections) == len(tool.commands) + 1  # the last shows several commands in one call
    for command, section in zip(tool.spec.commands, sections[:-1], strict=True):
        described, example = section.split("<<<[TOOL_REQUEST]>>>")
        head, *lines = described.splitlines()
        assert head == f"- FileOperator - {'命令' if language == 'zh' else 'command'}: {command.name}:"
        assert f"command:「始」{command.name}「末」" in example
        parameters = [line for line in lines if line.startswith("    - ")]
        assert [line.split()[1] for line in parameters] == list(command.parameters)
        assert [
            name
            for line, name in zip(parameters, command.parameters, strict=True)
            if ("required" in line or "必需" in line)
        ] == list(command.required)
        assert all(
            bool(HAN.search(line)) is (language == "zh")
            for line in [lines[0].replace("「始", "").replace("「末", ""), *parameters]
        )
    known = {*tool.spec.parameter_names, *tool.spec.synonyms}
    assert {name for command in tool.spec.commands for name in command.parameters} <= known


@pytest.mark.requirement("placeholder:file-operator")
def test_the_commands_that_file_operator_shows_are_those_it_has_and_need_what_it_says(yard: BlockingYard) -> None:
    tool = file_operator(yard)
    assert [command.name for command in tool.spec.commands] == list(tool.commands)
    for command in tool.spec.commands:
        for missing in command.required:
            arguments = {name: value for name, value in examples_in(command.example)[0][1].items() if name != missing}
            envelope = yard.call("FileOperator", arguments)
            assert envelope.status.value == "error", (command.name, missing)
            assert f"'{missing}'" in envelope.text, (command.name, envelope.text)


@pytest.mark.requirement("placeholder:file-operator")
def test_every_example_of_file_operator_runs_as_it_is(yard: BlockingYard, project: Path) -> None:
    spec = file_operator(yard).spec
    examples = examples_in(write_tool(spec, "zh"))
    assert len(examples) == len(spec.commands) + 1
    for name, arguments in examples:
        command = arguments.get("command")
        prepare(project)
        if command in WEB:
            accept_arguments(spec, arguments)
            continue
        envelope = yard.call(name, arguments)
        assert envelope.status.value == "success", (arguments, envelope.text)
        if command == "WriteEscapedFile":
            assert (project / "notes/example.md").read_text() == "A value stands between 「始」 and 「末」."


def test_a_tool_without_texts_of_its_own_is_written_from_its_schema() -> None:
    assert write_tool(WEATHER) == (
        "- weather: Tells the weather.\n"
        "Parameters (* required):\n"
        "  city*: Where.\n"
        "  unit*=C|F\n"
        "  days=3: How far ahead\n"
        "  more\n"
        "Example:\n"
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」weather「末」,\ncity:「始」Oslo「末」,\nunit:「始」C「末」\n"
        "<<<[END_TOOL_REQUEST]>>>"
    )
    assert "参数（* 必需）:\n  city*：Where.\n  unit*=C|F\n" in write_tool(WEATHER, "zh")


@pytest.mark.parametrize(
    ("required", "properties"),
    [
        (["q"], {"q": {"type": "string", "description": "What to look for."}}),
        (["q"], {}),
        (["tool_name"], {"tool_name": {"default": "x"}}),
        (["a b"], {"a b": {"default": "x"}}),
    ],
    ids=["no value is known", "no schema", "a field of the block itself", "a name that no block can carry"],
)
def test_a_tool_of_which_no_call_is_known_has_no_example(required: list[str], properties: JsonObject) -> None:
    parameters: JsonObject = {"type": "object", "properties": properties, "required": [*required]}
    spec = ToolSpec(name="find", description="Finds.", parameters=parameters)
    assert write_example_request(spec) == ""
    assert "Example" not in write_tool(spec)


def test_a_tool_without_chinese_is_shown_in_english(tmp_path: Path) -> None:
    (tmp_path / "word_count.md").write_text("# WordCount, Words\n\nCounts up to {most} words.\n", "utf-8")
    text = load_text(str(tmp_path / "word_count.py"), most=9)
    assert text == {
        "name": "WordCount", "aliases": ("Words",), "description": "Counts up to 9 words.", "translations": {},
    }  # fmt: skip
    assert write_tool(ToolSpec(parameters=SCHEMA, **text), "zh").startswith("- WordCount：Counts up to 9 words.")
