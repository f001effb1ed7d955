"""The built-in tools as a whole."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.built_in_tools import BUILT_IN_TOOLS
from toolyard.blocking import BlockingYard
from toolyard.protocol.envelope import Failure
from toolyard.tools.file_operator import FileOperator
from toolyard.tools.worker_thread import in_thread
from toolyard.workspace.workspace import MAX_TEXT, Workspace

SOURCE = Path(__file__).parents[2] / "src/toolyard"


@pytest.mark.requirement("tools:names")
def test_the_built_in_tools_are_those_of_the_contract(yard: BlockingYard) -> None:
    names = [tool.spec.name for tool in yard.tools if not tool.spec.verbatim]  # the others are plugins
    assert names == sorted(BUILT_IN_TOOLS)


@pytest.mark.requirement("tools:names", "cli:start-up")
def test_the_names_that_are_known_before_a_tool_is_loaded_are_its_own(yard: BlockingYard) -> None:
    for lazy in yard._yard._built_in.tools:
        spec = lazy.load().spec
        assert (lazy.name, lazy.aliases) == (spec.name, spec.aliases)


@pytest.mark.requirement("tools:names")
def test_no_built_in_tool_runs_a_shell() -> None:
    texts = {file: file.read_text("utf-8") for file in SOURCE.rglob("*.py")}
    shell = re.compile(r"shell\s*=\s*True|os\.system\(|os\.popen\(|create_subprocess_shell")
    assert [file for file, text in texts.items() if shell.search(text)] == []


@pytest.mark.requirement("spec:tool")
def test_every_parameter_of_every_tool_says_what_it_is_for(yard: BlockingYard) -> None:
    for tool in yard.tools:
        properties = tool.spec.parameters["properties"]
        assert isinstance(properties, dict)
        for name, schema in properties.items():
            assert isinstance(schema, dict)
            assert schema.get("description"), (tool.spec.name, name)


@pytest.mark.requirement("params:unknown")
def test_every_built_in_tool_takes_only_the_parameters_it_names(yard: BlockingYard) -> None:
    built_in = [tool.spec for tool in yard.tools if not tool.spec.verbatim]
    assert [spec.name for spec in built_in if spec.parameters.get("additionalProperties") is not False] == []


@pytest.mark.requirement("fileoperator:names")
def test_the_commands_of_file_operator_that_only_look_are_named(yard: BlockingYard) -> None:
    tools = {tool.spec.name: tool for tool in yard.tools}
    looks = tools["FileOperator"].spec.reading_commands
    assert set(looks) == {"ListAllowedDirectories", "ReadFile", "ListDirectory", "FileInfo", "SearchFiles"}


@pytest.mark.requirement("fileoperator:names")
def test_the_schema_of_file_operator_lists_its_commands(yard: BlockingYard) -> None:
    tool = yard.tools.get("FileOperator")
    assert isinstance(tool, FileOperator)
    properties: Any = tool.spec.parameters["properties"]
    assert properties["command"]["anyOf"][0]["enum"] == list(tool.commands)


@pytest.mark.requirement("spec:tool")
async def test_a_tool_reads_a_text_in_a_thread_as_one_types_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffgrün\n".encode("utf-16-le"))
    (tmp_path / "b.bin").write_bytes(b"\0\1\2")
    (tmp_path / "c.txt").write_bytes(b"x" * (MAX_TEXT + 1))
    workspace = Workspace(tmp_path)
    try:
        assert await in_thread(workspace.read_text, "a.txt", fallback_encodings=("cp1252",)) == "grün\n"
        for refused in ("b.bin", "c.txt", "missing.txt", "../a.txt"):
            with pytest.raises(Failure):
                await in_thread(workspace.read_text, refused)
    finally:
        workspace.close()
