"""The Python API answers a model: tool definitions, arguments as a model writes them, and messages for its turn."""

from pathlib import Path
from typing import Any

import pytest

import toolyard
from tests.fakes import FakeTool, says
from toolyard.blocking import BlockingYard
from toolyard.dialects.plain_name import plain_name
from toolyard.errors import UsageError
from toolyard.protocol.envelope import Envelope, ErrorCode, Status

LONG = {f"path{number}": "a.txt" for number in range(1, 40)}


@pytest.mark.requirement("python:tools")
@pytest.mark.parametrize(
    ("dialect", "keys", "schema"),
    [
        ("openai", ["type", "function"], ("function", "parameters")),
        ("anthropic", ["name", "description", "input_schema"], ("input_schema",)),
        ("mcp", ["name", "description", "inputSchema", "annotations"], ("inputSchema",)),
    ],
)
def test_the_tools_are_defined_as_each_kind_of_model_is_given_them(
    yard: BlockingYard, dialect: str, keys: list[str], schema: tuple[str, ...]
) -> None:
    definitions = yard.tools(dialect=dialect)
    assert [list(one) for one in definitions] == [keys] * len(definitions)
    names = [one.get("function", one)["name"] for one in definitions]
    assert names == [plain_name(tool.spec.name) for tool in yard.tools]
    inner: Any = definitions[names.index("Read")]
    for key in schema:
        inner = inner[key]
    assert (inner["type"], inner["required"]) == ("object", ["path"])


@pytest.mark.requirement("python:tools")
def test_the_tools_are_defined_as_text_for_models_that_write_requests(yard: BlockingYard) -> None:
    read = next(one for one in yard.tools(dialect="vcp") if one["name"] == "Read")
    assert read["placeholder"] == "{{VCPRead}}"
    assert "tool_name:「始」Read「末」" in read["text"]


@pytest.mark.requirement("python:tools")
def test_definitions_in_an_unknown_dialect_are_refused(yard: BlockingYard) -> None:
    with pytest.raises(UsageError, match="in 'backend': choose one of openai, anthropic, mcp, vcp"):
        yard.tools(dialect="backend")


@pytest.mark.requirement("python:tools", "spec:exported-name")
def test_a_tool_is_called_by_the_name_in_its_definition(yard: BlockingYard) -> None:
    yard.tools.add(FakeTool(says, name="Film 2.1"))
    (name,) = [one["name"] for one in yard.tools(dialect="anthropic") if one["name"].startswith("Film")]
    assert name != "Film 2.1"
    assert yard.call(name, dialect="backend")["tool_name"] == "Film 2.1"


@pytest.mark.requirement("python:tool-call-id", "dialect:openai", "dialect:anthropic", "dialect:backend:base")
@pytest.mark.parametrize(
    ("dialect", "key"), [("openai", "tool_call_id"), ("anthropic", "tool_use_id"), ("backend", "tool_use_id")]
)
async def test_a_message_answers_the_call_of_the_model(
    project: Path, yard: BlockingYard, tmp_path: Path, dialect: str, key: str
) -> None:
    assert yard.call("LS", dialect=dialect, tool_call_id="call_7")[key] == "call_7"
    assert yard.call("LS", dialect=dialect)[key].startswith("call_")
    async with toolyard.open_async(project=project, home=tmp_path / "home") as other:
        answers = [await other.call("LS", dialect=dialect, tool_call_id="call_7") for _ in range(2)]  # need not differ
        assert [one[key] for one in answers] == ["call_7"] * 2


@pytest.mark.requirement("python:tool-call-id")
@pytest.mark.parametrize("dialect", ["envelope", "vcp", "mcp", None])
def test_an_id_that_the_result_cannot_carry_is_refused_before_the_tool_runs(
    project: Path, yard: BlockingYard, dialect: str | None
) -> None:
    call: Any = yard.call
    with pytest.raises(UsageError, match="names no call: pass tool_call_id with one of backend, openai, anthropic"):
        call("Write", {"path": "a.txt", "content": "x"}, dialect=dialect, tool_call_id="call_7")
    assert not (project / "a.txt").exists()


@pytest.mark.requirement("python:shown")
async def test_the_shown_result_is_what_a_model_sees_in_every_dialect(
    project: Path, yard: BlockingYard, tmp_path: Path
) -> None:
    (project / "a.txt").write_text("line\n" * 300)
    full, shown = yard.call("Read", LONG), yard.call("Read", LONG, shown=True)
    assert isinstance(shown, Envelope)
    assert "truncation" not in full.data
    truncation = shown.data["truncation"]
    assert isinstance(truncation, dict)
    assert (project / str(truncation["full_output_path"])).exists()
    in_dialect = yard.call("Read", LONG, dialect="mcp", shown=True)["_meta"]["toolyard/envelope"]
    async with toolyard.open_async(project=project, home=tmp_path / "home") as other:
        other_shown = await other.call("Read", LONG, shown=True)
    views: list[Any] = [in_dialect["data"], other_shown.data]
    for one in views:
        assert one["truncation"]["direction"] == truncation["direction"]
        assert one["preview"] == shown.data["preview"]


@pytest.mark.requirement("python:arguments-text")
def test_arguments_may_be_the_text_that_a_model_wrote(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_text("one\n")
    assert yard.call("Read", '{"path": "a.txt"}').data["content"] == "1\tone"
    assert yard.call("LS", "").status is Status.SUCCESS  # some models write nothing for no arguments


@pytest.mark.requirement("python:arguments-text")
@pytest.mark.parametrize("written", ['{"path": "a.t', '["a.txt"]', "path=a.txt"])
async def test_text_that_is_no_object_is_an_answer_for_the_model_and_no_exception(
    project: Path, yard: BlockingYard, tmp_path: Path, written: str
) -> None:
    message = yard.call("Read", written, dialect="openai", tool_call_id="call_7")
    assert message["content"].startswith("INVALID_PARAM: ")
    assert "JSON" in message["content"]
    async with toolyard.open_async(project=project, home=tmp_path / "home") as other:
        envelope = await other.call("Read", written)
    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.INVALID_PARAM
    assert envelope.context["params_input"] == {"written": written}


@pytest.mark.requirement("python:arguments-text")
def test_arguments_of_another_type_are_a_mistake_of_the_program(yard: BlockingYard) -> None:
    wrong: Any = ["a.txt"]
    with pytest.raises(UsageError, match="as a mapping or as JSON text"):
        yard.call("Read", wrong)
