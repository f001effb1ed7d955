"""The built-in tools as a whole."""

import re
from pathlib import Path

import pytest

from toolyard.blocking import BlockingYard

SOURCE = Path(__file__).parents[2] / "src/toolyard"


@pytest.mark.requirement("tools:names")
def test_the_built_in_tools_are_the_ten_of_the_contract(yard: BlockingYard) -> None:
    names = [tool.spec.name for tool in yard.tools]
    assert names == sorted(
        ["LS", "Glob", "Grep", "Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "ApplyPatch", "FileOperator"]
    )


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
