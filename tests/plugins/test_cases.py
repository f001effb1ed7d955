"""The examples of a manifest and the cases beside it become tests."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.folders import manifest_text
from toolyard.plugins.authoring.cases import MAX_CASES, Case, collect_cases
from toolyard.protocol.envelope import Envelope, ErrorCode, Fault, Status
from toolyard.protocol.manifests.manifest import Manifest
from toolyard.protocol.manifests.manifest_parser import read_manifest
from toolyard.protocol.requests.scanner import format_request

pytestmark = pytest.mark.requirement("plugin:cli:test")


def _manifest(*commands: dict[str, Any], **more: Any) -> Manifest:
    read = read_manifest(manifest_text("Tested", capabilities={"invocationCommands": list(commands)}, **more))
    assert read.manifest is not None
    return read.manifest


def _block(**arguments: str) -> str:
    return format_request("Tested", arguments)


def _envelope(text: str, status: Status = Status.SUCCESS) -> Envelope:
    error = Fault(ErrorCode.EXECUTION_ERROR, text) if status is Status.ERROR else None
    return Envelope(
        status=status,
        data={},
        text=text,
        error=error,
        stats={"time_ms": 1},
        context={"cwd": ".", "params_input": {}},
    )


def test_every_block_of_an_example_is_a_case_and_blocks_of_a_description_only_without_one(tmp_path: Path) -> None:
    manifest = _manifest(
        {"command": "A", "description": _block(a="form"), "example": f"{_block(a='1')}\nor\n{_block(a='2')}"},
        {"command": "B", "description": f"Does B.\n```\n{_block(command='B', b='3')}\n```"},
        {"command": "C", "description": "Does C."},
    )
    cases, problems = collect_cases(manifest, tmp_path)
    assert [(case.name, case.arguments) for case in cases] == [
        ("A: a=1", {"a": "1"}),
        ("A: a=2", {"a": "2"}),
        ("B: command=B, b=3", {"command": "B", "b": "3"}),
    ]
    assert problems == []


def test_an_example_that_asks_about_an_earlier_task_is_skipped(tmp_path: Path) -> None:
    manifest = _manifest(
        {"command": "submit", "description": "x {{VCP_ASYNC_RESULT::Tested::ID}}", "example": _block(command="submit")},
        {"command": "query", "description": "Asks.", "example": _block(command="query", id="1")},
        pluginType="asynchronous",
    )
    cases, _ = collect_cases(manifest, tmp_path)
    assert [bool(case.skipped) for case in cases] == [False, True]


def test_a_block_that_cannot_be_read_is_skipped_with_the_reason(tmp_path: Path) -> None:
    manifest = _manifest({"command": "A", "description": "x", "example": _block(a="1").replace("tool_name", "tool")})
    (case,), _ = collect_cases(manifest, tmp_path)
    assert "cannot be read" in case.skipped


def test_cases_of_the_author_come_after_the_examples(tmp_path: Path) -> None:
    written = [
        {"name": "good", "args": {"n": 1}, "expect": {"text_contains": ["one", "two"]}},
        {"args": {}, "expect": {"status": "error", "text_contains": "n"}},
        {},
    ]
    (tmp_path / "cases.json").write_text(json.dumps(written))
    cases, problems = collect_cases(_manifest({"command": "A", "description": "x", "example": _block(a="1")}), tmp_path)
    assert problems == []
    assert cases[1:] == [
        Case(name="good", arguments={"n": 1}, text_contains=("one", "two")),
        Case(name="case 2", status=(Status.ERROR,), text_contains=("n",)),
        Case(name="case 3"),
    ]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{", "cannot be read"),
        ("{}", "is not a list"),
        ("[1]", "case 1: it is not an object"),
        ('[{"arguments": {}}]', "case 1: 'arguments' is not known"),
        ('[{"args": []}]', "case 1: 'name' is a text"),
        ('[{}, {"expect": {"status": "ok"}}]', "case 2: 'status' cannot be \"ok\""),
        ('[{"expect": {"text": "x"}}]', "'text' is not known"),
        ('[{"expect": {"text_contains": [1]}}]', "is a text or a list of texts"),
    ],
)
def test_a_case_that_makes_no_sense_is_told_and_not_dropped_silently(written: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(written)
    _, (problem,) = collect_cases(_manifest(), tmp_path)
    assert (problem.file, said in problem.message) == ("cases.json", True)


def test_there_are_not_more_cases_than_anyone_waits_for(tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(json.dumps([{}] * 500))
    assert len(collect_cases(_manifest(), tmp_path)[0]) == MAX_CASES


def test_an_answer_is_held_against_what_was_expected() -> None:
    assert Case(name="x").find_failure(_envelope("done")) == ""
    assert Case(name="x").find_failure(_envelope("half", Status.PARTIAL)) == ""
    assert Case(name="x").find_failure(_envelope("no", Status.ERROR)) == "expected success or partial, got error: no"
    refused = Case(name="x", status=(Status.ERROR,), text_contains=("name",))
    assert refused.find_failure(_envelope("no name", Status.ERROR)) == ""
    assert refused.find_failure(_envelope("done")) == "expected error, got success: done"
    assert refused.find_failure(_envelope("no", Status.ERROR)) == "the text has no 'name': no"
