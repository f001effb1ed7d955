"""A tool as a function for OpenAI's chat protocol: short texts, a schema that every provider takes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.plugins.folders import manifest_text
from toolyard.blocking import BlockingYard
from toolyard.dialects.tool_specs import remove_blocks, to_function_tool
from toolyard.protocol.manifests.manifest_parser import read_manifest
from toolyard.protocol.manifests.spec import tool_spec
from toolyard.protocol.tool import ToolSpec

pytestmark = pytest.mark.requirement("offer:native-text")
BLOCK = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」Alpha「末」,\ncity:「始」Oslo「末」\n<<<[END_TOOL_REQUEST]>>>"


def to_function(spec: ToolSpec) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(to_function_tool(spec)))
    assert made.keys() == {"type", "function"}
    assert made["type"] == "function"
    function: dict[str, Any] = made["function"]
    return function


def plugin(**more: Any) -> ToolSpec:
    manifest = read_manifest(manifest_text("Alpha", **more)).manifest
    assert manifest is not None
    return tool_spec(manifest)


def test_what_only_checks_need_stays_out_of_a_schema_and_references_stay_whole() -> None:
    parameters: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "FindArguments",
        "type": "object",
        "properties": {
            "title": {"type": "string", "title": "Title", "minLength": 1, "description": "What it is called."},
            "at": {"$ref": "#/$defs/Place"},
            "kind": {"enum": ["a", "b"], "default": "a", "description": "Which kind."},
            "many": {"type": "array", "maxItems": 9, "items": {"type": "integer", "minimum": 0}},
            "either": {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}], "default": None},
            "map": {"type": "object", "additionalProperties": {"type": "number", "title": "N"}},
            "deep": {"type": ["string", "null"], "examples": ["x", "y"]},
        },
        "required": ["title"],
        "additionalProperties": False,
        "$defs": {"Place": {"type": "object", "title": "Place", "properties": {"x": {"type": "number"}}}},
    }
    spec = ToolSpec(name="find", description="Finds what has a title.\n", parameters=parameters, verbatim=True)
    assert to_function(spec) == {
        "name": "find",
        "description": "Finds what has a title.",
        "parameters": {
            "type": "object",
            "properties": {
                "title": {"type": "string", "description": "What it is called."},
                "at": {"$ref": "#/$defs/Place"},
                "kind": {"type": "string", "enum": ["a", "b"], "description": "Which kind. Default a."},
                "many": {"type": "array", "items": {"type": "integer"}},
                "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "map": {"type": "object", "additionalProperties": {"type": "number"}},
                "deep": {"type": ["string", "null"], "description": "E.g. x | y"},
            },
            "required": ["title"],
            "additionalProperties": False,  # nobody checks the call of such a tool but the tool itself
            "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "number"}}}},
        },
    }
    assert "additionalProperties" not in to_function(replace(spec, verbatim=False))["parameters"]


def test_a_plugin_in_vcps_form_keeps_its_text_without_blocks_and_carries_its_example() -> None:
    parameters = "参数:\n- city (字符串, 必需): 城市。\n- days (整数, 可选): 天数。"
    text = f"查询天气。\n{parameters}\n调用格式:\n{BLOCK}\n请如实回答。"
    commands = [{"commandIdentifier": "Go", "description": text, "example": f"例：\n{BLOCK}"}]
    function = to_function(plugin(description="天气。", capabilities={"invocationCommands": commands}))
    assert function["description"] == (f'天气。\n\n查询天气。\n{parameters}\n请如实回答。\nExample: {{"city":"Oslo"}}')
    assert function["parameters"] == {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    }, "what the description says is not said again, and a number is no text"


def test_the_english_texts_of_a_plugin_take_the_place_of_its_own() -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "城市"},
            "days": {"type": ["integer", "string"], "description": "天数", "default": 3},
            "data": {"type": ["string", "array", "object"], "description": "数据"},
        },
    }
    commands = [{"commandIdentifier": "Go", "description": "查询天气。", "example": BLOCK, "parameters": schema}]
    english = {"description": "Tells the weather of a city.", "parameters": {"days": "How far ahead.", "data": "Data."}}
    function = to_function(plugin(capabilities={"invocationCommands": commands}, translations={"en": english}))
    assert function["description"] == 'Tells the weather of a city.\nExample: {"city":"Oslo"}'
    assert function["parameters"]["properties"] == {
        "city": {"type": "string"},  # the text names it
        "days": {"type": "integer", "description": "How far ahead. Default 3."},
        "data": {"type": "string", "description": "Data."},
    }


def test_every_shipped_tool_is_explained_in_english_and_no_parameter_is_left_without_a_word(yard: BlockingYard) -> None:
    for tool in yard.tools:
        function = to_function(tool.spec)
        text = function["description"]
        assert text.isascii() or tool.spec.name == "FileOperator", tool.spec.name  # which tells of VCP's markers
        properties: dict[str, Any] = function["parameters"]["properties"]
        silent = [name for name, one in properties.items() if not one.get("description") and name not in text]
        assert silent == [], tool.spec.name
        assert set(properties) == set(tool.spec.parameter_names) - set(tool.spec.unlisted)


def test_a_text_whose_block_never_ends_stays_as_it_is() -> None:
    text = f"Do.\n{BLOCK}\n\n\n\nThen:\n<<<[TOOL_REQUEST]>>>\nand on"
    assert remove_blocks(text) == text
    assert remove_blocks("  <<<[TOOL_REQUEST]>>> " * 50_000) == ("  <<<[TOOL_REQUEST]>>> " * 50_000).strip()
