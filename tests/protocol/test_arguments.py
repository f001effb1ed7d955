"""From what a caller wrote to what a tool can trust (001 §4.3)."""

import json
from typing import Any

import pytest

from toolyard.protocol.arguments import accept_arguments, coerce_value, find_nearest, find_schema
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import Risk, ToolSpec
from toolyard.tools.ls import SPEC as LS
from toolyard.tools.read import SPEC as READ

LS_DEFAULTS: JsonObject = {
    "path": ".",
    "limit": 100,
    "offset": 0,
    "include_hidden": False,
    "include_ignored": False,
    "ignore": [],
    "depth": 1,
}
LS_TAKES = "LS takes path, limit, offset, include_hidden, include_ignored, ignore, depth"


def tool(required: list[Json] | None = None, /, **properties: Json) -> ToolSpec:
    parameters: JsonObject = {"type": "object", "properties": properties, "required": required or []}
    parameters["additionalProperties"] = False
    return ToolSpec(name="Paint", description="Paints.", parameters=parameters, synonyms={"size": "resolution"})


def refusal(spec: ToolSpec, arguments: dict[str, Any]) -> str:
    """What is wrong, without the frame that every refusal has."""
    with pytest.raises(Failure) as refused:
        accept_arguments(spec, arguments)
    failure = refused.value
    before, after = f"{spec.name} cannot run with these arguments: ", "."
    assert (failure.code, failure.reason, failure.hint) == (
        ErrorCode.INVALID_PARAM,
        None,
        "Correct them and call again.",
    )
    assert failure.message.startswith(before)
    assert failure.message.endswith(after)
    return failure.message.removeprefix(before).removesuffix(after)


# --- Specifications ---


@pytest.mark.requirement("spec:tool")
@pytest.mark.parametrize(
    ("spec", "name", "required", "defaults"),
    [(LS, "LS", [], LS_DEFAULTS), (READ, "Read", ["path"], {"start_line": 1, "limit": 2000})],
)
def test_a_specification_gives_name_text_and_a_schema_with_defaults(
    spec: ToolSpec, name: str, required: list[str], defaults: JsonObject
) -> None:
    schemas = {parameter: find_schema(spec, parameter) for parameter in spec.parameter_names}
    assert (spec.name, spec.risk) == (name, Risk.READ)
    assert len(spec.description.split()) > 20
    assert (spec.parameters["type"], spec.parameters.get("required", [])) == ("object", required)
    assert spec.parameters["properties"] == schemas
    assert all(schema["description"] for schema in schemas.values())
    assert {key: schema["default"] for key, schema in schemas.items() if "default" in schema} == defaults


@pytest.mark.requirement("spec:tool")
def test_a_tool_may_have_no_parameters() -> None:
    spec = ToolSpec(name="Now", description="The time.", parameters={"type": "object", "additionalProperties": False})
    assert spec.parameter_names == ()
    assert accept_arguments(spec, {}) == {}
    assert refusal(spec, {"zone": "UTC"}) == "unknown parameter 'zone'. Now takes no parameters"


# --- Defaults ---


@pytest.mark.requirement("params:defaults")
def test_ls_has_the_defaults_of_the_contract() -> None:
    assert accept_arguments(LS, {}) == LS_DEFAULTS


@pytest.mark.requirement("params:defaults")
def test_read_has_the_defaults_of_the_contract() -> None:
    assert accept_arguments(READ, {"path": "a.py"}) == {"path": "a.py", "start_line": 1, "limit": 2000}


@pytest.mark.requirement("params:defaults")
def test_what_is_given_stands_in_place_of_its_default() -> None:
    assert accept_arguments(LS, {"limit": 1, "include_hidden": True}) == LS_DEFAULTS | {
        "limit": 1,
        "include_hidden": True,
    }


# --- Names ---


@pytest.mark.requirement("params:case")
@pytest.mark.parametrize("name", ["start_line", "START_LINE", "startLine", "StartLine", "start-line", "_start__line"])
def test_names_are_matched_without_case_and_separators(name: str) -> None:
    assert accept_arguments(READ, {"path": "a", name: 7}) == {"path": "a", "start_line": 7, "limit": 2000}


@pytest.mark.requirement("params:synonyms", "params:case")
@pytest.mark.parametrize("name", ["path", "filePath", "file_path", "FILEPATH", "File-Path", "Path"])
def test_read_takes_its_path_under_any_of_its_names(name: str) -> None:
    assert accept_arguments(READ, {name: "a"}) == {"path": "a", "start_line": 1, "limit": 2000}


@pytest.mark.requirement("params:synonyms")
def test_read_takes_offset_for_start_line() -> None:
    assert accept_arguments(READ, {"path": "a", "offset": "5"}) == {"path": "a", "start_line": 5, "limit": 2000}


@pytest.mark.requirement("params:synonyms")
def test_a_synonym_never_hides_a_parameter_of_that_name() -> None:
    spec = ToolSpec(
        name="T",
        description="T.",
        parameters={"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
        synonyms={"B": "a", "c": "a"},
    )
    assert accept_arguments(spec, {"b": "1", "c": "2"}) == {"b": "1", "a": "2"}


@pytest.mark.requirement("params:synonyms", "params:case")
def test_the_seeds_image_request_is_understood_in_every_writing() -> None:
    """001 §4.3: size means resolution, Prompt means prompt."""
    spec = tool(["prompt", "resolution"], prompt={"type": "string"}, resolution={"type": "string"})
    expected = {"prompt": "a cat", "resolution": "1024x1024"}
    assert accept_arguments(spec, {"prompt": "a cat", "resolution": "1024x1024"}) == expected
    assert accept_arguments(spec, {"Prompt": "a cat", "size": "1024x1024"}) == expected


@pytest.mark.requirement("params:synonyms", "params:case")
def test_two_names_of_one_parameter_with_different_values_are_refused() -> None:
    assert refusal(READ, {"filePath": "a", "Path": "b"}) == (
        "'filePath' and 'Path' both mean 'path' and differ: send one of them"
    )
    assert refusal(LS, {"LIMIT": 1, "limit": 2}) == "'LIMIT' and 'limit' both mean 'limit' and differ: send one of them"


@pytest.mark.requirement("params:synonyms")
def test_two_names_of_one_parameter_with_the_same_value_are_one() -> None:
    assert accept_arguments(READ, {"filePath": "a", "path": "a"})["path"] == "a"


@pytest.mark.requirement("params:unknown")
@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("pth", "path"),
        ("limt", "limit"),
        ("IncludeHiden", "include_hidden"),
        ("include_hidden_files", "include_hidden"),
        ("ignores", "ignore"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(name: str, guess: str) -> None:
    assert refusal(LS, {name: 1}) == f"unknown parameter '{name}': did you mean '{guess}'? {LS_TAKES}"


@pytest.mark.requirement("params:unknown")
@pytest.mark.parametrize("name", ["zzzzz", "", "_", "路径", "x" * 100_000], ids=len)
def test_an_unknown_name_that_is_near_to_nothing_is_refused_with_the_known_ones(name: str) -> None:
    assert refusal(LS, {name: 1}) == f"unknown parameter '{name}'. {LS_TAKES}"


@pytest.mark.requirement("params:unknown")
def test_the_nearest_name_may_be_a_synonym() -> None:
    assert find_nearest("ofset", ["path", "start_line", "offset"]) == "offset"
    assert find_nearest("offset", []) is None


EDIT: JsonObject = {
    "type": "object",
    "properties": {"old_string": {"type": "string"}, "replace_all": {"type": "boolean"}},
    "required": ["old_string"],
    "additionalProperties": False,
}
EDITS: JsonObject = {"type": "array", "items": EDIT}


@pytest.mark.requirement("params:unknown")
@pytest.mark.parametrize("written", [False, True])
def test_names_and_values_inside_a_list_of_objects_are_read_like_any(written: bool) -> None:
    edits: Json = [{"oldString": "a", "Replace-All": "yes"}, {"old_string": "b"}]
    value = json.dumps(edits) if written else edits
    assert accept_arguments(tool(edits=EDITS), {"edits": value}) == {
        "edits": [{"old_string": "a", "replace_all": True}, {"old_string": "b"}]
    }


@pytest.mark.requirement("params:unknown")
def test_a_name_inside_an_object_is_never_given_twice_nor_guessed() -> None:
    twice = refusal(tool(edits=EDITS), {"edits": [{"old_string": "a", "oldString": "b"}]})
    assert twice == "unknown in 'edits[0]': 'oldString' (did you mean 'old_string'?)"
    mistyped = refusal(tool(edits=EDITS), {"edits": [{"old_string": "a", "replace": True, "zzz": 1}]})
    assert mistyped == "unknown in 'edits[0]': 'replace' (did you mean 'replace_all'?), 'zzz'"
    opened = tool(edits={"type": "array", "items": {**EDIT, "additionalProperties": True}})
    free: Json = [{"old_string": "a", "oldString": "b"}]
    assert accept_arguments(opened, {"edits": free}) == {"edits": free}


@pytest.mark.requirement("params:required")
def test_a_missing_required_parameter_is_named_with_what_it_takes() -> None:
    assert refusal(READ, {}) == "missing parameter 'path': expected a string that is not empty"


@pytest.mark.requirement("params:required")
def test_a_missing_parameter_inside_an_object_is_named_with_its_place() -> None:
    edit: JsonObject = {
        "type": "object",
        "properties": {"old_string": {"type": "string"}, "count": {"type": "integer", "minimum": 1, "maximum": 9}},
        "required": ["old_string"],
    }
    spec = tool(["edits"], edits={"type": "array", "items": edit, "minItems": 1})
    assert refusal(spec, {"edits": [{"old_string": "a"}, {"count": 10}]}).split("; ") == [
        "missing parameter 'old_string' in 'edits[1]': expected a string",
        "'edits[1].count': expected an integer from 1 to 9, got 10",
    ]
    assert refusal(spec, {"edits": []}) == "'edits': expected a list of objects that is not empty, got []"


@pytest.mark.requirement("params:required", "params:unknown", "params:types")
def test_everything_wrong_is_said_at_once() -> None:
    assert set(refusal(READ, {"limit": "many", "pth": "a"}).split("; ")) == {
        "unknown parameter 'pth': did you mean 'path'? Read takes path, start_line, limit, encoding",
        "'limit': expected an integer from 1 to 2000, got \"many\"",
        "missing parameter 'path': expected a string that is not empty",
    }


# --- Types ---


@pytest.mark.requirement("params:types")
@pytest.mark.parametrize(
    ("name", "value", "typed"),
    [
        ("limit", "5", 5),
        ("limit", " 5 ", 5),
        ("limit", "+5\n", 5),
        ("limit", 5.0, 5),
        ("limit", "0100", 100),
        ("offset", "0", 0),
        ("include_hidden", "true", True),
        ("include_hidden", " TRUE ", True),
        ("include_hidden", "Yes", True),
        ("include_hidden", "1", True),
        ("include_hidden", "False", False),
        ("include_hidden", "no", False),
        ("include_hidden", "0", False),
        ("ignore", '["*.log", "中"]', ["*.log", "中"]),
        ("ignore", " [] ", []),
        ("path", "5", "5"),
        ("path", "true", "true"),
        ("path", "[]", "[]"),
        ("path", " spaced ", " spaced "),
    ],
)
def test_a_text_becomes_what_the_schema_asks_for(name: str, value: Json, typed: Json) -> None:
    accepted = accept_arguments(LS, {name: value})
    assert json.dumps(accepted) == json.dumps(LS_DEFAULTS | {name: typed})


@pytest.mark.requirement("params:types")
@pytest.mark.parametrize(
    ("value", "got"),
    [
        ("", '""'),
        ("five", '"five"'),
        ("5.5", '"5.5"'),
        ("1e2", '"1e2"'),
        ("1e400", '"1e400"'),
        ("1_000", '"1_000"'),
        ("５", '"５"'),
        ("0x10", '"0x10"'),
        ("5 5", '"5 5"'),
        ("9" * 19, f'"{"9" * 19}"'),
        (5.5, "5.5"),
        (0, "0"),
        (-1, "-1"),
        ("-1", "-1"),
        (2001, "2001"),
        (True, "true"),
        ([5], "[5]"),
        ({"a": 1}, '{"a": 1}'),
        pytest.param(10**400, "1" + "0" * 76 + "...", id="larger than any float"),
        pytest.param("9" * 5000, '"' + "9" * 76 + "...", id="more digits than Python reads"),
    ],
)
def test_a_value_that_is_no_integer_in_range_is_refused(value: Json, got: str) -> None:
    assert refusal(LS, {"limit": value}) == f"'limit': expected an integer from 1 to 2000, got {got}"


@pytest.mark.requirement("params:types")
@pytest.mark.parametrize(("value", "got"), [("maybe", '"maybe"'), ("2", '"2"'), ("", '""'), (1, "1"), (0, "0")])
def test_a_value_that_is_not_true_or_false_is_refused(value: Json, got: str) -> None:
    assert refusal(LS, {"include_hidden": value}) == f"'include_hidden': expected true or false, got {got}"


@pytest.mark.requirement("params:types")
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("*.log", "'ignore': expected a list of strings, got \"*.log\""),
        ("[*.log]", "'ignore': expected a list of strings, got \"[*.log]\""),
        ('{"a": 1}', "'ignore': expected a list of strings, got {\"a\": 1}"),
        ([1], "'ignore[0]': expected a string, got 1"),
        (["a", None], "'ignore[1]': expected a string, got null"),
        ("[NaN]", "'ignore': expected a list of strings, got \"[NaN]\""),
        ("[1e400]", "'ignore': expected a list of strings, got \"[1e400]\""),
        (r'["\ud800"]', '\'ignore\': expected a list of strings, got "[\\"\\\\ud800\\"]"'),
        pytest.param(
            "[" * 300 + "]" * 300, f"'ignore': expected a list of strings, got \"{'[' * 76}...", id="nested 300 deep"
        ),
        pytest.param(
            "[" * 100_000, f"'ignore': expected a list of strings, got \"{'[' * 76}...", id="nested 100000 deep"
        ),
    ],
)
def test_a_value_that_is_no_list_of_texts_is_refused(value: Json, problem: str) -> None:
    assert refusal(LS, {"ignore": value}) == problem


@pytest.mark.requirement("params:types")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"limit": float("nan")}, "arguments.limit is nan, which JSON cannot write"),
        ({"limit": float("inf")}, "arguments.limit is inf, which JSON cannot write"),
        ({"path": "a\ud800"}, "arguments.path holds an unpaired surrogate, which no UTF-8 text can carry"),
        ({"ignore": [b"a"]}, "arguments.ignore[0] is a bytes, which is not JSON"),
        pytest.param({"limit": 10**5000}, "arguments.limit is an integer of more than 4096 bits", id="huge"),
        ({5: "a"}, "arguments has the key 5, which is not a text that JSON can write"),
    ],
)
def test_arguments_that_are_no_json_are_refused(arguments: dict[str, Any], problem: str) -> None:
    assert refusal(LS, arguments) == problem


@pytest.mark.requirement("params:types")
def test_arguments_nested_too_deep_are_refused() -> None:
    value: Json = "x"
    for _ in range(300):
        value = [value]
    assert refusal(LS, {"ignore": value}).endswith("is nested deeper than 200 levels")


@pytest.mark.requirement("params:types")
@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.5", 0.5),
        (" -2 ", -2),
        ("1e3", 1000.0),
        ("9007199254740993", 9007199254740993),  # no float can hold it
        ("nan", "nan"),
        ("Infinity", "Infinity"),
        ("1e400", "1e400"),
        ("half", "half"),
        ("", ""),
    ],
)
def test_a_text_becomes_a_number_only_when_nothing_is_lost(text: str, number: Json) -> None:
    assert coerce_value(text, {"type": "number"}) == number


@pytest.mark.requirement("params:types")
@pytest.mark.parametrize("value", ["5", 5, None, True, [], {"a": "1"}])
@pytest.mark.parametrize("schema", [{}, {"type": "string"}, {"type": ["integer", "null"]}, {"enum": ["5"]}])
def test_nothing_is_changed_for_a_schema_that_asks_for_no_other_type(value: Json, schema: JsonObject) -> None:
    assert coerce_value(value, schema) == value


@pytest.mark.requirement("params:types")
@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"enum": ["content", "文件"]}, "x", 'expected one of "content", "文件", got "x"'),
        ({"type": "integer", "minimum": 0}, -1, "expected an integer of at least 0, got -1"),
        ({"type": "number", "maximum": 1}, 2, "expected a number of at most 1, got 2"),
        ({"type": "object"}, "{", 'expected an object, got "{"'),
        ({"type": ["integer", "null"]}, "x", 'expected an integer or null, got "x"'),
        ({"type": ["array", "string"]}, 1, "expected a list or a string, got 1"),
        ({"type": "array", "items": {"type": ["string", "null"]}}, 3, "expected a list, got 3"),
        ({"type": "array", "items": {}}, 3, "expected a list, got 3"),
        ({"type": "string", "pattern": "^a"}, "b", '"b" does not match "^a"'),
    ],
)
def test_a_refusal_names_the_parameter_and_what_it_takes(schema: JsonObject, value: Json, problem: str) -> None:
    assert refusal(tool(x=schema), {"X": value}) == f"'x': {problem}"


@pytest.mark.requirement("params:types")
def test_a_long_value_is_not_said_back_whole() -> None:
    before = "'limit': expected an integer from 1 to 2000, got "
    assert refusal(LS, {"limit": "x" * 78}) == f'{before}"{"x" * 78}"'
    assert refusal(LS, {"limit": "x" * 79}) == f'{before}"{"x" * 76}...'


@pytest.mark.requirement("params:types")
def test_what_the_caller_sent_is_not_changed() -> None:
    sent: JsonObject = {"Limit": "5", "ignore": '["a"]'}
    accept_arguments(LS, sent)
    assert sent == {"Limit": "5", "ignore": '["a"]'}


@pytest.mark.requirement("params:defaults")
def test_null_for_an_optional_parameter_counts_as_left_out() -> None:
    properties: Any = {"path": {"type": "string"}, "limit": {"type": "integer", "default": 5}}
    spec = ToolSpec(
        name="T", description="", parameters={"type": "object", "properties": properties, "required": ["path"]}
    )
    assert accept_arguments(spec, {"path": "a", "limit": None}) == {"path": "a", "limit": 5}
    with pytest.raises(Failure, match="'path': expected a string, got null"):
        accept_arguments(spec, {"path": None})
    for sent in ({"path": "a", "PATH": None}, {"PATH": None, "path": "a"}):
        assert accept_arguments(spec, sent) == {"path": "a", "limit": 5}


@pytest.mark.requirement("params:unknown")
@pytest.mark.parametrize("own", [{}, {"additionalProperties": True}])
def test_a_schema_that_does_not_forbid_other_names_lets_them_through_as_they_are(own: JsonObject) -> None:
    properties: Any = {"path": {"type": "string"}}
    spec = ToolSpec(name="T", description="", parameters={"type": "object", "properties": properties, **own})
    assert accept_arguments(spec, {"Path": "a", "Other-Name": "1"}) == {"path": "a", "Other-Name": "1"}


@pytest.mark.requirement("params:unknown", "params:types")
def test_a_schema_may_say_what_other_names_hold() -> None:
    spec = ToolSpec(
        name="T", description="", parameters={"type": "object", "additionalProperties": {"type": "integer"}}
    )
    assert accept_arguments(spec, {"x": 1}) == {"x": 1}
    with pytest.raises(Failure, match="'x': expected an integer, got"):
        accept_arguments(spec, {"x": "many"})


@pytest.mark.requirement("params:types")
def test_two_tools_with_one_name_are_checked_each_by_its_own_schema() -> None:
    for _ in range(2):
        cases: list[tuple[str, Json, Json]] = [("string", "a", 1), ("boolean", True, "perhaps")]
        for kind, good, bad in cases:
            spec = tool(x={"type": kind})
            assert accept_arguments(spec, {"x": good}) == {"x": good}
            with pytest.raises(Failure):
                accept_arguments(spec, {"x": bad})
