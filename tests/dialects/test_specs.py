"""The definition of a tool in the words of others, judged by their own libraries where there are some."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import ToolAnnotations

from toolyard.blocking import BlockingYard
from toolyard.dialects.plain_name import plain_name
from toolyard.dialects.tool_specs import Format, annotations, export, to_function
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Risk, ToolSpec
from toolyard.protocol.tool_text import write_tool

pytestmark = pytest.mark.requirement("export:tools")
PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
SPEC = ToolSpec(
    name="Wan2.1VideoGen",
    description="Makes a video.\n\nSlowly.",
    parameters={
        "type": "object",
        "properties": {
            "prompt": {"type": "string", "description": "What it shows."},
            "size": {"type": "string", "enum": ["small", "large"]},
            "seconds": {"type": "integer", "default": 5},
        },
        "required": ["prompt"],
    },
    risk=Risk.NETWORK,
)


def test_each_format_has_the_name_the_text_and_the_schema() -> None:
    name = plain_name(SPEC.name)
    function: dict[str, Any] = to_function(SPEC)
    assert (function["name"], function["description"]) == (name, SPEC.description)
    assert function["parameters"]["required"] == ["prompt"]
    assert export(SPEC, Format.OPENAI) == {"type": "function", "function": function}
    assert export(SPEC, Format.ANTHROPIC) == {
        "name": name, "description": SPEC.description, "input_schema": function["parameters"],
    }  # fmt: skip
    assert export(SPEC, Format.MCP) == {
        "name": name,
        "title": SPEC.name,
        "description": SPEC.description,
        "inputSchema": function["parameters"],
        "annotations": {},
    }


@pytest.mark.requirement("dialect:mcp:result", "mcp:closed-schemas")
def test_a_tool_of_an_mcp_server_is_offered_to_mcp_clients_as_it_was_declared() -> None:
    output: JsonObject = {"type": "object", "properties": {"url": {"type": "string"}}}
    exported = export(replace(SPEC, mcp={"output_schema": output}, verbatim=True), Format.MCP)
    assert (exported["inputSchema"], exported["outputSchema"]) == (SPEC.parameters, output)
    assert "outputSchema" not in export(replace(SPEC, mcp={}), Format.MCP)


def test_every_tool_of_a_yard_is_valid_for_mcps_own_types(yard: BlockingYard) -> None:
    from mcp_types import Tool

    for tool in yard.tools:
        Tool.model_validate(export(tool.spec, Format.MCP))
        assert PLAIN.fullmatch(export(tool.spec, Format.OPENAI)["function"]["name"])


def test_the_vcp_format_is_the_text_that_prompts_show() -> None:
    assert export(SPEC, Format.VCP) == {
        "name": SPEC.name,
        "placeholder": "{{VCPWan2.1VideoGen}}",
        "text": write_tool(SPEC),
    }


@given(st.text(max_size=200), st.text(max_size=200))
def test_a_plain_name_is_valid_stable_and_nobody_elses(one: str, other: str) -> None:
    assert PLAIN.fullmatch(plain_name(one))
    assert plain_name(one) == plain_name(one)
    assert (plain_name(one) == plain_name(other)) == (one == other)


@pytest.mark.parametrize("risk", list(Risk))
def test_only_what_reads_is_called_harmless(risk: Risk) -> None:
    hints = annotations(ToolSpec(name="T", description="d", parameters={}, risk=risk))
    known = ToolAnnotations.model_validate(hints)
    assert bool(known.read_only_hint) is (risk is Risk.READ)  # what is not said is assumed: not read-only, open-world
    assert known.destructive_hint is None
    assert (known.open_world_hint is not False) is (risk in (Risk.NETWORK, Risk.EXECUTE))


def test_the_command_prints_all_tools_or_the_named_ones(project: Path, tmp_path: Path) -> None:
    def typed(*words: str) -> str:
        common = ["--project", str(project), "--home", str(tmp_path / "home")]
        command = [sys.executable, "-m", "toolyard", *common, "tools", "export", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout

    assert {"Read", "Edit"} <= {one["function"]["name"] for one in json.loads(typed())}
    assert [one["name"] for one in json.loads(typed("Read", "--format", "mcp"))["tools"]] == ["Read"]
    assert [one["name"] for one in json.loads(typed("LS", "--format", "anthropic"))] == ["LS"]
    assert typed("LS", "--format", "vcp").startswith("- LS: Lists the folder at path")
